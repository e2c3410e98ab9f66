/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: their size in device memory
 */

#include "vgpu/checked.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/memory/array.h"
#include "worker/memory/device-memory.h"

/* Devices store texels in tiles of this many bytes by rows, also for smaller arrays. */
#define TILE_WIDTH 64u
#define TILE_HEIGHT 8u

/* Larger than any device's limit, which the driver checks. This bound keeps sizes from
 * overflowing. */
#define DIMENSION_MAX (1u << 20)
#define LEVELS_MAX 21u

uint32_t array_texel_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	uint32_t n = descriptor->NumChannels <= 4 ? descriptor->NumChannels : 4;

	switch (descriptor->Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return n;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2 * n;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4 * n;
	default:
		return 16;
	}
}

static uint64_t halved(uint64_t size, uint32_t level)
{
	return size >> level ? size >> level : 1;
}

static bool level_size(const CUDA_ARRAY3D_DESCRIPTOR *d, uint32_t level, uint64_t *sizep)
{
	bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	uint64_t row, rows = 1, size;

	if (d->Height > 1 &&
		!vgpu_align_u64(halved(d->Height, level), TILE_HEIGHT, &rows))
		return false;
	return vgpu_mul_u64(halved(d->Width, level), array_texel_size(d), &row) &&
	       vgpu_align_u64(row, TILE_WIDTH, &row) && vgpu_mul_u64(row, rows, &size) &&
	       vgpu_mul_u64(size,
		       layered ? (d->Depth ? d->Depth : 1) : halved(d->Depth, level),
		       sizep);
}

bool array_size(
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint32_t n_levels, uint64_t *sizep)
{
	uint64_t level, sum = 0;

	if (!descriptor->Width || descriptor->Width > DIMENSION_MAX ||
		descriptor->Height > DIMENSION_MAX || descriptor->Depth > DIMENSION_MAX ||
		!n_levels || n_levels > LEVELS_MAX)
		return false;
	for (uint32_t i = 0; i < n_levels; i++)
		if (!level_size(descriptor, i, &level) || !vgpu_add_u64(sum, level, &sum))
			return false;
	return vgpu_align_u64(sum, DEVICE_MEMORY_UNIT, sizep);
}

CUresult array_entry(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct array **arrayp)
{
	return object_find(call, kind, handle, (struct object **)arrayp);
}

/* Whether the box is within the array. */
static bool array_holds(const struct array *array, const struct vgpu_array_side *side,
	const struct vgpu_array_box *box)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
	uint32_t texel = array_texel_size(d);

	return vgpu_range_within(side->x, box->width, 0, (uint64_t)d->Width * texel) &&
	       vgpu_range_within(side->y, box->height, 0, d->Height ? d->Height : 1) &&
	       vgpu_range_within(side->z, box->depth, 0, d->Depth ? d->Depth : 1);
}

CUresult array_check_side(struct call *call, uint64_t handle,
	const struct vgpu_array_side *side, const struct vgpu_array_box *box,
	CUarray *arrayp)
{
	struct array *array;
	CUresult result;

	result = array_entry(call, VGPU_HANDLE_ARRAY, handle, &array);
	if (result != CUDA_SUCCESS)
		return result;
	*arrayp = array->object.driver;
	return array_holds(array, side, box) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
