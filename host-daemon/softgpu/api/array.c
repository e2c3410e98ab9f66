/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays
 */

#include "vgpu/checked.h"

#include "api/array.h"

/* Rows begin at multiples of this. */
#define ROW_ALIGNMENT 64u

#define FLAGS                                                                            \
	(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |       \
		CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT)

/* Fractions from 0 or -1 to 1; such a format determines the number of channels, too. */
static const struct {
	uint8_t texel;
	uint8_t n_channels;
} fractions[] = {
	[CU_AD_FORMAT_UNORM_INT8X1 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U8, 1 },
	[CU_AD_FORMAT_UNORM_INT8X2 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U8, 2 },
	[CU_AD_FORMAT_UNORM_INT8X4 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U8, 4 },
	[CU_AD_FORMAT_UNORM_INT16X1 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U16, 1 },
	[CU_AD_FORMAT_UNORM_INT16X2 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U16, 2 },
	[CU_AD_FORMAT_UNORM_INT16X4 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_U16, 4 },
	[CU_AD_FORMAT_SNORM_INT8X1 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S8, 1 },
	[CU_AD_FORMAT_SNORM_INT8X2 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S8, 2 },
	[CU_AD_FORMAT_SNORM_INT8X4 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S8, 4 },
	[CU_AD_FORMAT_SNORM_INT16X1 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S16, 1 },
	[CU_AD_FORMAT_SNORM_INT16X2 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S16, 2 },
	[CU_AD_FORMAT_SNORM_INT16X4 - CU_AD_FORMAT_UNORM_INT8X1] = { TEXEL_S16, 4 },
};

bool array_format_is_fraction(CUarray_format format)
{
	return format >= CU_AD_FORMAT_UNORM_INT8X1 &&
	       format <= CU_AD_FORMAT_SNORM_INT16X4;
}

bool array_format_has(CUarray_format format, unsigned int n_channels)
{
	if (array_format_is_fraction(format))
		return n_channels ==
		       fractions[format - CU_AD_FORMAT_UNORM_INT8X1].n_channels;
	return n_channels == 1 || n_channels == 2 || n_channels == 4;
}

bool array_format(CUarray_format format, enum texel_format *formatp)
{
	if (array_format_is_fraction(format)) {
		*formatp =
			(enum texel_format)fractions[format - CU_AD_FORMAT_UNORM_INT8X1]
				.texel;
		return true;
	}
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
		*formatp = TEXEL_U8;
		return true;
	case CU_AD_FORMAT_UNSIGNED_INT16:
		*formatp = TEXEL_U16;
		return true;
	case CU_AD_FORMAT_UNSIGNED_INT32:
		*formatp = TEXEL_U32;
		return true;
	case CU_AD_FORMAT_SIGNED_INT8:
		*formatp = TEXEL_S8;
		return true;
	case CU_AD_FORMAT_SIGNED_INT16:
		*formatp = TEXEL_S16;
		return true;
	case CU_AD_FORMAT_SIGNED_INT32:
		*formatp = TEXEL_S32;
		return true;
	case CU_AD_FORMAT_HALF:
		*formatp = TEXEL_F16;
		return true;
	case CU_AD_FORMAT_FLOAT:
		*formatp = TEXEL_F32;
		return true;
	default:
		return false;
	}
}

CUresult array_format_refusal(CUarray_format format)
{
	bool is_known =
		(format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_P010) ||
		(format >= CU_AD_FORMAT_P016 && format <= CU_AD_FORMAT_Y410) ||
		(format >= CU_AD_FORMAT_NV12 &&
			format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar) ||
		format == CU_AD_FORMAT_UNORM_INT_101010_2;

	return is_known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

static uint32_t texel_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	enum texel_format format;

	return array_format(descriptor->Format, &format)
		       ? texel_channel_size(format) * descriptor->NumChannels
		       : 0;
}

/*
 * Shapes
 */

static bool is_layered(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

static bool cube_fits(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

	return d->Width <= ARRAY_CUBE_MAX && d->Height == d->Width && d->Depth &&
	       d->Depth % 6 == 0 && d->Depth <= 6 * (layered ? ARRAY_CUBE_LAYERS_MAX : 1);
}

static bool shape_fits(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (!d->Width)
		return false;
	if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (!d->Height || d->Depth))
		return false;
	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return cube_fits(d);
	if (d->Flags & CUDA_ARRAY3D_LAYERED)
		return d->Width <= ARRAY_LAYERED_MAX && d->Height <= ARRAY_LAYERED_MAX &&
		       d->Depth && d->Depth <= ARRAY_LAYERS_MAX;
	if (d->Depth)
		return d->Height && d->Width <= ARRAY_3D_MAX &&
		       d->Height <= ARRAY_3D_MAX && d->Depth <= ARRAY_3D_MAX;
	return d->Width <= ARRAY_1D_MAX && d->Height <= ARRAY_2D_MAX;
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (!array_format_has(d->Format, d->NumChannels))
		return CUDA_ERROR_INVALID_VALUE;
	if (!texel_size(d))
		return array_format_refusal(d->Format);
	if (d->Flags & ~(unsigned int)FLAGS)
		return CUDA_ERROR_NOT_SUPPORTED;
	return shape_fits(d) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static size_t halved(size_t size, uint32_t level)
{
	return size && !(size >> level) ? 1 : size >> level;
}

/* The descriptor of a level. */
static CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR *d, uint32_t level)
{
	CUDA_ARRAY3D_DESCRIPTOR result = *d;

	result.Width = halved(d->Width, level);
	result.Height = halved(d->Height, level);
	if (!is_layered(d))
		result.Depth = halved(d->Depth, level);
	return result;
}

