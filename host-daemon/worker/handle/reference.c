/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on texture and surface references
 *
 * A reference of a module is a child of the module; only references that the guest
 * created may be destroyed. An entry keeps the handle of the array that was bound last,
 * for queries; only the driver knows whether an array is bound.
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/handle/texture.h"
#include "worker/memory/access.h"
#include "worker/memory/array.h"

static CUresult reference_entry(struct call *call, enum vgpu_handle_kind kind,
	uint64_t handle, struct texture **referencep)
{
	return object_find(call, kind, handle, (struct object **)referencep);
}

CUresult handle_cuModuleGetTexRef(struct call *call,
	const Vgpu__CuModuleGetTexRefRequest *request,
	Vgpu__CuModuleGetTexRefReply *reply)
{
	struct object *module;
	CUtexref reference;
	CUresult result;

	if (!call->driver->cuModuleGetTexRef)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_MODULE, request->hmod, &module);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetTexRef(
			&reference, module->driver, request->name);
	if (result != CUDA_SUCCESS)
		return result;
	return object_add_child(
		call, VGPU_HANDLE_TEXREF, reference, module, &reply->p_tex_ref);
}

CUresult handle_cuModuleGetSurfRef(struct call *call,
	const Vgpu__CuModuleGetSurfRefRequest *request,
	Vgpu__CuModuleGetSurfRefReply *reply)
{
	struct object *module;
	CUsurfref reference;
	CUresult result;

	if (!call->driver->cuModuleGetSurfRef)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_MODULE, request->hmod, &module);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetSurfRef(
			&reference, module->driver, request->name);
	if (result != CUDA_SUCCESS)
		return result;
	return object_add_child(
		call, VGPU_HANDLE_SURFREF, reference, module, &reply->p_surf_ref);
}

