/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Extents: the owner of each piece of a VM's arena
 *
 * The table is private to the host; no worker and no guest ever writes it. The owner of a
 * free extent is 0, else it is 1 + the channel.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

#define EXTENT_NOBODY 0

enum {
	_EXTENT_E_SUCCESS,
	EXTENT_E_FULL,	    /* no run of free extents is that long */
	EXTENT_E_NOT_OWNED, /* not all of the run belongs to the channel */
};

struct extent_table {
	uint8_t *owners;
	uint32_t n_extents;
};

/* Finds the first free run of that length. Return: 0 or EXTENT_E_FULL. */
int extent_find_free(
	const struct extent_table *table, uint32_t n_extents, uint32_t *firstp);

/* Assigns a run to the channel; extents that it owns already are skipped. Return: 0, or
 * EXTENT_E_NOT_OWNED without any change if another channel owns a part. */
int extent_own(
	struct extent_table *table, uint32_t channel, uint32_t first, uint32_t n_extents);

/* Takes the first free run of that length. Return: 0 or EXTENT_E_FULL. */
int extent_take(struct extent_table *table, uint32_t channel, uint32_t n_extents,
	uint32_t *firstp);

/* Releases a run. Return: 0, or EXTENT_E_NOT_OWNED without any change. */
int extent_give(
	struct extent_table *table, uint32_t channel, uint32_t first, uint32_t n_extents);

/* Finds the channel's first run at or after `from`. Return: false if there is none. */
bool extent_find(const struct extent_table *table, uint32_t channel, uint32_t from,
	uint32_t *firstp, uint32_t *n_extentsp);

/*
 * Whether there is a free run of that length; extents of channels for which is_leaving is
 * set count as free, if it is not NULL.
 */
bool extent_fits(const struct extent_table *table, uint32_t n_extents,
	const bool is_leaving[VGPU_CHANNELS_MAX]);

uint32_t extent_count(const struct extent_table *table, uint32_t channel);
