/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of tensors: wrong ones, where they may lie, and their changes
 */

#include <stddef.h>

#include "tensor-bench.h"

static const char *const load_2d =
	"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
	"[%r6], [%d0, {%r1, %r2}], [%r7];";

/* 16 by 8 words of a tensor of 64 by 32, at (8, 4). */
static struct tensor_case words_new(struct bench *bench)
{
	return (struct tensor_case){
		.map = {
			.mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION,
			.type = SOFTGPU_TENSOR_U32,
			.rank = 2,
			.address = (uint64_t)(uintptr_t)(bench->tensor + TENSOR_AT),
			.strides = { 256 },
			.last = { 63, 31 },
			.box_last = { 15, 7 },
			.steps = { 1, 1, 1, 1, 1 },
		},
		.tensor = bench->tensor + TENSOR_AT,
		.at = { 8, 4 },
	};
}

TEST(wrong_maps_are_faults)
{
	static const struct {
		const char *name;
		uint32_t off, size; /* of the map's bytes that get the value */
		uint64_t value;
		int code;
	} rows[] = {
#define FIELD(_field)                                                                    \
	offsetof(struct softgpu_tensor_map, _field),                                     \
		sizeof(((struct softgpu_tensor_map *)NULL)->_field)
		{ "nothing", FIELD(promotion), 3, 0 },
		{ "mark", FIELD(mark), 7, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "version", FIELD(version), 2, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "kind", FIELD(kind), 1, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "wide", FIELD(kind), 2, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "no kind", FIELD(kind), 255, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "type", FIELD(type), 16, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "rank", FIELD(rank), 3, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "no rank", FIELD(rank), 0, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "alignment", FIELD(address), 0x10008,
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "nowhere", FIELD(address), 0x1000, SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "shared", FIELD(address), 0x10000000, SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "top", FIELD(address), UINT64_C(-256), SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "stride", FIELD(strides[0]), 24, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "far", FIELD(strides[0]), UINT64_C(1) << 62,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "back", FIELD(strides[0]), UINT64_C(-1) << 20,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "step", FIELD(steps[1]), 0, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "long step", FIELD(steps[1]), 9, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "inner step", FIELD(steps[0]), 2, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "box", FIELD(box_last[0]), 14, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "large box", FIELD(box_last[1]), 255, SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "interleave", FIELD(interleave), 3, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "slice", FIELD(interleave), 1, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "swizzle", FIELD(swizzle), 7, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "narrow swizzle", FIELD(swizzle), 1,
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "fill", FIELD(fills_nan), 2, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "packed", FIELD(type), SOFTGPU_TENSOR_B4,
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
#undef FIELD
	};
	CLEAN_BENCH bench = bench_new(load_2d);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tensor_case c = words_new(&bench);
		int code;

		c.to = 256;
		memcpy((uint8_t *)&c.map + rows[i].off, &rows[i].value, rows[i].size);
		fill(&bench, false, c.map.type);
		code = run_case(&bench, &c, false);
		if (code != rows[i].code)
			test_fail(__FILE__, __LINE__, "%s: %d: %s", rows[i].name, code,
				bench.rig->fault.text);
		check_bytes(&c, bench.tensor, bench.want_tensor, TENSOR);
	}
}

