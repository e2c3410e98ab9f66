/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons: one line that tells the user how to fix a failure
 *
 * A program shows an error code, if anything. Why the library did not start, why code
 * cannot be loaded, which undocumented table of the driver's a library requests, and why
 * the host ended the session is printed here, on standard error at log level error, with
 * what to do. Each kind of reason is printed once per process; repeated ones at level
 * info.
 *
 * If no level was set, it is error if standard error is a terminal, and none otherwise.
 * Failures that may be part of a program's normal work, such as an allocation that is too
 * large, are then left out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct vgpu_channel_entry;

/* Kinds of reasons of this side; those of the host are distinguished by result. */
enum shim_reason {
	SHIM_REASON_TRANSPORT,	   /* none works */
	SHIM_REASON_VERSION,	   /* of the protocol */
	SHIM_REASON_REFUSED,	   /* by the host */
	SHIM_REASON_SILENT,	   /* no answer from the host */
	SHIM_REASON_ADDRESSES,	   /* no window */
	SHIM_REASON_VISIBLE,	   /* CUDA_VISIBLE_DEVICES */
	SHIM_REASON_FORKED,	   /* from a process that used CUDA */
	SHIM_REASON_LOAD,	   /* code that is refused here */
	SHIM_REASON_FILE,	   /* of code, that cannot be read */
	SHIM_REASON_OPTION,	   /* of the compiler, that does not travel */
	SHIM_REASON_LOAD_ROOM,	   /* none for it in the shared memory */
	SHIM_REASON_ATTRIBUTE,	   /* of a launch, that does not travel */
	SHIM_REASON_ARENA,	   /* no shared memory is left */
	SHIM_REASON_REGISTER,	   /* memory that cannot be registered */
	SHIM_REASON_REGISTER_PAGE, /* with other memory in its pages that is */
	SHIM_REASON_TABLE,	   /* of functions, that is not here */
	SHIM_REASON_ENDED,	   /* the session, by the host */
	SHIM_REASON_UNKNOWN_INIT,  /* no other reason is known */
};

/* Reads VGPU_LOG. */
void shim_reason_setup(void);

/* Another library than libcuda.so.1 has this code. Keeps the pointer. */
void shim_reason_set_library(const char *name);

/* Notes why cuInit is about to fail; the last note counts. On the thread of cuInit. */
void shim_reason_note(enum shim_reason kind, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

/* The same of a host that speaks another version of the protocol. */
void shim_reason_of_version(uint32_t version);

/* Returns: the note, or NULL where there is none. */
const char *shim_reason_noted(void);

/* Forgets the note; says it, or `otherwise` where there is none. */
void shim_reason_forget(void);
void shim_reason_tell_init(CUresult result, const char *otherwise);

/* Says that a process was forked from one that used CUDA: no lock of that one can be
 * taken. */
void shim_reason_tell_fork(void);

/* Says one of this side that is not about cuInit. */
void shim_reason_tell(enum shim_reason kind, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

/* A reason of the host, for a result of a call. @kind: enum vgpu_reply_reason. */
bool shim_reason_is_wanted(CUresult result, uint32_t kind);
void shim_reason_tell_host(
	const char *what, CUresult result, uint32_t kind, const char *text);
