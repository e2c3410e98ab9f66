/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory access by a whole warp: however its addresses lie to each other and whichever
 * lanes take part, each lane gets what it would get alone, and the last store counts
 */

#include <stdio.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* The sizes of a warp's global and shared memory, and of a thread's local memory. */
enum { THREADS = 64, LANES = 32, WARPS = 2, AREA = 576 };

enum space { GLOBAL, SHARED, LOCAL, GENERIC, _SPACES };

static const char *const space_names[_SPACES] = { ".global", ".shared", ".local", "" };

static const struct form {
	const char *type;
	uint32_t size;
	uint32_t n;
	bool is_signed;
} forms[] = {
	{ "u8", 1, 1 },
	{ "s8", 1, 1, true },
	{ "u16", 2, 1 },
	{ "s16", 2, 1, true },
	{ "b32", 4, 1 },
	{ "b64", 8, 1 },
	{ "u8", 1, 4 },
	{ "u16", 2, 2 },
	{ "b32", 4, 2 },
	{ "b32", 4, 4 },
	{ "b64", 8, 2 },
};

struct access {
	enum space space;
	struct form form;
	const char *order; /* "", ".volatile" */
	bool is_store;
	const char *atom; /* or NULL: what makes it an atomic operation */
};

struct params {
	uint32_t *offsets;
	uint64_t *out;	 /* four for each thread */
	uint8_t *area;	 /* of global memory; that of the others begins with its bytes */
	uint8_t *result; /* what is in it in the end, by warps, or by threads of LOCAL */
	uint32_t masks[WARPS];
};

static uint32_t n_areas(enum space space)
{
	return space == LOCAL ? THREADS : WARPS;
}

/*
 * The area is in %d5; for shared and local memory it is filled first, and in the end
 * copied out for the test, by all threads of the warp or by each for itself.
 */
static const char body[] =
	".version 8.8\n.target sm_120\n.address_size 64\n"
	".visible .entry k(.param .align 8 .b8 p[40]) {\n"
	".reg .b32 %%r<16>; .reg .b64 %%d<16>; .reg .b64 %%x<4>; .reg .pred %%p<4>;\n"
	".shared .align 16 .b8 s[1152]; .local .align 16 .b8 l[576];\n"
	"ld.param.u64 %%d1, [p]; ld.param.u64 %%d2, [p+8]; ld.param.u64 %%d3, [p+16];\n"
	"ld.param.u64 %%d4, [p+24]; ld.param.u32 %%r2, [p+32]; ld.param.u32 %%r3, "
	"[p+36];\n"
	"mov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 5; and.b32 %%r4, %%r0, 31;\n"
	/* Whether the lane takes part, and where. */
	"setp.ne.u32 %%p0, %%r1, 0; selp.b32 %%r2, %%r3, %%r2, %%p0;\n"
	"shr.u32 %%r2, %%r2, %%r4; and.b32 %%r2, %%r2, 1; setp.ne.u32 %%p1, %%r2, 0;\n"
	"mul.wide.u32 %%d6, %%r0, 4; add.u64 %%d6, %%d6, %%d1; ld.global.u32 %%r5, "
	"[%%d6];\n"
	"mul.wide.u32 %%d6, %%r0, 32; add.u64 %%d2, %%d2, %%d6;\n"
	"ld.global.v2.b64 {%%x0, %%x1}, [%%d2]; ld.global.v2.b64 {%%x2, %%x3}, "
	"[%%d2+16];\n"
	"mul.wide.u32 %%d7, %%r1, 576; add.u64 %%d3, %%d3, %%d7;\n"
	"mov.u64 %%d5, %s; add.u64 %%d5, %%d5, %%d7;\n"
	"mov.b64 %%d8, 0;\n"
	"FILL: add.u64 %%d9, %%d3, %%d8; ld.global.v4.b32 {%%r6, %%r7, %%r8, %%r9}, "
	"[%%d9];\n"
	"add.u64 %%d9, %%d5, %%d8; st%s.v4.b32 [%%d9], {%%r6, %%r7, %%r8, %%r9};\n"
	"add.u64 %%d8, %%d8, 16; setp.lt.u64 %%p2, %%d8, 576; @%%p2 bra FILL;\n"
	"bar.sync 0; cvt.u64.u32 %%d9, %%r5; add.u64 %%d5, %%d5, %%d9;\n"
	"@%%p1 %s;\n"
	"sub.u64 %%d5, %%d5, %%d9; bar.sync 0;\n"
	"st.global.v2.b64 [%%d2], {%%x0, %%x1}; st.global.v2.b64 [%%d2+16], {%%x2, "
	"%%x3};\n"
	"mul.wide.u32 %%d7, %s, 576; add.u64 %%d4, %%d4, %%d7; mov.b64 %%d8, 0;\n"
	"DUMP: add.u64 %%d9, %%d5, %%d8; ld%s.v4.b32 {%%r6, %%r7, %%r8, %%r9}, [%%d9];\n"
	"add.u64 %%d9, %%d4, %%d8; st.global.v4.b32 [%%d9], {%%r6, %%r7, %%r8, %%r9};\n"
	"add.u64 %%d8, %%d8, 16; setp.lt.u64 %%p2, %%d8, 576; @%%p2 bra DUMP; ret; }\n";

