/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grammar: kernels made from an input, and their results by the manual
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar-device.h"
#include "grammar.h"

/* Registers 8 and up: the slots of the spaces, a place outside, the results. */
#define SLOT_REGISTER 8u
#define OUTSIDE_REGISTER 12u
#define RESULT_REGISTER 13u
#define FIRST_VALUE UINT64_C(0x0123456789abcdef)

static const char *const operations[] = { "add", "sub", "mul.lo", "and", "or", "xor",
	"min", "max", "shl", "shr" };
#define OPERATIONS (sizeof(operations) / sizeof(*operations))

/* From these first bytes on a statement is of the newer groups. */
#define NEWER_KINDS 160u
#define NEWEST_KINDS 208u

static const char *const comparisons[] = { "lt", "ge", "eq", "ne" };

static const char *const spaces[_GRAMMAR_SPACE_N] = { ".global", "", ".shared",
	".local" };

/* Within the spaces' own addresses, but not allocated. */
static const uint64_t outside_shared[] = { GRAMMAR_SHARED - 4, GRAMMAR_SHARED + 12,
	0xfffffff0u, 0x01000000u };
static const uint64_t outside_local[] = { 0x00ff0000u, 0x00fffff0u, 0x01000000u,
	0xfffffff0u };

/*
 * From the input
 */

static void read_access(struct grammar_statement *s, struct reader *reader)
{
	uint8_t shape = reader_u8(reader), where = reader_u8(reader);

	s->space = shape % _GRAMMAR_SPACE_N;
	s->size = 1u << shape / 4 % 5;
	s->is_vector = s->size == 16 || (s->size == 8 && shape & 0x80);
	s->is_whole = s->size == 16 && shape & 0x80;
	if (s->kind == GRAMMAR_ATOMIC) {
		s->size = s->is_whole ? 16 : 4;
		s->is_vector = false;
		if (s->space == GRAMMAR_LOCAL)
			s->space = GRAMMAR_GLOBAL;
	}
	s->is_outside = where >= 224;
	s->value = s->is_outside ? where % 8 : where % (GRAMMAR_SLOT / s->size) * s->size;
	/* The first of them is outside only for an access that crosses the end. */
	if (s->is_outside && s->space == GRAMMAR_IN_SHARED && s->value % 4 == 0 &&
		s->size < 8)
		s->value = 1;
}

static void read_statement(struct grammar_statement *s, struct reader *reader)
{
	uint8_t kind = reader_u8(reader);

	/* So that most inputs from before there were newer ones mean the same. */
	if (kind < NEWER_KINDS)
		s->kind = kind % _GRAMMAR_OLD_N;
	else if (kind < NEWEST_KINDS)
		s->kind = _GRAMMAR_OLD_N + kind % (_GRAMMAR_NEWER_N - _GRAMMAR_OLD_N);
	else
		s->kind = _GRAMMAR_NEWER_N + kind % (_GRAMMAR_KIND_N - _GRAMMAR_NEWER_N);
	s->operation = reader_u8(reader);
	s->d = reader_below(reader, GRAMMAR_REGISTERS);
	s->a = reader_below(reader, GRAMMAR_REGISTERS);
	s->b = reader_below(reader, GRAMMAR_REGISTERS);
	switch (s->kind) {
	case GRAMMAR_SET:
		s->value = reader_u64(reader);
		return;
	case GRAMMAR_SKIP:
		s->n = 1 + reader_below(reader, 8);
		s->value = reader_u8(reader) + s->b % 2 * s->a * FIRST_VALUE;
		return;
	case GRAMMAR_LOOP:
		s->n = 1 + reader_below(reader, 8);
		s->times = 1 + reader_below(reader, 4);
		return;
	case GRAMMAR_LOAD:
	case GRAMMAR_STORE:
	case GRAMMAR_ATOMIC:
		read_access(s, reader);
		return;
	case GRAMMAR_TEXTURE:
	case GRAMMAR_COPY:
	case GRAMMAR_MATRIX:
	case GRAMMAR_BULK:
	case GRAMMAR_SURFACE:
	case GRAMMAR_SERVICE:
		s->value = reader_u8(reader);
		s->size = 4u << s->operation % 3;
		s->is_outside = s->value >= 240;
		return;
	}
}

