/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous stores, reductions, and copies of parts: to the own block and to others
 */

#include "exec-body.h"

#define N 512u /* bytes of a reduction */

/* Both operands are at b.memory, the result replaces the first. */
struct reduction {
	const char *name; /* with .noftz */
	const char *type;
	uint32_t size;
	bool is_global;
};

static const struct reduction reductions[] = {
#define BOTH(_name, _type, _size)                                                        \
	{ _name, _type, _size, true },                                                   \
	{                                                                                \
		_name, _type, _size, false                                               \
	}
	BOTH("add", "u32", 4),
	BOTH("add", "s32", 4),
	BOTH("add", "u64", 8),
	BOTH("min", "u32", 4),
	BOTH("min", "s32", 4),
	BOTH("max", "u32", 4),
	BOTH("max", "s32", 4),
	BOTH("inc", "u32", 4),
	BOTH("dec", "u32", 4),
	BOTH("and", "b32", 4),
	BOTH("or", "b32", 4),
	BOTH("xor", "b32", 4),
#undef BOTH
	{ "min", "u64", 8, true },
	{ "max", "s64", 8, true },
	{ "and", "b64", 8, true },
	{ "or", "b64", 8, true },
	{ "xor", "b64", 8, true },
	{ "add", "f32", 4, true },
	{ "add", "f64", 8, true },
	{ "add.noftz", "f16", 2, true },
	{ "add.noftz", "bf16", 2, true },
	{ "min", "f16", 2, true },
	{ "max", "f16", 2, true },
	{ "min", "bf16", 2, true },
	{ "max", "bf16", 2, true },
};

static double number_of(const char *type, uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	uint16_t half = (uint16_t)bits;
	_Float16 h;
	double d;
	float f;

	if (!strcmp(type, "f64")) {
		memcpy(&d, &bits, sizeof(d));
		return d;
	}
	if (!strcmp(type, "f16")) {
		memcpy(&h, &half, sizeof(h));
		return (double)h;
	}
	if (!strcmp(type, "bf16"))
		word <<= 16;
	memcpy(&f, &word, sizeof(f));
	return f;
}

static uint64_t bits_of(const char *type, double number)
{
	_Float16 h = (_Float16)number;
	float f = (float)number;
	uint64_t bits = 0;
	uint32_t word;

	memcpy(&word, &f, sizeof(word));
	if (!strcmp(type, "f64"))
		memcpy(&bits, &number, sizeof(number));
	else if (!strcmp(type, "f16"))
		memcpy(&bits, &h, sizeof(h));
	else
		bits = !strcmp(type, "bf16") ? word >> 16 : word;
	return bits;
}

static uint64_t reduced(const struct reduction *r, uint64_t a, uint64_t b)
{
	uint64_t mask = r->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * r->size) - 1;
	int64_t x = r->size == 8 ? (int64_t)a : (int32_t)a;
	int64_t y = r->size == 8 ? (int64_t)b : (int32_t)b;
	bool is_signed = r->type[0] == 's', adds = !strncmp(r->name, "add", 3);
	bool is_less = is_signed ? y < x : b < a;

	if (strchr(r->type, 'f')) {
		double p = number_of(r->type, a), q = number_of(r->type, b);

		return bits_of(r->type, adds		    ? p + q
					: r->name[1] == 'i' ? (q < p ? q : p)
							    : (q > p ? q : p));
	}
	if (adds)
		return (a + b) & mask;
	if (!strcmp(r->name, "min"))
		return is_less ? b : a;
	if (!strcmp(r->name, "max"))
		return is_less ? a : b;
	if (!strcmp(r->name, "inc"))
		return a < b ? a + 1 : 0;
	if (!strcmp(r->name, "dec"))
		return a && a <= b ? a - 1 : b;
	return !strcmp(r->name, "and") ? a & b : !strcmp(r->name, "or") ? a | b : a ^ b;
}

