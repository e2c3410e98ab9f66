/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects
 *
 * The structures of CUDA 12 are shorter: what follows is neither read nor written there.
 */

#include <string.h>

#include "runtime/driver.h"
#include "runtime/format.h"
#include "runtime/texture.h"
#include "runtime/version.h"

/* The part that programs of this version have. */
static size_t resource_size(void)
{
	return rt_version >= 13000 ? sizeof(cudaResourceDesc)
				   : offsetof(cudaResourceDesc, res) +
					     sizeof(((cudaResourceDesc *)0)->res.pitch2D);
}

static size_t view_size(void)
{
	return rt_version >= 13000 ? sizeof(cudaResourceViewDesc)
				   : offsetof(cudaResourceViewDesc, reserved);
}

static int convert_resource(CUDA_RESOURCE_DESC *converted, const cudaResourceDesc *given)
{
	cudaResourceDesc resource = { 0 };
	struct rt_format format;
	const cudaChannelFormatDesc *desc;

	memcpy(&resource, given, resource_size());
	*converted = (CUDA_RESOURCE_DESC){
		.resType = resource.resType,
		.flags = resource.flags,
	};
	switch (resource.resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		converted->res.array.hArray = resource.res.array.array;
		return 0;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		converted->res.mipmap.hMipmappedArray = resource.res.mipmap.mipmap;
		return 0;
	case CU_RESOURCE_TYPE_LINEAR:
		desc = &resource.res.linear.desc;
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		desc = &resource.res.pitch2D.desc;
		break;
	default:
		return cudaErrorInvalidValue;
	}
	if (!rt_format_from_desc(&format, desc))
		return cudaErrorInvalidChannelDescriptor;
	if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		converted->res.linear.devPtr = (CUdeviceptr)resource.res.linear.devPtr;
		converted->res.linear.format = format.format;
		converted->res.linear.numChannels = format.n_channels;
		converted->res.linear.sizeInBytes = resource.res.linear.sizeInBytes;
	} else {
		converted->res.pitch2D.devPtr = (CUdeviceptr)resource.res.pitch2D.devPtr;
		converted->res.pitch2D.format = format.format;
		converted->res.pitch2D.numChannels = format.n_channels;
		converted->res.pitch2D.width = resource.res.pitch2D.width;
		converted->res.pitch2D.height = resource.res.pitch2D.height;
		converted->res.pitch2D.pitchInBytes = resource.res.pitch2D.pitchInBytes;
	}
	return 0;
}

static int revert_resource(cudaResourceDesc *wanted, const CUDA_RESOURCE_DESC *found)
{
	cudaResourceDesc resource = { .resType = found->resType, .flags = found->flags };
	struct rt_format format;
	bool is_known = true;

	switch (found->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		resource.res.array.array = found->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		resource.res.mipmap.mipmap = found->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		format = (struct rt_format){ found->res.linear.format,
			found->res.linear.numChannels };
		is_known = rt_format_to_desc(&resource.res.linear.desc, &format);
		resource.res.linear.devPtr = (void *)found->res.linear.devPtr;
		resource.res.linear.sizeInBytes = found->res.linear.sizeInBytes;
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		format = (struct rt_format){ found->res.pitch2D.format,
			found->res.pitch2D.numChannels };
		is_known = rt_format_to_desc(&resource.res.pitch2D.desc, &format);
		resource.res.pitch2D.devPtr = (void *)found->res.pitch2D.devPtr;
		resource.res.pitch2D.width = found->res.pitch2D.width;
		resource.res.pitch2D.height = found->res.pitch2D.height;
		resource.res.pitch2D.pitchInBytes = found->res.pitch2D.pitchInBytes;
		break;
	}
	if (!is_known)
		return cudaErrorInvalidChannelDescriptor;
	memcpy(wanted, &resource, resource_size());
	return 0;
}

static void convert_desc(CUDA_TEXTURE_DESC *converted, const cudaTextureDesc *desc)
{
	*converted = (CUDA_TEXTURE_DESC){
		.filterMode = desc->filterMode,
		.maxAnisotropy = desc->maxAnisotropy,
		.mipmapFilterMode = desc->mipmapFilterMode,
		.mipmapLevelBias = desc->mipmapLevelBias,
		.minMipmapLevelClamp = desc->minMipmapLevelClamp,
		.maxMipmapLevelClamp = desc->maxMipmapLevelClamp,
	};
	memcpy(converted->addressMode, desc->addressMode, sizeof(desc->addressMode));
	memcpy(converted->borderColor, desc->borderColor, sizeof(desc->borderColor));
	if (desc->readMode == cudaReadModeElementType)
		converted->flags |= CU_TRSF_READ_AS_INTEGER;
	if (desc->normalizedCoords)
		converted->flags |= CU_TRSF_NORMALIZED_COORDINATES;
	if (desc->sRGB)
		converted->flags |= CU_TRSF_SRGB;
	if (desc->disableTrilinearOptimization)
		converted->flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
	if (desc->seamlessCubemap)
		converted->flags |= CU_TRSF_SEAMLESS_CUBEMAP;
}

/* The format of the elements; false if the resource has none that is known. */
static bool find_format(struct rt_format *format, const CUDA_RESOURCE_DESC *resource)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUarray array;

	switch (resource->resType) {
	case CU_RESOURCE_TYPE_LINEAR:
		*format = (struct rt_format){ resource->res.linear.format,
			resource->res.linear.numChannels };
		return true;
	case CU_RESOURCE_TYPE_PITCH2D:
		*format = (struct rt_format){ resource->res.pitch2D.format,
			resource->res.pitch2D.numChannels };
		return true;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (rt_driver.cuMipmappedArrayGetLevel(
			    &array, resource->res.mipmap.hMipmappedArray, 0))
			return false;
		break;
	default:
		array = resource->res.array.hArray;
	}
	if (rt_driver.cuArray3DGetDescriptor_v2(&descriptor, array))
		return false;
	*format = (struct rt_format){ descriptor.Format, descriptor.NumChannels };
	return true;
}

