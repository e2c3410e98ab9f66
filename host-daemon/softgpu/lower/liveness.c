/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness: the interval in which each value is needed
 *
 * A value that is only used in the block that wrote it before, and all temporaries, need
 * no data flow. For the others the usual backward equations are solved, for 64 of them at
 * a time: one word of each set in each block, and only blocks whose words change are
 * visited again. So memory grows with the code, not with blocks times registers, and time
 * mostly with the length of the intervals. The result is one interval for each value that
 * covers all places where it is live, in the order of the operations.
 *
 * A write under a guard keeps the old values of lanes without the guard: it is a read,
 * too.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* Values that are solved together, one bit each. */
#define BATCH 64

struct block_range {
	uint32_t start, end;
	uint32_t next[2]; /* blocks, UINT32_MAX: none; a table is looked up */
};

/* The first access of a block to a value: a read of an earlier write, or a write. */
struct touch {
	uint32_t block;
	uint8_t bit;
	bool is_write;
};

struct words {
	uint64_t use, def, in, out;
};

struct flow {
	struct lowering *l;
	uint32_t *block_of; /* of each operation, and the end */
	struct block_range *blocks;
	uint32_t n_blocks;
	uint32_t n_globals;
	uint32_t *globals; /* values */

	/* Blocks that lead to each, from first_before[block] on. */
	uint32_t *first_before;
	uint32_t *before;

	/* Of the values of each batch, from first_touch[batch] on. */
	uint32_t n_batches;
	uint32_t *first_touch;
	struct touch *touches;

	/* Of the batch that is being solved. */
	struct words *words;
	uint32_t *met; /* blocks whose words are not 0 */
	uint32_t n_met;
	uint32_t *changed; /* blocks whose changes have to be propagated */
	bool *is_changed;
	uint32_t n_changed;
	uint64_t work;
};

static void flow_deinit(struct flow *f)
{
	free(f->block_of);
	free(f->blocks);
	free(f->globals);
	free(f->first_before);
	free(f->before);
	free(f->first_touch);
	free(f->touches);
	free(f->words);
	free(f->met);
	free(f->changed);
	free(f->is_changed);
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

/* Calls a function for each block to which one may lead. */
static void each_next(struct flow *f, uint32_t block,
	void (*visit)(struct flow *f, uint32_t from, uint32_t to))
{
	const struct block_range *b = &f->blocks[block];
	const struct operation *last = &f->l->ops[b->end - 1];
	uint32_t n = last->op == OP_BRX ? (uint32_t)(last->imm >> 32) : 0;

	for (unsigned int k = 0; k < 2; k++)
		if (b->next[k] != UINT32_MAX)
			visit(f, block, b->next[k]);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t to = f->block_of[f->l->labels[f->l->tables[last->target + k]]];

		if (to < f->n_blocks)
			visit(f, block, to);
	}
}

static void count_before(struct flow *f, uint32_t from, uint32_t to)
{
	f->first_before[to + 1]++;
}

/* Fills each list from its end, so that first_before is right in the end. */
static void note_before(struct flow *f, uint32_t from, uint32_t to)
{
	f->before[--f->first_before[to + 1]] = from;
}

/* first_before[block + 1] is where the list of a block ends, then where it begins. */
static int find_before(struct flow *f)
{
	f->first_before = calloc((size_t)f->n_blocks + 2, sizeof(*f->first_before));
	if (!f->first_before)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < f->n_blocks; i++)
		each_next(f, i, count_before);
	for (uint32_t i = 0; i < f->n_blocks; i++)
		f->first_before[i + 1] += f->first_before[i];
	f->before = calloc((size_t)f->first_before[f->n_blocks] + 1, sizeof(*f->before));
	if (!f->before)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	f->first_before[f->n_blocks + 1] = f->first_before[f->n_blocks];
	for (uint32_t i = 0; i < f->n_blocks; i++)
		each_next(f, i, note_before);
	memmove(f->first_before, f->first_before + 1,
		((size_t)f->n_blocks + 1) * sizeof(*f->first_before));
	return 0;
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

/* Visits the code twice: first to count, then to record. */
struct touching {
	struct flow *f;
	uint32_t *read;	   /* by number: block + 1 in which it was noted last */
	uint32_t *written; /* the same */
	uint32_t block;
};

static void note_touch(struct touching *t, uint32_t global, bool is_write)
{
	struct flow *f = t->f;
	uint32_t *at = &f->first_touch[global / BATCH + 1];

	if (f->touches)
		f->touches[--*at] = (struct touch){
			.block = t->block,
			.bit = (uint8_t)(global % BATCH),
			.is_write = is_write,
		};
	else
		++*at;
}

static void touch_read(void *data, uint32_t value)
{
	struct touching *t = data;
	uint32_t global = t->f->l->values[value].global;

	if (!global || t->written[global] == t->block + 1 ||
		t->read[global] == t->block + 1)
		return;
	t->read[global] = t->block + 1;
	note_touch(t, global - 1, false);
}

static void touch_write(void *data, uint32_t value)
{
	struct touching *t = data;
	uint32_t global = t->f->l->values[value].global;

	if (!global || t->written[global] == t->block + 1)
		return;
	t->written[global] = t->block + 1;
	note_touch(t, global - 1, true);
}