/* Integers of both halves of the range, or numbers whose sums are exact. */
static uint64_t operand(const struct reduction *r, uint32_t i)
{
	uint64_t bits = (uint64_t)(i * 2654435761u) << 32 | (i * 2246822519u ^ i << 7);

	if (strchr(r->type, 'f'))
		return bits_of(r->type, (double)(i * 37 % 61) - 30);
	return i % 5 ? bits : i % 3;
}

TEST(elements_are_reduced)
{
	for (size_t k = 0; k < sizeof(reductions) / sizeof(reductions[0]); k++) {
		const struct reduction *r = &reductions[k];
		uint8_t want[N], *bytes;
		char body[2048], copy[512];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(copy, sizeof(copy),
			r->is_global ? "cp.reduce.async.bulk.global.shared::cta.bulk_"
				       "group.%s.%s "
				       "[%%d0], [%%r2], 512;"
				     : "cp.reduce.async.bulk.shared::cluster.shared::cta."
				       "mbarrier::"
				       "complete_tx::bytes.%s.%s [%%r3], [%%r2], "
				       "512, [%%r1];",
			r->name, r->type);
		snprintf(body, sizeof(body),
			"mov.u32 %%r1, bar; mov.u32 %%r2, s; add.u32 %%r3, %%r2, 512;\n"
			"mul.wide.u32 %%d3, %%r0, 16; add.u64 %%d3, %%d3, %%d0;\n"
			"mad.lo.u32 %%r4, %%r0, 16, %%r2; setp.ne.u32 %%p1, %%r0, 0;\n"
			"ld.global.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%d3];\n"
			"st.shared.v4.u32 [%%r4+512], {%%r5, %%r6, %%r7, %%r8};\n"
			"ld.global.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%d3+512];\n"
			"st.shared.v4.u32 [%%r4], {%%r5, %%r6, %%r7, %%r8};\n"
			"@!%%p1 mbarrier.init.shared.b64 [%%r1], 1; bar.sync 0; @%%p1 "
			"bra "
			"wait;\n"
			"mbarrier.arrive.expect_tx.shared.b64 _, [%%r1], %u;\n",
			r->is_global ? 0 : 512);
		strcat(body, copy);
		strcat(body,
			"\nwait: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n"
			"@!%p2 bra wait;\n");
		if (!r->is_global)
			strcat(body, "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4+512];\n"
				     "st.global.v4.u32 [%d3], {%r5, %r6, %r7, %r8};");
		rig = rig_of(".shared .align 8 .b64 bar; .shared .align 16 .b8 s[1024];",
			body);
		b = buffers_of(rig, 32);
		bytes = b.memory;
		for (uint32_t i = 0; i < N; i += r->size) {
			uint64_t x = operand(r, i / r->size), y, z;

			if (r->size < 8)
				x &= (UINT64_C(1) << 8 * r->size) - 1;
			y = operand(r, i / r->size * 11 + 3);
			if (r->size < 8)
				y &= (UINT64_C(1) << 8 * r->size) - 1;
			z = reduced(r, x, y);
			memcpy(bytes + i, &x, r->size);
			memcpy(bytes + N + i, &y, r->size);
			memcpy(want + i, &z, r->size);
		}
		run_well(rig, &b, 32);
		if (memcmp(bytes, want, N))
			test_fail(__FILE__, __LINE__, "%s.%s, global %d", r->name,
				r->type, r->is_global);
	}
}

TEST(a_sum_of_floats_in_global_memory_flushes_subnormal_numbers)
{
	CLEAN_RIG rig = rig_of(".shared .align 16 .b8 s[16];",
		"setp.ne.u32 %p1, %r0, 0; @%p1 exit; mov.u32 %r1, 1; mov.u32 %r2, "
		"0x3f800000;\n"
		"st.shared.v4.u32 [s], {%r1, %r2, %r1, %r2};\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [s], "
		"16;");
	struct buffers b = buffers_of(rig, 32);
	uint32_t *words = b.memory;

	words[0] = 1;
	words[1] = 0x3f800000;
	words[2] = 0x80000003;
	run_well(rig, &b, 32);
	check_eq(words[0], 0);
	check_eq(words[1], 0x40000000);
	check_eq(words[2], 0);
	check_eq(words[3], 0x3f800000);
}