/* Floats and numbers of 32 bits have no normalised form; integers are not interpolated.
 */
static int check_reads(const CUDA_RESOURCE_DESC *resource, const cudaTextureDesc *desc)
{
	cudaChannelFormatDesc channels;
	struct rt_format format;
	bool is_integer, is_normalized;

	if (!find_format(&format, resource) || !rt_format_to_desc(&channels, &format))
		return 0;
	is_integer = channels.f == cudaChannelFormatKindSigned ||
		     channels.f == cudaChannelFormatKindUnsigned;
	is_normalized = desc->readMode == cudaReadModeNormalizedFloat;
	if (is_integer && desc->filterMode == CU_TR_FILTER_MODE_LINEAR &&
		(!is_normalized || channels.x > 16))
		return cudaErrorInvalidFilterSetting;
	if (is_normalized &&
		(channels.x > 16 || channels.f == cudaChannelFormatKindFloat))
		return cudaErrorInvalidNormSetting;
	return 0;
}

int rt_texture_new(cudaTextureObject_t *texturep, const cudaResourceDesc *resource,
	const cudaTextureDesc *desc, const cudaResourceViewDesc *view)
{
	CUDA_RESOURCE_DESC driver_resource;
	CUDA_TEXTURE_DESC driver_desc;
	CUDA_RESOURCE_VIEW_DESC driver_view = { 0 };
	int error;

	if (!texturep || !resource)
		return cudaErrorInvalidValue;
	if (!desc)
		return cudaErrorInvalidResourceHandle;
	error = convert_resource(&driver_resource, resource);
	if (error)
		return error;
	error = check_reads(&driver_resource, desc);
	if (error)
		return error;
	convert_desc(&driver_desc, desc);
	if (view)
		memcpy(&driver_view, view, view_size());
	return rt_driver.cuTexObjectCreate(
		texturep, &driver_resource, &driver_desc, view ? &driver_view : NULL);
}

int rt_texture_free(cudaTextureObject_t texture)
{
	return texture ? (int)rt_driver.cuTexObjectDestroy(texture) : 0;
}

int rt_texture_resource(cudaResourceDesc *resource, cudaTextureObject_t texture)
{
	CUDA_RESOURCE_DESC found;
	int error;

	if (!resource)
		return cudaErrorInvalidValue;
	error = rt_driver.cuTexObjectGetResourceDesc(&found, texture);
	return error ? error : revert_resource(resource, &found);
}

int rt_texture_desc(cudaTextureDesc *desc, cudaTextureObject_t texture)
{
	CUDA_TEXTURE_DESC found;
	int error;

	if (!desc)
		return cudaErrorInvalidValue;
	error = rt_driver.cuTexObjectGetTextureDesc(&found, texture);
	if (error)
		return error;
	*desc = (cudaTextureDesc){
		.filterMode = found.filterMode,
		.readMode = found.flags & CU_TRSF_READ_AS_INTEGER
				    ? cudaReadModeElementType
				    : cudaReadModeNormalizedFloat,
		.sRGB = !!(found.flags & CU_TRSF_SRGB),
		.normalizedCoords = !!(found.flags & CU_TRSF_NORMALIZED_COORDINATES),
		.maxAnisotropy = found.maxAnisotropy,
		.mipmapFilterMode = found.mipmapFilterMode,
		.mipmapLevelBias = found.mipmapLevelBias,
		.minMipmapLevelClamp = found.minMipmapLevelClamp,
		.maxMipmapLevelClamp = found.maxMipmapLevelClamp,
		.disableTrilinearOptimization =
			!!(found.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
		.seamlessCubemap = !!(found.flags & CU_TRSF_SEAMLESS_CUBEMAP),
	};
	memcpy(desc->addressMode, found.addressMode, sizeof(desc->addressMode));
	memcpy(desc->borderColor, found.borderColor, sizeof(desc->borderColor));
	return 0;
}

int rt_texture_view(cudaResourceViewDesc *view, cudaTextureObject_t texture)
{
	CUDA_RESOURCE_VIEW_DESC found = { 0 };
	int error;

	if (!view)
		return cudaErrorInvalidValue;
	error = rt_driver.cuTexObjectGetResourceViewDesc(&found, texture);
	if (!error)
		memcpy(view, &found, view_size());
	return error;
}

int rt_surface_new(cudaSurfaceObject_t *surfacep, const cudaResourceDesc *resource)
{
	CUDA_RESOURCE_DESC driver_resource;
	int error;

	if (!surfacep || !resource)
		return cudaErrorInvalidValue;
	error = convert_resource(&driver_resource, resource);
	return error ? error
		     : (int)rt_driver.cuSurfObjectCreate(surfacep, &driver_resource);
}

int rt_surface_free(cudaSurfaceObject_t surface)
{
	return surface ? (int)rt_driver.cuSurfObjectDestroy(surface) : 0;
}

int rt_surface_resource(cudaResourceDesc *resource, cudaSurfaceObject_t surface)
{
	CUDA_RESOURCE_DESC found;
	int error;

	if (!resource)
		return cudaErrorInvalidValue;
	error = rt_driver.cuSurfObjectGetResourceDesc(&found, surface);
	return error ? error : revert_resource(resource, &found);
}
