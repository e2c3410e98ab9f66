/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: tensors between global memory and shared memory
 *
 * A box of a tensor is a list of rows, each of which is contiguous in shared memory: the
 * elements of the innermost dimension at one place of all others, which an odometer goes
 * through (a tile), a list has (gather4), or a walk over the pixels of images (im2col).
 * Rows consist of units, the smallest number of elements that fills whole bytes, and
 * units of groups, which stay together in shared memory when that is swizzled.
 *
 * A map is in memory of the program and may be anything. All of it is copied and checked
 * before it is used; its addresses and strides are not: sums wrap, and each row is
 * checked as any other access to global memory is. The bytes of a box are at most those
 * of shared memory, which bounds the work of an instruction.
 */

#include <string.h>

#include "exec/check.h"
#include "exec/mbarrier.h"
#include "exec/tensor-map.h"
#include "exec/update.h"
#include "exec/watch.h"

#define RANK_MAX SOFTGPU_TENSOR_RANK_MAX
#define MAP_ALIGN 64u
/* Of shared memory that a copy of a tensor begins with, and the span of a swizzle. */
#define LINE 128u
#define STEP_MAX 8u
#define ADDRESS_ALIGN 16u

struct fault {
	int code;
	uint64_t at;
	const char *text;
};

/* A type as it is in memory. */
struct layout {
	uint8_t unit_elements;
	uint8_t unit_size; /* in global memory */
	uint8_t group;	   /* units in 16 bytes of shared memory */
	uint8_t fill_size; /* of an element that can be NaN; 0: it cannot */
	int8_t update;	   /* enum update; -1: none */
};

static const struct layout layouts[] = {
	[SOFTGPU_TENSOR_U8] = { 1, 1, 16, 0, -1 },
	[SOFTGPU_TENSOR_U16] = { 1, 2, 8, 0, -1 },
	[SOFTGPU_TENSOR_U32] = { 1, 4, 4, 0, UPDATE_U32 },
	[SOFTGPU_TENSOR_S32] = { 1, 4, 4, 0, UPDATE_S32 },
	[SOFTGPU_TENSOR_U64] = { 1, 8, 2, 0, UPDATE_U64 },
	[SOFTGPU_TENSOR_S64] = { 1, 8, 2, 0, UPDATE_S64 },
	[SOFTGPU_TENSOR_F16] = { 1, 2, 8, 2, UPDATE_F16 },
	[SOFTGPU_TENSOR_F32] = { 1, 4, 4, 4, UPDATE_F32 },
	[SOFTGPU_TENSOR_F64] = { 1, 8, 2, 8, UPDATE_F64 },
	[SOFTGPU_TENSOR_BF16] = { 1, 2, 8, 2, UPDATE_BF16 },
	[SOFTGPU_TENSOR_F32_FTZ] = { 1, 4, 4, 4, UPDATE_F32 },
	[SOFTGPU_TENSOR_TF32] = { 1, 4, 4, 4, UPDATE_F32 },
	[SOFTGPU_TENSOR_TF32_FTZ] = { 1, 4, 4, 4, UPDATE_F32 },
	[SOFTGPU_TENSOR_B4] = { 2, 1, 16, 0, -1 },
	[SOFTGPU_TENSOR_B4_SPREAD] = { 2, 1, 8, 0, -1 },
	[SOFTGPU_TENSOR_B6_SPREAD] = { 4, 3, 4, 0, -1 },
};

/* A map after its checks, with the numbers of the innermost dimension in units. */
struct box {
	struct softgpu_tensor_map map;
	const struct layout *layout;
	uint32_t atom; /* enum ptx_atom; 0: a copy */
	bool is_store;
	int64_t at[RANK_MAX];
	int64_t offsets[SOFTGPU_TENSOR_OFFSETS_MAX];
	uint32_t halo; /* pixels of a wide walk after its own */
	int64_t sizes[RANK_MAX];
	uint32_t n_units;  /* of a row */
	uint32_t group;	   /* units that stay together */
	uint32_t pitch;	   /* bytes of those in shared memory */
	uint32_t row_size; /* in shared memory */
	uint64_t n_rows;
	uint64_t data_size; /* without gaps */
};

static const char *bad_map(struct fault *fault, uint64_t at, const char *text)
{
	*fault = (struct fault){ SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, at, text };
	return text;
}

