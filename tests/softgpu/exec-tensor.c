/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and reductions of tensors, against a reference
 */

#include "tensor-bench.h"

static void check_load(struct bench *bench, const struct tensor_case *c)
{
	fill(bench, false, c->map.type);
	tensor_transfer(c, bench->want_image, TENSOR_WAY_LOAD);
	if (run_case(bench, c, true))
		test_fail(__FILE__, __LINE__, "%s", bench->rig->fault.text);
	check_bytes(c, bench->tensor, bench->want_tensor, TENSOR);
	check_bytes(c, bench->image, bench->want_image, SHARED);
}

/* A reference changes the tensor in place: the kernel gets the old one. */
static void check_stored(struct bench *bench, const struct tensor_case *c)
{
	static uint8_t before[TENSOR];

	fill(bench, false, c->map.type);
	memcpy(before, bench->tensor, TENSOR);
	tensor_transfer(c, bench->want_image, TENSOR_WAY_STORE);
	memcpy(bench->want_tensor, bench->tensor, TENSOR);
	memcpy(bench->tensor, before, TENSOR);
	if (run_case(bench, c, false))
		test_fail(__FILE__, __LINE__, "%s", bench->rig->fault.text);
	check_bytes(c, bench->tensor, bench->want_tensor, TENSOR);
	check_bytes(c, bench->image, bench->want_image, SHARED);
}

static const char *const tile_loads[] = {
	"cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
	"[%r6], [%d0, {%r1}], [%r7];",
	"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
	"[%r6], [%d0, {%r1, %r2}], [%r7];",
	"mov.u64 %d5, 0;\n"
	"cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
	".L2::cache_hint [%r6], [%d0, {%r1, %r2, %r3}], [%r7], %d5;",
	"mov.u16 %h4, 1; add.u64 %d5, %d0, 64;\n"
	"cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
	".multicast::cluster [%r6], [%d5-64, {%r1, %r2, %r3, %r4}], [%r7], %h4;",
	"cp.async.bulk.tensor.5d.shared::cta.global.mbarrier::complete_tx::bytes "
	"[%r6], [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r7];",
};

TEST_SECONDS(tiles_are_loaded, 200)
{
	for (uint32_t rank = 1; rank <= 5; rank++) {
		CLEAN_BENCH bench = bench_new(tile_loads[rank - 1]);

		for (uint32_t i = 0; i < 5 * _SOFTGPU_TENSOR_TYPE_N; i++) {
			struct tensor_case c =
				tile_new(&bench, rank, i % _SOFTGPU_TENSOR_TYPE_N);

			check_load(&bench, &c);
		}
		for (uint32_t i = 0; i < 10 && rank >= 3; i++) {
			struct tensor_case c =
				slices_new(&bench, rank, i % SOFTGPU_TENSOR_TF32_FTZ);

			check_load(&bench, &c);
		}
	}
}

TEST_SECONDS(tiles_are_stored, 200)
{
	static const char *const stores[] = {
		"cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group "
		"[%d0, {%r1}], [%r6];",
		"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
		"[%d0, {%r1, %r2}], [%r6];",
		"mov.u64 %d5, 0; cp.async.bulk.tensor.3d.global.shared::cta.bulk_group"
		".L2::cache_hint [%d0, {%r1, %r2, %r3}], [%r6], %d5;",
		"cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
		"[%d0, {%r1, %r2, %r3, %r4}], [%r6];",
		"cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group "
		"[%d0, {%r1, %r2, %r3, %r4, %r5}], [%r6]; cp.async.bulk.commit_group;",
	};

	for (uint32_t rank = 1; rank <= 5; rank++) {
		CLEAN_BENCH bench = bench_new(stores[rank - 1]);

		for (uint32_t i = 0; i < 4 * _SOFTGPU_TENSOR_TYPE_N; i++) {
			struct tensor_case c =
				tile_new(&bench, rank, i % _SOFTGPU_TENSOR_TYPE_N);

			if (c.map.swizzle == SOFTGPU_SWIZZLE_ATOM_32_FLIP_8)
				c.map.swizzle = SOFTGPU_SWIZZLE_ATOM_32;
			check_stored(&bench, &c);
		}
	}
}

