/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness: from where to where each value is needed
 *
 * A value that is only used in the block that wrote it before, and all temporaries,
 * need no data flow; for the others the usual backward equations are solved over
 * bit sets, a word for 64 of them in each block. The result is one interval for each
 * value that covers all places where it is live, in the order of the operations.
 *
 * A write under a guard keeps what lanes without the guard had: it reads, too.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* Bounds the bit sets: four of them a block. */
#define BITS_MAX (UINT64_C(1) << 28)

struct block_range {
	uint32_t start, end;
	uint32_t next[2]; /* blocks, UINT32_MAX: none; a table is looked up */
};

struct flow {
	struct lowering *l;
	uint32_t *block_of; /* of each operation, and the end */
	struct block_range *blocks;
	uint32_t n_blocks;
	uint32_t n_globals;
	uint32_t *globals; /* values */
	size_t n_words;
	uint64_t *use, *def, *in, *out;
};

static void flow_deinit(struct flow *f)
{
	free(f->block_of);
	free(f->blocks);
	free(f->globals);
	free(f->use);
	free(f->def);
	free(f->in);
	free(f->out);
}

static bool ends_block(const struct operation *o)
{
	return o->op == OP_BRA || o->op == OP_BRX || o->op == OP_EXIT ||
	       o->op == OP_RETURN;
}

static int find_blocks(struct flow *f)
{
	struct lowering *l = f->l;
	_vgpu_cleanup_(vgpu_freep) uint8_t *leads = calloc((size_t)l->n_ops + 1, 1);

	f->block_of = calloc((size_t)l->n_ops + 1, sizeof(*f->block_of));
	if (!leads || !f->block_of)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	leads[0] = 1;
	for (uint32_t i = 0; i < l->n_labels; i++)
		leads[l->labels[i]] = 1;
	for (uint32_t i = 0; i < l->n_ops; i++)
		if (ends_block(&l->ops[i]))
			leads[i + 1] = 1;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		f->n_blocks += leads[i];
		f->block_of[i] = f->n_blocks - 1;
	}
	f->block_of[l->n_ops] = f->n_blocks; /* the exit that emit adds */
	f->blocks = calloc((size_t)f->n_blocks + 1, sizeof(*f->blocks));
	if (!f->blocks)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = l->n_ops; i-- > 0;) {
		struct block_range *b = &f->blocks[f->block_of[i]];

		if (!b->end)
			b->end = i + 1;
		b->start = i;
	}
	return 0;
}

static void link_blocks(struct flow *f)
{
	struct lowering *l = f->l;

	for (uint32_t i = 0; i < f->n_blocks; i++) {
		struct block_range *b = &f->blocks[i];
		const struct operation *last = &l->ops[b->end - 1];
		bool falls = !ends_block(last) || last->guard != VALUE_TRUE;

		b->next[0] = falls && i + 1 < f->n_blocks ? i + 1 : UINT32_MAX;
		b->next[1] = UINT32_MAX;
		if (last->op == OP_BRA)
			b->next[1] = f->block_of[l->labels[last->target]];
		if (b->next[1] >= f->n_blocks)
			b->next[1] = UINT32_MAX;
	}
}

static bool is_tracked(const struct value *v)
{
	return v->kind == VALUE_REGISTER || v->kind == VALUE_TEMPORARY;
}

static void make_global(struct flow *f, uint32_t value)
{
	struct value *v = &f->l->values[value];

	if (v->kind == VALUE_REGISTER && !v->global)
		v->global = ++f->n_globals;
}

/* Calls a function for each operand: reads first, then writes. */
static void each_operand(struct lowering *l, const struct operation *o, bool writes,
	void (*visit)(void *data, uint32_t value), void *data)
{
	const char *signature = op_signature(o->op);

	if (!writes)
		visit(data, o->guard & ~VALUE_NEGATED);
	for (unsigned int i = 0; i < _FIELD_N; i++) {
		char kind = signature[i];
		bool is_write = kind == 'W' || kind == 'X' || kind == 'P';

		if (kind != '-' && is_write == writes)
			visit(data, o->field[i] & ~VALUE_NEGATED);
	}
	if (writes || o->guard == VALUE_TRUE)
		return;
	for (unsigned int i = 0; i < _FIELD_N; i++)
		if (signature[i] == 'W' || signature[i] == 'X' || signature[i] == 'P')
			if (l->values[o->field[i]].kind == VALUE_REGISTER)
				visit(data, o->field[i]);
}

struct locality {
	struct flow *f;
	uint32_t *seen;	   /* block + 1 in which the value was met first */
	uint32_t *written; /* block + 1 in which it was written last */
	uint32_t block;
};

static void note_read(void *data, uint32_t value)
{
	struct locality *at = data;

	if (at->written[value] != at->block + 1)
		make_global(at->f, value);
}

static void note_write(void *data, uint32_t value)
{
	struct locality *at = data;

	if (at->seen[value] && at->seen[value] != at->block + 1)
		make_global(at->f, value);
	at->seen[value] = at->block + 1;
	at->written[value] = at->block + 1;
}

static int find_globals(struct flow *f)
{
	struct lowering *l = f->l;
	_vgpu_cleanup_(vgpu_freep) uint32_t *seen = calloc(l->n_values, sizeof(*seen));
	_vgpu_cleanup_(vgpu_freep) uint32_t *written =
		calloc(l->n_values, sizeof(*written));
	struct locality at = { .f = f, .seen = seen, .written = written };

	if (!seen || !written)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		at.block = f->block_of[i];
		each_operand(l, &l->ops[i], false, note_read, &at);
		each_operand(l, &l->ops[i], true, note_write, &at);
	}
	f->globals = calloc((size_t)f->n_globals + 1, sizeof(*f->globals));
	if (!f->globals)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_values; i++)
		if (l->values[i].global)
			f->globals[l->values[i].global - 1] = i;
	return 0;
}

