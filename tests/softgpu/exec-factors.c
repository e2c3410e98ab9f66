/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices one after the other, whose registers overlap
 *
 * Random programs of mma on a few registers, of which each may be an operand of any kind,
 * are run twice: as they are, and with each operand loaded from memory before the
 * instruction and each result stored after it, where no two registers overlap and nothing
 * of the instruction before can be kept. exec-matrix.c tests single products.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "matrix-text.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

#define PROGRAMS 40
#define PRODUCTS 20 /* of a program: more than may be one turn */
#define POOL 14	    /* registers */
#define LANES 32

struct form {
	const char *text;
	unsigned int n_a, n_b, n_c;
};

static const struct form forms[] = {
	{ "m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4 },
	{ "m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4 },
	{ "m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2 },
	{ "m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4 },
	{ "m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4 },
	{ "m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4 },
	{ "m16n8k32.row.col.s32.s8.u8.s32", 4, 2, 4 },
	{ "m8n8k16.row.col.s32.s8.s8.s32", 1, 1, 2 },
	{ "m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 1, 1, 2 },
};

struct product {
	const struct form *form;
	unsigned int a, b; /* first registers */
	unsigned int c[4], d[4];
	bool is_target; /* a label is before it, to which a branch leads */
};

/* Most have a factor in common with the one before. */
static void choose(struct product *p, const struct product *before)
{
	unsigned int what = (unsigned int)rand() % 8;

	p->form = before && what ? before->form
				 : &forms[(unsigned int)rand() %
					   (sizeof(forms) / sizeof(forms[0]))];
	p->a = before && what % 2 ? before->a
				  : (unsigned int)rand() % (POOL - p->form->n_a + 1);
	p->b = before && what & 2 ? before->b
				  : (unsigned int)rand() % (POOL - p->form->n_b + 1);
	if (p->a + p->form->n_a > POOL)
		p->a = 0;
	if (p->b + p->form->n_b > POOL)
		p->b = 0;
	for (unsigned int i = 0; i < p->form->n_c; i++) {
		unsigned int used;

		p->c[i] = (unsigned int)rand() % POOL;
		do {
			p->d[i] =
				rand() % 2 && !i ? p->c[i] : (unsigned int)rand() % POOL;
			used = 0;
			for (unsigned int k = 0; k < i; k++)
				used += p->d[k] == p->d[i];
		} while (used);
	}
	p->is_target = rand() % 6 == 0;
}

static void add_registers(
	struct text *ptx, const unsigned int *registers, unsigned int n, const char *end)
{
	for (unsigned int i = 0; i < n; i++)
		text_add(ptx, "%s%%r%u", i ? "," : "{", registers[i]);
	text_add(ptx, "}%s", end);
}

static void add_product(struct text *ptx, const struct form *f, const unsigned int *d,
	const unsigned int *a, const unsigned int *b, const unsigned int *c)
{
	text_add(ptx, "mma.sync.aligned.%s ", f->text);
	add_registers(ptx, d, f->n_c, ", ");
	add_registers(ptx, a, f->n_a, ", ");
	add_registers(ptx, b, f->n_b, ", ");
	add_registers(ptx, c, f->n_c, ";\n");
}

static void add_load(struct text *ptx, unsigned int r, unsigned int slot)
{
	text_add(ptx, "ld.global.b32 %%r%u, [%%a+%u];\n", r, slot * LANES * 4);
}

static void add_store(struct text *ptx, unsigned int r, unsigned int slot)
{
	text_add(ptx, "st.global.b32 [%%a+%u], %%r%u;\n", slot * LANES * 4, r);
}

static void add_overlapping(struct text *ptx, const struct product *p, unsigned int n)
{
	unsigned int a[4], b[2];

	for (unsigned int i = 0; i < POOL; i++)
		add_load(ptx, i, i);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < 4; k++)
			a[k] = p[i].a + k;
		for (unsigned int k = 0; k < 2; k++)
			b[k] = p[i].b + k;
		if (p[i].is_target)
			text_add(ptx, "again%u:\n", i);
		add_product(ptx, p[i].form, p[i].d, a, b, p[i].c);
		if (p[i].is_target)
			text_add(ptx,
				"add.u32 %%t2, %%t2, 1; and.b32 %%t3, %%t2, 1;\n"
				"setp.ne.u32 %%p, %%t3, 0; @%%p bra again%u;\n",
				i);
	}
	for (unsigned int i = 0; i < POOL; i++)
		add_store(ptx, i, i);
}

/* A is in registers 0 to 3, B in 4 and 5, C in 6 to 9, D in 10 to 13. */
static void add_apart(struct text *ptx, const struct product *p, unsigned int n)
{
	static const unsigned int a[] = { 0, 1, 2, 3 }, b[] = { 4, 5 },
				  c[] = { 6, 7, 8, 9 }, d[] = { 10, 11, 12, 13 };

	for (unsigned int i = 0; i < n; i++)
		for (int times = 0; times < 1 + p[i].is_target; times++) {
			const struct form *f = p[i].form;

			for (unsigned int k = 0; k < f->n_a; k++)
				add_load(ptx, a[k], p[i].a + k);
			for (unsigned int k = 0; k < f->n_b; k++)
				add_load(ptx, b[k], p[i].b + k);
			for (unsigned int k = 0; k < f->n_c; k++)
				add_load(ptx, c[k], p[i].c[k]);
			add_product(ptx, f, d, a, b, c);
			for (unsigned int k = 0; k < f->n_c; k++)
				add_store(ptx, d[k], p[i].d[k]);
		}
}

static void write_kernels(struct text *ptx, const struct product *p, unsigned int n)
{
	text_add(ptx, ".version 9.0\n.target sm_121\n.address_size 64\n");
	for (int apart = 0; apart < 2; apart++) {
		text_add(ptx,
			".visible .entry %s(.param .u64 pool) {\n"
			".reg .pred %%p; .reg .b32 %%r<%u>, %%t<4>; .reg .b64 %%a;\n"
			"ld.param.u64 %%a, [pool]; mov.u32 %%t1, %%tid.x;\n"
			"mov.u32 %%t2, 0; mad.wide.u32 %%a, %%t1, 4, %%a;\n",
			apart ? "apart" : "overlapping", POOL);
		if (apart)
			add_apart(ptx, p, n);
		else
			add_overlapping(ptx, p, n);
		text_add(ptx, "ret; }\n");
	}
}

static void run_program(unsigned int number)
{
	struct product products[PRODUCTS];
	struct text ptx = {};
	CLEAN_RIG rig = NULL;
	uint32_t *pool[2];

	for (unsigned int i = 0; i < PRODUCTS; i++)
		choose(&products[i], i ? &products[i - 1] : NULL);
	write_kernels(&ptx, products, PRODUCTS);
	rig = rig_new(ptx.text);
	for (int k = 0; k < 2; k++)
		pool[k] = rig_alloc(rig, sizeof(uint32_t) * POOL * LANES);
	/* Halves below 2, as floats below 4: sums stay numbers for a while. */
	for (unsigned int i = 0; i < POOL * LANES; i++)
		pool[0][i] = pool[1][i] = (uint32_t)rand() * 2654435761u & 0xbfffbfff;
	rig_launch(rig, "overlapping", 1, LANES, (void *[]){ pool[0] }, 8);
	rig_launch(rig, "apart", 1, LANES, (void *[]){ pool[1] }, 8);
	for (unsigned int i = 0; i < POOL * LANES; i++)
		if (pool[0][i] != pool[1][i])
			test_fail(__FILE__, __LINE__,
				"program %u, register %u, lane %u: %x, not %x\n%s",
				number, i / LANES, i % LANES, pool[0][i], pool[1][i],
				ptx.text);
}

TEST(products_with_common_registers_are_those_of_separate_ones)
{
	srand(1);
	for (unsigned int i = 0; i < PROGRAMS; i++)
		run_program(i);
}