TEST_SECONDS(pixels_become_columns, 200)
{
	static const char *const loads[] = {
		"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::"
		"complete_tx::bytes [%r6], [%d0, {%r1, %r2, %r3}], [%r7], {%h1};",
		"cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::"
		"complete_tx::bytes [%r6], [%d0, {%r1, %r2, %r3, %r4}], [%r7], {%h1, "
		"%h2};",
		"mov.u16 %h4, 1; mov.u64 %d5, 0;\n"
		"cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::"
		"complete_tx::bytes.multicast::cluster.L2::cache_hint "
		"[%r6], [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r7], {%h1, %h2, %h3}, %h4, "
		"%d5;",
	};
	static const char *const stores[] = {
		"cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group "
		"[%d0, {%r1, %r2, %r3}], [%r6];",
		"cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
		"[%d0, {%r1, %r2, %r3, %r4}], [%r6];",
		"cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group "
		"[%d0, {%r1, %r2, %r3, %r4, %r5}], [%r6];",
	};

	for (uint32_t rank = 3; rank <= 5; rank++) {
		CLEAN_BENCH load = bench_new(loads[rank - 3]);
		CLEAN_BENCH store = bench_new(stores[rank - 3]);

		for (uint32_t i = 0; i < 3 * _SOFTGPU_TENSOR_TYPE_N; i++) {
			struct tensor_case c =
				pixels_new(&load, rank, i % _SOFTGPU_TENSOR_TYPE_N);

			check_load(&load, &c);
			c = pixels_new(&store, rank, i % _SOFTGPU_TENSOR_TYPE_N);
			if (c.map.swizzle == SOFTGPU_SWIZZLE_ATOM_32_FLIP_8)
				c.map.swizzle = SOFTGPU_SWIZZLE_128;
			memset(c.offsets, 0, sizeof(c.offsets));
			check_stored(&store, &c);
		}
	}
}

/* A walk over a line: swizzles are those that a wide map may have. */
static struct tensor_case line_new(struct bench *bench, uint32_t rank, unsigned int type)
{
	static const uint8_t swizzles[] = { SOFTGPU_SWIZZLE_64, SOFTGPU_SWIZZLE_128,
		SOFTGPU_SWIZZLE_ATOM_32 };
	struct tensor_case c;

	do
		c = pixels_new(bench, rank, type);
	while (c.map.swizzle != swizzles[0] && c.map.swizzle != swizzles[1] &&
		c.map.swizzle != swizzles[2]);
	c.map.kind = SOFTGPU_TENSOR_IM2COL_WIDE;
	for (uint32_t i = 1; i < 3; i++) {
		c.map.lower[i] = c.map.upper[i] = 0;
		c.offsets[i] = 0;
	}
	for (uint32_t i = 2; i < rank; i++)
		c.at[i] = (int32_t)random_below(c.map.last[i] + 3) - 1;
	return c;
}

/* Places of the line that follow the last one of the walk and are within its corners. */
static uint32_t rest_of_line(const struct tensor_case *c)
{
	uint32_t step = c->map.steps[1];
	uint32_t n =
		(uint32_t)((int32_t)c->map.last[1] + c->map.upper[0] - c->map.lower[0]) /
			step +
		1;
	uint32_t first = (uint32_t)(c->at[1] - c->map.lower[0]) / step;

	return n - 1 - (first + c->map.n_pixels - 1) % n;
}

#define WIDE_LOAD(_rank, _coordinates)                                                   \
	"mov.u16 %h5, %h2; mov.u16 %h6, %h1;\n"                                          \
	"cp.async.bulk.tensor." _rank ".shared::cta.global.im2col::w.mbarrier::"         \
	"complete_tx::bytes [%r6], [%d0, {%r1, %r2, %r3" _coordinates                    \
	"}], [%r7], {%h5, %h6};"

static const char *const wide_loads[] = {
	WIDE_LOAD("3d", ""),
	WIDE_LOAD("4d", ", %r4"),
	WIDE_LOAD("5d", ", %r4, %r5"),
};

/* The kernel has the halo in place of the second offset. */
static int run_wide(struct bench *bench, struct tensor_case *c)
{
	int r;

	c->offsets[1] = c->halo;
	r = run_case(bench, c, true);
	c->offsets[1] = 0;
	return r;
}

TEST_SECONDS(lines_become_columns_with_a_halo, 200)
{
	for (uint32_t rank = 3; rank <= 5; rank++) {
		CLEAN_BENCH load = bench_new(wide_loads[rank - 3]);

		for (uint32_t i = 0; i < 4 * _SOFTGPU_TENSOR_TYPE_N; i++) {
			struct tensor_case c =
				line_new(&load, rank, i % _SOFTGPU_TENSOR_TYPE_N);
			uint32_t rest = rest_of_line(&c);

			do
				c.halo = (uint16_t)random_below(rest + 1);
			while (c.to + tensor_shared_size(&c) + 128 > SHARED);
			/* The first pixel may lie before the line. */
			if (i % 4 == 3)
				c.at[1] -= c.map.steps[1];
			if (i % 4 == 3 && c.at[1] < c.map.lower[0])
				c.at[1] += c.map.steps[1];
			c.halo = c.halo > rest_of_line(&c) ? 0 : c.halo;
			fill(&load, false, c.map.type);
			tensor_transfer(&c, load.want_image, TENSOR_WAY_LOAD);
			if (run_wide(&load, &c))
				test_fail(__FILE__, __LINE__, "%s", load.rig->fault.text);
			check_bytes(&c, load.image, load.want_image, SHARED);
		}
	}
}

