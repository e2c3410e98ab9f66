/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels that copy a tensor, and random tensors for them
 */

#include <time.h>

#include "exec-body.h"
#include "tensor-reference.h"

#define SHARED 16384u
#define TENSOR (1u << 20)
#define TENSOR_AT (1u << 19) /* the map's address: what is before it must stay */

static uint32_t tensor_seed = 1;

static inline uint32_t random_below(uint32_t n)
{
	tensor_seed = tensor_seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(tensor_seed >> 1) * n >> 31);
}

/* What the kernel below reads, at b.memory. */
struct order {
	struct softgpu_tensor_map map;
	int32_t at[5];
	uint16_t offsets[4];
	uint32_t expected; /* bytes */
	uint32_t to;
	uint32_t value; /* of other tests */
	uint64_t image; /* of shared memory, before and after */
};

/*
 * Thread 0 issues the copy of %s between two copies of all shared memory. Then there are
 * the address of the map in %d0, coordinates in %r1 to %r5, offsets in %h1 to %h3, the
 * place in shared memory in %r6 and the barrier's in %r7.
 */
#define TENSOR_BODY                                                                      \
	"ld.global.u32 %%r1, [%%d0+128]; ld.global.u32 %%r2, [%%d0+132];\n"              \
	"ld.global.u32 %%r3, [%%d0+136]; ld.global.u32 %%r4, [%%d0+140];\n"              \
	"ld.global.u32 %%r5, [%%d0+144]; ld.global.u16 %%h1, [%%d0+148];\n"              \
	"ld.global.u16 %%h2, [%%d0+150]; ld.global.u16 %%h3, [%%d0+152];\n"              \
	"ld.global.u32 %%r8, [%%d0+156]; ld.global.u32 %%r6, [%%d0+160];\n"              \
	"ld.global.u64 %%d3, [%%d0+168]; mov.u32 %%r9, s; add.u32 %%r6, %%r6, %%r9;\n"   \
	"mov.u32 %%r7, bar; setp.ne.u32 %%p1, %%r0, 0;\n"                                \
	"mul.wide.u32 %%d4, %%r0, 16; add.u64 %%d3, %%d3, %%d4;\n"                       \
	"mad.lo.u32 %%r9, %%r0, 16, %%r9; mov.u32 %%r10, 0;\n"                           \
	"in: ld.global.v4.u32 {%%r11, %%r12, %%r13, %%r14}, [%%d3];\n"                   \
	"st.shared.v4.u32 [%%r9], {%%r11, %%r12, %%r13, %%r14};\n"                       \
	"add.u64 %%d3, %%d3, 2048; add.u32 %%r9, %%r9, 2048; add.u32 %%r10, %%r10, 1;\n" \
	"setp.lt.u32 %%p2, %%r10, 8; @%%p2 bra in;\n"                                    \
	"@!%%p1 mbarrier.init.shared.b64 [%%r7], 1; bar.sync 0; @%%p1 bra wait;\n"       \
	"mbarrier.arrive.expect_tx.shared.b64 _, [%%r7], %%r8;\n"                        \
	"%s\n"                                                                           \
	"wait: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r7], 0; @!%%p2 bra wait;\n"  \
	"out: sub.u64 %%d3, %%d3, 2048; sub.u32 %%r9, %%r9, 2048;\n"                     \
	"ld.shared.v4.u32 {%%r11, %%r12, %%r13, %%r14}, [%%r9];\n"                       \
	"st.global.v4.u32 [%%d3], {%%r11, %%r12, %%r13, %%r14};\n"                       \
	"sub.u32 %%r10, %%r10, 1; setp.ne.u32 %%p2, %%r10, 0; @%%p2 bra out;"

#define OUTSIDE ".shared .align 1024 .b8 s[16384]; .shared .align 8 .b64 bar;\n"

struct bench {
	struct rig *rig;
	struct buffers b;
	struct order *order;
	uint8_t *image;	 /* shared memory */
	uint8_t *tensor; /* TENSOR bytes */
	uint8_t *want_image, *want_tensor;
};

static inline uint64_t in_ten_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec + 10) * UINT64_C(1000000000);
}

static inline struct bench bench_new(const char *copy)
{
	char body[4096];
	struct bench bench = {};

	snprintf(body, sizeof(body), TENSOR_BODY, copy);
	bench.rig = rig_of(OUTSIDE, body);
	bench.b = buffers_of(bench.rig, 128);
	bench.order = bench.b.memory;
	bench.image = rig_alloc(bench.rig, SHARED);
	bench.tensor = rig_alloc(bench.rig, TENSOR);
	bench.want_image = malloc(SHARED);
	bench.want_tensor = malloc(TENSOR);
	check(bench.want_image && bench.want_tensor);
	return bench;
}