static bool is_inside(unsigned int i, unsigned int loop_end, const unsigned int *skip_end)
{
	bool inside = i < loop_end;

	for (unsigned int k = 0; k < i; k++)
		inside |= i < skip_end[k];
	return inside;
}

/*
 * Loops are not in each other, and no branch leads into one or out of one. Statements of
 * a whole warp are in neither.
 */
static void nest(struct grammar *grammar)
{
	unsigned int loop_end = 0, skip_end[GRAMMAR_STATEMENTS];

	for (unsigned int i = 0; i < grammar->n; i++) {
		struct grammar_statement *s = &grammar->statements[i];
		unsigned int end = i + 1 + s->n;

		end = end < grammar->n ? end : grammar->n;
		skip_end[i] = s->kind == GRAMMAR_SKIP ? end : 0;
		if (s->kind == GRAMMAR_LOOP && i < loop_end)
			s->kind = GRAMMAR_SET;
		if (s->kind == GRAMMAR_MATRIX && is_inside(i, loop_end, skip_end))
			s->kind = GRAMMAR_VIDEO;
		if (s->kind == GRAMMAR_VIDEO)
			s->is_outside = false;
		if (s->kind != GRAMMAR_SKIP && s->kind != GRAMMAR_LOOP)
			continue;
		if (i < loop_end && end > loop_end)
			end = loop_end;
		for (unsigned int k = 0; s->kind == GRAMMAR_LOOP && k < i; k++)
			if (skip_end[k] > i && end > skip_end[k])
				end = skip_end[k];
		s->n = end - i - 1;
		skip_end[i] = s->kind == GRAMMAR_SKIP ? end : 0;
		if (s->kind == GRAMMAR_LOOP)
			loop_end = end;
	}
}

void grammar_read(struct grammar *grammar, struct reader *reader)
{
	memset(grammar, 0, sizeof(*grammar));
	while (grammar->n < GRAMMAR_STATEMENTS && reader->size)
		read_statement(&grammar->statements[grammar->n++], reader);
	nest(grammar);
}

/*
 * To text
 */

struct text {
	char *bytes;
	size_t size;
};

static void __attribute__((__format__(__printf__, 2, 3)))
add(struct text *text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text->bytes + text->size, GRAMMAR_TEXT - text->size, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= GRAMMAR_TEXT - text->size)
		abort();
	text->size += n;
}

static void add_arithmetic(struct text *text, const struct grammar_statement *s)
{
	const unsigned int o = s->operation % OPERATIONS;
	const char *name = operations[o];
	const bool is_shift = o >= 8, is_logic = o >= 3 && o <= 5;
	const bool is_narrow = s->kind == GRAMMAR_NARROW;
	const char *type = is_logic || o == 8 ? "b" : "u";

	if (!is_narrow) {
		if (is_shift)
			add(text, "%s.%s64 %%d%u, %%d%u, %u;\n", name, type, s->d, s->a,
				s->b * 9 % 64);
		else
			add(text, "%s.%s64 %%d%u, %%d%u, %%d%u;\n", name, type, s->d,
				s->a, s->b);
		return;
	}
	add(text, "cvt.u32.u64 %%r2, %%d%u;\ncvt.u32.u64 %%r3, %%d%u;\n", s->a, s->b);
	if (is_shift)
		add(text, "%s.%s32 %%r2, %%r2, %u;\n", name, type, s->b * 9 % 32);
	else
		add(text, "%s.%s32 %%r2, %%r2, %%r3;\n", name, type);
	add(text, "cvt.u64.u32 %%d%u, %%r2;\n", s->d);
}