/* Return: false with a fault. */
static bool read_map(struct warp *w, uint32_t lane, uint64_t at,
	struct softgpu_tensor_map *map, struct fault *fault)
{
	int code;
	const void *from = warp_resolve(
		w, lane, at, sizeof(*map), MAP_ALIGN - 1, SOFTGPU_READ, &code);

	if (!from) {
		*fault = (struct fault){ code, at, fault_sentence(code) };
		return false;
	}
	memcpy(map, from, sizeof(*map));
	if (map->mark != SOFTGPU_TENSOR_MARK || map->version != SOFTGPU_TENSOR_VERSION)
		return !bad_map(fault, at, "no tensor map at this address");
	return true;
}

static bool is_swizzle_legal(const struct softgpu_tensor_map *map, uint32_t row_size)
{
	uint32_t span = map->swizzle == SOFTGPU_SWIZZLE_32   ? 32
			: map->swizzle == SOFTGPU_SWIZZLE_64 ? 64
							     : LINE;

	return map->swizzle < _SOFTGPU_SWIZZLE_N &&
	       (map->swizzle == SOFTGPU_SWIZZLE_NONE || map->interleave ||
		       row_size <= span);
}

/* What the API checks when it encodes a map, as far as the copy relies on it. */
static bool is_map_legal(const struct softgpu_tensor_map *map, uint32_t rank)
{
	if (map->kind > SOFTGPU_TENSOR_IM2COL_WIDE || map->rank != rank ||
		map->type >= _SOFTGPU_TENSOR_TYPE_N ||
		map->interleave > SOFTGPU_INTERLEAVE_MAX || map->fills_nan > 1 ||
		map->address % ADDRESS_ALIGN)
		return false;
	for (uint32_t i = 0; i < rank; i++)
		if (!map->steps[i] || map->steps[i] > STEP_MAX ||
			(i && map->strides[i - 1] % ADDRESS_ALIGN))
			return false;
	return map->interleave || map->steps[0] == 1;
}

/* Elements of a dimension that the box has. */
static uint32_t box_count(const struct box *b, uint32_t i)
{
	return ((uint32_t)b->map.box_last[i] + b->map.steps[i]) / b->map.steps[i];
}

/* The walk along W alone. PTX demands a swizzle, and not the one that flips. */
static bool is_wide_legal(const struct softgpu_tensor_map *map)
{
	return map->kind == SOFTGPU_TENSOR_IM2COL_WIDE && map->rank >= 3 &&
	       map->n_pixels && !map->mode && !map->interleave &&
	       map->swizzle != SOFTGPU_SWIZZLE_NONE &&
	       map->swizzle != SOFTGPU_SWIZZLE_ATOM_32_FLIP_8;
}

/* The rows of each mode; a mode that the map is not for has none. */
static uint64_t count_rows(const struct box *b, unsigned int mode)
{
	const struct softgpu_tensor_map *map = &b->map;
	uint64_t n = 1;

	switch (mode) {
	case PTX_TENSOR_TILE:
		for (uint32_t i = 1; i < map->rank; i++)
			n *= box_count(b, i);
		return map->kind == SOFTGPU_TENSOR_TILED ? n : 0;
	case PTX_TENSOR_GATHER4:
		return map->kind == SOFTGPU_TENSOR_TILED && !map->interleave &&
				       !map->box_last[1]
			       ? 4
			       : 0;
	case PTX_TENSOR_IM2COL_W:
		return is_wide_legal(map) ? map->n_pixels + (uint64_t)b->halo : 0;
	default:
		return map->kind == SOFTGPU_TENSOR_IM2COL && !map->interleave
			       ? map->n_pixels
			       : 0;
	}
}

