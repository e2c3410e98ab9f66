/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on texture and surface objects
 *
 * The guest uses the driver's object numbers (driver-texture.xml explains why), so
 * objects are looked up by number among those created in the caller's context; an unknown
 * number is never passed to the driver. For an object over an array the entry keeps the
 * array's handle, which replaces the driver's in returned descriptions.
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/texture.h"
#include "worker/memory/access.h"
#include "worker/memory/array.h"

static struct object_table *table_of(struct call *call, enum vgpu_handle_kind kind)
{
	return &call->session->objects[kind];
}

static void *as_pointer(uint64_t number)
{
	return (void *)(uintptr_t)number;
}

static CUresult find(struct call *call, enum vgpu_handle_kind kind, uint64_t number,
	struct texture *found)
{
	if (!object_table_find_driver(table_of(call, kind), as_pointer(number),
		    call->context, &found->object, sizeof(*found)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Removes an object from the table, before the driver can reuse its number. */
static CUresult take(struct call *call, enum vgpu_handle_kind kind, uint64_t number)
{
	struct texture texture;
	CUresult result = find(call, kind, number, &texture);

	if (result != CUDA_SUCCESS)
		return result;
	if (!object_table_remove(table_of(call, kind),
		    object_handle(table_of(call, kind), &texture.object), NULL))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult keep(
	struct call *call, enum vgpu_handle_kind kind, uint64_t number, uint64_t resource)
{
	const struct texture kept = { .resource = resource };
	uint64_t handle;

	return object_add_like(
		call, kind, as_pointer(number), NULL, &kept.object, &handle);
}

/*
 * Descriptions
 */

/* Return: false if the size is not that of the structure. */
static bool read_structure(void *to, size_t size, const ProtobufCBinaryData *from)
{
	if (from->len != size)
		return false;
	memcpy(to, from->data, size);
	return true;
}

static bool write_structure(
	struct call *call, ProtobufCBinaryData *to, const void *from, size_t size)
{
	to->data = call_alloc(call, size);
	if (!to->data)
		return false;
	memcpy(to->data, from, size);
	to->len = size;
	return true;
}

static CUresult check_pitch2d(struct call *call, const CUDA_RESOURCE_DESC *resource)
{
	const CUDA_ARRAY3D_DESCRIPTOR texel = {
		.Format = resource->res.pitch2D.format,
		.NumChannels = resource->res.pitch2D.numChannels,
	};
	const struct access_side side = {
		.address = resource->res.pitch2D.devPtr,
		.pitch = resource->res.pitch2D.pitchInBytes,
	};
	uint64_t width;

	if (!vgpu_mul_u64(
		    resource->res.pitch2D.width, array_texel_size(&texel), &width) ||
		!width || !resource->res.pitch2D.height)
		return CUDA_ERROR_INVALID_VALUE;
	return access_check_side(call, &side, width, resource->res.pitch2D.height, 1);
}

/* Translates the guest's description to the driver's; *handlep is the array. */
static CUresult translate(
	struct call *call, CUDA_RESOURCE_DESC *resource, uint64_t *handlep)
{
	CUresult result;
	void *object;

	*handlep = 0;
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		*handlep = (uint64_t)(uintptr_t)resource->res.array.hArray;
		result = object_get(call, VGPU_HANDLE_ARRAY, *handlep, false, &object);
		if (result == CUDA_SUCCESS)
			resource->res.array.hArray = object;
		return result;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		*handlep = (uint64_t)(uintptr_t)resource->res.mipmap.hMipmappedArray;
		result = object_get(call, VGPU_HANDLE_MIPMAP, *handlep, false, &object);
		if (result == CUDA_SUCCESS)
			resource->res.mipmap.hMipmappedArray = object;
		return result;
	case CU_RESOURCE_TYPE_LINEAR:
		return access_check(call, resource->res.linear.devPtr,
			resource->res.linear.sizeInBytes);
	case CU_RESOURCE_TYPE_PITCH2D:
		return check_pitch2d(call, resource);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The reverse: replaces the driver's array by the guest's handle. */
static void restore(CUDA_RESOURCE_DESC *resource, uint64_t handle)
{
	void *guests = as_pointer(handle);

	if (resource->resType == CU_RESOURCE_TYPE_ARRAY)
		resource->res.array.hArray = guests;
	else if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		resource->res.mipmap.hMipmappedArray = guests;
}

/*
 * Calls
 */

CUresult handle_cuTexObjectCreate(struct call *call,
	const Vgpu__CuTexObjectCreateRequest *request,
	Vgpu__CuTexObjectCreateReply *reply)
{
	CUDA_RESOURCE_VIEW_DESC view;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUtexObject number;
	uint64_t handle;
	CUresult result;

	if (!call->driver->cuTexObjectCreate || !call->driver->cuTexObjectDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!read_structure(&resource, sizeof(resource), &request->resource) ||
		!read_structure(&texture, sizeof(texture), &request->texture) ||
		(request->view.len &&
			!read_structure(&view, sizeof(view), &request->view)))
		return CUDA_ERROR_INVALID_VALUE;
	result = translate(call, &resource, &handle);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexObjectCreate(
			&number, &resource, &texture, request->view.len ? &view : NULL);
	if (result != CUDA_SUCCESS)
		return result;
	result = keep(call, VGPU_HANDLE_TEXTURE, number, handle);
	if (call_left_over(result))
		call->driver->cuTexObjectDestroy(number);
	reply->p_tex_object = number;
	return result;
}

CUresult handle_cuTexObjectDestroy(struct call *call,
	const Vgpu__CuTexObjectDestroyRequest *request,
	Vgpu__CuTexObjectDestroyReply *reply)
{
	CUresult result;

	if (!call->driver->cuTexObjectDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take(call, VGPU_HANDLE_TEXTURE, request->tex_object);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuTexObjectDestroy(request->tex_object);
}

CUresult handle_cuTexObjectGetResourceDesc(struct call *call,
	const Vgpu__CuTexObjectGetResourceDescRequest *request,
	Vgpu__CuTexObjectGetResourceDescReply *reply)
{
	CUDA_RESOURCE_DESC resource = {};
	struct texture texture;
	CUresult result;

	if (!call->driver->cuTexObjectGetResourceDesc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find(call, VGPU_HANDLE_TEXTURE, request->tex_object, &texture);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexObjectGetResourceDesc(
			&resource, request->tex_object);
	if (result != CUDA_SUCCESS)
		return result;
	restore(&resource, texture.resource);
	if (!write_structure(call, &reply->resource, &resource, sizeof(resource)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult handle_cuTexObjectGetTextureDesc(struct call *call,
	const Vgpu__CuTexObjectGetTextureDescRequest *request,
	Vgpu__CuTexObjectGetTextureDescReply *reply)
{
	CUDA_TEXTURE_DESC description = {};
	struct texture texture;
	CUresult result;

	if (!call->driver->cuTexObjectGetTextureDesc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find(call, VGPU_HANDLE_TEXTURE, request->tex_object, &texture);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexObjectGetTextureDesc(
			&description, request->tex_object);
	if (result != CUDA_SUCCESS)
		return result;
	if (!write_structure(call, &reply->texture, &description, sizeof(description)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult handle_cuTexObjectGetResourceViewDesc(struct call *call,
	const Vgpu__CuTexObjectGetResourceViewDescRequest *request,
	Vgpu__CuTexObjectGetResourceViewDescReply *reply)
{
	CUDA_RESOURCE_VIEW_DESC view = {};
	struct texture texture;
	CUresult result;

	if (!call->driver->cuTexObjectGetResourceViewDesc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find(call, VGPU_HANDLE_TEXTURE, request->tex_object, &texture);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexObjectGetResourceViewDesc(
			&view, request->tex_object);
	if (result != CUDA_SUCCESS)
		return result;
	if (!write_structure(call, &reply->view, &view, sizeof(view)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult handle_cuSurfObjectCreate(struct call *call,
	const Vgpu__CuSurfObjectCreateRequest *request,
	Vgpu__CuSurfObjectCreateReply *reply)
{
	CUDA_RESOURCE_DESC resource;
	CUsurfObject number;
	uint64_t handle;
	CUresult result;

	if (!call->driver->cuSurfObjectCreate || !call->driver->cuSurfObjectDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!read_structure(&resource, sizeof(resource), &request->resource))
		return CUDA_ERROR_INVALID_VALUE;
	result = translate(call, &resource, &handle);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuSurfObjectCreate(&number, &resource);
	if (result != CUDA_SUCCESS)
		return result;
	result = keep(call, VGPU_HANDLE_SURFACE, number, handle);
	if (call_left_over(result))
		call->driver->cuSurfObjectDestroy(number);
	reply->p_surf_object = number;
	return result;
}

CUresult handle_cuSurfObjectDestroy(struct call *call,
	const Vgpu__CuSurfObjectDestroyRequest *request,
	Vgpu__CuSurfObjectDestroyReply *reply)
{
	CUresult result;

	if (!call->driver->cuSurfObjectDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take(call, VGPU_HANDLE_SURFACE, request->surf_object);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuSurfObjectDestroy(request->surf_object);
}

CUresult handle_cuSurfObjectGetResourceDesc(struct call *call,
	const Vgpu__CuSurfObjectGetResourceDescRequest *request,
	Vgpu__CuSurfObjectGetResourceDescReply *reply)
{
	CUDA_RESOURCE_DESC resource = {};
	struct texture surface;
	CUresult result;

	if (!call->driver->cuSurfObjectGetResourceDesc)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find(call, VGPU_HANDLE_SURFACE, request->surf_object, &surface);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuSurfObjectGetResourceDesc(
			&resource, request->surf_object);
	if (result != CUDA_SUCCESS)
		return result;
	restore(&resource, surface.resource);
	if (!write_structure(call, &reply->resource, &resource, sizeof(resource)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}