static int go_over(struct flow *f)
{
	size_t n = (size_t)f->n_globals + 1;
	_vgpu_cleanup_(vgpu_freep) uint32_t *read = calloc(n, sizeof(*read));
	_vgpu_cleanup_(vgpu_freep) uint32_t *written = calloc(n, sizeof(*written));
	struct touching t = { .f = f, .read = read, .written = written };
	struct lowering *l = f->l;

	if (!read || !written)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		t.block = f->block_of[i];
		each_operand(l, &l->ops[i], false, touch_read, &t);
		each_operand(l, &l->ops[i], true, touch_write, &t);
	}
	return 0;
}

static int find_touches(struct flow *f)
{
	uint32_t n = f->n_batches;
	int r;

	f->first_touch = calloc((size_t)n + 2, sizeof(*f->first_touch));
	if (!f->first_touch)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	r = go_over(f);
	if (r)
		return r;
	for (uint32_t i = 0; i < n; i++)
		f->first_touch[i + 1] += f->first_touch[i];
	f->first_touch[n + 1] = f->first_touch[n];
	f->touches = calloc((size_t)f->first_touch[n] + 1, sizeof(*f->touches));
	if (!f->touches)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	r = go_over(f);
	memmove(f->first_touch, f->first_touch + 1,
		((size_t)n + 1) * sizeof(*f->first_touch));
	return r;
}

static struct words *meet(struct flow *f, uint32_t block)
{
	struct words *w = &f->words[block];

	if (!w->use && !w->def && !w->in && !w->out)
		f->met[f->n_met++] = block;
	return w;
}

static void mark_changed(struct flow *f, uint32_t block)
{
	if (f->is_changed[block])
		return;
	f->is_changed[block] = true;
	f->changed[f->n_changed++] = block;
}

/* A value that is live at the beginning of a block is live at the end of each
 * predecessor. */
static void flow_back(struct flow *f, uint32_t block)
{
	uint64_t in = f->words[block].in;

	for (uint32_t i = f->first_before[block]; i < f->first_before[block + 1]; i++) {
		uint32_t from = f->before[i];
		struct words *w = meet(f, from);
		uint64_t through = in & ~w->def & ~w->in;

		w->out |= in;
		w->in |= through;
		if (through)
			mark_changed(f, from);
	}
	f->work += 1 + f->first_before[block + 1] - f->first_before[block];
}

/* Return: 0, or that it would take too long. */
static int solve(struct flow *f, uint32_t batch)
{
	for (uint32_t i = f->first_touch[batch]; i < f->first_touch[batch + 1]; i++) {
		const struct touch *t = &f->touches[i];
		struct words *w = meet(f, t->block);

		if (t->is_write) {
			w->def |= UINT64_C(1) << t->bit;
			continue;
		}
		w->use |= UINT64_C(1) << t->bit;
		w->in = w->use;
		mark_changed(f, t->block);
	}
	while (f->n_changed && f->work <= LIVENESS_WORK_MAX) {
		uint32_t block = f->changed[--f->n_changed];

		f->is_changed[block] = false;
		flow_back(f, block);
	}
	if (f->work > LIVENESS_WORK_MAX)
		return lower_fail(f->l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"function too large: %u blocks, %u registers among them",
			f->n_blocks, f->n_globals);
	return 0;
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

static void extend_batch(struct flow *f, uint32_t batch, uint64_t set, uint32_t at)
{
	struct moment m = { .l = f->l, .at = at };
	const uint32_t *globals = f->globals + (size_t)batch * BATCH;

	for (uint64_t left = set; left; left &= left - 1)
		extend(&m, globals[__builtin_ctzll(left)]);
}

/* Solves for all values, and extends their intervals to where they are live. */
static int flow_through(struct flow *f)
{
	size_t n = (size_t)f->n_blocks + 1;
	int r;

	f->words = calloc(n, sizeof(*f->words));
	f->met = calloc(n, sizeof(*f->met));
	f->changed = calloc(n, sizeof(*f->changed));
	f->is_changed = calloc(n, sizeof(*f->is_changed));
	if (!f->words || !f->met || !f->changed || !f->is_changed)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t batch = 0; batch < f->n_batches; batch++) {
		r = solve(f, batch);
		if (r)
			return r;
		while (f->n_met) {
			uint32_t block = f->met[--f->n_met];
			const struct block_range *b = &f->blocks[block];
			struct words *w = &f->words[block];

			extend_batch(f, batch, w->in, 2 * b->start);
			extend_batch(f, batch, w->out, 2 * (b->end - 1) + 1);
			*w = (struct words){};
		}
	}
	return 0;
}

/* The accesses of the operations themselves. */
static void make_intervals(struct lowering *l)
{
	for (uint32_t i = 0; i < l->n_ops; i++) {
		struct moment before = { .l = l, .at = 2 * i },
			      after = { .l = l, .at = 2 * i + 1 };

		each_operand(l, &l->ops[i], false, extend, &before);
		each_operand(l, &l->ops[i], true, extend, &after);
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
		r = find_before(&f);
	}
	if (!r)
		r = find_globals(&f);
	f.n_batches = (f.n_globals + BATCH - 1) / BATCH;
	if (!r)
		r = find_touches(&f);
	if (r)
		return r;
	make_intervals(l);
	return flow_through(&f);
}