/* Return: false where the box has no layout that is known. */
static bool measure(struct box *b, unsigned int mode)
{
	const struct softgpu_tensor_map *map = &b->map;
	const struct layout *layout = b->layout;
	uint32_t n = mode == PTX_TENSOR_TILE || mode == PTX_TENSOR_GATHER4
			     ? box_count(b, 0)
			     : map->n_channels;
	bool flips = map->swizzle == SOFTGPU_SWIZZLE_ATOM_32_FLIP_8;
	bool has_gaps = map->type >= SOFTGPU_TENSOR_B4_SPREAD;

	b->n_rows = count_rows(b, mode);
	if (!b->n_rows || !n || n % layout->unit_elements || (flips && has_gaps) ||
		(flips && b->is_store))
		return false;
	b->n_units = n / layout->unit_elements;
	b->group = flips ? layout->group / 2 : layout->group;
	b->pitch = flips ? 8 : 16;
	/* Of an interleaved tensor a row is a slice. */
	if (b->n_units % layout->group ||
		(map->interleave && b->n_units / layout->group != map->interleave))
		return false;
	b->row_size = b->n_units / layout->group * 16;
	b->data_size = b->n_rows * b->n_units * layout->unit_size;
	return is_swizzle_legal(map, b->row_size) &&
	       b->n_rows * b->row_size <= SOFTGPU_SHARED_MAX;
}

static void find_offsets(
	const struct warp *w, uint32_t lane, unsigned int mode, struct box *b)
{
	const uint32_t(*rows)[LANES] = w->block->matrix + TENSOR_COORDINATES;

	if (mode == PTX_TENSOR_IM2COL_W) {
		b->halo = rows[0][lane] & 0xffff;
		b->offsets[0] = rows[1][lane] & 0xffff;
	}
	for (uint32_t i = 0; mode == PTX_TENSOR_IM2COL && i + 2 < b->map.rank; i++)
		b->offsets[i] = rows[i][lane] & 0xffff;
}

/* Makes the box of a lane. Return: false with a fault. */
static bool find_box(struct warp *w, const struct insn *ip, uint32_t lane,
	uint64_t map_at, bool is_store, struct box *b, struct fault *fault)
{
	uint32_t(*rows)[LANES] = w->block->matrix;
	uint32_t rank = (uint32_t)ip->off & TENSOR_RANK;
	unsigned int mode = (uint32_t)ip->off >> TENSOR_MODE_SHIFT & 7;

	*b = (struct box){ .is_store = is_store,
		.atom = (uint32_t)ip->off >> TENSOR_ATOM_SHIFT };
	if (!read_map(w, lane, map_at, &b->map, fault))
		return false;
	if (!is_map_legal(&b->map, rank))
		return !bad_map(fault, map_at,
			"a tensor map that is illegal, or of another rank");
	b->layout = &layouts[b->map.type];
	find_offsets(w, lane, mode, b);
	if (!measure(b, mode))
		return !bad_map(fault, map_at,
			"a tensor map that is for another mode, or too large a box");
	if (b->atom && (b->layout->update < 0 ||
			       !update_exists((enum update)b->layout->update, b->atom)))
		return !bad_map(fault, map_at,
			"a reduction that the elements of the tensor do not have");
	for (uint32_t i = 0; i < RANK_MAX; i++)
		b->at[i] = (int32_t)rows[i][lane];
	for (uint32_t i = 0; i < rank; i++)
		b->sizes[i] = (int64_t)b->map.last[i] + 1;
	if (b->at[0] % b->layout->unit_elements || b->sizes[0] % b->layout->unit_elements)
		return !bad_map(
			fault, map_at, "a coordinate within a byte of a packed tensor");
	b->at[0] /= b->layout->unit_elements;
	b->sizes[0] /= b->layout->unit_elements;
	return true;
}

/* Where a swizzle puts the bytes of an address in shared memory. */
static uint64_t swizzled(uint32_t swizzle, uint64_t at)
{
	switch (swizzle) {
	case SOFTGPU_SWIZZLE_32:
		return at ^ (at >> 3 & 0x10);
	case SOFTGPU_SWIZZLE_64:
		return at ^ (at >> 3 & 0x30);
	case SOFTGPU_SWIZZLE_128:
		return at ^ (at >> 3 & 0x70);
	case SOFTGPU_SWIZZLE_ATOM_32:
		return at ^ (at >> 2 & 0x60);
	case SOFTGPU_SWIZZLE_ATOM_32_FLIP_8:
		return at ^ (at >> 2 & 0x60) ^ (at >> 4 & 8);
	case SOFTGPU_SWIZZLE_ATOM_64:
		return at ^ (at >> 1 & 0x40);
	default:
		return at;
	}
}

/*
 * Groups
 */