TEST(maps_and_barriers_have_to_be_where_they_may_be)
{
	static const struct {
		const char *copy;
		int code;
	} rows[] = {
		{ "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx:"
		  ":"
		  "bytes [%r6], [%d0+32, {%r1, %r2}], [%r7];",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "mov.u64 %d0, 4096; cp.async.bulk.tensor.2d.shared::cta.global.tile."
		  "mbarrier::complete_tx::bytes [%r6], [%d0, {%r1, %r2}], [%r7];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx:"
		  ":"
		  "bytes [%r6+64], [%d0, {%r1, %r2}], [%r7];",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx:"
		  ":"
		  "bytes [%r6+1048576], [%d0, {%r1, %r2}], [%r7];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx:"
		  ":"
		  "bytes [%r6], [%d0, {%r1, %r2}], [%r7+1048576];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "mov.u16 %h4, 2;\n"
		  "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
		  "complete_tx::bytes.multicast::cluster [%r6], [%d0, {%r1, %r2}], "
		  "[%r7], "
		  "%h4;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx:"
		  ":"
		  "bytes [%r6], [%d0, {%r1, %r2, %r3}], [%r7];",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::"
		  "complete_tx::bytes [%r6], [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r7];",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
		  "[%d0, {%r1, %r2}], [%r6+1048576];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_BENCH bench = bench_new(rows[i].copy);
		struct tensor_case c = words_new(&bench);
		int code;

		fill(&bench, false, c.map.type);
		code = run_case(&bench, &c, true);
		if (code != rows[i].code)
			test_fail(__FILE__, __LINE__, "%s: %d", rows[i].copy, code);
	}
}

/* Bytes that are not made by the API: of all, or of some fields of a legal map. */
TEST_SECONDS(random_maps_stay_within_the_memory, 200)
{
	static const char *const copies[] = {
		"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::"
		"bytes [%r6], [%d0, {%r1, %r2}], [%r7];",
		"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
		"[%d0, {%r1, %r2}], [%r6];",
		"cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx:"
		":"
		"bytes [%r6], [%d0, {%r1, %r2, %r3, %r4}], [%r7], {%h1, %h2};",
		"cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs."
		"bulk_group [%d0, {%r1, %r2, %r3, %r4}], [%r6];",
	};
	uint32_t n_well = 0;

	for (size_t k = 0; k < sizeof(copies) / sizeof(copies[0]); k++) {
		CLEAN_BENCH bench = bench_new(copies[k]);

		for (uint32_t i = 0; i < 600; i++) {
			struct tensor_case c =
				k < 2 ? tile_new(&bench, 2, random_below(13))
				      : pixels_new(&bench, 4, random_below(13));
			uint8_t *bytes = (uint8_t *)&c.map;
			int code;

			for (uint32_t n = random_below(i % 3 ? 4 : 100) + 1; n--;)
				bytes[(i % 3 ? 6 : 0) + random_below(122)] =
					(uint8_t)random_below(256);
			for (uint32_t n = 0; n < 5 && i % 2; n++)
				c.at[n] = (int32_t)(random_below(1u << 30) * 4 +
						    random_below(4));
			/* Nothing arrives after a fault, nor the bytes that are expected.
			 */
			bench.order->map = c.map;
			memcpy(bench.order->at, c.at, sizeof(c.at));
			bench.order->to = c.to;
			bench.order->expected = 0;
			bench.order->image = (uint64_t)(uintptr_t)bench.image;
			bench.rig->deadline_ns = 1;
			code = run(bench.rig, &bench.b, 128);
			n_well += !code || code == SOFTGPU_ERROR_LAUNCH_TIMEOUT;
			if (code && code != SOFTGPU_ERROR_ILLEGAL_INSTRUCTION &&
				code != SOFTGPU_ERROR_ILLEGAL_ADDRESS &&
				code != SOFTGPU_ERROR_MISALIGNED_ADDRESS &&
				code != SOFTGPU_ERROR_LAUNCH_TIMEOUT)
				test_fail(__FILE__, __LINE__, "%d: %s", code,
					bench.rig->fault.text);
		}
	}
	check(n_well > 100);
}

TEST(maps_are_parameters_and_variables)
{
	CLEAN_RIG rig = rig_new(HEADER
		".global .align 64 .b8 copy[128]; .shared .align 128 .b8 s[1024];\n"
		".shared .align 8 .b64 bar;\n"
		".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) "
		"{\n" REGISTERS "ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; "
		"mul.wide.u32 %d2, %r0, 8;\n"
		"mov.b64 %d3, map; cvta.param.u64 %d3, %d3; add.u64 %d4, %d3, %d2;\n"
		"mov.u64 %d5, copy; add.u64 %d5, %d5, %d2; \n"
		"setp.lt.u32 %p1, %r0, 16; @%p1 ld.u64 %d6, [%d4]; @%p1 st.global.u64 "
		"[%d5], %d6;\n"
		"setp.ne.u32 %p2, %r0, 0; mov.u32 %r1, bar; mov.u32 %r2, s; mov.u32 %r3, "
		"0;\n"
		"@!%p2 mbarrier.init.shared.b64 [%r1], 1; bar.sync 0; @%p2 bra wait;\n"
		"mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1024;\n"
		"cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::"
		"bytes "
		"[%r2], [%d3, {%r3}], [%r1]; mov.u32 %r4, 4;\n"
		"cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::"
		"bytes "
		"[%r2+512], [copy, {%r4}], [%r1];\n"
		"wait: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra "
		"wait;\n"
		"mad.lo.u32 %r5, %r0, 8, %r2; ld.shared.u64 %d6, [%r5];\n"
		"add.u64 %d1, %d1, %d2; st.global.u64 [%d1], %d6; ret; }\n");
	uint8_t *from = rig_alloc(rig, 4096);
	uint64_t *out = rig_alloc(rig, 1024);
	struct {
		struct softgpu_tensor_map map;
		uint64_t *out;
	} params = {
		.map = { .mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION,
			.type = SOFTGPU_TENSOR_U16,
			.rank = 1,
			.address = (uint64_t)(uintptr_t)from,
			.last = { 2047 },
			.box_last = { 255 },
			.steps = { 1 } },
		.out = out,
	};

	for (uint32_t i = 0; i < 4096; i++)
		from[i] = (uint8_t)(i * 13 + 5);
	rig->deadline_ns = in_ten_seconds();
	rig_launch(rig, "k", 1, 128, &params, sizeof(params));
	check(!memcmp(out, from, 512));
	check(!memcmp(out + 64, from + 8, 512));
}

/* Each field of a map is set to what another map has, then both are the same. */
TEST(fields_of_maps_are_replaced)
{
	static const struct softgpu_tensor_map want = {
		.mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.kind = SOFTGPU_TENSOR_TILED,
		.type = SOFTGPU_TENSOR_BF16,
		.rank = 5,
		.address = 0x123456789ab0,
		.strides = { 16, 32, 48, 0x7fffffff0 },
		.last = { 99, UINT32_MAX, 0, 7, 8 },
		.box_last = { 255, 0, 1, 2, 3 },
		.steps = { 1, 2, 3, 4, 8 },
		.interleave = 2,
		.swizzle = SOFTGPU_SWIZZLE_ATOM_32_FLIP_8,
		.fills_nan = 1,
	};
	static const char body[] =
		"setp.ne.u32 %p1, %r0, 0; @%p1 exit; mov.u64 %d3, 0x123456789ab0;\n"
		"tensormap.replace.tile.global_address.global.b1024.b64 [%d0], %d3;\n"
		"mov.u32 %r1, 4; tensormap.replace.tile.rank.global.b1024.b32 [%d0], "
		"%r1;\n"
		"mov.u32 %r1, 256; tensormap.replace.tile.box_dim.global.b1024.b32 "
		"[%d0], 0, "
		"%r1;\n"
		"mov.u32 %r1, 1; tensormap.replace.tile.box_dim.b1024.b32 [%d0], 1, "
		"%r1;\n"
		"mov.u32 %r1, 2; tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], "
		"2, "
		"%r1;\n"
		"mov.u32 %r1, 3; tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], "
		"3, "
		"%r1;\n"
		"mov.u32 %r1, 4; tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], "
		"4, "
		"%r1;\n"
		"mov.u64 %d3, 16; tensormap.replace.tile.global_stride.global.b1024.b64 "
		"[%d0], 0, %d3;\n"
		"mov.u64 %d3, 32; tensormap.replace.tile.global_stride.global.b1024.b64 "
		"[%d0], 1, %d3;\n"
		"mov.u64 %d3, 48; tensormap.replace.tile.global_stride.global.b1024.b64 "
		"[%d0], 2, %d3;\n"
		"mov.u64 %d3, 0x7fffffff0; "
		"tensormap.replace.tile.global_stride.global.b1024."
		"b64 [%d0], 3, %d3;\n"
		"mov.u32 %r1, 100; tensormap.replace.tile.global_dim.global.b1024.b32 "
		"[%d0], "
		"0, %r1;\n"
		"mov.u32 %r1, 0xffffffff; "
		"tensormap.replace.tile.global_dim.global.b1024.b32 "
		"[%d0], 1, %r1;\n"
		"mov.u32 %r1, 1; tensormap.replace.tile.global_dim.global.b1024.b32 "
		"[%d0], 2, "
		"%r1;\n"
		"mov.u32 %r1, 8; tensormap.replace.tile.global_dim.global.b1024.b32 "
		"[%d0], 3, "
		"%r1;\n"
		"mov.u32 %r1, 9; tensormap.replace.tile.global_dim.global.b1024.b32 "
		"[%d0], 4, "
		"%r1;\n"
		"mov.u32 %r1, 1; tensormap.replace.tile.element_stride.global.b1024.b32 "
		"[%d0], 0, %r1;\n"
		"mov.u32 %r1, 2; tensormap.replace.tile.element_stride.global.b1024.b32 "
		"[%d0], 1, %r1;\n"
		"mov.u32 %r1, 3; tensormap.replace.tile.element_stride.global.b1024.b32 "
		"[%d0], 2, %r1;\n"
		"mov.u32 %r1, 4; tensormap.replace.tile.element_stride.global.b1024.b32 "
		"[%d0], 3, %r1;\n"
		"mov.u32 %r1, 8; tensormap.replace.tile.element_stride.global.b1024.b32 "
		"[%d0], 4, %r1;\n"
		"tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], 10;\n"
		"tensormap.replace.tile.interleave_layout.global.b1024.b32 [%d0], 2;\n"
		"tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d0], 3;\n"
		"tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%d0], 2;\n"
		"tensormap.replace.tile.fill_mode.global.b1024.b32 [%d0], 1;";
	CLEAN_RIG rig = rig_of("", body);
	struct buffers b = buffers_of(rig, 32);
	struct softgpu_tensor_map *map = b.memory, expected = want;

	*map = (struct softgpu_tensor_map){
		.mark = want.mark, .version = want.version, .last = { 0, 7 }
	};
	/* A size of 2^32 - 1 has the last element one before. */
	expected.last[1] = UINT32_MAX - 1;
	run_well(rig, &b, 32);
	check(!memcmp(map, &expected, sizeof(expected)));
}

TEST(values_that_maps_cannot_have_are_faults)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ "tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], 15;", 0 },
		{ "tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], 16;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%d0], 4;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%d0], 4;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.interleave_layout.global.b1024.b32 [%d0], 3;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.fill_mode.global.b1024.b32 [%d0], 2;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mov.u32 %r1, 5; tensormap.replace.tile.rank.global.b1024.b32 [%d0], "
		  "%r1;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mov.u32 %r1, 0; tensormap.replace.tile.box_dim.global.b1024.b32 "
		  "[%d0], "
		  "1, %r1;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mov.u32 %r1, 257; tensormap.replace.tile.box_dim.global.b1024.b32 "
		  "[%d0], 1, %r1;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mov.u32 %r1, 9; "
		  "tensormap.replace.tile.element_stride.global.b1024.b32 "
		  "[%d0], 1, %r1;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mov.u64 %d3, 16; "
		  "tensormap.replace.tile.global_stride.global.b1024.b64 "
		  "[%d0], 4, %d3;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.fill_mode.global.b1024.b32 [%d0+32], 1;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "tensormap.replace.tile.fill_mode.global.b1024.b32 [%d0+128], 1;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r2+4096], 1;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_RIG rig = rig_of("", rows[i].body);
		struct buffers b = buffers_of(rig, 32);
		struct softgpu_tensor_map *map = b.memory;
		int code;

		*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION };
		code = run(rig, &b, 32);
		if (code != rows[i].code)
			test_fail(__FILE__, __LINE__, "%s: %d", rows[i].body, code);
	}
}

