/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on arrays
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/array-box.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/copy.h"
#include "worker/memory/access.h"
#include "worker/memory/arena.h"
#include "worker/memory/array.h"
#include "worker/memory/device-memory.h"

/* Messages have the same names for the fields of a descriptor. */
#define DESCRIPTOR(_message)                                                             \
	((CUDA_ARRAY3D_DESCRIPTOR){                                                      \
		.Width = (_message)->width,                                              \
		.Height = (_message)->height,                                            \
		.Depth = (_message)->depth,                                              \
		.Format = (_message)->format,                                            \
		.NumChannels = (_message)->num_channels,                                 \
		.Flags = (_message)->flags,                                              \
	})

/* Allocates a handle for an array of the driver. Its charge stays. */
static CUresult keep(struct call *call, enum vgpu_handle_kind kind, void *driver_array,
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size, uint64_t *handlep)
{
	const struct array kept = { .descriptor = *descriptor, .charged = size };
	CUresult result;

	pthread_mutex_lock(&call->session->contexts.lock);
	result = object_add_locked(call, kind, driver_array, NULL, &kept.object, handlep);
	if (result == CUDA_SUCCESS)
		call->context->array_bytes += size;
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

/* Removes an array without a parent from its table. */
static CUresult take(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void **driver_arrayp)
{
	struct session *session = call->session;
	struct context *context;
	struct array *array;
	CUresult result;

	pthread_mutex_lock(&session->contexts.lock);
	result = array_entry(call, kind, handle, &array);
	if (result == CUDA_SUCCESS && array->object.parent)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS) {
		context = (struct context *)array->object.owner;
		context->array_bytes -= array->charged;
		device_memory_refund(session, context->device, array->charged);
		result = object_take(call, kind, handle, driver_arrayp);
	}
	pthread_mutex_unlock(&session->contexts.lock);
	return result;
}

static bool may_retry(
	struct call *call, CUresult result, uint64_t size, uint32_t *n_triesp)
{
	return device_memory_may_retry(
		call->session, result, call->context->device, size, n_triesp);
}

