/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: values that are not live together share a place
 *
 * A linear scan over the intervals. The classes have separate slots, so that values of
 * different widths never overlap. A value that begins where another of its class ends (an
 * operation's result and its last operand) may take its slot at once.
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* A place's number within its class; freed ones are used again, last in first out. */
struct pool {
	uint32_t *free;
	uint32_t n_free;
	uint32_t n;
	uint32_t n_used;
};

struct scan {
	struct pool pools[CLASS_PRED + 1];
	uint32_t *starting; /* lists of values, by moment */
	uint32_t *ending;
	uint32_t *next_start;
	uint32_t *next_end;
};

static void scan_deinit(struct scan *s)
{
	for (unsigned int i = 0; i <= CLASS_PRED; i++)
		free(s->pools[i].free);
	free(s->starting);
	free(s->ending);
	free(s->next_start);
	free(s->next_end);
}

static bool shares(const struct value *v)
{
	return (v->kind == VALUE_REGISTER || v->kind == VALUE_TEMPORARY) &&
	       v->start != UINT32_MAX;
}

static int scan_init(struct scan *s, const struct lowering *l)
{
	size_t n_moments = 2 * (size_t)l->n_ops + 2;

	for (unsigned int i = 0; i <= CLASS_PRED; i++) {
		s->pools[i].free = calloc(l->n_values, sizeof(uint32_t));
		if (!s->pools[i].free)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	s->starting = calloc(n_moments, sizeof(uint32_t));
	s->ending = calloc(n_moments, sizeof(uint32_t));
	s->next_start = calloc(l->n_values, sizeof(uint32_t));
	s->next_end = calloc(l->n_values, sizeof(uint32_t));
	if (!s->starting || !s->ending || !s->next_start || !s->next_end)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 1; i < l->n_values; i++) {
		const struct value *v = &l->values[i];

		if (!shares(v))
			continue;
		s->next_start[i] = s->starting[v->start];
		s->starting[v->start] = i;
		s->next_end[i] = s->ending[v->end];
		s->ending[v->end] = i;
	}
	return 0;
}

static uint32_t take(struct pool *pool)
{
	pool->n_used++;
	return pool->n_free ? pool->free[--pool->n_free] : pool->n++;
}

static void give(struct pool *pool, uint32_t place)
{
	pool->n_used--;
	pool->free[pool->n_free++] = place;
}

static void scan_moment(struct scan *s, struct lowering *l, uint32_t at)
{
	uint32_t live;

	for (uint32_t i = at ? s->ending[at - 1] : 0; i; i = s->next_end[i])
		give(&s->pools[l->values[i].class], l->values[i].slot);
	for (uint32_t i = s->starting[at]; i; i = s->next_start[i])
		l->values[i].slot = take(&s->pools[l->values[i].class]);
	live = s->pools[CLASS_32].n_used + 2 * s->pools[CLASS_64].n_used;
	if (live > l->n_live_max)
		l->n_live_max = live;
}

/* Turns numbers within the classes into slots: wide values first, then narrow ones. */
static void lay_out(struct scan *s, struct lowering *l)
{
	const struct lower_common *c = l->common;
	uint32_t next = c ? c->n_slots : 0;
	uint32_t first_pred = c && c->n_preds ? c->n_preds : PRED_CARRY + 1;

	for (unsigned int class = CLASS_64; class >= CLASS_32; class --) {
		uint32_t width = class == CLASS_64 ? 2 : 1, first;

		for (uint32_t i = 1; i < l->n_values; i++) {
			struct value *v = &l->values[i];

			if (v->class != class || v->start == UINT32_MAX ||
				(v->kind != VALUE_CONSTANT && v->kind != VALUE_SREG))
				continue;
			v->slot = next;
			next += width;
		}
		first = next;
		next += s->pools[class].n * width;
		for (uint32_t i = 1; i < l->n_values; i++)
			if (l->values[i].class == class && shares(&l->values[i]))
				l->values[i].slot = first + l->values[i].slot * width;
	}
	l->n_slots = next;
	for (uint32_t i = 1; i < l->n_values; i++)
		if (l->values[i].class == CLASS_PRED && shares(&l->values[i]))
			l->values[i].slot += first_pred;
	l->n_preds = first_pred + s->pools[CLASS_PRED].n;
}

int lower_slots(struct lowering *l)
{
	__attribute__((__cleanup__(scan_deinit))) struct scan s = {};
	int r = scan_init(&s, l);

	if (r)
		return r;
	for (uint32_t at = 0; at < 2 * l->n_ops + 2; at++)
		scan_moment(&s, l, at);
	lay_out(&s, l);
	if (l->n_slots > SLOTS_MAX || l->n_preds > PREDS_MAX)
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"needs %u registers at once, more than %u", l->n_slots,
			SLOTS_MAX);
	return 0;
}