/* Numbers of the types that copies convert. */
static void convert(const struct box *b, uint8_t *bytes, uint32_t size)
{
	bool flushes = b->map.type == SOFTGPU_TENSOR_F32_FTZ ||
		       b->map.type == SOFTGPU_TENSOR_TF32_FTZ;
	bool rounds = b->map.type == SOFTGPU_TENSOR_TF32 ||
		      b->map.type == SOFTGPU_TENSOR_TF32_FTZ;
	uint32_t x;

	for (uint32_t i = 0; (flushes || rounds) && i < size; i += sizeof(x)) {
		memcpy(&x, bytes + i, sizeof(x));
		if (flushes && !(x & 0x7f800000u))
			x &= 0x80000000u;
		/* To nearest, ties away from zero; NaN stays one. */
		if (rounds && (x & 0x7f800000u) != 0x7f800000u)
			x = (x + 0x1000) & ~0x1fffu;
		memcpy(bytes + i, &x, sizeof(x));
	}
}

static void fill(const struct box *b, uint8_t *to, uint32_t n_units)
{
	uint32_t size = n_units * b->layout->unit_size;

	memset(to, 0, size);
	if (!b->map.fills_nan || !b->layout->fill_size)
		return;
	memset(to, 0xff, size);
	for (uint32_t i = b->layout->fill_size; i <= size; i += b->layout->fill_size)
		to[i - 1] = 0x7f;
}

/* The 6 bits of 16 elements, 8 bits each, become contiguous: 4 bytes of them are 3. */
static void pack_six(uint8_t to[3], const uint8_t from[4])
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < 4; i++)
		bits |= (uint32_t)(from[i] & 0x3f) << 6 * i;
	memcpy(to, &bits, 3);
}

/* A row while it is transferred. */
struct row {
	uint64_t origin; /* of the dimension's unit 0, in global memory */
	bool is_inside;	 /* in all other dimensions */
	uint8_t *line;	 /* where the shared memory of the box lies */
	uint64_t shared; /* its address */
};

static bool has_unit(const struct box *b, const struct row *row, int64_t at)
{
	return row->is_inside && at >= 0 && at < b->sizes[0];
}

static uint8_t *unit_of(const struct box *b, const struct row *row, int64_t at)
{
	return (uint8_t *)(uintptr_t)(row->origin + (uint64_t)at * b->layout->unit_size);
}

static void load_group(
	const struct box *b, const struct row *row, int64_t at, uint8_t *to, uint32_t n)
{
	uint32_t size = b->layout->unit_size, step = b->map.steps[0];

	if (step == 1 && has_unit(b, row, at) && has_unit(b, row, at + n - 1)) {
		memcpy(to, unit_of(b, row, at), n * size);
		convert(b, to, n * size);
		return;
	}
	for (uint32_t i = 0; i < n; i++, at += step, to += size) {
		if (!has_unit(b, row, at)) {
			fill(b, to, 1);
			continue;
		}
		memcpy(to, unit_of(b, row, at), size);
		convert(b, to, size);
	}
}

static void store_unit(const struct box *b, uint8_t *to, const uint8_t *from)
{
	if (b->atom)
		update((enum update)b->layout->update, b->atom, to, from, true);
	else if (b->map.type == SOFTGPU_TENSOR_B6_SPREAD)
		pack_six(to, from);
	else
		memcpy(to, from, b->layout->unit_size);
}

static void store_group(const struct box *b, const struct row *row, int64_t at,
	const uint8_t *from, uint32_t n)
{
	/* In shared memory each of four elements has a byte. */
	bool is_six = b->map.type == SOFTGPU_TENSOR_B6_SPREAD;
	uint32_t size = is_six ? 4 : b->layout->unit_size;

	for (uint32_t i = 0; i < n; i++, at += b->map.steps[0], from += size)
		if (has_unit(b, row, at))
			store_unit(b, unit_of(b, row, at), from);
}

/*
 * Rows
 */