/* Places a level after *sizep, which it increases. Return: false on overflow. */
static bool lay_out(
	const CUDA_ARRAY3D_DESCRIPTOR *d, struct texture_level *level, uint64_t *sizep)
{
	uint64_t size;

	*level = (struct texture_level){
		.address = *sizep,
		.width = (uint32_t)d->Width,
		.height = (uint32_t)d->Height,
		.depth = (uint32_t)d->Depth,
	};
	return vgpu_mul_u64(d->Width, texel_size(d), &level->pitch) &&
	       vgpu_align_u64(level->pitch, ROW_ALIGNMENT, &level->pitch) &&
	       vgpu_mul_u64(level->pitch, d->Height ? d->Height : 1, &level->slice) &&
	       vgpu_mul_u64(level->slice, d->Depth ? d->Depth : 1, &size) &&
	       vgpu_add_u64(*sizep, size, sizep);
}

static CUresult allocate(const struct object *object, uint64_t size, uint64_t *addressp)
{
	struct range range = { .kind = RANGE_ARRAY, .size = size };

	return context_alloc(&range, object->context, object->generation, addressp);
}

static void release_memory(uint64_t address)
{
	memory_free(&softgpu_device.memory, address, MEMORY_KIND(RANGE_ARRAY));
}

/*
 * Arrays
 */

static void array_end(struct object *object)
{
	object_leave(object);
	release_memory(((CUarray)object)->level.address);
}

CUresult cuArray3DCreate_v2(
	CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	API_CALL;
	struct texture_level level;
	uint64_t size = 0;
	CUcontext context;
	CUarray array;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	result = check(pAllocateArray);
	if (!result && !lay_out(pAllocateArray, &level, &size))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	array = object_new(OBJECT_ARRAY, sizeof(*array), context);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = allocate(&array->object, size, &level.address);
	if (result) {
		object_unref(&array->object);
		return result;
	}
	array->descriptor = *pAllocateArray;
	array->level = level;
	array->object.end = array_end;
	result = context_add(&array->object);
	if (result)
		object_end(&array->object);
	else
		*pHandle = array;
	return result;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	API_CALL;
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {};

	if (pAllocateArray)
		descriptor = (CUDA_ARRAY3D_DESCRIPTOR){
			.Width = pAllocateArray->Width,
			.Height = pAllocateArray->Height,
			.Format = pAllocateArray->Format,
			.NumChannels = pAllocateArray->NumChannels,
		};
	return cuArray3DCreate_v2(pHandle, pAllocateArray ? &descriptor : NULL);
}

static CUresult array_get(CUarray array)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	return object_hold(array, OBJECT_ARRAY) ? CUDA_SUCCESS
						: CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArray3DGetDescriptor_v2(
	CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	API_CALL;
	CUresult result = array_get(hArray);

	if (!result && !pArrayDescriptor)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pArrayDescriptor = hArray->descriptor;
	return result;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	API_CALL;
	CUresult result = array_get(hArray);

	if (!result && !pArrayDescriptor)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){
			.Width = hArray->descriptor.Width,
			.Height = hArray->descriptor.Height,
			.Format = hArray->descriptor.Format,
			.NumChannels = hArray->descriptor.NumChannels,
		};
	return result;
}