CUresult handle_cuArray3DCreate_v2(struct call *call,
	const Vgpu__CuArray3DCreateV2Request *request,
	Vgpu__CuArray3DCreateV2Reply *reply)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = DESCRIPTOR(request);
	CUresult result;
	uint32_t n_tries = 0;
	uint64_t size;
	CUarray array;

	if (!call->driver->cuArray3DCreate_v2 || !call->driver->cuArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!array_size(&descriptor, 1, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(call->session, call->context->device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	do
		result = call->driver->cuArray3DCreate_v2(&array, &descriptor);
	while (may_retry(call, result, size, &n_tries));
	if (result == CUDA_SUCCESS) {
		result = keep(call, VGPU_HANDLE_ARRAY, array, &descriptor, size,
			&reply->p_handle);
		if (call_left_over(result))
			call->driver->cuArrayDestroy(array);
	}
	if (result != CUDA_SUCCESS)
		device_memory_refund(call->session, call->context->device, size);
	return result;
}

CUresult handle_cuArrayDestroy(struct call *call,
	const Vgpu__CuArrayDestroyRequest *request, Vgpu__CuArrayDestroyReply *reply)
{
	CUresult result;
	void *array;

	if (!call->driver->cuArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take(call, VGPU_HANDLE_ARRAY, request->h_array, &array);
	return result == CUDA_SUCCESS ? call->driver->cuArrayDestroy(array) : result;
}

CUresult handle_cuArray3DGetDescriptor_v2(struct call *call,
	const Vgpu__CuArray3DGetDescriptorV2Request *request,
	Vgpu__CuArray3DGetDescriptorV2Reply *reply)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
	CUresult result;
	void *array;

	if (!call->driver->cuArray3DGetDescriptor_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_ARRAY, request->h_array, false, &array);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuArray3DGetDescriptor_v2(&descriptor, array);
	reply->width = descriptor.Width;
	reply->height = descriptor.Height;
	reply->depth = descriptor.Depth;
	reply->format = descriptor.Format;
	reply->num_channels = descriptor.NumChannels;
	reply->flags = descriptor.Flags;
	return result;
}

/* Allocates a handle for a part of an array, or finds the one from an earlier query. */
static CUresult keep_part(
	struct call *call, CUarray part, const struct array *whole, uint64_t *handlep)
{
	struct array kept = {};
	CUresult result;

	if (!call->driver->cuArray3DGetDescriptor_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuArray3DGetDescriptor_v2(&kept.descriptor, part);
	if (result != CUDA_SUCCESS)
		return result;
	return object_add_like(
		call, VGPU_HANDLE_ARRAY, part, &whole->object, &kept.object, handlep);
}

CUresult handle_cuArrayGetPlane(struct call *call,
	const Vgpu__CuArrayGetPlaneRequest *request, Vgpu__CuArrayGetPlaneReply *reply)
{
	struct array *whole;
	CUresult result;
	CUarray plane;

	if (!call->driver->cuArrayGetPlane)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = array_entry(call, VGPU_HANDLE_ARRAY, request->h_array, &whole);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuArrayGetPlane(
			&plane, whole->object.driver, request->plane_idx);
	if (result != CUDA_SUCCESS)
		return result;
	return keep_part(call, plane, whole, &reply->p_plane_array);
}

CUresult handle_cuMipmappedArrayCreate(struct call *call,
	const Vgpu__CuMipmappedArrayCreateRequest *request,
	Vgpu__CuMipmappedArrayCreateReply *reply)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = DESCRIPTOR(request);
	CUmipmappedArray mipmap;
	CUresult result;
	uint32_t n_tries = 0;
	uint64_t size;

	if (!call->driver->cuMipmappedArrayCreate ||
		!call->driver->cuMipmappedArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!array_size(&descriptor, request->num_mipmap_levels, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(call->session, call->context->device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	do
		result = call->driver->cuMipmappedArrayCreate(
			&mipmap, &descriptor, request->num_mipmap_levels);
	while (may_retry(call, result, size, &n_tries));
	if (result == CUDA_SUCCESS) {
		result = keep(call, VGPU_HANDLE_MIPMAP, mipmap, &descriptor, size,
			&reply->p_handle);
		if (call_left_over(result))
			call->driver->cuMipmappedArrayDestroy(mipmap);
	}
	if (result != CUDA_SUCCESS)
		device_memory_refund(call->session, call->context->device, size);
	return result;
}

CUresult handle_cuMipmappedArrayGetLevel(struct call *call,
	const Vgpu__CuMipmappedArrayGetLevelRequest *request,
	Vgpu__CuMipmappedArrayGetLevelReply *reply)
{
	struct array *whole;
	CUresult result;
	CUarray level;

	if (!call->driver->cuMipmappedArrayGetLevel)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		array_entry(call, VGPU_HANDLE_MIPMAP, request->h_mipmapped_array, &whole);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMipmappedArrayGetLevel(
			&level, whole->object.driver, request->level);
	if (result != CUDA_SUCCESS)
		return result;
	return keep_part(call, level, whole, &reply->p_level_array);
}

CUresult handle_cuMipmappedArrayDestroy(struct call *call,
	const Vgpu__CuMipmappedArrayDestroyRequest *request,
	Vgpu__CuMipmappedArrayDestroyReply *reply)
{
	struct array *whole;
	CUresult result;
	void *mipmap;

	if (!call->driver->cuMipmappedArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		array_entry(call, VGPU_HANDLE_MIPMAP, request->h_mipmapped_array, &whole);
	if (result != CUDA_SUCCESS)
		return result;
	object_forget_children(call, &whole->object);
	result = take(call, VGPU_HANDLE_MIPMAP, request->h_mipmapped_array, &mipmap);
	return result == CUDA_SUCCESS ? call->driver->cuMipmappedArrayDestroy(mipmap)
				      : result;
}

/*
 * Memory requirements of arrays with deferred mapping
 */

#define SET_SPARSE(_reply, _properties)                                                  \
	do {                                                                             \
		(_reply)->tile_width = (_properties)->tileExtent.width;                  \
		(_reply)->tile_height = (_properties)->tileExtent.height;                \
		(_reply)->tile_depth = (_properties)->tileExtent.depth;                  \
		(_reply)->tail_first_level = (_properties)->miptailFirstLevel;           \
		(_reply)->tail_size = (_properties)->miptailSize;                        \
		(_reply)->flags = (_properties)->flags;                                  \
	} while (0)

CUresult handle_cuArrayGetSparseProperties(struct call *call,
	const Vgpu__CuArrayGetSparsePropertiesRequest *request,
	Vgpu__CuArrayGetSparsePropertiesReply *reply)
{
	CUDA_ARRAY_SPARSE_PROPERTIES properties = {};
	CUresult result;
	void *array;

	if (!call->driver->cuArrayGetSparseProperties)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_ARRAY, request->array, false, &array);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuArrayGetSparseProperties(&properties, array);
	SET_SPARSE(reply, &properties);
	return result;
}

CUresult handle_cuMipmappedArrayGetSparseProperties(struct call *call,
	const Vgpu__CuMipmappedArrayGetSparsePropertiesRequest *request,
	Vgpu__CuMipmappedArrayGetSparsePropertiesReply *reply)
{
	CUDA_ARRAY_SPARSE_PROPERTIES properties = {};
	CUresult result;
	void *mipmap;

	if (!call->driver->cuMipmappedArrayGetSparseProperties)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_MIPMAP, request->mipmap, false, &mipmap);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMipmappedArrayGetSparseProperties(
			&properties, mipmap);
	SET_SPARSE(reply, &properties);
	return result;
}

CUresult handle_cuArrayGetMemoryRequirements(struct call *call,
	const Vgpu__CuArrayGetMemoryRequirementsRequest *request,
	Vgpu__CuArrayGetMemoryRequirementsReply *reply)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = {};
	CUresult result;
	void *array;

	if (!call->driver->cuArrayGetMemoryRequirements)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_ARRAY, request->array, false, &array);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuArrayGetMemoryRequirements(
			&requirements, array, request->device);
	reply->size = requirements.size;
	reply->alignment = requirements.alignment;
	return result;
}

CUresult handle_cuMipmappedArrayGetMemoryRequirements(struct call *call,
	const Vgpu__CuMipmappedArrayGetMemoryRequirementsRequest *request,
	Vgpu__CuMipmappedArrayGetMemoryRequirementsReply *reply)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = {};
	CUresult result;
	void *mipmap;

	if (!call->driver->cuMipmappedArrayGetMemoryRequirements)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_MIPMAP, request->mipmap, false, &mipmap);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMipmappedArrayGetMemoryRequirements(
			&requirements, mipmap, request->device);
	reply->size = requirements.size;
	reply->alignment = requirements.alignment;
	return result;
}

