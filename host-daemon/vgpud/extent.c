/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents: the owner of each piece of a VM's arena
 */

#include <string.h>

#include "vgpud/extent.h"

static uint8_t owner_of(uint32_t channel)
{
	return 1 + channel;
}

/* Return: the number of extents from `first` on with that owner, at most `limit`. */
static uint32_t run_length(
	const struct extent_table *table, uint8_t owner, uint32_t first, uint32_t limit)
{
	uint32_t n = 0;

	while (n < limit && first + n < table->n_extents &&
		table->owners[first + n] == owner)
		n++;
	return n;
}

int extent_find_free(
	const struct extent_table *table, uint32_t n_extents, uint32_t *firstp)
{
	uint32_t n;

	if (!n_extents || n_extents > table->n_extents)
		return EXTENT_E_FULL;
	for (uint32_t first = 0; first <= table->n_extents - n_extents; first += n + 1) {
		n = run_length(table, EXTENT_NOBODY, first, n_extents);
		if (n < n_extents)
			continue;
		*firstp = first;
		return 0;
	}
	return EXTENT_E_FULL;
}

int extent_own(
	struct extent_table *table, uint32_t channel, uint32_t first, uint32_t n_extents)
{
	if (first >= table->n_extents || n_extents > table->n_extents - first)
		return EXTENT_E_NOT_OWNED;
	for (uint32_t i = first; i < first + n_extents; i++)
		if (table->owners[i] != EXTENT_NOBODY &&
			table->owners[i] != owner_of(channel))
			return EXTENT_E_NOT_OWNED;
	memset(table->owners + first, owner_of(channel), n_extents);
	return 0;
}

int extent_take(struct extent_table *table, uint32_t channel, uint32_t n_extents,
	uint32_t *firstp)
{
	int r = extent_find_free(table, n_extents, firstp);

	return r ? r : extent_own(table, channel, *firstp, n_extents);
}

int extent_give(
	struct extent_table *table, uint32_t channel, uint32_t first, uint32_t n_extents)
{
	if (first >= table->n_extents || n_extents > table->n_extents - first)
		return EXTENT_E_NOT_OWNED;
	if (run_length(table, owner_of(channel), first, n_extents) != n_extents)
		return EXTENT_E_NOT_OWNED;
	memset(table->owners + first, EXTENT_NOBODY, n_extents);
	return 0;
}

bool extent_find(const struct extent_table *table, uint32_t channel, uint32_t from,
	uint32_t *firstp, uint32_t *n_extentsp)
{
	for (uint32_t first = from; first < table->n_extents; first++) {
		if (table->owners[first] != owner_of(channel))
			continue;
		*firstp = first;
		*n_extentsp = run_length(table, owner_of(channel), first, UINT32_MAX);
		return true;
	}
	return false;
}

bool extent_fits(const struct extent_table *table, uint32_t n_extents,
	const bool is_leaving[VGPU_CHANNELS_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_extents && n < n_extents; i++) {
		const uint8_t owner = table->owners[i];

		if (owner == EXTENT_NOBODY || (is_leaving && owner <= VGPU_CHANNELS_MAX &&
						      is_leaving[owner - 1]))
			n++;
		else
			n = 0;
	}
	return n >= n_extents;
}

uint32_t extent_count(const struct extent_table *table, uint32_t channel)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_extents; i++)
		n += table->owners[i] == owner_of(channel);
	return n;
}