CUresult handle_cuTexRefCreate(struct call *call,
	const Vgpu__CuTexRefCreateRequest *request, Vgpu__CuTexRefCreateReply *reply)
{
	CUtexref reference;
	CUresult result;

	if (!call->driver->cuTexRefCreate || !call->driver->cuTexRefDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuTexRefCreate(&reference);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add(call, VGPU_HANDLE_TEXREF, reference, &reply->p_tex_ref);
	if (call_left_over(result))
		call->driver->cuTexRefDestroy(reference);
	return result;
}

CUresult handle_cuTexRefDestroy(struct call *call,
	const Vgpu__CuTexRefDestroyRequest *request, Vgpu__CuTexRefDestroyReply *reply)
{
	struct object *object;
	CUresult result;
	void *reference;

	if (!call->driver->cuTexRefDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &object);
	if (result == CUDA_SUCCESS && object->parent)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = object_take(
			call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &reference);
	return result == CUDA_SUCCESS ? call->driver->cuTexRefDestroy(reference) : result;
}

/*
 * Bindings
 */

CUresult handle_cuTexRefSetArray(struct call *call,
	const Vgpu__CuTexRefSetArrayRequest *request, Vgpu__CuTexRefSetArrayReply *reply)
{
	struct texture *reference;
	CUresult result;
	void *array;

	if (!call->driver->cuTexRefSetArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		reference_entry(call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &reference);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_ARRAY, request->h_array, false, &array);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexRefSetArray(
			reference->object.driver, array, request->flags);
	if (result == CUDA_SUCCESS)
		reference->resource = request->h_array;
	return result;
}

CUresult handle_cuTexRefSetMipmappedArray(struct call *call,
	const Vgpu__CuTexRefSetMipmappedArrayRequest *request,
	Vgpu__CuTexRefSetMipmappedArrayReply *reply)
{
	struct texture *reference;
	CUresult result;
	void *mipmap;

	if (!call->driver->cuTexRefSetMipmappedArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		reference_entry(call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &reference);
	if (result == CUDA_SUCCESS)
		result = object_get(call, VGPU_HANDLE_MIPMAP, request->h_mipmapped_array,
			false, &mipmap);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexRefSetMipmappedArray(
			reference->object.driver, mipmap, request->flags);
	if (result == CUDA_SUCCESS)
		reference->resource = request->h_mipmapped_array;
	return result;
}

CUresult handle_cuSurfRefSetArray(struct call *call,
	const Vgpu__CuSurfRefSetArrayRequest *request,
	Vgpu__CuSurfRefSetArrayReply *reply)
{
	struct texture *reference;
	CUresult result;
	void *array;

	if (!call->driver->cuSurfRefSetArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = reference_entry(
		call, VGPU_HANDLE_SURFREF, request->h_surf_ref, &reference);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_ARRAY, request->h_array, false, &array);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuSurfRefSetArray(
			reference->object.driver, array, request->flags);
	if (result == CUDA_SUCCESS)
		reference->resource = request->h_array;
	return result;
}

/* The handle of the bound array, if the driver reports one and it still exists. */
static CUresult bound(struct call *call, enum vgpu_handle_kind kind,
	const struct texture *reference, const void *driver, uint64_t *handlep)
{
	struct object *object;
	CUresult result;

	result = object_find(call, kind, reference->resource, &object);
	if (result != CUDA_SUCCESS || object->driver != driver)
		return CUDA_ERROR_INVALID_VALUE;
	*handlep = reference->resource;
	return CUDA_SUCCESS;
}

CUresult handle_cuTexRefGetArray(struct call *call,
	const Vgpu__CuTexRefGetArrayRequest *request, Vgpu__CuTexRefGetArrayReply *reply)
{
	struct texture *reference;
	CUarray array = NULL;
	CUresult result;

	if (!call->driver->cuTexRefGetArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		reference_entry(call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &reference);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexRefGetArray(&array, reference->object.driver);
	if (result != CUDA_SUCCESS)
		return result;
	return bound(call, VGPU_HANDLE_ARRAY, reference, array, &reply->ph_array);
}

CUresult handle_cuTexRefGetMipmappedArray(struct call *call,
	const Vgpu__CuTexRefGetMipmappedArrayRequest *request,
	Vgpu__CuTexRefGetMipmappedArrayReply *reply)
{
	CUmipmappedArray mipmap = NULL;
	struct texture *reference;
	CUresult result;

	if (!call->driver->cuTexRefGetMipmappedArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result =
		reference_entry(call, VGPU_HANDLE_TEXREF, request->h_tex_ref, &reference);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexRefGetMipmappedArray(
			&mipmap, reference->object.driver);
	if (result != CUDA_SUCCESS)
		return result;
	return bound(
		call, VGPU_HANDLE_MIPMAP, reference, mipmap, &reply->ph_mipmapped_array);
}

CUresult handle_cuSurfRefGetArray(struct call *call,
	const Vgpu__CuSurfRefGetArrayRequest *request,
	Vgpu__CuSurfRefGetArrayReply *reply)
{
	struct texture *reference;
	CUarray array = NULL;
	CUresult result;

	if (!call->driver->cuSurfRefGetArray)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = reference_entry(
		call, VGPU_HANDLE_SURFREF, request->h_surf_ref, &reference);
	if (result == CUDA_SUCCESS)
		result =
			call->driver->cuSurfRefGetArray(&array, reference->object.driver);
	if (result != CUDA_SUCCESS)
		return result;
	return bound(call, VGPU_HANDLE_ARRAY, reference, array, &reply->ph_array);
}

CUresult handle_cuTexRefSetAddress2D_v3(struct call *call,
	const Vgpu__CuTexRefSetAddress2DV3Request *request,
	Vgpu__CuTexRefSetAddress2DV3Reply *reply)
{
	const CUDA_ARRAY_DESCRIPTOR descriptor = {
		.Width = request->width,
		.Height = request->height,
		.Format = request->format,
		.NumChannels = request->num_channels,
	};
	const CUDA_ARRAY3D_DESCRIPTOR texel = {
		.Format = request->format,
		.NumChannels = request->num_channels,
	};
	const struct access_side side = { request->dptr, request->pitch,
		request->height };
	CUresult result;
	void *reference;
	uint64_t width;

	if (!call->driver->cuTexRefSetAddress2D_v3)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!vgpu_mul_u64(request->width, array_texel_size(&texel), &width) || !width ||
		!request->height)
		return CUDA_ERROR_INVALID_VALUE;
	result = object_get(
		call, VGPU_HANDLE_TEXREF, request->h_tex_ref, false, &reference);
	if (result == CUDA_SUCCESS)
		result = access_check_side(call, &side, width, request->height, 1);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuTexRefSetAddress2D_v3(
		reference, &descriptor, request->dptr, request->pitch);
}

/*
 * Border colour
 */

CUresult handle_cuTexRefSetBorderColor(struct call *call,
	const Vgpu__CuTexRefSetBorderColorRequest *request,
	Vgpu__CuTexRefSetBorderColorReply *reply)
{
	float color[4] = { request->red, request->green, request->blue, request->alpha };
	CUresult result;
	void *reference;

	if (!call->driver->cuTexRefSetBorderColor)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(
		call, VGPU_HANDLE_TEXREF, request->h_tex_ref, false, &reference);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuTexRefSetBorderColor(reference, color);
}

CUresult handle_cuTexRefGetBorderColor(struct call *call,
	const Vgpu__CuTexRefGetBorderColorRequest *request,
	Vgpu__CuTexRefGetBorderColorReply *reply)
{
	float color[4] = { 0 };
	CUresult result;
	void *reference;

	if (!call->driver->cuTexRefGetBorderColor)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(
		call, VGPU_HANDLE_TEXREF, request->h_tex_ref, false, &reference);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuTexRefGetBorderColor(color, reference);
	reply->red = color[0];
	reply->green = color[1];
	reply->blue = color[2];
	reply->alpha = color[3];
	return result;
}