/* Checks the part of the row that is in the tensor. */
static bool is_row_allowed(const struct warp *w, const struct box *b,
	const struct row *row, struct fault *fault)
{
	int64_t step = b->map.steps[0], first = b->at[0], last;
	uint64_t at, size;

	if (first < 0)
		first += (-first + step - 1) / step * step;
	last = b->at[0] + (int64_t)(b->n_units - 1) * step;
	if (last >= b->sizes[0])
		last = b->sizes[0] - 1;
	if (!row->is_inside || first > last)
		return true;
	at = row->origin + (uint64_t)first * b->layout->unit_size;
	size = (uint64_t)(last - first + 1) * b->layout->unit_size;
	/* A row has at most 256 elements, and 8 times that many are stepped over. */
	if (at >= SOFTGPU_GLOBAL_LOWEST && size <= SOFTGPU_PAGE_SIZE &&
		softgpu_space_check(&w->block->space, at, size,
			b->atom	      ? SOFTGPU_READ | SOFTGPU_WRITE
			: b->is_store ? SOFTGPU_WRITE
				      : SOFTGPU_READ)) {
		if (b->is_store)
			softgpu_watch_wrote(w->block, at, size);
		return true;
	}
	*fault = (struct fault){ SOFTGPU_ERROR_ILLEGAL_ADDRESS, at,
		"a tensor reaches an illegal address" };
	return false;
}

/* Transfers row @number of the box, which is at @place in all but the first dimension. */
static bool transfer_row(const struct warp *w, const struct box *b, struct row *row,
	const int64_t place[RANK_MAX], uint64_t number, struct fault *fault)
{
	uint64_t at = row->shared + number * b->row_size;
	int64_t unit = b->at[0];

	row->origin = b->map.address;
	row->is_inside = true;
	for (uint32_t i = 1; i < b->map.rank; i++) {
		row->origin += (uint64_t)place[i] * b->map.strides[i - 1];
		row->is_inside &= place[i] >= 0 && place[i] < b->sizes[i];
	}
	if (!is_row_allowed(w, b, row, fault))
		return false;
	for (uint32_t n = 0; n < b->n_units; n += b->group, at += b->pitch) {
		uint8_t *shared =
			row->line + (swizzled(b->map.swizzle, at) - row->shared);

		if (b->is_store)
			store_group(b, row, unit, shared, b->group);
		else
			load_group(b, row, unit, shared, b->group);
		unit += (int64_t)b->group * b->map.steps[0];
	}
	return true;
}

static bool transfer_tile(
	const struct warp *w, const struct box *b, struct row *row, struct fault *fault)
{
	uint32_t counts[RANK_MAX] = { 0 };
	int64_t place[RANK_MAX];

	memcpy(place, b->at, sizeof(place));
	for (uint64_t n = 0; n < b->n_rows; n++) {
		if (!transfer_row(w, b, row, place, n, fault))
			return false;
		for (uint32_t i = 1; i < b->map.rank; i++) {
			place[i] += b->map.steps[i];
			if (++counts[i] < box_count(b, i))
				break;
			counts[i] = 0;
			place[i] = b->at[i];
		}
	}
	return true;
}

static bool transfer_list(
	const struct warp *w, const struct box *b, struct row *row, struct fault *fault)
{
	int64_t place[RANK_MAX] = { 0 };

	for (uint64_t n = 0; n < b->n_rows; n++) {
		place[1] = b->at[1 + n];
		if (!transfer_row(w, b, row, place, n, fault))
			return false;
	}
	return true;
}

/* The next pixel within the corners of @n dimensions, then that of the next image. */
static void next_of_walk(const struct box *b, int64_t place[RANK_MAX], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		place[1 + i] += b->map.steps[1 + i];
		if (place[1 + i] < b->sizes[1 + i] + b->map.upper[i])
			return;
		place[1 + i] = b->map.lower[i];
	}
	place[b->map.rank - 1]++;
}

static bool transfer_pixels(
	const struct warp *w, const struct box *b, struct row *row, struct fault *fault)
{
	int64_t base[RANK_MAX], place[RANK_MAX];

	memcpy(base, b->at, sizeof(base));
	for (uint64_t n = 0; n < b->n_rows; n++) {
		memcpy(place, base, sizeof(place));
		for (uint32_t i = 0; i + 2 < b->map.rank; i++)
			place[1 + i] += b->offsets[i];
		if (!transfer_row(w, b, row, place, n, fault))
			return false;
		next_of_walk(b, base, b->map.rank - 2);
	}
	return true;
}

/* Whether a pixel of the walk, which is at @place without its offset, is in the tensor.
 */
