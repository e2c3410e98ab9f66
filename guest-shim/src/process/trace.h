/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trace: a line for each call of the program
 *
 * VGPU_TRACE names the file; %p in it is replaced by the process id. While tracing is
 * off, a call costs one read of shim_trace_is_on. Generated code
 * (protocol/gen/emit_entries.py) makes the calls here, between begin and end, on one
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "vgpu/cuda.h"

/* A longer line is cut. */
#define SHIM_TRACE_LINE_MAX 1024

enum shim_trace_form {
	SHIM_TRACE_SIGNED,
	SHIM_TRACE_UNSIGNED,
	SHIM_TRACE_ADDRESS,
};

struct shim_trace {
	struct timespec begin; /* of the clock that people read */
	uint64_t begin_ns;     /* of the clock that never jumps */
	uint64_t end_ns;
	uint32_t n_messages; /* sent by the thread before, and then by the call */
	CUresult result;
	bool has_arguments;
	size_t size;
	char line[SHIM_TRACE_LINE_MAX];
};

/* Set when the library is loaded; cleared for good when the file is lost. */
extern bool shim_trace_is_on __attribute__((__visibility__("hidden")));

void shim_trace_begin(struct shim_trace *trace);
void shim_trace_result(struct shim_trace *trace, const char *name, CUresult result);
void shim_trace_signed(struct shim_trace *trace, const char *name, int64_t value);
void shim_trace_unsigned(struct shim_trace *trace, const char *name, uint64_t value);
void shim_trace_address(struct shim_trace *trace, const char *name, uint64_t value);
void shim_trace_real(struct shim_trace *trace, const char *name, double value);
void shim_trace_string(struct shim_trace *trace, const char *name, const char *text);
void shim_trace_block(struct shim_trace *trace, const char *name, size_t size);
void shim_trace_output(struct shim_trace *trace, const char *name, const void *pointer,
	size_t size, enum shim_trace_form form);
CUresult shim_trace_end(struct shim_trace *trace);

/* Puts the process id in place of %p. Return: false where the name is too long. */
bool shim_trace_expand(const char *pattern, int pid, char *path, size_t size);