static uint64_t place_outside(
	const struct grammar_statement *s, const struct grammar_places *places)
{
	if (s->space == GRAMMAR_IN_SHARED)
		return outside_shared[s->value % 4];
	if (s->space == GRAMMAR_LOCAL)
		return outside_local[s->value % 4];
	return places->outside[s->value % 8];
}

/* The address of the access: a register and an offset. */
static void add_address(struct text *text, const struct grammar_statement *s)
{
	const unsigned int space =
		s->space == GRAMMAR_GENERIC ? GRAMMAR_GLOBAL : s->space;

	if (s->is_outside)
		add(text, "[%%d%u]", OUTSIDE_REGISTER);
	else
		add(text, "[%%d%u+%u]", SLOT_REGISTER + space, (unsigned int)s->value);
}

static void add_load(struct text *text, const struct grammar_statement *s)
{
	const char *space = spaces[s->space];

	if (s->is_whole) {
		add(text, "ld%s.b128 %%q1, ", space);
		add_address(text, s);
		add(text,
			";\nmov.b128 {%%d%u, %%d14}, %%q1;\n"
			"add.u64 %%d%u, %%d%u, %%d14;\n",
			s->d, s->d, s->d);
		return;
	}
	if (!s->is_vector) {
		add(text, "ld%s.u%u %%d%u, ", space, s->size * 8u, s->d);
		add_address(text, s);
		add(text, ";\n");
		return;
	}
	add(text,
		s->size == 8 ? "ld%s.v2.u32 {%%r2, %%r3}, "
			     : "ld%s.v4.u32 {%%r2, %%r3, %%r4, %%r5}, ",
		space);
	add_address(text, s);
	add(text, ";\nmov.b64 %%d%u, {%%r2, %%r3};\n", s->d);
	if (s->size == 16)
		add(text, "mov.b64 %%d14, {%%r4, %%r5};\nadd.u64 %%d%u, %%d%u, %%d14;\n",
			s->d, s->d);
}

static void add_store(struct text *text, const struct grammar_statement *s)
{
	const char *space = spaces[s->space];

	if (s->is_whole) {
		add(text, "mov.b128 %%q1, {%%d%u, %%d%u};\nst%s.b128 ", s->a, s->b,
			space);
		add_address(text, s);
		add(text, ", %%q1;\n");
		return;
	}
	if (!s->is_vector) {
		add(text, "st%s.u%u ", space, s->size * 8u);
		add_address(text, s);
		add(text, ", %%d%u;\n", s->a);
		return;
	}
	add(text, "mov.b64 {%%r2, %%r3}, %%d%u;\nmov.b64 {%%r4, %%r5}, %%d%u;\n", s->a,
		s->b);
	add(text, s->size == 8 ? "st%s.v2.u32 " : "st%s.v4.u32 ", space);
	add_address(text, s);
	add(text, s->size == 8 ? ", {%%r2, %%r3};\n" : ", {%%r2, %%r3, %%r4, %%r5};\n");
}

static void add_atomic(struct text *text, const struct grammar_statement *s)
{
	if (s->is_whole) {
		add(text, "mov.b128 %%q1, {%%d%u, %%d%u};\natom%s.exch.b128 %%q2, ", s->a,
			s->b, spaces[s->space]);
		add_address(text, s);
		add(text,
			", %%q1;\nmov.b128 {%%d%u, %%d14}, %%q2;\n"
			"add.u64 %%d%u, %%d%u, %%d14;\n",
			s->d, s->d, s->d);
		return;
	}
	add(text, "cvt.u32.u64 %%r2, %%d%u;\natom%s.add.u32 %%r3, ", s->a,
		spaces[s->space]);
	add_address(text, s);
	add(text, ", %%r2;\ncvt.u64.u32 %%d%u, %%r3;\n", s->d);
}