TEST(a_mask_chooses_bytes_of_each_16)
{
	static const char *const copies[] = {
		"mov.u16 %h1, 0x8421; "
		"cp.async.bulk.global.shared::cta.bulk_group.cp_mask "
		"[%d0], [%r1], 512, %h1;",
		"mov.u16 %h1, 0x8421; mov.u64 %d5, 0;\n"
		"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask "
		"[%d0], "
		"[%r1], 512, %d5, %h1;",
	};

	for (size_t k = 0; k < sizeof(copies) / sizeof(copies[0]); k++) {
		char body[1024];
		CLEAN_RIG rig = NULL;
		struct buffers b;
		uint8_t *bytes;

		snprintf(body, sizeof(body),
			"mov.u32 %%r1, s; mad.lo.u32 %%r2, %%r0, 16, %%r1; mov.u32 %%r3, "
			"0x77777777;\n"
			"st.shared.v4.u32 [%%r2], {%%r3, %%r3, %%r3, %%r3}; bar.sync 0;\n"
			"setp.ne.u32 %%p1, %%r0, 0; @%%p1 exit;\n%s",
			copies[k]);
		rig = rig_of(".shared .align 16 .b8 s[512];", body);
		b = buffers_of(rig, 32);
		bytes = b.memory;
		memset(bytes, 0x11, 600);
		run_well(rig, &b, 32);
		for (uint32_t i = 0; i < 600; i++)
			check_eq(bytes[i], i < 512 && i % 16 % 5 == 0 ? 0x77 : 0x11);
	}
}

/* Each thread of a block stores into the block after it, which waits for all of them. */
TEST(stores_arrive_with_their_bytes_at_another_block)
{
	static const struct {
		const char *store;
		uint32_t size, want[4];
	} rows[] = {
		{ "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], "
		  "%r6, [%r5];",
			4, { 1 } },
		{ "mov.b64 %d3, {%r6, %r7};\n"
		  "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%r4], %d3, "
		  "[%r5];",
			8, { 1, 2 } },
		{ "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%r4], "
		  "{%r6, %r7}, [%r5];",
			8, { 1, 2 } },
		{ "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
		  "[%r4], "
		  "{%r6, %r7, %r8, %r9}, [%r5];",
			16, { 1, 2, 3, 4 } },
		{ "mov.b64 %d3, {%r6, %r7}; mov.b64 %d4, {%r8, %r9};\n"
		  "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r4], "
		  "{%d3, %d4}, [%r5];",
			16, { 1, 2, 3, 4 } },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
		  "bytes."
		  "add.u32 [%r4], %r6, [%r5];",
			4, { 101, 100, 100, 100 } },
		{ "mov.u64 %d3, 0x200000001; red.async.relaxed.cluster.shared::cluster."
		  "mbarrier::complete_tx::bytes.add.u64 [%r4], %d3, [%r5];",
			8, { 101, 102, 100, 100 } },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
		  "bytes."
		  "inc.u32 [%r4], %r7, [%r5];",
			4, { 0, 100, 100, 100 } },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
		  "bytes."
		  "min.s32 [%r4], %r8, [%r5];",
			4, { 3, 100, 100, 100 } },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
		  "bytes."
		  "xor.b32 [%r4], %r9, [%r5];",
			4, { 96, 100, 100, 100 } },
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		bool adds = !strncmp(rows[k].store, "red", 3) ||
			    strstr(rows[k].store, "red.");
		char body[2048];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			"mov.u32 %%r1, bar; mov.u32 %%r2, s; mad.lo.u32 %%r3, %%r0, 16, "
			"%%r2;\n"
			"mov.u32 %%r6, %u; st.shared.v4.u32 [%%r3], {%%r6, %%r6, %%r6, "
			"%%r6};\n"
			"setp.eq.u32 %%p1, %%r0, 0; @%%p1 mbarrier.init.shared.b64 "
			"[%%r1], "
			"1;\n"
			"@%%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%%r1], %u;\n"
			"barrier.cluster.arrive; barrier.cluster.wait;\n"
			"mov.u32 %%r10, %%cluster_ctarank; add.u32 %%r11, %%r10, 1;\n"
			"rem.u32 %%r11, %%r11, 3; mapa.shared::cluster.u32 %%r4, %%r3, "
			"%%r11;\n"
			"mapa.shared::cluster.u32 %%r5, %%r1, %%r11; mov.u32 %%r6, 1;\n"
			"mov.u32 %%r7, 2; mov.u32 %%r8, 3; mov.u32 %%r9, 4;\n"
			"%s\n"
			"w: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
			"%%p2, "
			"[%%r1], 0; @!%%p2 bra w;\n"
			"ld.shared.v4.u32 {%%r6, %%r7, %%r8, %%r9}, [%%r3];\n"
			"mul.wide.u32 %%d3, %%r10, 1024; add.u64 %%d1, %%d1, %%d3;\n"
			"st.global.v4.u32 [%%d1], {%%r6, %%r7, %%r8, %%r9};\n"
			"barrier.cluster.arrive; barrier.cluster.wait;",
			adds ? 100 : 0, rows[k].size * 32, rows[k].store);
		rig = rig_of(
			".shared .align 8 .b64 bar; .shared .align 16 .b8 s[512];", body);
		b = buffers_of(rig, 3 * 32);
		rig->cluster[0] = 3;
		rig->cluster[1] = rig->cluster[2] = 1;
		if (rig_run(rig, "k", 3, 32, &b, sizeof(b)))
			test_fail(__FILE__, __LINE__, "%s", rig->fault.text);
		for (uint32_t t = 0; t < 3 * 32; t++)
			if (memcmp(b.out[t], rows[k].want, 16))
				test_fail(__FILE__, __LINE__,
					"%s: thread %u: %u %u %u %u", rows[k].store, t,
					b.out[t][0], b.out[t][1], b.out[t][2],
					b.out[t][3]);
	}
}

