/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves: the values that a call of a subroutine keeps for its caller
 *
 * A subroutine's values share slots with those of all other code. So each value that is
 * live before and after a call is saved by it, whatever the callee.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"

struct saves {
	struct lowering *l;
	struct code_save *saves;
	uint32_t n;
	uint32_t capacity;
	uint64_t work;
};

static void saves_deinit(struct saves *s)
{
	free(s->saves);
}

static int add_class(struct saves *s, struct code_call *call, uint32_t op, uint32_t first,
	uint32_t end, enum value_class class)
{
	static const uint16_t sizes[] = {
		[CLASS_32] = 4, [CLASS_64] = 8, [CLASS_PRED] = 1
	};
	struct lowering *l = s->l;

	for (uint32_t i = first; i < end; i++) {
		const struct value *v = &l->values[i];

		if (v->class != class || v->start == UINT32_MAX || v->start > 2 * op ||
			v->end < 2 * op + 2 ||
			(v->kind != VALUE_REGISTER && v->kind != VALUE_TEMPORARY))
			continue;
		if (s->n >= SAVES_MAX || lower_reserve(&s->saves, &s->capacity, s->n + 1,
						 sizeof(*s->saves)))
			return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
				"too much to be saved by calls");
		s->saves[s->n++] = (struct code_save){ (uint16_t)v->slot, sizes[class] };
		call->saves_size += sizes[class];
	}
	return 0;
}

static int add_calls(struct saves *s, uint32_t first_op, uint32_t end_op,
	uint32_t first_value, uint32_t end_value)
{
	struct lowering *l = s->l;

	for (uint32_t i = first_op; i < end_op; i++) {
		struct code_call *call;
		int r = 0;

		if (l->ops[i].op != OP_CALL && l->ops[i].op != OP_CALL_POINTER)
			continue;
		s->work += end_value - first_value;
		if (s->work > SAVES_WORK_MAX)
			return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
				"too many calls in too large functions");
		call = &l->calls[l->ops[i].imm];
		call->first_save = s->n;
		r = add_class(s, call, i, first_value, end_value, CLASS_64);
		if (!r)
			r = add_class(s, call, i, first_value, end_value, CLASS_32);
		if (!r)
			r = add_class(s, call, i, first_value, end_value, CLASS_PRED);
		if (r)
			return r;
		call->n_saves = s->n - call->first_save;
		call->saves_size = (call->saves_size + 7) & ~7u;
	}
	return 0;
}

static int copy(struct lowering *l, enum lower_table table, void *basep, const void *from,
	uint32_t n, size_t size)
{
	void *to;
	int r = lower_room(l, table, n, basep, &to);

	if (!r && n)
		memcpy(to, from, n * size);
	return r;
}

static int copy_subroutines(struct lowering *l, struct softgpu_kernel *kernel)
{
	uint32_t n = l->n_subroutines - l->first_subroutine;
	struct code_subroutine *to;
	void *base, *room;
	int r = lower_room(l, TABLE_SUBROUTINES, n, &base, &room);

	if (r)
		return r;
	kernel->subroutines = base;
	to = room;
	for (uint32_t i = 0; i < n; i++) {
		const struct subroutine *sub = &l->subroutines[l->first_subroutine + i];

		to[i] = (struct code_subroutine){ l->base[TABLE_CODE] + sub->first_op,
			sub->frame_size };
	}
	return 0;
}

/* Numbers in calls count from the beginning of the tables. */
static int copy_calls(struct saves *s, struct softgpu_kernel *kernel)
{
	struct lowering *l = s->l;
	int r;

	for (uint32_t i = 0; i < l->n_calls; i++) {
		l->calls[i].first_move += l->base[TABLE_MOVES];
		l->calls[i].first_candidate += l->base[TABLE_CANDIDATES];
		l->calls[i].first_save += l->base[TABLE_SAVES];
	}
	r = copy(l, TABLE_CALLS, &kernel->calls, l->calls, l->n_calls, sizeof(*l->calls));
	if (!r)
		r = copy(l, TABLE_MOVES, &kernel->moves, l->moves, l->n_moves,
			sizeof(*l->moves));
	if (!r)
		r = copy(l, TABLE_CANDIDATES, &kernel->candidates, l->candidates,
			l->n_candidates, sizeof(*l->candidates));
	if (r)
		return r;
	return copy(l, TABLE_SAVES, &kernel->saves, s->saves, s->n, sizeof(*s->saves));
}

int lower_saves(struct lowering *l, struct softgpu_kernel *kernel)
{
	__attribute__((__cleanup__(saves_deinit))) struct saves s = { .l = l };
	int r = 0;

	kernel->entry = l->base[TABLE_CODE] + l->entry;
	/* A call through a pointer counts even if there is no candidate. */
	if (!l->n_calls && !l->common)
		return 0;
	for (uint32_t i = l->first_subroutine; i < l->n_subroutines && !r; i++) {
		const struct subroutine *sub = &l->subroutines[i];

		r = add_calls(
			&s, sub->first_op, sub->end_op, sub->first_value, sub->end_value);
	}
	if (!r)
		r = add_calls(&s, l->entry, l->n_ops, 1, l->n_entry_values);
	if (!r)
		r = copy_subroutines(l, kernel);
	return r ? r : copy_calls(&s, kernel);
}
