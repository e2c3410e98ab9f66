/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Spans: which pages of a window are free
 *
 * Free pages as a sorted array of spans that never touch each other. Taking is
 * first fit by address, so the used part of a window stays low.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t first;
	uint64_t n_pages;
};

struct spans {
	struct span *entries;
	size_t n_entries;
	size_t n_allocated;
	size_t n_taken; /* blocks out, for the room that giving back may need */
};

/* All pages in [0, n_pages) are free. Return: 0 or -ENOMEM. */
int spans_init(struct spans *spans, uint64_t n_pages);
void spans_deinit(struct spans *spans);

/* Return: 0, -ENOMEM where there is no span of that length. */
int spans_take(struct spans *spans, uint64_t n_pages, uint64_t *firstp);

/*
 * Finds free pages whose first one is at a multiple of `align` when `phase` is added.
 * Return: whether there are any.
 */
bool spans_find(const struct spans *spans, uint64_t n_pages, uint64_t align,
	uint64_t phase, uint64_t *firstp);

/* Return: 0, -ENOMEM, -EBUSY unless all of these pages are free. */
int spans_take_at(struct spans *spans, uint64_t first, uint64_t n_pages);

/* Cannot fail: spans_take() has made room for every span that taking can create. */
void spans_give(struct spans *spans, uint64_t first, uint64_t n_pages);
