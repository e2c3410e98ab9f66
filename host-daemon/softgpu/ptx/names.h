/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Symbol table
 *
 * Maps a name within a space (an arbitrary number: kind of name, or scope) to a
 * value. The newest of equal names is found; entries are removed newest first,
 * which is how scopes end. Names are borrowed: they live as long as the table.
 * The hash is keyed by a random number, so that a text cannot be made to collide.
 */

#include <stdbool.h>
#include <stdint.h>

struct ptx_names;

struct ptx_name {
	const char *text;
	uint32_t size;
	uint32_t space;
	uint32_t kind;	/* the user's */
	uint32_t index; /* the user's */
	uint32_t count; /* the user's */
	uint32_t type;	/* the user's */

	uint32_t next; /* the table's own: older entry of the same bucket */
	uint32_t bucket;
};

struct ptx_names *ptx_names_new(void);
struct ptx_names *ptx_names_free(struct ptx_names *names);

/* Adds a copy of *name. Returns: 0 or -ENOMEM. */
int ptx_names_add(struct ptx_names *names, const struct ptx_name *name);

/* Returns: position + 1 of the newest entry of that name, 0: none. */
uint32_t ptx_names_find(
	const struct ptx_names *names, const char *text, uint32_t size, uint32_t space);

/* Returns: position + 1 of the next older entry of the same name, 0: none. */
uint32_t ptx_names_find_older(const struct ptx_names *names, uint32_t position);

/* Valid until the next ptx_names_add(). */
struct ptx_name *ptx_names_at(const struct ptx_names *names, uint32_t position);

uint32_t ptx_names_count(const struct ptx_names *names);

/* Removes the newest entries until n are left. */
void ptx_names_cut(struct ptx_names *names, uint32_t n);

static inline void ptx_names_freep(struct ptx_names **namesp)
{
	ptx_names_free(*namesp);
}