static inline void bench_deinit(struct bench *bench)
{
	free(bench->want_image);
	free(bench->want_tensor);
	rig_free(bench->rig);
}

#define CLEAN_BENCH __attribute__((__cleanup__(bench_deinit))) struct bench

/* Small integers where they are numbers, so that every sum is exact. */
static inline void fill(struct bench *bench, bool are_numbers, unsigned int type)
{
	for (uint32_t i = 0; i < TENSOR; i += 8) {
		uint64_t bits = (uint64_t)random_below(1u << 30) << 34 ^
				(uint64_t)random_below(1u << 30) << 17 ^
				random_below(1u << 30);
		double d = (double)random_below(33) - 16;
		float f = (float)d;
		_Float16 h = (_Float16)f;
		uint16_t half;
		uint32_t word;

		memcpy(&word, &f, sizeof(word));
		memcpy(&half, &h, sizeof(half));
		if (are_numbers && type == SOFTGPU_TENSOR_F16)
			bits = half * UINT64_C(0x0001000100010001);
		else if (are_numbers && type == SOFTGPU_TENSOR_BF16)
			bits = (word >> 16) * UINT64_C(0x0001000100010001);
		else if (are_numbers && type == SOFTGPU_TENSOR_F32)
			bits = word * UINT64_C(0x0000000100000001);
		else if (are_numbers && type == SOFTGPU_TENSOR_F64)
			memcpy(&bits, &d, sizeof(bits));
		memcpy(bench->tensor + i, &bits, sizeof(bits));
		memcpy(bench->image + i % SHARED, &bits, sizeof(bits));
	}
	memcpy(bench->want_image, bench->image, SHARED);
	memcpy(bench->want_tensor, bench->tensor, TENSOR);
}

static inline int run_case(struct bench *bench, const struct tensor_case *c, bool is_load)
{
	bench->order->map = c->map;
	memcpy(bench->order->at, c->at, sizeof(c->at));
	memcpy(bench->order->offsets, c->offsets, sizeof(c->offsets));
	bench->order->expected = is_load ? (uint32_t)tensor_data_size(c) : 0;
	bench->order->to = c->to;
	bench->order->image = (uint64_t)(uintptr_t)bench->image;
	bench->rig->deadline_ns = in_ten_seconds();
	return run(bench->rig, &bench->b, 128);
}

static inline void check_bytes(
	const struct tensor_case *c, const uint8_t *got, const uint8_t *want, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (got[i] != want[i])
			test_fail(__FILE__, __LINE__,
				"byte %u is %02x, not %02x: type %u, rank %u, swizzle "
				"%u, "
				"kind %u, interleave %u, at %d %d %d",
				i, got[i], want[i], c->map.type, c->map.rank,
				c->map.swizzle, c->map.kind, c->map.interleave, c->at[0],
				c->at[1], c->at[2]);
}

/* Returns: whether the padding between elements counts. */
static inline bool has_gaps(const struct tensor_case *c)
{
	return c->map.type == SOFTGPU_TENSOR_B4_SPREAD ||
	       c->map.type == SOFTGPU_TENSOR_B6_SPREAD;
}

static inline uint32_t swizzle_span(unsigned int swizzle)
{
	return swizzle == SOFTGPU_SWIZZLE_NONE ? 256
	       : swizzle == SOFTGPU_SWIZZLE_32 ? 32
	       : swizzle == SOFTGPU_SWIZZLE_64 ? 64
					       : 128;
}

/* The innermost dimension: of types with gaps always 128 elements. */
static inline void choose_row(struct tensor_case *c, uint32_t *elementsp)
{
	uint32_t bits = tensor_bits(c->map.type), per16 = 128 / bits;
	uint32_t n =
		has_gaps(c)
			? 128
			: per16 * (1 + random_below(swizzle_span(c->map.swizzle) / 16));
	uint32_t unit = has_gaps(c) ? 128 : bits == 4 ? 2 : 1;
	uint32_t size = unit * (1 + random_below(300 / unit + 1));

	if (n > 256)
		n = 256 / per16 * per16;
	*elementsp = n;
	c->map.last[0] = size - 1;
	c->at[0] = ((int32_t)random_below(n / unit + 8) - 4) * (int32_t)unit;
	c->map.steps[0] = 1;
}

