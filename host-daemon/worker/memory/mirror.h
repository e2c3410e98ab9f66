/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mirrors: managed variables of a driver that places them where no guest can access them
 *
 * NVIDIA's driver allocates managed variables itself, in memory of the worker. The guest
 * has a copy of them in the arena, mapped at the same addresses: pages of the variables
 * and of the arena correspond to each other as long as the session lives. Before a call
 * the bytes that the guest has changed are copied to the variable, and after a call that
 * waited, those that the device has changed are copied to the guest. Both are found by
 * comparing with what was copied last.
 *
 * That is enough for a device without concurrent managed access, as the guest's is: the
 * program accesses managed memory only while no kernel runs, and the calls by which it
 * learns that are sent to the host once it has such a variable. The driver's own device
 * has to have concurrent access, because the worker does not know when kernels run.
 *
 * The lock is held while memory of variables is accessed, and while a context ends, with
 * which the driver may free it. Variables of a module or library are forgotten before it
 * is unloaded, so nobody waits for the kernels for which that waits.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/mirror.h"
#include "worker/base/session.h"

struct call;
struct context;
struct lookup;

/* Programs have a handful of such variables; each is compared at every wait. */
#define MIRROR_VARIABLES_MAX 1024u
#define MIRROR_BYTES_MAX (64ull << 20)
#define MIRROR_PIECES_MAX 256u

struct mirror_variable {
	uint64_t address;
	uint64_t size;
	uint8_t *last; /* what both sides had when they were compared last */
	/* As in struct lookup. */
	const void *parent;
	const struct context *owner;
};

struct mirrors {
	pthread_mutex_t lock;
	struct mirror_variable variables[MIRROR_VARIABLES_MAX];
	uint32_t n_variables; /* atomic, for those that look without the lock */
	uint64_t n_bytes;
	/* In the order of their making; they do not overlap. */
	struct vgpu_mirror_piece pieces[MIRROR_PIECES_MAX];
	uint32_t n_pieces;
};

/* Whether there are any: without them a call pays for a look at memory alone. */
static inline bool mirror_is_any(const struct session *session)
{
	return __atomic_load_n(&session->mirrors->n_variables, __ATOMIC_RELAXED);
}

void mirror_init(struct session *session);
void mirror_deinit(struct session *session);

/*
 * Has the guest share a managed variable.
 *
 * @lookup:	that found it, and has not ended
 * @pieces:	room for VGPU_MIRROR_PIECES_MAX pieces that hold it
 *
 * Return: CUDA_ERROR_NOT_SUPPORTED without concurrent access, or beyond the limits.
 */
CUresult mirror_add(struct call *call, const struct lookup *lookup, uint64_t address,
	uint64_t size, struct vgpu_mirror_piece *pieces, uint32_t *np);

/* Whether [address, address + size) is within one variable. */
bool mirror_covers(struct session *session, uint64_t address, uint64_t size);

/* Copies what the guest has changed, before a call. */
void mirror_push(struct session *session);

/* Copies what the device has changed, after a call that waited. */
void mirror_pull(struct session *session);

/* Forgets the variables of a module or library of the driver, which is about to be
 * unloaded: after the look-ups in it. */
void mirror_forget(struct session *session, const void *parent);

/*
 * Around the end of a context in the driver: forgets the variables of its modules, and
 * those of libraries that the driver frees with it.
 *
 * Return: what mirror_after_context() takes.
 */
bool mirror_before_context(struct session *session, const struct context *context);
void mirror_after_context(struct session *session, bool is_held);