struct sets {
	struct lowering *l;
	uint64_t *use, *def;
};

static bool test_bit(const uint64_t *set, uint32_t bit)
{
	return set[bit / 64] >> (bit % 64) & 1;
}

static void set_bit(uint64_t *set, uint32_t bit)
{
	set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static void add_read(void *data, uint32_t value)
{
	struct sets *s = data;
	uint32_t global = s->l->values[value].global;

	if (global && !test_bit(s->def, global - 1))
		set_bit(s->use, global - 1);
}

static void add_write(void *data, uint32_t value)
{
	struct sets *s = data;
	uint32_t global = s->l->values[value].global;

	if (global)
		set_bit(s->def, global - 1);
}

static int make_sets(struct flow *f)
{
	struct lowering *l = f->l;
	size_t n;

	f->n_words = (f->n_globals + 63) / 64;
	n = f->n_words * f->n_blocks + 1;
	if ((uint64_t)n * 64 > BITS_MAX)
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"function too large: %u blocks, %u registers among them",
			f->n_blocks, f->n_globals);
	f->use = calloc(n, sizeof(uint64_t));
	f->def = calloc(n, sizeof(uint64_t));
	f->in = calloc(n, sizeof(uint64_t));
	f->out = calloc(n, sizeof(uint64_t));
	if (!f->use || !f->def || !f->in || !f->out)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		size_t at = f->block_of[i] * f->n_words;
		struct sets s = { .l = l, .use = f->use + at, .def = f->def + at };

		each_operand(l, &l->ops[i], false, add_read, &s);
		each_operand(l, &l->ops[i], true, add_write, &s);
	}
	return 0;
}

/* Adds what block @next needs at its start to what is live at the end of @i. */
static void flow_back(struct flow *f, uint32_t i, uint32_t next)
{
	uint64_t *out = f->out + i * f->n_words;
	const uint64_t *in = f->in + next * f->n_words;

	for (size_t k = 0; k < f->n_words; k++)
		out[k] |= in[k];
}

static bool update_block(struct flow *f, uint32_t i)
{
	const struct block_range *b = &f->blocks[i];
	const struct operation *last = &f->l->ops[b->end - 1];
	size_t at = i * f->n_words;
	uint64_t changed = 0, in;

	for (unsigned int k = 0; k < 2; k++)
		if (b->next[k] != UINT32_MAX)
			flow_back(f, i, b->next[k]);
	if (last->op == OP_BRX)
		for (uint32_t k = 0; k < last->imm >> 32; k++) {
			uint32_t next =
				f->block_of[f->l->labels[f->l->tables[last->target + k]]];

			if (next < f->n_blocks)
				flow_back(f, i, next);
		}
	for (size_t k = 0; k < f->n_words; k++) {
		in = f->use[at + k] | (f->out[at + k] & ~f->def[at + k]);
		changed |= in ^ f->in[at + k];
		f->in[at + k] = in;
	}
	return changed;
}

static void solve(struct flow *f)
{
	bool changed;

	do {
		changed = false;
		for (uint32_t i = f->n_blocks; i-- > 0;)
			changed |= update_block(f, i);
	} while (changed);
}

struct moment {
	struct lowering *l;
	uint32_t at;
};

static void extend(void *data, uint32_t value)
{
	struct moment *m = data;
	struct value *v = &m->l->values[value];

	if (v->start == UINT32_MAX || m->at < v->start)
		v->start = m->at;
	if (m->at > v->end)
		v->end = m->at;
}

static void extend_set(struct flow *f, const uint64_t *set, uint32_t at)
{
	struct moment m = { .l = f->l, .at = at };

	for (size_t k = 0; k < f->n_words; k++)
		for (uint64_t left = set[k]; left; left &= left - 1)
			extend(&m, f->globals[k * 64 + (size_t)__builtin_ctzll(left)]);
}

static void make_intervals(struct flow *f)
{
	struct lowering *l = f->l;

	for (uint32_t i = 0; i < l->n_ops; i++) {
		struct moment before = { .l = l, .at = 2 * i },
			      after = { .l = l, .at = 2 * i + 1 };

		each_operand(l, &l->ops[i], false, extend, &before);
		each_operand(l, &l->ops[i], true, extend, &after);
	}
	for (uint32_t i = 0; i < f->n_blocks; i++) {
		extend_set(f, f->in + i * f->n_words, 2 * f->blocks[i].start);
		extend_set(f, f->out + i * f->n_words, 2 * (f->blocks[i].end - 1) + 1);
	}
	for (uint32_t i = 0; i < l->n_values; i++)
		if (!is_tracked(&l->values[i]) && l->values[i].start != UINT32_MAX)
			l->values[i].end = UINT32_MAX;
}

int lower_liveness(struct lowering *l)
{
	__attribute__((__cleanup__(flow_deinit))) struct flow f = { .l = l };
	int r;

	r = find_blocks(&f);
	if (!r) {
		link_blocks(&f);
		r = find_globals(&f);
	}
	if (!r)
		r = make_sets(&f);
	if (r)
		return r;
	solve(&f);
	make_intervals(&f);
	return 0;
}
