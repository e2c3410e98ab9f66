/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and mipmapped arrays
 */

#include "runtime/array.h"
#include "runtime/driver.h"
#include "runtime/format.h"
#include "runtime/register.h"

RT_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(
	int x, int y, int z, int w, cudaChannelFormatKind f);

cudaChannelFormatDesc cudaCreateChannelDesc(
	int x, int y, int z, int w, cudaChannelFormatKind f)
{
	return (cudaChannelFormatDesc){ x, y, z, w, f };
}

static int describe(CUDA_ARRAY3D_DESCRIPTOR *descriptor,
	const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned int flags)
{
	const unsigned int valid = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
				   CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
				   CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE |
				   CUDA_ARRAY3D_DEFERRED_MAPPING;
	struct rt_format format;

	if (!desc || flags & ~valid)
		return cudaErrorInvalidValue;
	if (!rt_format_from_desc(&format, desc))
		return cudaErrorInvalidChannelDescriptor;
	*descriptor = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Format = format.format,
		.NumChannels = format.n_channels,
		.Flags = flags,
	};
	return 0;
}

int rt_array_new_3d(cudaArray_t *arrayp, const cudaChannelFormatDesc *desc,
	cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	int error;

	if (!arrayp)
		return cudaErrorInvalidValue;
	error = describe(&descriptor, desc, extent, flags);
	return error ? error : (int)rt_driver.cuArray3DCreate_v2(arrayp, &descriptor);
}

int rt_array_new(cudaArray_t *arrayp, const cudaChannelFormatDesc *desc, size_t width,
	size_t height, unsigned int flags)
{
	return rt_array_new_3d(arrayp, desc, (cudaExtent){ width, height, 0 }, flags);
}

int rt_array_free(cudaArray_t array)
{
	return array ? (int)rt_driver.cuArrayDestroy(array) : 0;
}

static int get_descriptor(CUDA_ARRAY3D_DESCRIPTOR *descriptor, cudaArray_const_t array)
{
	if (!array)
		return cudaErrorInvalidResourceHandle;
	return rt_driver.cuArray3DGetDescriptor_v2(descriptor, (CUarray)array);
}

static struct rt_format format_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return (struct rt_format){ descriptor->Format, descriptor->NumChannels };
}

int rt_array_info(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flagsp,
	cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct rt_format format;
	cudaChannelFormatDesc found;
	int error = get_descriptor(&descriptor, array);

	if (error)
		return error;
	format = format_of(&descriptor);
	if (!rt_format_to_desc(&found, &format))
		return cudaErrorInvalidChannelDescriptor;
	if (desc)
		*desc = found;
	if (extent)
		*extent = (cudaExtent){ descriptor.Width, descriptor.Height,
			descriptor.Depth };
	if (flagsp)
		*flagsp = descriptor.Flags;
	return 0;
}

int rt_array_desc(cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	if (!desc)
		return cudaErrorInvalidValue;
	return rt_array_info(desc, NULL, NULL, (cudaArray_t)array);
}

int rt_mipmap_new(cudaMipmappedArray_t *mipmapp, const cudaChannelFormatDesc *desc,
	cudaExtent extent, unsigned int n_levels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	int error;

	if (!mipmapp)
		return cudaErrorInvalidValue;
	error = describe(&descriptor, desc, extent, flags);
	if (error)
		return error;
	return rt_driver.cuMipmappedArrayCreate(mipmapp, &descriptor, n_levels);
}

int rt_mipmap_free(cudaMipmappedArray_t mipmap)
{
	return mipmap ? (int)rt_driver.cuMipmappedArrayDestroy(mipmap) : 0;
}

int rt_array_element(cudaArray_const_t array, size_t *sizep)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct rt_format format;
	int error;

	*sizep = 0;
	if (!array)
		return 0;
	error = get_descriptor(&descriptor, array);
	if (error)
		return error;
	format = format_of(&descriptor);
	*sizep = rt_format_size(&format);
	return *sizep ? 0 : cudaErrorInvalidChannelDescriptor;
}

int rt_array_row(cudaArray_const_t array, size_t *sizep)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct rt_format format;
	int error = get_descriptor(&descriptor, array);

	if (error)
		return error;
	format = format_of(&descriptor);
	*sizep = descriptor.Width * rt_format_size(&format);
	return 0;
}

int rt_linear_width(size_t *widthp, const cudaChannelFormatDesc *desc, int device)
{
	struct rt_format format;

	if (!widthp || !desc)
		return cudaErrorInvalidValue;
	if (!rt_format_from_desc(&format, desc))
		return cudaErrorInvalidChannelDescriptor;
	return rt_driver.cuDeviceGetTexture1DLinearMaxWidth(
		widthp, format.format, format.n_channels, device);
}
