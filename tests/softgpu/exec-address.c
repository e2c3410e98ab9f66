/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of shared and local memory have 32 bits: a register below zero and an offset
 * above it meet again inside, whatever the instruction
 */

#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/*
 * $ is the space and @ the address [register + 40], which is byte 16 of the variable. The
 * 64-bit word there is 0x0000000500000007 before, %r2 is its final value.
 */
static const struct {
	const char *text;
	uint32_t want;
	bool is_shared_only;
} forms[] = {
	{ "ld.$.u32 %r2, @;", 7 },
	{ "ld.volatile.$.u32 %r2, @;", 7 },
	{ "ld.relaxed.cta.$.u32 %r2, @;", 7, true },
	{ "ld.acquire.gpu.$.u32 %r2, @;", 7, true },
	{ "ld.$.v2.u32 {%r3, %r2}, @;", 5 },
	{ "ld.volatile.$.v2.u32 {%r3, %r2}, @;", 5 },
	{ "ld.$.v4.u32 {%r3, %r2, %r4, %r5}, @;", 5 },
	{ "ld.$.u64 %rd3, @; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r2, %rd3;", 5 },
	{ "ld.$.u8 %r2, @;", 7 },
	{ "ld.volatile.$.s8 %r2, @;", 7 },
	{ "ld.$.u16 %r2, @;", 7 },
	{ "st.$.u32 @, 9; ld.$.u32 %r2, [v+16];", 9 },
	{ "st.volatile.$.u32 @, 9; ld.$.u32 %r2, [v+16];", 9 },
	{ "st.relaxed.cta.$.u32 @, 9; ld.$.u32 %r2, [v+16];", 9, true },
	{ "st.release.gpu.$.u32 @, 9; ld.$.u32 %r2, [v+16];", 9, true },
	{ "st.$.v2.u32 @, {%r6, 11}; ld.$.u32 %r2, [v+20];", 11 },
	{ "st.volatile.$.v4.u32 @, {1, 2, 3, 4}; ld.$.u32 %r2, [v+28];", 4 },
	{ "st.$.u8 @, 9; ld.$.u32 %r2, [v+16];", 9 },
	{ "atom.$.add.u32 %r2, @, 9;", 7, true },
	{ "atom.$.cas.b32 %r2, @, 7, 1; ld.$.u32 %r2, [v+16];", 1, true },
	{ "atom.$.exch.b64 %rd3, @, 3; ld.$.u32 %r2, [v+16];", 3, true },
	{ "atom.acq_rel.cta.$.max.s32 %r2, @, 9; ld.$.u32 %r2, [v+16];", 9, true },
	{ "red.$.add.u32 @, 9; ld.$.u32 %r2, [v+16];", 16, true },
	{ "red.$.or.b32 @, 8; ld.$.u32 %r2, [v+16];", 15, true },
};

static void write_body(
	char *to, size_t size, const char *text, const char *space, const char *address)
{
	size_t n = 0;

	for (; *text && n < size; text++) {
		if (*text == '$')
			n += (size_t)snprintf(to + n, size - n, "%s", space);
		else if (*text == '@')
			n += (size_t)snprintf(to + n, size - n, "%s", address);
		else
			to[n++] = *text;
	}
	check(n < size);
	to[n] = 0;
}

static uint32_t run_form(const char *text, const char *space, const char *address)
{
	CLEAN_RIG rig = NULL;
	char body[256], ptx[2048];
	uint32_t *out;

	write_body(body, sizeof(body), text, space, address);
	snprintf(ptx, sizeof(ptx),
		".version 8.8\n.target sm_120\n.address_size 64\n"
		".visible .entry k(.param .u64 p) {\n"
		".reg .b32 %%r<9>; .reg .b64 %%rd<9>; .%s .align 16 .b8 v[64];\n"
		"ld.param.u64 %%rd1, [p]; st.%s.u32 [v+16], 7; st.%s.u32 [v+20], 5;\n"
		"mov.u32 %%r1, v; sub.u32 %%r1, %%r1, 24; cvt.u64.u32 %%rd2, %%r1;\n"
		"mov.u32 %%r2, 77;\n%s\nst.global.u32 [%%rd1], %%r2; ret; }\n",
		space, space, space, body);
	rig = rig_new(ptx);
	out = rig_alloc(rig, 4);
	if (rig_run(rig, "k", 1, 1, &out, sizeof(out)))
		test_fail(__FILE__, __LINE__, "%s: %s", body, rig->fault.text);
	return *out;
}

TEST(an_offset_wraps_in_every_instruction)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		for (unsigned int local = 0; local < 2; local++) {
			const char *space = local ? "local" : "shared";

			if (local && forms[i].is_shared_only)
				continue;
			if (run_form(forms[i].text, space, "[%r1+40]") != forms[i].want)
				test_fail(__FILE__, __LINE__, "%s", forms[i].text);
			/* The same number in a register of 64 bits. */
			if (run_form(forms[i].text, space, "[%rd2+40]") != forms[i].want)
				test_fail(__FILE__, __LINE__, "%s, wide", forms[i].text);
		}
	}
}

/* An address that wraps to outside of the variable must still be a fault, without other
 * effects. */
