/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions and kernels
 *
 * Found by the index of their handle without a lock, for it happens at every launch. A
 * structure, once made, stays; what it says is true of its handle for ever, because
 * handles are not used again.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"

#include "code/function.h"
#include "code/launch.h"
#include "code/memo.h"
#include "process/call.h"
#include "process/context.h"
#include "wire/lock.h"
#include "wire/table.h"

/* A kernel's parameters take 32 764 bytes at the most, each one at least. */
#define PARAMS_MAX VGPU_LAUNCH_PARAMS_MAX

static struct shim_lock functions_lock;
struct shim_table shim_functions, shim_kernels;

/* Part of every shape: growing makes all that is remembered worthless. */
static uint64_t shapes_epoch = 1;

/* Whether a kernel may have clusters that it did not have when it was compiled. Set once;
 * partner: the load in depends_on_grid(). */
static bool has_set_clusters;

static void function_free(struct shim_function *function)
{
	if (!function)
		return;
	free(function->offsets);
	free(function->sizes);
	free(function);
}

VGPU_DEFINE_CLEANUP(struct shim_function *, function_free);

static bool store_params(struct shim_function *function,
	const Vgpu__VgpuFunctionInfoReply *reply, uint32_t first)
{
	if (!first) {
		function->n_params = reply->n_params;
		function->param_bytes = reply->param_bytes;
		if (reply->n_params > PARAMS_MAX || reply->param_bytes > PARAMS_MAX)
			return false;
		function->offsets = calloc(reply->n_params + 1, sizeof(uint32_t));
		function->sizes = calloc(reply->n_params + 1, sizeof(uint32_t));
		if (!function->offsets || !function->sizes)
			return false;
	}
	if (reply->n_offsets != reply->n_sizes ||
		reply->n_offsets > function->n_params - first ||
		(!reply->n_offsets && first < function->n_params))
		return false;
	for (uint32_t i = 0; i < reply->n_offsets; i++) {
		if (reply->offsets[i] > function->param_bytes ||
			reply->sizes[i] > function->param_bytes - reply->offsets[i])
			return false;
		function->offsets[first + i] = reply->offsets[i];
		function->sizes[first + i] = reply->sizes[i];
	}
	return true;
}

static CUresult ask(struct shim_function *function)
{
	Vgpu__VgpuFunctionInfoRequest request = VGPU__VGPU_FUNCTION_INFO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuFunctionInfo);
	const Vgpu__VgpuFunctionInfoReply *reply;
	const ProtobufCMessage *message;
	uint32_t covered = 0;
	CUresult result;

	request.function = (uint64_t)(uintptr_t)function->handle;
	do {
		result = shim_memo_call(&call, &request.base,
			&vgpu__vgpu_function_info_reply__descriptor, &message);
		if (result != CUDA_SUCCESS)
			return result;
		reply = (const Vgpu__VgpuFunctionInfoReply *)message;
		if (!store_params(function, reply, request.first))
			return CUDA_ERROR_UNKNOWN;
		request.first += (uint32_t)reply->n_offsets;
		function->has_clusters = reply->has_clusters != 0;
	} while (request.first < function->n_params);

	function->is_words = true;
	for (uint32_t i = 0; i < function->n_params; i++) {
		function->is_words &= function->sizes[i] == sizeof(uint64_t) &&
				      function->offsets[i] == covered;
		covered += function->sizes[i];
	}
	function->has_gaps = covered != function->param_bytes;
	return CUDA_SUCCESS;
}

static bool publish(struct shim_table *table, struct shim_function *function)
{
	SHIM_LOCKED(&functions_lock);
	return shim_table_set(table,
		vgpu_handle_index((uint64_t)(uintptr_t)function->handle), function);
}

static CUresult load(
	CUfunction handle, struct shim_table *table, struct shim_function **functionp)
{
	_vgpu_cleanup_(function_freep) struct shim_function *function = NULL;
	CUresult result;

	function = calloc(1, sizeof(*function));
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->handle = handle;
	result = ask(function);
	if (result != CUDA_SUCCESS)
		return result;

	/* The entry belongs to a destroyed handle; a launch may still be reading it, so
	 * it is not freed. */
	if (!publish(table, function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*functionp = function;
	function = NULL;
	return CUDA_SUCCESS;
}

CUresult shim_function_load(CUfunction handle, struct shim_function **functionp)
{
	switch (vgpu_handle_kind((uint64_t)(uintptr_t)handle)) {
	case VGPU_HANDLE_FUNCTION:
		return load(handle, &shim_functions, functionp);
	case VGPU_HANDLE_KERNEL:
		return load(handle, &shim_kernels, functionp);
	default:
		return CUDA_ERROR_INVALID_HANDLE;
	}
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Whether a launch may be refused for its grid although the device can have it. */
static bool depends_on_grid(
	const struct shim_function *function, const struct shim_launch *launch)
{
	if (launch->dims.flags & VGPU_LAUNCH_COOPERATIVE || function->has_clusters ||
		__atomic_load_n(&has_set_clusters, __ATOMIC_RELAXED))
		return true;
	for (unsigned int i = 0; i < launch->n_attributes; i++)
		if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
			launch->attributes[i].id ==
				CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
			return true;
	return false;
}

static uint64_t mix_attribute(uint64_t hash, const CUlaunchAttribute *attribute)
{
	uint64_t words[sizeof(*attribute) / sizeof(uint64_t)];

	memcpy(words, attribute, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = mix(hash, words[i]);
	return hash;
}

uint64_t shim_function_shape(const struct shim_context *context,
	const struct shim_function *function, const struct shim_launch *launch)
{
	const struct vgpu_launch_dims *dims = &launch->dims;
	uint64_t hash =
		mix(__atomic_load_n(&shapes_epoch, __ATOMIC_ACQUIRE), context->id);

	hash = mix(hash, (uint64_t)context->epoch << 32 | dims->shared_bytes);
	hash = mix(hash, (uint64_t)dims->axis[0].block << 32 | dims->axis[1].block);
	hash = mix(hash, (uint64_t)dims->axis[2].block << 32 | dims->flags);
	for (unsigned int i = 0; i < launch->n_attributes; i++)
		hash = mix_attribute(hash, &launch->attributes[i]);
	if (depends_on_grid(function, launch)) {
		hash = mix(hash, (uint64_t)dims->axis[0].grid << 32 | dims->axis[1].grid);
		hash = mix(hash, dims->axis[2].grid);
		hash = mix(hash, shim_stream_partition(launch->stream));
	}
	return hash ? hash : 1;
}

bool shim_function_knows(const struct shim_function *function, uint64_t shape)
{
	for (uint32_t i = 0; i < SHIM_FUNCTION_SHAPES; i++)
		if (__atomic_load_n(&function->shapes[i], __ATOMIC_RELAXED) == shape)
			return true;
	return false;
}

void shim_function_remember(struct shim_function *function, uint64_t shape)
{
	uint32_t i = __atomic_fetch_add(&function->n_shapes, 1, __ATOMIC_RELAXED);

	__atomic_store_n(
		&function->shapes[i % SHIM_FUNCTION_SHAPES], shape, __ATOMIC_RELAXED);
}

void shim_function_note_clusters(void)
{
	__atomic_store_n(&has_set_clusters, true, __ATOMIC_RELAXED);
	shim_function_forget_launches();
}

void shim_function_forget_launches(void)
{
	__atomic_add_fetch(&shapes_epoch, 1, __ATOMIC_RELEASE);
}