static void add_statement(struct text *text, const struct grammar_statement *s,
	unsigned int i, const struct grammar_places *places)
{
	char group[GROUP_TEXT];

	if (s->is_outside && s->kind < _GRAMMAR_OLD_N)
		add(text, "mov.u64 %%d%u, %llu;\n", OUTSIDE_REGISTER,
			(unsigned long long)place_outside(s, places));
	switch (s->kind) {
	case GRAMMAR_ARITHMETIC:
	case GRAMMAR_NARROW:
		add_arithmetic(text, s);
		return;
	case GRAMMAR_SET:
		add(text, "mov.u64 %%d%u, 0x%llx;\n", s->d, (unsigned long long)s->value);
		return;
	case GRAMMAR_SKIP:
		add(text, "setp.%s.u64 %%p1, %%d%u, 0x%llx;\n@%%p1 bra S%u;\n",
			comparisons[s->operation % 4], s->a, (unsigned long long)s->value,
			i);
		return;
	case GRAMMAR_LOOP:
		add(text, "mov.u32 %%r7, 0;\nL%u:\n", i);
		return;
	case GRAMMAR_CALL:
		add(text,
			"{ .param .b64 a; .param .b64 q;\nst.param.b64 [a], %%d%u;\n"
			"call (q), f, (a);\nld.param.b64 %%d%u, [q]; }\n",
			s->a, s->d);
		return;
	case GRAMMAR_STACK:
		add(text,
			"stacksave.u64 %%d14;\nalloca.u64 %%d%u, %u, 16;\n"
			"st.local.u64 [%%d%u+8], %%d%u;\nld.local.u64 %%d%u, [%%d%u+8];\n"
			"stackrestore.u64 %%d14;\n",
			OUTSIDE_REGISTER, 16u + s->b * 24u, OUTSIDE_REGISTER, s->a, s->d,
			OUTSIDE_REGISTER);
		return;
	case GRAMMAR_LOAD:
		add_load(text, s);
		return;
	case GRAMMAR_STORE:
		add_store(text, s);
		return;
	case GRAMMAR_ATOMIC:
		add_atomic(text, s);
		return;
	case GRAMMAR_BULK:
	case GRAMMAR_SURFACE:
	case GRAMMAR_SERVICE:
		device_write(s, places, group);
		add(text, "%s", group);
		return;
	default:
		group_write(s, places, group);
		add(text, "%s", group);
	}
}

/* The constructs that end before statement i: branches within a loop, the loop, branches
 * over it. */
static void add_ends(struct text *text, const struct grammar *grammar, unsigned int i)
{
	const struct grammar_statement *s = grammar->statements;
	unsigned int loop = i;

	for (unsigned int k = 0; k < i; k++)
		if (s[k].kind == GRAMMAR_LOOP && k + 1 + s[k].n == i)
			loop = k;
	for (unsigned int k = loop; k < i; k++)
		if (s[k].kind == GRAMMAR_SKIP && k + 1 + s[k].n == i)
			add(text, "S%u:\n", k);
	if (loop < i)
		add(text,
			"add.u32 %%r7, %%r7, 1;\nsetp.lt.u32 %%p1, %%r7, %u;\n"
			"@%%p1 bra L%u;\n",
			s[loop].times, loop);
	for (unsigned int k = 0; k < loop; k++)
		if (s[k].kind == GRAMMAR_SKIP && k + 1 + s[k].n == i)
			add(text, "S%u:\n", k);
}