static void write_access(const struct access *a, char *to, size_t size)
{
	static const char *const vectors[] = { [1] = "", [2] = ".v2", [4] = ".v4" };
	static const char *const lists[] = {
		[1] = "%x0", [2] = "{%x0, %x1}", [4] = "{%x0, %x1, %x2, %x3}"
	};
	const char *space = space_names[a->space], *list = lists[a->form.n];

	if (a->atom)
		snprintf(to, size, "atom%s.%s.%s %%x0, [%%d5], %%x1", space, a->atom,
			a->form.type);
	else if (a->is_store)
		snprintf(to, size, "st%s%s%s.%s [%%d5], %s", a->order, space,
			vectors[a->form.n], a->form.type, list);
	else
		snprintf(to, size, "ld%s%s%s.%s %s, [%%d5]", a->order, space,
			vectors[a->form.n], a->form.type, list);
}

/* Registers of 64 bits accept every size, but atomic operations only their own. */
static struct rig *make_rig(const struct access *a)
{
	static const char *const starts[_SPACES] = { "%d3", "s", "l", "%d3" };
	const char *space = space_names[a->space];
	char text[256], start[64], ptx[4096];

	write_access(a, text, sizeof(text));
	if (a->atom && a->form.size == 4) {
		char narrow[256];

		snprintf(narrow, sizeof(narrow),
			"atom%s.%s.%s %%r7, [%%d5], %%r8;\n@%%p1 cvt.u64.u32 %%x0, %%r7",
			space, a->atom, a->form.type);
		snprintf(text, sizeof(text), "cvt.u32.u64 %%r8, %%x1;\n@%%p1 %.180s",
			narrow);
	}
	/* %d7 is the warp's part, which global memory's address has already. */
	snprintf(start, sizeof(start), "%s", starts[a->space]);
	snprintf(ptx, sizeof(ptx), body, start, space, text,
		a->space == LOCAL ? "%r0" : "%r1", space);
	if (a->space != SHARED) {
		char *add = strstr(ptx, "add.u64 %d5, %d5, %d7;");

		check(add);
		memset(add, ' ', strlen("add.u64 %d5, %d5, %d7;"));
	}
	return rig_new(ptx);
}

/* How the lanes' addresses lie: multiples of the access's size, all of them within AREA.
 */
