/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: texture and surface objects
 *
 * Descriptions travel as the structures of the API, which both sides have from one
 * header; what is in them the host checks.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "g-remote.h"
#include "process/call.h"

static ProtobufCBinaryData bytes_of(const void *structure, size_t size)
{
	return (ProtobufCBinaryData){ .len = size, .data = (uint8_t *)structure };
}

/* Return: whether the reply has a structure of that size, copied then. */
static CUresult take(void *to, size_t size, const ProtobufCBinaryData *from)
{
	if (from->len != size)
		return CUDA_ERROR_UNKNOWN;
	memcpy(to, from->data, size);
	return CUDA_SUCCESS;
}

CUresult shim_cuTexObjectCreate(CUtexObject *pTexObject,
	const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
	const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	Vgpu__CuTexObjectCreateRequest request = VGPU__CU_TEX_OBJECT_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexObjectCreate);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pTexObject || !pResDesc || !pTexDesc)
		return shim_call_invalid(VGPU_CALL_cuTexObjectCreate);
	request.resource = bytes_of(pResDesc, sizeof(*pResDesc));
	request.texture = bytes_of(pTexDesc, sizeof(*pTexDesc));
	if (pResViewDesc)
		request.view = bytes_of(pResViewDesc, sizeof(*pResViewDesc));
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_object_create_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*pTexObject = ((const Vgpu__CuTexObjectCreateReply *)reply)->p_tex_object;
	return result;
}

CUresult shim_cuSurfObjectCreate(
	CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	Vgpu__CuSurfObjectCreateRequest request =
		VGPU__CU_SURF_OBJECT_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuSurfObjectCreate);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pSurfObject || !pResDesc)
		return shim_call_invalid(VGPU_CALL_cuSurfObjectCreate);
	request.resource = bytes_of(pResDesc, sizeof(*pResDesc));
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_surf_object_create_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*pSurfObject =
			((const Vgpu__CuSurfObjectCreateReply *)reply)->p_surf_object;
	return result;
}

/* 0 is not an object, and destroying it has no effect. */
CUresult shim_cuTexObjectDestroy(CUtexObject texObject)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexObjectDestroy);

	return texObject ? shim_remote_cuTexObjectDestroy(texObject)
			 : shim_call_check(call.id);
}

CUresult shim_cuSurfObjectDestroy(CUsurfObject surfObject)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuSurfObjectDestroy);

	return surfObject ? shim_remote_cuSurfObjectDestroy(surfObject)
			  : shim_call_check(call.id);
}

CUresult shim_cuTexObjectGetResourceDesc(
	CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	Vgpu__CuTexObjectGetResourceDescRequest request =
		VGPU__CU_TEX_OBJECT_GET_RESOURCE_DESC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexObjectGetResourceDesc);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pResDesc)
		return shim_call_invalid(VGPU_CALL_cuTexObjectGetResourceDesc);
	request.tex_object = texObject;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_object_get_resource_desc_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	return take(pResDesc, sizeof(*pResDesc),
		&((const Vgpu__CuTexObjectGetResourceDescReply *)reply)->resource);
}

CUresult shim_cuTexObjectGetTextureDesc(
	CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	Vgpu__CuTexObjectGetTextureDescRequest request =
		VGPU__CU_TEX_OBJECT_GET_TEXTURE_DESC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexObjectGetTextureDesc);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pTexDesc)
		return shim_call_invalid(VGPU_CALL_cuTexObjectGetTextureDesc);
	request.tex_object = texObject;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_object_get_texture_desc_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	return take(pTexDesc, sizeof(*pTexDesc),
		&((const Vgpu__CuTexObjectGetTextureDescReply *)reply)->texture);
}

CUresult shim_cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	Vgpu__CuTexObjectGetResourceViewDescRequest request =
		VGPU__CU_TEX_OBJECT_GET_RESOURCE_VIEW_DESC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexObjectGetResourceViewDesc);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pResViewDesc)
		return shim_call_invalid(VGPU_CALL_cuTexObjectGetResourceViewDesc);
	request.tex_object = texObject;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_object_get_resource_view_desc_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	return take(pResViewDesc, sizeof(*pResViewDesc),
		&((const Vgpu__CuTexObjectGetResourceViewDescReply *)reply)->view);
}

CUresult shim_cuSurfObjectGetResourceDesc(
	CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	Vgpu__CuSurfObjectGetResourceDescRequest request =
		VGPU__CU_SURF_OBJECT_GET_RESOURCE_DESC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuSurfObjectGetResourceDesc);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!pResDesc)
		return shim_call_invalid(VGPU_CALL_cuSurfObjectGetResourceDesc);
	request.surf_object = surfObject;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_surf_object_get_resource_desc_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	return take(pResDesc, sizeof(*pResDesc),
		&((const Vgpu__CuSurfObjectGetResourceDescReply *)reply)->resource);
}
