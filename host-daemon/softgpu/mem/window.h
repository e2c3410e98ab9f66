/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Window: a range of addresses with a map of the pages that kernels may access
 *
 * A map has one byte for each 64 KiB page (exec/engine.h says what is in it). The
 * part of the device window below a high-water mark is mapped readable and writable
 * and stays so: the map alone says what a kernel may touch, so a kernel that races
 * with a free hits zeros, never a signal. Freed pages are handed back to the system.
 */

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_MAPS_MAX 8u

struct window {
	uint64_t base;
	uint64_t size; /* 0: there is none */
	/* One for each device whose kernels do not access all pages alike. */
	uint8_t *maps[WINDOW_MAPS_MAX];
	uint32_t n_maps;
	/* See struct softgpu_window; NULL: it is not kept. */
	uint8_t *unwritten;
	uint64_t committed; /* bytes from base that are mapped */
	void *reservation;  /* the reservation made here, or NULL */
	uint64_t reservation_size;
};

/* Takes an address range that the caller has reserved. Return: 0 or -ENOMEM. */
int window_init(struct window *window, uint64_t base, uint64_t size, uint32_t n_maps);

/* Reserves a range of that size anywhere. Return: 0 or -ENOMEM. */
int window_init_reserve(struct window *window, uint64_t size, uint32_t n_maps);
void window_deinit(struct window *window);

/* Keeps from now on which memory nothing has written. Return: 0 or -ENOMEM. */
int window_watch(struct window *window);

/* Memory is allocated that nothing has written; or is none of which that matters. No
 * effect in a window that is not watched. */
void window_set_unwritten(struct window *window, uint64_t address, uint64_t size);
void window_set_written(struct window *window, uint64_t address, uint64_t size);

/* Makes [base, base + end) memory. Return: 0 or -ENOMEM. */
int window_commit(struct window *window, uint64_t end);

/* Return: whether the address is in the window. */
static inline bool window_has(const struct window *window, uint64_t address)
{
	return address - window->base < window->size;
}

/* Kernels of all devices may access, from now on or no longer, every page with a byte in
 * there. */
void window_allow(struct window *window, uint64_t address, uint64_t size);
void window_forbid(struct window *window, uint64_t address, uint64_t size);

/* The same for kernels of one device; access is SOFTGPU_READ and SOFTGPU_WRITE, or 0. */
void window_set_access(struct window *window, uint32_t map, uint64_t address,
	uint64_t size, uint8_t access);

/*
 * Puts a piece of a file in the place of whole pages below the high-water mark, or
 * ordinary memory, which reads as zeros, in the place of files. Kernels may not access
 * them.
 *
 * Return: 0 or -ENOMEM; then the pages are what they were.
 */
int window_map(
	struct window *window, uint64_t address, uint64_t size, int fd, uint64_t offset);
int window_unmap(struct window *window, uint64_t address, uint64_t size);

/* Gives memory of whole pages back to the system; it reads as zeros afterwards. */
void window_drop(struct window *window, uint64_t address, uint64_t size);