/*
 * Copies
 */

/* Checks a side and translates it. */
static CUresult find_side(struct call *call, uint64_t handle,
	const struct vgpu_array_side *side, const struct vgpu_array_box *box,
	CUmemorytype *typep, CUarray *arrayp)
{
	const struct access_side memory = { side->address, side->pitch, side->rows };

	if (!handle) {
		*typep = arena_covers(call->session, side->address, 1)
				 ? CU_MEMORYTYPE_HOST
				 : CU_MEMORYTYPE_DEVICE;
		return access_check_side(
			call, &memory, box->width, box->height, box->depth);
	}
	*typep = CU_MEMORYTYPE_ARRAY;
	return array_check_side(call, handle, side, box, arrayp);
}

/* The structure of the API has the same field names for both sides, but for a prefix. */
#define SET_SIDE(_copy, _prefix, _type, _side, _array)                                   \
	do {                                                                             \
		(_copy)->_prefix##MemoryType = (_type);                                  \
		(_copy)->_prefix##Pitch = (_side)->pitch;                                \
		(_copy)->_prefix##Height = (_side)->rows;                                \
		if ((_type) == CU_MEMORYTYPE_HOST)                                       \
			(_copy)->_prefix##Host = (void *)(uintptr_t)(_side)->address;    \
		if ((_type) == CU_MEMORYTYPE_DEVICE)                                     \
			(_copy)->_prefix##Device = (_side)->address;                     \
		if ((_type) != CU_MEMORYTYPE_ARRAY)                                      \
			break;                                                           \
		(_copy)->_prefix##Array = (_array);                                      \
		(_copy)->_prefix##XInBytes = (_side)->x;                                 \
		(_copy)->_prefix##Y = (_side)->y;                                        \
		(_copy)->_prefix##Z = (_side)->z;                                        \
	} while (0)

static void count(struct call *call, CUmemorytype to, CUmemorytype from, uint64_t size)
{
	if (from == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_h2d, 1);
		session_count(call->session, bytes_h2d, size);
		device_memory_pace_copy(call->session, size);
	} else if (to == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_d2h, 1);
		session_count(call->session, bytes_d2h, size);
		device_memory_pace_copy(call->session, size);
	} else {
		session_count(call->session, copies_d2d, 1);
	}
}

static CUresult copy_box(struct call *call, const Vgpu__VgpuCopyArrayRequest *request,
	const struct vgpu_array_box *box, CUstream stream)
{
	CUDA_MEMCPY3D copy = {
		.WidthInBytes = box->width,
		.Height = box->height,
		.Depth = box->depth,
	};
	CUarray to_array = NULL, from_array = NULL;
	CUmemorytype to, from;
	CUresult result;

	if (!call->driver->cuMemcpy3DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!request->dst_array && !request->src_array)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_side(call, request->dst_array, &box->to, box, &to, &to_array);
	if (result == CUDA_SUCCESS)
		result = find_side(
			call, request->src_array, &box->from, box, &from, &from_array);
	if (result != CUDA_SUCCESS)
		return result;
	SET_SIDE(&copy, dst, to, &box->to, to_array);
	SET_SIDE(&copy, src, from, &box->from, from_array);
	result = call->driver->cuMemcpy3DAsync_v2(&copy, stream);
	if (result == CUDA_SUCCESS)
		count(call, to, from, box->width * box->height * box->depth);
	return result;
}

CUresult handle_vgpuCopyArray(struct call *call,
	const Vgpu__VgpuCopyArrayRequest *request, Vgpu__VgpuCopyArrayReply *reply)
{
	struct vgpu_array_box box;
	CUresult result;
	void *stream;

	result = copy_stream(
		call, request->stream, request->word, request->word_value, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (request->box.len == sizeof(box)) {
		memcpy(&box, request->box.data, sizeof(box));
		result = copy_box(call, request, &box, stream);
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	return copy_finish(call, stream, request->word, request->word_value, result);
}