static inline unsigned int random_swizzle(unsigned int type)
{
	static const uint8_t spread[] = { SOFTGPU_SWIZZLE_NONE, SOFTGPU_SWIZZLE_128,
		SOFTGPU_SWIZZLE_ATOM_32 };

	if (type == SOFTGPU_TENSOR_B4_SPREAD || type == SOFTGPU_TENSOR_B6_SPREAD)
		return spread[random_below(3)];
	return random_below(_SOFTGPU_SWIZZLE_N);
}

static inline struct tensor_case case_new(
	struct bench *bench, uint32_t rank, unsigned int type)
{
	struct tensor_case c = {
		.map = {
			.mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION,
			.type = (uint8_t)type,
			.rank = (uint8_t)rank,
			.swizzle = (uint8_t)random_swizzle(type),
			.address = (uint64_t)(uintptr_t)(bench->tensor + TENSOR_AT),
			.fills_nan = (uint8_t)random_below(2),
		},
		.tensor = bench->tensor + TENSOR_AT,
		.to = random_below(3) * 128,
	};
	uint64_t stride = 16 * (20 + random_below(4) * 10 + tensor_bits(type) * 3);

	for (uint32_t i = 1; i < rank; i++) {
		c.map.last[i] = random_below(i == 1 ? 12 : 5);
		c.map.strides[i - 1] = stride;
		stride = (stride * (c.map.last[i] + 1 + random_below(2)) + 15) / 16 * 16;
		c.map.steps[i] = (uint8_t)(1 + random_below(2));
	}
	return c;
}

static inline struct tensor_case tile_new(
	struct bench *bench, uint32_t rank, unsigned int type)
{
	struct tensor_case c;
	uint32_t n;

	do {
		c = case_new(bench, rank, type);
		choose_row(&c, &n);
		c.map.box_last[0] = (uint8_t)(n - 1);
		for (uint32_t i = 1; i < rank; i++) {
			c.map.box_last[i] = (uint8_t)random_below(rank > 3 ? 4 : 7);
			c.at[i] = (int32_t)random_below(c.map.last[i] + 6) - 3;
		}
	} while (c.to + tensor_shared_size(&c) + 128 > SHARED);
	return c;
}

/* A slice of 16 or 32 bytes, of which some elements may be left out. */
static inline struct tensor_case slices_new(
	struct bench *bench, uint32_t rank, unsigned int type)
{
	struct tensor_case c = tile_new(bench, rank, type);
	uint32_t interleave = 1 + random_below(2), step = 1 + random_below(2);
	uint32_t n = interleave * 128 / tensor_bits(type);

	c.map.interleave = (uint8_t)interleave;
	c.map.swizzle = interleave == 2 ? SOFTGPU_SWIZZLE_32 : SOFTGPU_SWIZZLE_NONE;
	c.map.steps[0] = (uint8_t)step;
	c.map.box_last[0] = (uint8_t)(n * step - 1);
	return c;
}

static inline struct tensor_case pixels_new(
	struct bench *bench, uint32_t rank, unsigned int type)
{
	struct tensor_case c;
	uint32_t n;

	do {
		c = case_new(bench, rank, type);
		choose_row(&c, &n);
		c.map.kind = SOFTGPU_TENSOR_IM2COL;
		c.map.n_channels = (uint16_t)n;
		c.map.n_pixels = (uint16_t)(1 + random_below(60));
		for (uint32_t i = 0; i + 2 < rank; i++) {
			int32_t size = (int32_t)c.map.last[1 + i] + 1, width;

			c.map.lower[i] = (int16_t)((int32_t)random_below(4) - 2);
			c.map.upper[i] = (int16_t)((int32_t)random_below(4) - 2);
			if (size + c.map.upper[i] - c.map.lower[i] <= 0)
				c.map.upper[i] = (int16_t)c.map.lower[i];
			width = size + c.map.upper[i] - c.map.lower[i];
			c.at[1 + i] = c.map.lower[i] +
				      (int32_t)random_below((uint32_t)width) /
					      c.map.steps[1 + i] * c.map.steps[1 + i];
			c.offsets[i] = (uint16_t)random_below(4);
		}
		c.at[rank - 1] = (int32_t)random_below(4) - 1;
		c.map.steps[rank - 1] = 1;
	} while (c.to + tensor_shared_size(&c) + 128 > SHARED);
	return c;
}
