/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: cuMemAdvise settings of managed memory, by page
 *
 * A list of ranges in address order, which never overlap. A change first splits the
 * ranges at both of its ends and fills gaps with ranges that have no advice, so that it
 * then applies to whole ranges. Neighbours that have become equal are not merged:
 * programs advise a handful of times.
 */

#include <stdlib.h>

#include "memory/advice.h"
#include "wire/lock.h"

#define PAGE_SIZE 4096ull

struct stretch {
	uint64_t start;
	uint64_t end;
	struct shim_advice advice;
	struct stretch *next;
};

static struct {
	struct shim_lock lock;
	struct stretch *first;
} stretches;

static const struct shim_advice nothing = {
	.preferred = { .type = CU_MEM_LOCATION_TYPE_INVALID },
	.prefetched = { .type = CU_MEM_LOCATION_TYPE_INVALID },
};

static uint64_t first_page(uint64_t address)
{
	return address & ~(PAGE_SIZE - 1);
}

static uint64_t behind_last_page(uint64_t address, uint64_t size)
{
	return (address + size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
}

static struct stretch *stretch_new(uint64_t start, uint64_t end,
	const struct shim_advice *advice, struct stretch **linkp)
{
	struct stretch *stretch = malloc(sizeof(*stretch));

	if (!stretch)
		return NULL;
	*stretch = (struct stretch){ start, end, *advice, *linkp };
	*linkp = stretch;
	return stretch;
}

/* Lets a stretch begin at `address` if one holds it. Return: false without memory. */
static bool cut(uint64_t address)
{
	for (struct stretch *s = stretches.first; s; s = s->next) {
		if (s->start >= address || s->end <= address)
			continue;
		if (!stretch_new(address, s->end, &s->advice, &s->next))
			return false;
		s->end = address;
	}
	return true;
}

/* Makes [start, end) stretches without gaps between. Return: false without memory. */
static bool fill_gaps(uint64_t start, uint64_t end)
{
	struct stretch **linkp = &stretches.first;

	while (start < end) {
		struct stretch *s = *linkp;

		if (s && s->end <= start) {
			linkp = &s->next;
			continue;
		}
		if (!s || s->start > start) {
			uint64_t until = s && s->start < end ? s->start : end;

			s = stretch_new(start, until, &nothing, linkp);
			if (!s)
				return false;
		}
		start = s->end;
		linkp = &s->next;
	}
	return true;
}

bool shim_advice_change(
	uint64_t address, uint64_t size, shim_advice_fn change, const void *argument)
{
	uint64_t start = first_page(address), end = behind_last_page(address, size);

	SHIM_LOCKED(&stretches.lock);
	if (!cut(start) || !cut(end) || !fill_gaps(start, end))
		return false;
	for (struct stretch *s = stretches.first; s; s = s->next)
		if (s->start >= start && s->end <= end)
			change(&s->advice, argument);
	return true;
}

void shim_advice_look(
	uint64_t address, uint64_t size, shim_advice_seen_fn seen, void *data)
{
	uint64_t start = first_page(address), end = behind_last_page(address, size);

	SHIM_LOCKED(&stretches.lock);
	for (struct stretch *s = stretches.first; s && start < end; s = s->next) {
		if (s->end <= start)
			continue;
		if (s->start >= end)
			break;
		if (s->start > start)
			seen(&nothing, data);
		seen(&s->advice, data);
		start = s->end;
	}
	if (start < end)
		seen(&nothing, data);
}

void shim_advice_forget(uint64_t address, uint64_t size)
{
	uint64_t start = first_page(address), end = behind_last_page(address, size);
	struct stretch **linkp = &stretches.first;

	SHIM_LOCKED(&stretches.lock);
	/* Without memory for a cut, a stretch that reaches beyond stays. */
	cut(start);
	cut(end);
	while (*linkp) {
		struct stretch *s = *linkp;

		if (s->start < start || s->end > end) {
			linkp = &s->next;
			continue;
		}
		*linkp = s->next;
		free(s);
	}
}