TEST(maps_are_changed_in_shared_memory_and_copied)
{
	CLEAN_RIG rig = rig_of(".shared .align 128 .b8 s[128];",
		"mul.wide.u32 %d3, %r0, 4; add.u64 %d3, %d3, %d0; ld.global.u32 %r1, "
		"[%d3];\n"
		"mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 4, %r2; st.shared.u32 [%r3], %r1;\n"
		"bar.warp.sync 0xffffffff; setp.eq.u32 %p1, %r0, 5; mov.u64 %d4, "
		"0x40000;\n"
		"@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r2], "
		"%d4;\n"
		"bar.warp.sync 0xffffffff;\n"
		"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release."
		"gpu."
		"sync.aligned [%d0+128], [%r2], 128;\n"
		"fence.proxy.tensormap::generic.acquire.gpu [%d0+128], 128;");
	struct buffers b = buffers_of(rig, 32);
	struct softgpu_tensor_map *map = b.memory, want;

	map[0] = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.last = { 1, 2, 3, 4, 5 },
		.unused = { 7 } };
	want = map[0];
	want.address = 0x40000;
	run_well(rig, &b, 32);
	check(!memcmp(&map[1], &want, sizeof(want)));
}

/* The block of a cluster that issues a copy to all of them waits as the others do. */
TEST(tiles_reach_all_blocks_of_a_cluster)
{
	CLEAN_RIG rig = rig_of(
		".shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;",
		"mov.u32 %r1, bar; mov.u32 %r2, s; setp.ne.u32 %p1, %r0, 0;\n"
		"@!%p1 mbarrier.init.shared.b64 [%r1], 1;\n"
		"@!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;\n"
		"barrier.cluster.arrive; barrier.cluster.wait;\n"
		"mov.u32 %r3, %cluster_ctarank; setp.eq.and.u32 %p2, %r3, 2, !%p1; "
		"mov.u32 %r4, "
		"0;\n"
		"mov.u16 %h1, 11; mov.u32 %r5, 3;\n"
		"@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
		"complete_tx::bytes.multicast::cluster [%r2], [%d0, {%r4, %r5}], [%r1], "
		"%h1;\n"
		"@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
		"multicast::cluster [%r2], [%d0+1024], 512, [%r1], 4;\n"
		"wait: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0; @!%p3 bra "
		"wait;\n"
		"mad.lo.u32 %r6, %r0, 16, %r2; ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, "
		"[%r6];\n"
		"mul.wide.u32 %d3, %r3, 1024; add.u64 %d1, %d1, %d3;\n"
		"st.global.v4.u32 [%d1], {%r7, %r8, %r9, %r10};");
	struct buffers b = buffers_of(rig, 4 * 32);
	struct softgpu_tensor_map *map = b.memory;
	uint8_t *from = rig_alloc(rig, 8192), *bytes = b.memory;

	*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.type = SOFTGPU_TENSOR_U32,
		.rank = 2,
		.address = (uint64_t)(uintptr_t)from,
		.strides = { 128 },
		.last = { 31, 31 },
		.box_last = { 31, 3 },
		.steps = { 1, 1 } };
	for (uint32_t i = 0; i < 4096; i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t i = 1024; i < 2048; i++)
		bytes[i] = (uint8_t)(i * 3);
	rig->cluster[0] = 4;
	rig->cluster[1] = rig->cluster[2] = 1;
	rig->deadline_ns = in_ten_seconds();
	if (rig_run(rig, "k", 4, 32, &b, sizeof(b)))
		test_fail(__FILE__, __LINE__, "%s", rig->fault.text);
	for (uint32_t rank = 0; rank < 4; rank++)
		for (uint32_t t = 0; t < 32; t++)
			check(!memcmp(b.out[rank * 32 + t],
				(rank == 2 ? bytes + 1024 : from + 3 * 128) + 16 * t,
				16));
}