/* Waits for work that uses it first. */
CUresult cuArrayDestroy(CUarray hArray)
{
	API_CALL;
	CUresult result = array_get(hArray);

	if (result)
		return result;
	if (hArray->mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	result = sched_context_wait(&hArray->object.context->sched);
	if (result)
		return result;
	if (!context_remove(&hArray->object))
		return CUDA_ERROR_INVALID_HANDLE;
	object_end(&hArray->object);
	return CUDA_SUCCESS;
}

/* No format that is kept here has planes. */
CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	API_CALL;
	CUresult result = array_get(hArray);

	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

/* No array is sparse, or waits for memory. */
CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	API_CALL;
	CUresult result = array_get(array);

	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
	CUarray array, CUdevice device)
{
	API_CALL;
	CUresult result;

	result = array_get(array);
	if (!result)
		result = device_get(device);
	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

bool array_find(CUarray array, const struct array_box *box, uint64_t *addressp,
	uint64_t *pitchp, uint64_t *rowsp)
{
	const struct texture_level *level;
	uint32_t texel;

	if (!object_hold(array, OBJECT_ARRAY))
		return false;
	level = &array->level;
	texel = texel_size(&array->descriptor);
	if (!vgpu_range_within(box->x, box->width, 0, (uint64_t)level->width * texel) ||
		!vgpu_range_within(
			box->y, box->height, 0, level->height ? level->height : 1) ||
		!vgpu_range_within(
			box->z, box->depth, 0, level->depth ? level->depth : 1) ||
		box->x % texel || box->width % texel)
		return false;
	*addressp =
		level->address + box->z * level->slice + box->y * level->pitch + box->x;
	*pitchp = level->pitch;
	*rowsp = level->slice / level->pitch;
	return true;
}

/*
 * Mipmapped arrays
 */

static void leave_levels(CUmipmappedArray mipmap)
{
	for (uint32_t i = 0; i < mipmap->n_levels; i++)
		object_leave(&mipmap->levels[i].object);
}

static void mipmap_end(struct object *object)
{
	object_leave(object);
	leave_levels((CUmipmappedArray)object);
	release_memory(((CUmipmappedArray)object)->address);
}

/* Levels down to a single texel. */
static uint32_t levels_max(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t longest = d->Width > d->Height ? d->Width : d->Height;
	uint32_t n = 0;

	if (!is_layered(d) && d->Depth > longest)
		longest = d->Depth;
	for (; longest; longest >>= 1)
		n++;
	return n;
}

static CUresult mipmap_fill(CUmipmappedArray mipmap, uint32_t n_levels)
{
	struct texture_level levels[TEXTURE_LEVELS_MAX];
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	uint64_t size = 0;
	CUresult result;

	for (uint32_t i = 0; i < n_levels; i++) {
		descriptor = level_of(&mipmap->descriptor, i);
		if (!lay_out(&descriptor, &levels[i], &size))
			return CUDA_ERROR_INVALID_VALUE;
	}
	result = allocate(&mipmap->object, size, &mipmap->address);
	if (result)
		return result;
	for (uint32_t i = 0; i < n_levels; i++) {
		struct CUarray_st *level = &mipmap->levels[i];

		level->descriptor = level_of(&mipmap->descriptor, i);
		level->level = levels[i];
		level->level.address += mipmap->address;
		level->mipmap = mipmap;
		level->object.kind = OBJECT_ARRAY;
		level->object.whole = &mipmap->object;
		level->object.context = mipmap->object.context;
		if (object_enter(&level->object)) {
			leave_levels(mipmap);
			release_memory(mipmap->address);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		mipmap->n_levels++;
	}
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	API_CALL;
	CUmipmappedArray mipmap;
	CUcontext context;
	uint32_t n_max;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pHandle || !pMipmappedArrayDesc || !numMipmapLevels)
		return CUDA_ERROR_INVALID_VALUE;
	result = check(pMipmappedArrayDesc);
	if (result)
		return result;
	n_max = levels_max(pMipmappedArrayDesc);
	mipmap = object_new(OBJECT_MIPMAP, sizeof(*mipmap), context);
	if (!mipmap)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mipmap->descriptor = *pMipmappedArrayDesc;
	result = mipmap_fill(mipmap, numMipmapLevels < n_max ? numMipmapLevels : n_max);
	if (result) {
		object_unref(&mipmap->object);
		return result;
	}
	mipmap->object.end = mipmap_end;
	result = context_add(&mipmap->object);
	if (result)
		object_end(&mipmap->object);
	else
		*pHandle = mipmap;
	return result;
}

static CUresult mipmap_get(CUmipmappedArray mipmap)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	return object_hold(mipmap, OBJECT_MIPMAP) ? CUDA_SUCCESS
						  : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayGetLevel(
	CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	API_CALL;
	CUresult result = mipmap_get(hMipmappedArray);

	if (!result && (!pLevelArray || level >= hMipmappedArray->n_levels))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pLevelArray = &hMipmappedArray->levels[level];
	return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	API_CALL;
	CUresult result = mipmap_get(hMipmappedArray);

	if (!result)
		result = sched_context_wait(&hMipmappedArray->object.context->sched);
	if (result)
		return result;
	if (!context_remove(&hMipmappedArray->object))
		return CUDA_ERROR_INVALID_HANDLE;
	object_end(&hMipmappedArray->object);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	API_CALL;
	CUresult result = mipmap_get(mipmap);

	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	API_CALL;
	CUresult result;

	result = mipmap_get(mipmap);
	if (!result)
		result = device_get(device);
	return result ? result : CUDA_ERROR_INVALID_VALUE;
}