TEST(stores_to_the_system_are_in_global_memory)
{
	CLEAN_RIG rig = rig_of("",
		"mov.u32 %r1, 7; mul.wide.u32 %d3, %r0, 4; add.u64 %d3, %d3, %d0;\n"
		"st.async.mmio.release.sys.global.b32 [%d3], %r0;\n"
		"red.async.mmio.release.sys.global.add.u32 [%d0+256], %r1;");
	struct buffers b = buffers_of(rig, 32);
	uint32_t *words = b.memory;

	run_well(rig, &b, 32);
	for (uint32_t t = 0; t < 32; t++)
		check_eq(words[t], t);
	check_eq(words[64], 32 * 7);
}

TEST(misuse_ends_the_kernel)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], "
		  "[s], "
		  "24;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0+4], "
		  "[s], "
		  "16;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], "
		  "[s], "
		  "4096;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "mov.u64 %d0, 4096;\n"
		  "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], "
		  "[s], "
		  "16;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], "
		  "[s], "
		  "0xfffffff0;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "mov.u16 %h1, 2; cp.async.bulk.shared::cluster.global.mbarrier::"
		  "complete_tx::bytes.multicast::cluster [s], [%d0], 16, [bar], %h1;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [s+4096], "
		  "%r1, "
		  "[bar];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [s], %r1, "
		  "[bar+4096];",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
		  "bytes."
		  "add.u32 [s+2], %r1, [bar];",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_RIG rig =
			rig_of(".shared .align 8 .b64 bar; .shared .align 16 .b8 s[64];",
				rows[i].body);
		struct buffers b = buffers_of(rig, 32);
		int code = run(rig, &b, 32);

		if (code != rows[i].code)
			test_fail(__FILE__, __LINE__, "%s: %d", rows[i].body, code);
	}
}