static uint32_t offset_of(unsigned int pattern, uint32_t lane, uint32_t size)
{
	uint32_t n = AREA / size, at;

	switch (pattern) {
	case 0: /* linear */
		at = lane + 3;
		break;
	case 1: /* uniform */
		at = 5;
		break;
	case 2: /* two rows */
		at = lane < 16 ? lane + 1 : lane - 16 + 23;
		break;
	case 3: /* the same row twice: the second half's stores count */
		at = lane % 16 + 7;
		break;
	case 4: /* rows that overlap */
		at = lane < 16 ? lane + 9 : lane - 16 + 4;
		break;
	case 5: /* one place for each half */
		at = lane < 16 ? 11 : 2;
		break;
	case 6: /* backwards */
		at = 31 - lane;
		break;
	case 7: /* linear but for one lane in the middle */
		at = lane == 13 ? 0 : lane + 2;
		break;
	case 8: /* rows as in 2, but for one lane */
		at = lane == 21 ? 1 : lane < 16 ? lane + 1 : lane - 16 + 23;
		break;
	case 9: /* up to the end, and the start */
		at = lane == 30 ? 0 : n - 32 + lane;
		break;
	default: /* scattered, some at one place */
		at = lane * 7 % 19;
		break;
	}
	return at % n * size;
}

enum { PATTERNS = 11 };

static uint64_t load_reference(const struct form *form, const uint8_t *from)
{
	uint64_t x = 0;

	memcpy(&x, from, form->size);
	if (form->is_signed && form->size == 1)
		x = (uint64_t)(int64_t)(int8_t)x;
	if (form->is_signed && form->size == 2)
		x = (uint64_t)(int64_t)(int16_t)x;
	return x;
}

/* The access of a single lane: the results in its four registers, and in memory. */
static void access_reference(
	const struct access *a, uint8_t *memory, uint64_t registers[4])
{
	uint64_t old = 0, new;

	if (a->atom) {
		memcpy(&old, memory, a->form.size);
		new = !strcmp(a->atom, "exch")	? registers[1]
		      : !strcmp(a->atom, "xor") ? old ^ registers[1]
						: old + registers[1];
		memcpy(memory, &new, a->form.size);
		registers[0] = old;
		return;
	}
	for (uint32_t k = 0; k < a->form.n; k++) {
		uint8_t *at = memory + (size_t)k * a->form.size;

		if (a->is_store)
			memcpy(at, &registers[k], a->form.size);
		else
			registers[k] = load_reference(&a->form, at);
	}
}

static void fill(struct params *p, unsigned int pattern, uint32_t size)
{
	for (uint32_t i = 0; i < THREADS; i++)
		p->offsets[i] = offset_of(pattern, i % LANES, size);
	for (uint32_t i = 0; i < THREADS * 4; i++)
		p->out[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < WARPS * AREA; i++)
		p->area[i] = (uint8_t)(i * 151 + i / 256 + 128);
	memset(p->result, 0, (size_t)THREADS * AREA);
}

static void try_pattern(struct rig *rig, const struct access *a, struct params *p,
	unsigned int pattern, const char *name)
{
	static uint8_t memory[THREADS][AREA];
	static uint64_t registers[THREADS][4];

	fill(p, pattern, a->form.size * a->form.n);
	memcpy(registers, p->out, sizeof(registers));
	for (uint32_t i = 0; i < n_areas(a->space); i++)
		memcpy(memory[i], p->area + (a->space == LOCAL ? i / LANES : i) * AREA,
			AREA);
	for (uint32_t i = 0; i < THREADS; i++)
		if (p->masks[i / LANES] >> i % LANES & 1)
			access_reference(a,
				memory[a->space == LOCAL ? i : i / LANES] + p->offsets[i],
				registers[i]);
	rig_launch(rig, "k", 1, THREADS, p, sizeof(*p));
	for (uint32_t i = 0; i < THREADS; i++)
		if (memcmp(&p->out[(size_t)i * 4], registers[i], sizeof(registers[i])))
			test_fail(__FILE__, __LINE__,
				"%s, pattern %u, mask %x: thread %u has %llx, not %llx",
				name, pattern, p->masks[0], i,
				(unsigned long long)p->out[(size_t)i * 4],
				(unsigned long long)registers[i][0]);
	if (memcmp(p->result, memory, (size_t)n_areas(a->space) * AREA))
		test_fail(__FILE__, __LINE__, "%s, pattern %u, mask %x: memory differs",
			name, pattern, p->masks[0]);
}

