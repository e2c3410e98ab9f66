/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Table: pointers by the index of a handle
 *
 * Two levels of pages, allocated when first needed and never freed. Readers take no lock;
 * writers hold one of their own.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "vgpu/handle.h"

#define SHIM_TABLE_PAGE_BITS 10
#define SHIM_TABLE_PAGE (1u << SHIM_TABLE_PAGE_BITS)
#define SHIM_TABLE_PAGES ((VGPU_HANDLE_INDEX_MAX + 1) / SHIM_TABLE_PAGE)

struct shim_table {
	void **pages[SHIM_TABLE_PAGES];
};

static inline void *shim_table_get(const struct shim_table *table, uint32_t index)
{
	void **page = __atomic_load_n(
		&table->pages[index >> SHIM_TABLE_PAGE_BITS], __ATOMIC_ACQUIRE);

	return page ? __atomic_load_n(&page[index % SHIM_TABLE_PAGE], __ATOMIC_ACQUIRE)
		    : NULL;
}

/* Returns: false without memory. */
static inline bool shim_table_set(struct shim_table *table, uint32_t index, void *entry)
{
	void **page = table->pages[index >> SHIM_TABLE_PAGE_BITS];

	if (!page) {
		page = calloc(SHIM_TABLE_PAGE, sizeof(*page));
		if (!page)
			return false;
		__atomic_store_n(&table->pages[index >> SHIM_TABLE_PAGE_BITS], page,
			__ATOMIC_RELEASE);
	}
	__atomic_store_n(&page[index % SHIM_TABLE_PAGE], entry, __ATOMIC_RELEASE);
	return true;
}

static inline void shim_table_each(const struct shim_table *table,
	void (*visit)(void *entry, void *data), void *data)
{
	for (uint32_t i = 0; i < SHIM_TABLE_PAGES; i++)
		for (uint32_t j = 0; table->pages[i] && j < SHIM_TABLE_PAGE; j++)
			if (table->pages[i][j])
				visit(table->pages[i][j], data);
}
