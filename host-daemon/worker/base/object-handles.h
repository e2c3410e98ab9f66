/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handles: the guest's names for objects of the driver
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

struct call;
struct object;
struct stream;

/*
 * Looks up the driver's object for a guest's handle of that kind.
 *
 * VGPU_HANDLE_FUNCTION also accepts kernels. VGPU_HANDLE_STREAM accepts 0, 1 (the
 * context's legacy stream) and 2 (the lane's per-thread stream). With null_ok, handle 0
 * of any other kind gives NULL.
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE (contexts: _INVALID_CONTEXT, graphs and
 * their parts: _INVALID_VALUE).
 */
CUresult object_get(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	bool null_ok, void **driver_handlep);

/*
 * Allocates a handle for a new driver object. It belongs to the lane's current context
 * (libraries, kernels and contexts: to none). An object that has a handle already keeps
 * it, because functions and kernels are looked up repeatedly.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY beyond the session's limits: the
 * caller then destroys the driver object.
 */
CUresult object_add(struct call *call, enum vgpu_handle_kind kind, void *driver_handle,
	uint64_t *handlep);

/* As object_add(), under a handle that the guest chose, with the state of `like`. */
CUresult object_add_at(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver_handle, const struct object *like);

/*
 * Removes an object from its table, whatever the result of its destruction will be.
 *
 * Return: as object_get().
 */
CUresult object_take(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void **driver_handlep);

/* As object_take(), for a module or library with its children. A child of another object
 * is refused with CUDA_ERROR_NOT_PERMITTED. */
CUresult object_take_parent(struct call *call, enum vgpu_handle_kind kind,
	uint64_t handle, void **driver_handlep);

/* As object_get(), for handlers that need the entry instead of the driver's object. */
CUresult object_find(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct object **objectp);

/* As object_add(), for an object that is removed together with `parent`. */
CUresult object_add_child(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, uint64_t *handlep);

/*
 * The same for the driver's part of a module or library, which another thread may have
 * unloaded since: @of, the object found by @handle, is the parent or one of its children.
 *
 * Return: CUDA_ERROR_INVALID_HANDLE or the like if it is not there any more.
 */
CUresult object_add_part(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *of, uint64_t handle, uint64_t *handlep);

/* As object_add_child(), for entries with additional state, which is copied from
 * `like`. */
CUresult object_add_like(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep);

/* As object_add_like(), for callers that hold contexts.lock. */
CUresult object_add_locked(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep);

/* Looks up a stream, including the special handles 0, 1 and 2. */
CUresult object_find_stream(struct call *call, uint64_t handle, struct stream **streamp);

/* Removes the children of a module or library: functions, kernels, variables. */
void object_forget_children(struct call *call, const struct object *parent);