static bool has_pixel(const struct box *b, const int64_t place[RANK_MAX])
{
	bool has =
		place[1] + b->offsets[0] >= 0 && place[1] + b->offsets[0] < b->sizes[1];

	for (uint32_t i = 2; i < b->map.rank; i++)
		has &= place[i] >= 0 && place[i] < b->sizes[i];
	return has;
}

/*
 * Along W alone, then in the next image. The halo follows the last pixel. If its row ends
 * PTX does not say whether the halo goes on beyond that or in the next image: it can only
 * be of pixels that are in the tensor neither way.
 */
static bool transfer_wide(
	const struct warp *w, const struct box *b, struct row *row, struct fault *fault)
{
	int64_t walk[RANK_MAX], on[RANK_MAX], place[RANK_MAX];

	memcpy(walk, b->at, sizeof(walk));
	memcpy(on, b->at, sizeof(on));
	for (uint64_t n = 0; n < b->n_rows; n++) {
		if (n < b->map.n_pixels)
			memcpy(on, walk, sizeof(on));
		else
			on[1] += b->map.steps[1];
		if (on[1] != walk[1] && (has_pixel(b, on) || has_pixel(b, walk)))
			return !bad_map(fault, b->map.address,
				"a halo beyond the end of its row");
		memcpy(place, on, sizeof(place));
		place[1] += b->offsets[0];
		if (!transfer_row(w, b, row, place, n, fault))
			return false;
		next_of_walk(b, walk, 1);
	}
	return true;
}

/* Between the tensor and the shared memory at a generic address. */
static bool transfer(struct warp *w, const struct insn *ip, uint32_t lane,
	const struct box *b, uint64_t shared, struct fault *fault)
{
	uint64_t size = b->n_rows * b->row_size;
	struct row row = { .shared = shared };
	int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;

	/* A swizzle permutes whole lines. */
	if (b->map.swizzle)
		size = (size + LINE - 1) / LINE * LINE;
	if (is_shared(shared))
		row.line = warp_resolve(w, lane, shared, (uint32_t)size, LINE - 1,
			b->is_store ? SOFTGPU_READ : SOFTGPU_WRITE, &code);
	if (!row.line) {
		*fault = (struct fault){ code, shared, fault_sentence(code) };
		return false;
	}
	if (!softgpu_check_copy(w, ip, lane, shared, (uint32_t)size, !b->is_store)) {
		*fault = (struct fault){ w->fault_code, w->fault_address, w->fault_text };
		return false;
	}
	switch ((uint32_t)ip->off >> TENSOR_MODE_SHIFT & 7) {
	case PTX_TENSOR_TILE:
		return transfer_tile(w, b, &row, fault);
	case PTX_TENSOR_GATHER4:
		return transfer_list(w, b, &row, fault);
	case PTX_TENSOR_IM2COL_W:
		return transfer_wide(w, b, &row, fault);
	default:
		return transfer_pixels(w, b, &row, fault);
	}
}

HANDLER(TENSOR_LOAD)
{
	const uint64_t *to = REG(uint64_t, ip->a), *map = REG(uint64_t, ip->b);
	const uint64_t *barrier = REG(uint64_t, ip->c);
	const uint32_t *blocks = REG(uint32_t, ip->e);
	bool casts = ip->off & TENSOR_CAST;
	struct fault fault;
	struct box b;

	EACH_SET_LANE(i, mask)
	{
		if (!find_box(w, ip, i, map[i], false, &b, &fault))
			goto faulted;
		EACH_SET_LANE(rank, casts ? blocks[i] & 0xffff : 1)
		{
			/* An address that is not shared would become one. */
			bool can = !casts || (is_shared(to[i]) && is_shared(barrier[i]));
			uint64_t there = !can	 ? 0
					 : casts ? shared_of_rank(to[i], rank)
						 : to[i];
			uint64_t signal = !can	  ? 0
					  : casts ? shared_of_rank(barrier[i], rank)
						  : barrier[i];

			if (!transfer(w, ip, i, &b, there, &fault))
				goto faulted;
			if (!mbarrier_complete(w, ip, i, signal, (uint32_t)b.data_size))
				return LEAVE;
		}
		continue;
	faulted:
		return warp_fault(w, ip, fault.code, i, fault.at, fault.text);
	}
	return ip + 1;
}