static void add_begin(struct text *text, const struct grammar_places *places)
{
	add(text,
		".version 8.8\n.target sm_121a\n.address_size 64\n" DEVICE_DECLARATIONS
		".func (.param .b64 r) f(.param .b64 x)\n{\n.reg .b64 %%d<2>;\n"
		"ld.param.b64 %%d1, [x];\nmul.lo.u64 %%d1, %%d1, 3;\n"
		"add.u64 %%d1, %%d1, 1;\nst.param.b64 [r], %%d1;\nret;\n}\n"
		".entry k()\n{\n.reg .pred %%p<2>;\n.reg .b32 %%r<24>;\n.reg .b16 "
		"%%h<2>;\n"
		".reg .b64 %%d<16>;\n.reg .b128 %%q<3>;\n.shared .align 16 .b8 "
		"room[%u];\n"
		".local .align 16 .b8 own[%u];\nmov.u32 %%r1, %%tid.x;\n"
		"cvt.u64.u32 %%d15, %%r1;\n",
		(unsigned int)GRAMMAR_SHARED, (unsigned int)GRAMMAR_SLOT);
	for (unsigned int i = 0; i < GRAMMAR_REGISTERS; i++)
		add(text, "add.u64 %%d%u, %%d15, 0x%llx;\n", i,
			(unsigned long long)(i * FIRST_VALUE));
	add(text,
		"shl.b64 %%d15, %%d15, 6;\nadd.u64 %%d%u, %%d15, %llu;\n"
		"mov.u64 %%d%u, room;\nadd.u64 %%d%u, %%d%u, %%d15;\n"
		"mov.u64 %%d%u, own;\nadd.u64 %%d%u, %%d15, %llu;\n",
		SLOT_REGISTER, (unsigned long long)places->memory,
		SLOT_REGISTER + GRAMMAR_IN_SHARED, SLOT_REGISTER + GRAMMAR_IN_SHARED,
		SLOT_REGISTER + GRAMMAR_IN_SHARED, SLOT_REGISTER + GRAMMAR_LOCAL,
		RESULT_REGISTER, (unsigned long long)places->results);
	/* The initial contents of local memory are unspecified. */
	for (unsigned int i = 0; i < GRAMMAR_SLOT; i += 8)
		add(text, "st.local.u64 [own+%u], 0;\n", i);
}

size_t grammar_write(const struct grammar *grammar, const struct grammar_places *places,
	char bytes[GRAMMAR_TEXT])
{
	struct text text = { .bytes = bytes };

	add_begin(&text, places);
	for (unsigned int i = 0; i < grammar->n; i++) {
		add_ends(&text, grammar, i);
		add_statement(&text, &grammar->statements[i], i, places);
	}
	add_ends(&text, grammar, grammar->n);
	for (unsigned int i = 0; i < GRAMMAR_REGISTERS; i++)
		add(&text, "st.global.u64 [%%d%u+%u], %%d%u;\n", RESULT_REGISTER, 8 * i,
			i);
	add(&text, "ret;\n}\n");
	return text.size;
}

/*
 * By the manual
 */

static uint64_t operate(unsigned int o, uint64_t a, uint64_t b, unsigned int shift)
{
	switch (o) {
	case 0:
		return a + b;
	case 1:
		return a - b;
	case 2:
		return a * b;
	case 3:
		return a & b;
	case 4:
		return a | b;
	case 5:
		return a ^ b;
	case 6:
		return a < b ? a : b;
	case 7:
		return a > b ? a : b;
	case 8:
		return a << shift;
	}
	return a >> shift;
}

static bool compare(unsigned int how, uint64_t a, uint64_t b)
{
	return how == 0 ? a < b : how == 1 ? a >= b : how == 2 ? a == b : a != b;
}

static uint8_t *slot_of(const struct grammar_statement *s, struct grammar_thread *thread)
{
	const unsigned int space =
		s->space == GRAMMAR_GENERIC ? GRAMMAR_GLOBAL : s->space;

	return thread->slots[space] + s->value;
}

static void run_access(const struct grammar_statement *s, struct grammar_thread *thread)
{
	uint64_t words[2] = { 0, 0 };
	uint64_t *registers = thread->registers;
	uint32_t old, sum;

	if (s->is_outside) {
		thread->faults = true;
		return;
	}
	if (s->kind == GRAMMAR_LOAD) {
		memcpy(words, slot_of(s, thread), s->size);
		registers[s->d] = words[0] + words[1];
	} else if (s->kind == GRAMMAR_STORE) {
		words[0] = registers[s->a];
		words[1] = registers[s->b];
		memcpy(slot_of(s, thread), words, s->size);
	} else if (s->is_whole) {
		const uint64_t news[2] = { registers[s->a], registers[s->b] };

		memcpy(words, slot_of(s, thread), sizeof(words));
		memcpy(slot_of(s, thread), news, sizeof(news));
		registers[s->d] = words[0] + words[1];
	} else {
		memcpy(&old, slot_of(s, thread), sizeof(old));
		sum = old + (uint32_t)registers[s->a];
		memcpy(slot_of(s, thread), &sum, sizeof(sum));
		registers[s->d] = old;
	}
}