/* 7 pixels of a line, of which a padding of 1 is on either side; 2 more in the halo. */
static struct tensor_case padded_line(struct bench *bench)
{
	struct tensor_case c = {
		.map = {
			.mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION,
			.kind = SOFTGPU_TENSOR_IM2COL_WIDE,
			.type = SOFTGPU_TENSOR_U8,
			.rank = 3,
			.address = (uint64_t)(uintptr_t)(bench->tensor + TENSOR_AT),
			.strides = { 64, 640 },
			.last = { 63, 6, 3 },
			.lower = { -1 },
			.upper = { 0 },
			.steps = { 1, 2, 1 },
			.n_channels = 64,
			.n_pixels = 4,
			.swizzle = SOFTGPU_SWIZZLE_64,
		},
		.tensor = bench->tensor + TENSOR_AT,
		.at = { 0, -1, 1 },
		.halo = 1,
	};

	return c;
}

TEST(a_halo_ends_with_its_line_unless_both_ways_lead_out_of_the_tensor)
{
	CLEAN_BENCH load = bench_new(wide_loads[0]);
	struct tensor_case c = padded_line(&load);

	/* -1, 1, 3, 5; then 7 or, in the next image, -1 */
	fill(&load, false, c.map.type);
	tensor_transfer(&c, load.want_image, TENSOR_WAY_LOAD);
	check_eq(run_wide(&load, &c), 0);
	check_bytes(&c, load.image, load.want_image, SHARED);
	/* Then 9 or 1. */
	c.halo = 2;
	check_eq(run_wide(&load, &c), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	check(strstr(load.rig->fault.text, "a halo beyond the end of its row"));
	/* 0, 2, 4, 6; 8 or 0 */
	c.halo = 1;
	c.offsets[0] = 1;
	check_eq(run_wide(&load, &c), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	c = padded_line(&load);
	c.map.upper[0] = -1;
	check_eq(run_wide(&load, &c), 0);
	/* -1, 1, 3; 5 or -1 */
	c.map.upper[0] = -2;
	c.map.n_pixels = 3;
	check_eq(run_wide(&load, &c), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
}

TEST(a_wide_copy_needs_a_map_that_is_for_it)
{
	CLEAN_BENCH load = bench_new(wide_loads[0]);
	struct tensor_case c;

	for (unsigned int i = 0; i < 6; i++) {
		c = padded_line(&load);
		if (i == 0)
			c.map.kind = SOFTGPU_TENSOR_IM2COL;
		else if (i == 1)
			c.map.mode = 1;
		else if (i == 2)
			c.map.swizzle = SOFTGPU_SWIZZLE_NONE;
		else if (i == 3)
			c.map.swizzle = SOFTGPU_SWIZZLE_ATOM_32_FLIP_8;
		else if (i == 4)
			c.map.n_pixels = 0;
		else
			c.halo = UINT16_MAX; /* more than shared memory */
		check_eq(run_wide(&load, &c), SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	}
}

TEST(rows_are_gathered)
{
	CLEAN_BENCH bench = bench_new(
		"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::"
		"complete_tx::bytes [%r6], [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r7];");

	for (uint32_t i = 0; i < 4 * _SOFTGPU_TENSOR_TYPE_N; i++) {
		struct tensor_case c = tile_new(&bench, 2, i % _SOFTGPU_TENSOR_TYPE_N);

		c.is_gather = true;
		c.map.box_last[1] = 0;
		for (uint32_t k = 1; k < 5; k++)
			c.at[k] = (int32_t)random_below(c.map.last[1] + 4) - 2;
		check_load(&bench, &c);
	}
}

/*
 * Reductions
 */

struct reduction {
	const char *name;
	unsigned int type;
};

#define NUMBER(_T)                                                                       \
	do {                                                                             \
		_T x, y;                                                                 \
                                                                                         \
		memcpy(&x, global, sizeof(x));                                           \
		memcpy(&y, shared, sizeof(y));                                           \
		if (!strcmp(r->name, "add"))                                             \
			x = (_T)(x + y);                                                 \
		else if (!strcmp(r->name, "min"))                                        \
			x = y < x ? y : x;                                               \
		else                                                                     \
			x = y > x ? y : x;                                               \
		memcpy(global, &x, sizeof(x));                                           \
	} while (0)

static void reduce_bfloat(const struct reduction *r, uint8_t *global, uint8_t *shared)
{
	uint32_t x = 0, y = 0;
	float a, b;

	memcpy((uint8_t *)&x + 2, global, 2);
	memcpy((uint8_t *)&y + 2, shared, 2);
	memcpy(&a, &x, sizeof(a));
	memcpy(&b, &y, sizeof(b));
	a = !strcmp(r->name, "add")   ? a + b
	    : !strcmp(r->name, "min") ? fminf(a, b)
				      : fmaxf(a, b);
	memcpy(&x, &a, sizeof(x));
	memcpy(global, (uint8_t *)&x + 2, 2);
}

static void reduce_bits(const struct reduction *r, uint8_t *global, uint8_t *shared)
{
	uint32_t size = tensor_bits(r->type) / 8, x, y;

	for (uint32_t i = 0; i < size; i++)
		global[i] = !strcmp(r->name, "and")  ? global[i] & shared[i]
			    : !strcmp(r->name, "or") ? global[i] | shared[i]
						     : global[i] ^ shared[i];
	if (strcmp(r->name, "inc") && strcmp(r->name, "dec"))
		return;
	/* The last of the three undoes itself. */
	for (uint32_t i = 0; i < size; i++)
		global[i] ^= shared[i];
	memcpy(&x, global, sizeof(x));
	memcpy(&y, shared, sizeof(y));
	if (!strcmp(r->name, "inc"))
		x = x < y ? x + 1 : 0;
	else
		x = x && x <= y ? x - 1 : y;
	memcpy(global, &x, sizeof(x));
}

static void reduce(void *data, uint8_t *global, uint8_t *shared)
{
	const struct reduction *r = data;

	if (strcmp(r->name, "add") && strcmp(r->name, "min") && strcmp(r->name, "max")) {
		reduce_bits(r, global, shared);
		return;
	}
	switch (r->type) {
	case SOFTGPU_TENSOR_U32:
		NUMBER(uint32_t);
		break;
	case SOFTGPU_TENSOR_S32:
		NUMBER(int32_t);
		break;
	case SOFTGPU_TENSOR_U64:
		NUMBER(uint64_t);
		break;
	case SOFTGPU_TENSOR_S64:
		NUMBER(int64_t);
		break;
	case SOFTGPU_TENSOR_F16:
		NUMBER(_Float16);
		break;
	case SOFTGPU_TENSOR_BF16:
		reduce_bfloat(r, global, shared);
		break;
	case SOFTGPU_TENSOR_F64:
		NUMBER(double);
		break;
	default:
		NUMBER(float);
		break;
	}
}

static bool has_reduction(const char *name, unsigned int type)
{
	bool is_real = type >= SOFTGPU_TENSOR_F16;

	if (!strcmp(name, "inc") || !strcmp(name, "dec"))
		return type == SOFTGPU_TENSOR_U32;
	if (!strcmp(name, "min") || !strcmp(name, "max"))
		return !is_real || type == SOFTGPU_TENSOR_F16 ||
		       type == SOFTGPU_TENSOR_BF16;
	return !is_real || !strcmp(name, "add");
}

TEST_SECONDS(tensors_are_reduced, 200)
{
	static const char *const names[] = { "add", "min", "max", "inc", "dec", "and",
		"or", "xor" };
	static uint8_t before[TENSOR];

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		char text[256];
		CLEAN_BENCH bench = {};

		snprintf(text, sizeof(text),
			"cp.reduce.async.bulk.tensor.3d.global.shared::cta.%s.tile."
			"bulk_group [%%d0, {%%r1, %%r2, %%r3}], [%%r6];",
			names[k]);
		bench = bench_new(text);

		for (unsigned int i = 0; i < 2 * (SOFTGPU_TENSOR_BF16 + 1); i++) {
			unsigned int type = i % (SOFTGPU_TENSOR_BF16 + 1);
			struct reduction r = { names[k], type };
			struct tensor_case c = tile_new(&bench, 3, type);
			int code;

			c.map.swizzle = c.map.swizzle == SOFTGPU_SWIZZLE_ATOM_32_FLIP_8
						? SOFTGPU_SWIZZLE_ATOM_64
						: c.map.swizzle;
			fill(&bench, true, type);
			if (type < SOFTGPU_TENSOR_U32 || !has_reduction(names[k], type)) {
				code = run_case(&bench, &c, false);
				check_eq(code, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
				continue;
			}
			memcpy(before, bench.tensor, TENSOR);
			tensor_each(&c, bench.image, &r, reduce);
			memcpy(bench.want_tensor, bench.tensor, TENSOR);
			memcpy(bench.tensor, before, TENSOR);
			if (run_case(&bench, &c, false))
				test_fail(
					__FILE__, __LINE__, "%s", bench.rig->fault.text);
			check_bytes(&c, bench.tensor, bench.want_tensor, TENSOR);
		}
	}
}