HANDLER(TENSOR_STORE)
{
	const uint64_t *from = REG(uint64_t, ip->a), *map = REG(uint64_t, ip->b);
	struct fault fault;
	struct box b;

	EACH_SET_LANE(i, mask)
	if (!find_box(w, ip, i, map[i], true, &b, &fault) ||
		!transfer(w, ip, i, &b, from[i], &fault))
		return warp_fault(w, ip, fault.code, i, fault.at, fault.text);
	return ip + 1;
}

/*
 * Changes of maps
 */

/* tensormap.replace numbers types in another order than the API. */
static const uint8_t types[] = {
	SOFTGPU_TENSOR_U8,
	SOFTGPU_TENSOR_U16,
	SOFTGPU_TENSOR_U32,
	SOFTGPU_TENSOR_S32,
	SOFTGPU_TENSOR_U64,
	SOFTGPU_TENSOR_S64,
	SOFTGPU_TENSOR_F16,
	SOFTGPU_TENSOR_F32,
	SOFTGPU_TENSOR_F32_FTZ,
	SOFTGPU_TENSOR_F64,
	SOFTGPU_TENSOR_BF16,
	SOFTGPU_TENSOR_TF32,
	SOFTGPU_TENSOR_TF32_FTZ,
	SOFTGPU_TENSOR_B4,
	SOFTGPU_TENSOR_B4_SPREAD,
	SOFTGPU_TENSOR_B6_SPREAD,
};

/* Atoms other than 16 bytes are swizzles of 128 bytes alone. */
static uint8_t swizzle_of(uint8_t swizzle, uint64_t atom)
{
	return (uint8_t)(swizzle < SOFTGPU_SWIZZLE_128 ? swizzle
						       : SOFTGPU_SWIZZLE_128 + atom);
}

/* Return: whether the value is legal. Sizes and steps count from 1, ranks from 0. */
static bool set_field(
	struct softgpu_tensor_map *map, unsigned int field, uint32_t i, uint64_t value)
{
	switch (field) {
	case PTX_FIELD_ADDRESS:
		map->address = value;
		return true;
	case PTX_FIELD_RANK:
		map->rank = (uint8_t)(value + 1);
		return value < RANK_MAX;
	case PTX_FIELD_BOX:
		map->box_last[i] = (uint8_t)(value - 1);
		return value >= 1 && value <= 256;
	case PTX_FIELD_SIZE:
		map->last[i] = (uint32_t)(value - 1);
		return value >= 1;
	case PTX_FIELD_STRIDE:
		if (i + 1 < RANK_MAX)
			map->strides[i] = value;
		return i + 1 < RANK_MAX;
	case PTX_FIELD_STEP:
		map->steps[i] = (uint8_t)value;
		return value >= 1 && value <= STEP_MAX;
	case PTX_FIELD_TYPE:
		if (value < sizeof(types))
			map->type = types[value];
		return value < sizeof(types);
	case PTX_FIELD_INTERLEAVE:
		map->interleave = (uint8_t)value;
		return value <= SOFTGPU_INTERLEAVE_MAX;
	case PTX_FIELD_SWIZZLE:
		map->swizzle = (uint8_t)value;
		return value <= SOFTGPU_SWIZZLE_128;
	case PTX_FIELD_ATOM:
		if (value <= 3)
			map->swizzle = swizzle_of(map->swizzle, value);
		return value <= 3;
	default:
		map->fills_nan = (uint8_t)value;
		return value <= 1;
	}
}

HANDLER(TENSOR_REPLACE)
{
	const uint64_t *address = REG(uint64_t, ip->a), *value = REG(uint64_t, ip->b);
	unsigned int field = (uint32_t)ip->off & 0xff;
	struct softgpu_tensor_map map;
	struct fault fault;
	int code;

	EACH_SET_LANE(i, mask)
	{
		void *to;

		if (!read_map(w, i, address[i], &map, &fault))
			return warp_fault(w, ip, fault.code, i, fault.at, fault.text);
		if (!set_field(&map, field, (uint32_t)ip->off >> 8, value[i]))
			return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, i,
				address[i], "a value that a tensor map cannot have");
		to = warp_resolve(w, i, address[i], sizeof(map), MAP_ALIGN - 1,
			SOFTGPU_WRITE, &code);
		if (!to)
			return warp_fault(
				w, ip, code, i, address[i], fault_sentence(code));
		memcpy(to, &map, sizeof(map));
	}
	return ip + 1;
}
