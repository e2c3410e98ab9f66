/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: texture references, where a call takes a structure or a vector
 */

#include "vgpu/g-driver.pb-c.h"

#include "code/function.h"
#include "process/call.h"

/* An offset that is not wanted must be none. */
CUresult shim_cuTexRefSetAddress_v2(
	size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	Vgpu__CuTexRefSetAddressV2Request request =
		VGPU__CU_TEX_REF_SET_ADDRESS_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexRefSetAddress_v2);
	const ProtobufCMessage *message;
	CUresult result;
	size_t offset;

	if (!hTexRef)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_tex_ref = (uint64_t)(uintptr_t)hTexRef;
	request.dptr = dptr;
	request.bytes = bytes;
	shim_function_forget_launches();
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_ref_set_address_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	offset = ((const Vgpu__CuTexRefSetAddressV2Reply *)message)->byte_offset;
	if (ByteOffset)
		*ByteOffset = offset;
	return ByteOffset || !offset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
	CUdeviceptr dptr, size_t Pitch)
{
	Vgpu__CuTexRefSetAddress2DV3Request request =
		VGPU__CU_TEX_REF_SET_ADDRESS2_DV3_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexRefSetAddress2D_v3);

	if (!desc)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (!hTexRef)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_tex_ref = (uint64_t)(uintptr_t)hTexRef;
	request.dptr = dptr;
	request.pitch = Pitch;
	request.width = desc->Width;
	request.height = desc->Height;
	request.format = desc->Format;
	request.num_channels = desc->NumChannels;
	shim_function_forget_launches();
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_ref_set_address2_dv3_reply__descriptor, NULL);
}

CUresult shim_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	Vgpu__CuTexRefSetBorderColorRequest request =
		VGPU__CU_TEX_REF_SET_BORDER_COLOR_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexRefSetBorderColor);

	if (!pBorderColor)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (!hTexRef)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_tex_ref = (uint64_t)(uintptr_t)hTexRef;
	request.red = pBorderColor[0];
	request.green = pBorderColor[1];
	request.blue = pBorderColor[2];
	request.alpha = pBorderColor[3];
	shim_function_forget_launches();
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_ref_set_border_color_reply__descriptor, NULL);
}

CUresult shim_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	Vgpu__CuTexRefGetBorderColorRequest request =
		VGPU__CU_TEX_REF_GET_BORDER_COLOR_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuTexRefGetBorderColor);
	const Vgpu__CuTexRefGetBorderColorReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!pBorderColor)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (!hTexRef)
		return shim_call_error(&call, CUDA_ERROR_INVALID_HANDLE);
	request.h_tex_ref = (uint64_t)(uintptr_t)hTexRef;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_tex_ref_get_border_color_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuTexRefGetBorderColorReply *)message;
	pBorderColor[0] = reply->red;
	pBorderColor[1] = reply->green;
	pBorderColor[2] = reply->blue;
	pBorderColor[3] = reply->alpha;
	return CUDA_SUCCESS;
}