static void try_access(const struct access *a)
{
	static const uint32_t masks[] = { UINT32_MAX, 0xffff7fff, 0x0000ffff,
		0x80000001 };
	CLEAN_RIG rig = make_rig(a);
	char name[256];
	struct params p = {
		.offsets = rig_alloc(rig, THREADS * 4),
		.out = rig_alloc(rig, (uint64_t)THREADS * 32),
		.area = rig_alloc(rig, WARPS * AREA),
		.result = rig_alloc(rig, (uint64_t)THREADS * AREA),
	};

	write_access(a, name, sizeof(name));
	for (unsigned int pattern = 0; pattern < PATTERNS; pattern++)
		for (unsigned int m = 0; m < 2; m++) {
			p.masks[0] = masks[m ? pattern % 4 : 0];
			p.masks[1] = masks[m ? 0 : (pattern + 1) % 4];
			try_pattern(rig, a, &p, pattern, name);
		}
}

TEST_SECONDS(loads_and_stores_do_the_same_for_a_warp_as_for_each_lane, 110)
{
	for (unsigned int i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		for (unsigned int space = 0; space < _SPACES; space++)
			for (unsigned int k = 0; k < 4; k++)
				try_access(&(struct access){
					.space = (enum space)space,
					.form = forms[i],
					.order = k & 1 ? ".volatile" : "",
					.is_store = k & 2,
				});
}

TEST(atomic_operations_see_those_of_lower_lanes)
{
	static const char *const atoms[] = { "add", "exch", "xor" };
	static const char *const types[3][2] = { { "u32", "u64" }, { "b32", "b64" },
		{ "b32", "b64" } };

	for (unsigned int space = 0; space < _SPACES; space++)
		for (unsigned int i = 0; i < 3 && space != LOCAL; i++)
			for (unsigned int wide = 0; wide < 2; wide++)
				try_access(&(struct access){
					.space = (enum space)space,
					.form = { types[i][wide], wide ? 8 : 4, 1 },
					.order = "",
					.atom = atoms[i],
				});
}

/* One lane of many is at fault: it is found, whatever way the others would have taken. */
TEST(the_lane_at_fault_is_found)
{
	static const struct {
		struct access access;
		uint32_t offset;
		int code;
	} rows[] = {
		{ { LOCAL, { "b32", 4, 1 }, "", false }, 2,
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ { LOCAL, { "b32", 4, 4 }, "", true }, 8,
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ { LOCAL, { "b32", 4, 1 }, "", true }, 0x100000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { LOCAL, { "b32", 4, 1 }, ".volatile", false }, 0xfffffff0,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { SHARED, { "b32", 4, 1 }, ".volatile", false }, 1,
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ { SHARED, { "b32", 4, 1 }, ".volatile", true }, 0x100000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { SHARED, { "u32", 4, 1 }, "", false, "add" }, 0x100000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { SHARED, { "u32", 4, 1 }, "", false, "add" }, 2,
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ { GLOBAL, { "b32", 4, 1 }, ".volatile", false }, 0xf0000000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { GLOBAL, { "b32", 4, 2 }, ".volatile", true }, 4,
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ { GLOBAL, { "u32", 4, 1 }, "", false, "add" }, 0xf0000000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ { GLOBAL, { "b32", 4, 1 }, "", false }, 0xf0000000,
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct access *a = &rows[i].access;
		CLEAN_RIG rig = make_rig(a);
		struct params p = {
			.offsets = rig_alloc(rig, THREADS * 4),
			.out = rig_alloc(rig, (uint64_t)THREADS * 32),
			.area = rig_alloc(rig, WARPS * AREA),
			.result = rig_alloc(rig, (uint64_t)THREADS * AREA),
			.masks = { UINT32_MAX, UINT32_MAX },
		};

		fill(&p, 0, a->form.size * a->form.n);
		p.offsets[20] = rows[i].offset;
		check_eq(rig_run(rig, "k", 1, THREADS, &p, sizeof(p)), rows[i].code);
		check_eq(rig->fault.thread[0], 20);
		/* It is left out, which is valid. */
		p.masks[0] = ~(1u << 20);
		rig_launch(rig, "k", 1, THREADS, &p, sizeof(p));
	}
}