static void run_value(const struct grammar_statement *s, uint64_t *registers)
{
	const unsigned int o = s->operation % OPERATIONS;

	switch (s->kind) {
	case GRAMMAR_ARITHMETIC:
		registers[s->d] =
			operate(o, registers[s->a], registers[s->b], s->b * 9 % 64);
		return;
	case GRAMMAR_NARROW:
		registers[s->d] = (uint32_t)operate(o, (uint32_t)registers[s->a],
			(uint32_t)registers[s->b], s->b * 9 % 32);
		return;
	case GRAMMAR_SET:
		registers[s->d] = s->value;
		return;
	case GRAMMAR_CALL:
		registers[s->d] = registers[s->a] * 3 + 1;
		return;
	case GRAMMAR_STACK:
		registers[s->d] = registers[s->a];
		return;
	}
}

/* Where a thread is. */
struct position {
	unsigned int next, loop, loop_end, times;
};

static void run_branch(const struct grammar_statement *s, struct position *at,
	const struct grammar_thread *thread)
{
	const unsigned int i = at->next;

	if (s->kind == GRAMMAR_LOOP) {
		at->loop = i;
		at->loop_end = i + 1 + s->n;
		at->times = 0;
	} else if (compare(s->operation % 4, thread->registers[s->a], s->value)) {
		at->next += s->n;
	}
}

/* Runs a thread to its end, a fault, or a statement of the whole warp. */
static void run_thread(
	const struct grammar *grammar, struct position *at, struct grammar_thread *thread)
{
	const struct grammar_statement *s;

	while (!thread->faults) {
		if (at->loop_end && at->next == at->loop_end) {
			if (++at->times < grammar->statements[at->loop].times)
				at->next = at->loop + 1;
			else
				at->loop_end = 0;
			continue;
		}
		s = &grammar->statements[at->next];
		if (at->next >= grammar->n || s->kind == GRAMMAR_MATRIX)
			return;
		if (s->kind == GRAMMAR_LOOP || s->kind == GRAMMAR_SKIP)
			run_branch(s, at, thread);
		else if (s->kind >= _GRAMMAR_NEWER_N)
			device_run(s, thread);
		else if (s->kind >= _GRAMMAR_OLD_N)
			group_run(s, thread);
		else if (s->kind >= GRAMMAR_LOAD)
			run_access(s, thread);
		else
			run_value(s, thread->registers);
		at->next++;
	}
}

static bool run_warp(const struct grammar *grammar, struct grammar_thread *threads)
{
	struct position at[GRAMMAR_WARP] = { 0 };
	unsigned int next;

	for (;;) {
		for (unsigned int i = 0; i < GRAMMAR_WARP; i++) {
			run_thread(grammar, &at[i], &threads[i]);
			if (threads[i].faults)
				return false;
		}
		next = at[0].next;
		if (next >= grammar->n)
			return true;
		group_run_warp(&grammar->statements[next], threads);
		for (unsigned int i = 0; i < GRAMMAR_WARP; i++)
			at[i].next++;
	}
}

void grammar_run(
	const struct grammar *grammar, struct grammar_thread threads[GRAMMAR_THREADS])
{
	memset(threads, 0, GRAMMAR_THREADS * sizeof(*threads));
	for (unsigned int tid = 0; tid < GRAMMAR_THREADS; tid++) {
		threads[tid].number = tid;
		for (unsigned int i = 0; i < GRAMMAR_REGISTERS; i++)
			threads[tid].registers[i] = i * FIRST_VALUE + tid;
	}
	for (unsigned int i = 0; i < GRAMMAR_THREADS; i += GRAMMAR_WARP)
		if (!run_warp(grammar, &threads[i]))
			return;
}
