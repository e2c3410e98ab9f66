/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: copies and fills by kernels
 *
 * CUDA permits these within device memory only, so addresses of shared and local memory
 * are errors. What the kernel itself may access is what they may: the pages are looked at
 * when the operation is submitted.
 */

#include <string.h>

#include "vgpu/checked.h"

#include "api/child.h"

/* cudaMemcpyKind; others are for the host. */
#define KIND_DEVICE_TO_DEVICE 3u
#define KIND_DEFAULT 4u
#define INVALID_MEMCPY_DIRECTION 21

/* Slices of one fill: the largest depth of an array. */
#define SLICES_MAX 16384u

/* Rows of a box in memory. */
struct box {
	uint64_t address, pitch, slice;
	uint64_t width, height, depth;
};

/* Rows and slices do not overlap. Return: whether the kernel may access all that lies
 * between the ends. */
static bool reaches(
	const struct softgpu_launch *launch, const struct box *box, unsigned int access)
{
	uint64_t rows, slices, end;

	if ((box->height > 1 && box->width > box->pitch) ||
		!vgpu_mul_u64(box->height - 1, box->pitch, &rows) ||
		!vgpu_add_u64(rows, box->width, &rows) ||
		(box->depth > 1 && rows > box->slice) ||
		!vgpu_mul_u64(box->depth - 1, box->slice, &slices) ||
		!vgpu_add_u64(rows, slices, &end))
		return false;
	return softgpu_space_check_range(launch->space, box->address, end, access);
}

static bool is_empty(const struct box *box)
{
	return !box->width || !box->height || !box->depth;
}

static int copy(const struct softgpu_launch *launch,
	const struct softgpu_request *request, const struct box *to,
	const struct box *from, uint32_t kind, uint64_t stream)
{
	struct sched_op op = {
		.kind = SCHED_COPY,
		.copy = {
			.to = to->address,
			.from = from->address,
			.width = to->width,
			.height = to->height,
			.depth = to->depth,
			.to_pitch = to->pitch,
			.from_pitch = from->pitch,
			.to_slice = to->slice,
			.from_slice = from->slice,
		},
	};

	if (kind != KIND_DEVICE_TO_DEVICE && kind != KIND_DEFAULT)
		return INVALID_MEMCPY_DIRECTION;
	if (is_empty(to))
		return SERVICE_OK;
	if (!reaches(launch, to, SOFTGPU_WRITE) || !reaches(launch, from, SOFTGPU_READ))
		return SERVICE_INVALID_VALUE;
	return child_submit(launch, request, stream, &op);
}

static int copy_rows(
	const struct softgpu_launch *launch, const struct softgpu_request *request)
{
	const uint64_t *words = request->words;
	struct box to = {
		.address = words[0],
		.pitch = words[1],
		.width = words[4],
		.height = words[5],
		.depth = 1,
	};
	struct box from = to;

	from.address = words[2];
	from.pitch = words[3];
	return copy(launch, request, &to, &from, (uint32_t)words[6], words[7]);
}

static int copy_line(
	const struct softgpu_launch *launch, const struct softgpu_request *request)
{
	const uint64_t *words = request->words;
	struct box to = {
		.address = words[0],
		.width = words[2],
		.height = 1,
		.depth = 1,
	};
	struct box from = to;

	from.address = words[1];
	return copy(launch, request, &to, &from, (uint32_t)words[3], words[4]);
}

/* One side of cudaMemcpy3DParms: an array, a position, and a pitched pointer. */
struct side {
	uint64_t array;
	uint64_t x, y, z;
	uint64_t pointer, pitch, xsize, ysize;
};

struct parameters {
	struct side from, to;
	uint64_t width, height, depth;
	uint32_t kind;
};

_Static_assert(sizeof(struct parameters) == SERVICE_IN_MAX, "as the runtime has it");

static int side_box(
	const struct side *side, const struct parameters *parameters, struct box *box)
{
	uint64_t y, z;

	*box = (struct box){
		.pitch = side->pitch,
		.width = parameters->width,
		.height = parameters->height,
		.depth = parameters->depth,
	};
	if (side->array || !vgpu_mul_u64(side->pitch, side->ysize, &box->slice) ||
		!vgpu_mul_u64(side->y, side->pitch, &y) ||
		!vgpu_mul_u64(side->z, box->slice, &z) ||
		!vgpu_add_u64(side->pointer, side->x, &box->address) ||
		!vgpu_add_u64(box->address, y, &box->address) ||
		!vgpu_add_u64(box->address, z, &box->address))
		return SERVICE_INVALID_VALUE;
	return SERVICE_OK;
}

static int copy_box(
	const struct softgpu_launch *launch, const struct softgpu_request *request)
{
	struct parameters parameters;
	struct box to, from;
	int r;

	memcpy(&parameters, request->in, sizeof(parameters));
	r = side_box(&parameters.to, &parameters, &to);
	if (!r)
		r = side_box(&parameters.from, &parameters, &from);
	if (r)
		return r;
	return copy(launch, request, &to, &from, parameters.kind, request->words[1]);
}

static int fill(const struct softgpu_launch *launch,
	const struct softgpu_request *request, const struct box *to, uint32_t value,
	uint64_t stream)
{
	struct sched_op op = {
		.kind = SCHED_FILL,
		.fill = {
			.width = to->width,
			.height = to->height,
			.pitch = to->pitch,
			.element = 1,
			.value = value & 0xff,
		},
	};
	int r = SERVICE_OK;

	if (is_empty(to))
		return SERVICE_OK;
	if (to->depth > SLICES_MAX || !reaches(launch, to, SOFTGPU_WRITE))
		return SERVICE_INVALID_VALUE;
	for (uint64_t z = 0; z < to->depth && !r; z++) {
		op.fill.to = to->address + z * to->slice;
		r = child_submit(launch, request, stream, &op);
	}
	return r;
}

static int fill_box(
	const struct softgpu_launch *launch, const struct softgpu_request *request)
{
	const uint64_t *words = request->words;
	struct box to = {
		.address = words[0],
		.pitch = words[1],
		.width = words[5],
		.height = words[6],
		.depth = words[7],
	};

	if (!vgpu_mul_u64(to.pitch, words[3], &to.slice))
		return SERVICE_INVALID_VALUE;
	return fill(launch, request, &to, (uint32_t)words[4], words[8]);
}

int child_copy(const struct softgpu_launch *launch, struct softgpu_request *request)
{
	const uint64_t *words = request->words;
	struct box to = { .address = words[0], .height = 1, .depth = 1 };

	switch (request->service) {
	case SERVICE_MEMCPY:
		return copy_line(launch, request);
	case SERVICE_MEMCPY_2D:
		return copy_rows(launch, request);
	case SERVICE_MEMCPY_3D:
		return copy_box(launch, request);
	case SERVICE_MEMSET:
		to.width = words[2];
		return fill(launch, request, &to, (uint32_t)words[1], words[3]);
	case SERVICE_MEMSET_2D:
		to.pitch = words[1];
		to.width = words[3];
		to.height = words[4];
		return fill(launch, request, &to, (uint32_t)words[2], words[5]);
	default:
		return fill_box(launch, request);
	}
}
