/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: which pages of a window are free
 *
 * Giving back must not fail, so the array always has room for one span more than
 * there are taken blocks: k taken blocks split the window into k + 1 spans at most.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "mem/spans.h"

static int spans_reserve(struct spans *spans, size_t n_entries)
{
	size_t n = spans->n_allocated ? spans->n_allocated : 16;
	struct span *entries;

	while (n < n_entries)
		n *= 2;
	if (n == spans->n_allocated)
		return 0;
	entries = reallocarray(spans->entries, n, sizeof(*entries));
	if (!entries)
		return vgpu_error_origin(-ENOMEM);
	spans->entries = entries;
	spans->n_allocated = n;
	return 0;
}

int spans_init(struct spans *spans, uint64_t n_pages)
{
	int r;

	*spans = (struct spans){ 0 };
	r = spans_reserve(spans, 2);
	if (r)
		return vgpu_error_trace(r);
	spans->entries[0] = (struct span){ .first = 0, .n_pages = n_pages };
	spans->n_entries = 1;
	return 0;
}

void spans_deinit(struct spans *spans)
{
	free(spans->entries);
	*spans = (struct spans){ 0 };
}

static void spans_delete(struct spans *spans, size_t at)
{
	spans->n_entries--;
	memmove(&spans->entries[at], &spans->entries[at + 1],
		(spans->n_entries - at) * sizeof(*spans->entries));
}

/* Makes room for the span that taking one more block can create. */
static int spans_reserve_block(struct spans *spans)
{
	int r;

	r = spans_reserve(spans, spans->n_taken + 2);
	if (r)
		return vgpu_error_trace(r);
	spans->n_taken++;
	return 0;
}

static void spans_insert(struct spans *spans, size_t at, struct span span)
{
	assert(spans->n_entries < spans->n_allocated);
	memmove(&spans->entries[at + 1], &spans->entries[at],
		(spans->n_entries - at) * sizeof(*spans->entries));
	spans->entries[at] = span;
	spans->n_entries++;
}

bool spans_find(const struct spans *spans, uint64_t n_pages, uint64_t align,
	uint64_t phase, uint64_t *firstp)
{
	for (size_t i = 0; i < spans->n_entries; i++) {
		const struct span *span = &spans->entries[i];
		uint64_t skip = (align - (span->first + phase) % align) % align;

		if (span->n_pages < n_pages || span->n_pages - n_pages < skip)
			continue;
		*firstp = span->first + skip;
		return true;
	}
	return false;
}

int spans_take_at(struct spans *spans, uint64_t first, uint64_t n_pages)
{
	uint64_t n_before, n_behind;
	struct span *span;
	size_t at = 0;
	int r;

	while (at < spans->n_entries &&
		spans->entries[at].first + spans->entries[at].n_pages <= first)
		at++;
	span = &spans->entries[at];
	if (at == spans->n_entries || span->first > first ||
		span->n_pages - (first - span->first) < n_pages)
		return -EBUSY;
	r = spans_reserve_block(spans);
	if (r)
		return vgpu_error_trace(r);

	span = &spans->entries[at];
	n_before = first - span->first;
	n_behind = span->n_pages - n_before - n_pages;
	span->n_pages = n_before;
	if (n_behind)
		spans_insert(spans, at + 1, (struct span){ first + n_pages, n_behind });
	if (!n_before)
		spans_delete(spans, at);
	return 0;
}

int spans_take(struct spans *spans, uint64_t n_pages, uint64_t *firstp)
{
	if (!spans_find(spans, n_pages, 1, 0, firstp))
		return -ENOMEM;
	return spans_take_at(spans, *firstp, n_pages);
}

void spans_give(struct spans *spans, uint64_t first, uint64_t n_pages)
{
	size_t at = 0;
	struct span *before, *after;

	while (at < spans->n_entries && spans->entries[at].first < first)
		at++;
	before = at ? &spans->entries[at - 1] : NULL;
	after = at < spans->n_entries ? &spans->entries[at] : NULL;
	spans->n_taken--;

	if (before && before->first + before->n_pages == first) {
		before->n_pages += n_pages;
		if (after && first + n_pages == after->first) {
			before->n_pages += after->n_pages;
			spans_delete(spans, at);
		}
	} else if (after && first + n_pages == after->first) {
		after->first = first;
		after->n_pages += n_pages;
	} else {
		spans_insert(spans, at, (struct span){ first, n_pages });
	}
}