TEST(an_offset_that_leads_out_is_a_fault)
{
	static const char *const texts[] = {
		"ld.shared.u32 %r2, [%r1+24];",
		"ld.volatile.shared.u32 %r2, [%r1+24];",
		"atom.shared.add.u32 %r2, [%r1+24], 1;",
		"st.volatile.shared.u32 [%r2+-8], 1;",
		"ld.local.u32 %r2, [%r1+24];",
		"st.local.u32 [%r2+-8], 1;",
		"ld.volatile.shared.u32 %r2, [%rd2];",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CLEAN_RIG rig = NULL;
		char ptx[1024];

		snprintf(ptx, sizeof(ptx),
			".version 8.8\n.target sm_120\n.address_size 64\n"
			".visible .entry k() { .reg .b32 %%r<9>; .reg .b64 %%rd<9>;\n"
			".shared .align 4 .b8 s[16]; .local .align 4 .b8 l[16];\n"
			"st.shared.u32 [s], 0; st.local.u32 [l], 0; mov.u32 %%r2, 0;\n"
			"mov.u32 %%r1, 0xf0000000; mov.u64 %%rd2, 0x100000000;\n"
			"sub.u64 %%rd2, %%rd2, 8;\n%s\nret; }\n",
			texts[i]);
		rig = rig_new(ptx);
		check_eq(rig_run(rig, "k", 1, 1, NULL, 0), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
	}
}

/* An extern array begins where the launch says; its generic address has to know. */
TEST(dynamic_shared_memory_is_reached_without_a_space)
{
	static const char ptx[] =
		".version 8.8\n.target sm_120\n.address_size 64\n"
		".extern .shared .align 4 .b8 dynamic[];\n"
		".visible .entry k(.param .u64 p) {\n"
		".reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[20];\n"
		"ld.param.u64 %rd1, [p]; st.shared.u32 [s], 1;\n"
		"st.shared.u32 [dynamic+4], 6; cvta.shared.u64 %rd2, dynamic;\n"
		"ld.u32 %r1, [%rd2+4]; add.u32 %r1, %r1, 1; st.u32 [dynamic+4], %r1;\n"
		"ld.shared.u32 %r2, [dynamic+4]; st.global.u32 [%rd1], %r2; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4);

	rig->dynamic_shared_size = 64;
	rig_launch(rig, "k", 1, 1, &out, sizeof(out));
	check_eq(*out, 7);
}

/* Words of a block: its own two variables, what the registers say, and what is in there.
 */
#define RESERVED_WORDS 10

TEST(reserved_shared_memory_is_zeroed_for_each_block_and_beside_all_else)
{
	static const char ptx[] =
		".version 8.8\n.target sm_120\n.address_size 64\n"
		".extern .shared .align 4 .b8 dynamic[];\n"
		".visible .entry k(.param .u64 p) {\n"
		".reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[20];\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r0, %ctaid.x;\n"
		"mul.wide.u32 %rd2, %r0, 40; add.u64 %rd1, %rd1, %rd2;\n"
		"mov.b32 %r1, %reserved_smem_offset_begin;\n"
		"mov.b32 %r2, %reserved_smem_offset_end;\n"
		"mov.b32 %r3, %reserved_smem_offset_cap;\n"
		"mov.b32 %r4, %reserved_smem_offset_0;\n"
		"mov.b32 %r5, %reserved_smem_offset_1;\n"
		"mov.u32 %r6, %total_smem_size; mov.u32 %r7, %aggr_smem_size;\n"
		"st.shared.u32 [s+16], 3; mov.u32 %r10, dynamic;\n"
		"st.shared.u32 [%r10+60], 4;\n"
		"atom.shared.or.b32 %r8, [%r5+284], 1; ld.shared.u32 %r9, [%r1];\n"
		"st.shared.u32 [%r1], 5; st.shared.u32 [%r2+-4], 6;\n"
		"st.global.v2.u32 [%rd1], {%r1, %r2}; st.global.u32 [%rd1+8], %r3;\n"
		"st.global.u32 [%rd1+12], %r4; st.global.u32 [%rd1+16], %r5;\n"
		"st.global.u32 [%rd1+20], %r6; st.global.u32 [%rd1+24], %r7;\n"
		"or.b32 %r8, %r8, %r9; st.global.u32 [%rd1+28], %r8;\n"
		"ld.shared.u32 %r8, [s+16]; st.global.u32 [%rd1+32], %r8;\n"
		"ld.shared.u32 %r8, [%r10+60]; st.global.u32 [%rd1+36], %r8; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 3 * 4 * RESERVED_WORDS);

	rig->dynamic_shared_size = 64;
	rig_launch(rig, "k", 3, 1, &out, sizeof(out));
	for (int i = 0; i < 3; i++) {
		const uint32_t *w = out + i * RESERVED_WORDS;

		check(w[0] >= 20 + 64);
		check_eq(w[1] - w[0], w[2]);
		check(w[3] >= w[0] && w[3] < w[1]);
		check(w[4] >= w[0] && w[4] + 288 <= w[1]);
		check(w[5] >= 20 + 64 && w[5] % 128 == 0);
		check_eq(w[6], w[5] + w[2]);
		check_eq(w[7], 0);
		check_eq(w[8], 3);
		check_eq(w[9], 4);
	}
}

/* A kernel that does not request it has none: an access after its own memory is a
 * fault. */
TEST(reserved_shared_memory_is_available_on_request)
{
	static const char ptx[] =
		".version 8.8\n.target sm_120\n.address_size 64\n"
		".visible .entry k() { .reg .b32 %r<3>; .shared .align 4 .b8 s[128];\n"
		"ld.shared.u32 %r1, [s+256]; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);

	check_eq(rig_run(rig, "k", 1, 1, NULL, 0), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
}
