/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window: a range of addresses with a map of the pages that kernels may access
 */

#include <assert.h>
#include <sys/mman.h>

#include "vgpu/error.h"

#include "exec/bits.h"
#include "mem/window.h"

/* The high-water mark moves in steps of this: few system calls, one mapping. */
#define WINDOW_COMMIT_STEP (64ull << 20)

int window_init(struct window *window, uint64_t base, uint64_t size, uint32_t n_maps)
{
	*window = (struct window){ .base = base, .size = size };
	for (uint32_t i = 0; i < n_maps; i++) {
		/* Anonymous memory that is never touched costs nothing: maps are
		 * sparse. */
		void *map = mmap(NULL, size / SOFTGPU_PAGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (map == MAP_FAILED) {
			window_deinit(window);
			return vgpu_error_origin(-ENOMEM);
		}
		window->maps[window->n_maps++] = map;
	}
	return 0;
}

int window_init_reserve(struct window *window, uint64_t size, uint32_t n_maps)
{
	uint64_t whole = size + SOFTGPU_PAGE_SIZE, base;
	void *at;
	int r;

	at = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);
	if (at == MAP_FAILED)
		return vgpu_error_origin(-ENOMEM);
	base = ((uint64_t)(uintptr_t)at + SOFTGPU_PAGE_SIZE - 1) &
	       ~(SOFTGPU_PAGE_SIZE - 1);
	r = window_init(window, base, size, n_maps);
	if (r) {
		munmap(at, whole);
		return vgpu_error_trace(r);
	}
	window->reservation = at;
	window->reservation_size = whole;
	return 0;
}

void window_deinit(struct window *window)
{
	for (uint32_t i = 0; i < window->n_maps; i++)
		munmap(window->maps[i], window->size / SOFTGPU_PAGE_SIZE);
	if (window->unwritten)
		munmap(window->unwritten, window->size / 8);
	if (window->reservation)
		munmap(window->reservation, window->reservation_size);
	else if (window->committed)
		mmap((void *)(uintptr_t)window->base, window->committed, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	*window = (struct window){ 0 };
}

int window_watch(struct window *window)
{
	void *bits;

	if (!window->size)
		return 0;
	/* Sparse, as the maps of pages are. */
	bits = mmap(NULL, window->size / 8, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bits == MAP_FAILED)
		return vgpu_error_origin(-ENOMEM);
	window->unwritten = bits;
	return 0;
}

void window_set_unwritten(struct window *window, uint64_t address, uint64_t size)
{
	if (window->unwritten)
		softgpu_bits_set(window->unwritten, address - window->base, size, true);
}

void window_set_written(struct window *window, uint64_t address, uint64_t size)
{
	uint64_t first = address - window->base, end = first + size;
	/* Bits of whole pages are given back to the system. */
	uint64_t unit = 8ull * 4096, from = (first + unit - 1) / unit * unit;
	uint64_t to = end / unit * unit;

	if (!window->unwritten)
		return;
	if (from >= to) {
		softgpu_bits_set(window->unwritten, first, size, false);
		return;
	}
	softgpu_bits_set(window->unwritten, first, from - first, false);
	madvise(window->unwritten + from / 8, (to - from) / 8, MADV_DONTNEED);
	softgpu_bits_set(window->unwritten, to, end - to, false);
}

static int map_ordinary(uint64_t address, uint64_t size)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	if (mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE, flags, -1,
		    0) == MAP_FAILED)
		return vgpu_error_origin(-ENOMEM);
	return 0;
}

int window_commit(struct window *window, uint64_t end)
{
	uint64_t step = WINDOW_COMMIT_STEP;
	int r;

	if (end <= window->committed)
		return 0;
	end = (end + step - 1) / step * step;
	if (end > window->size)
		end = window->size;
	r = map_ordinary(window->base + window->committed, end - window->committed);
	if (r)
		return vgpu_error_trace(r);
	window->committed = end;
	return 0;
}

/* Kernels read the map while it changes; softgpu_window_allows() is the reader. */
void window_set_access(struct window *window, uint32_t map, uint64_t address,
	uint64_t size, uint8_t access)
{
	uint64_t first = (address - window->base) >> SOFTGPU_PAGE_SHIFT;
	uint64_t last = (address + size - 1 - window->base) >> SOFTGPU_PAGE_SHIFT;

	for (uint64_t page = first; page <= last; page++)
		__atomic_store_n(&window->maps[map][page], access, __ATOMIC_RELAXED);
}

static void window_set(
	struct window *window, uint64_t address, uint64_t size, uint8_t access)
{
	for (uint32_t i = 0; i < window->n_maps; i++)
		window_set_access(window, i, address, size, access);
}

void window_allow(struct window *window, uint64_t address, uint64_t size)
{
	window_set(window, address, size, SOFTGPU_READ | SOFTGPU_WRITE);
}

void window_forbid(struct window *window, uint64_t address, uint64_t size)
{
	window_set(window, address, size, 0);
}

int window_map(
	struct window *window, uint64_t address, uint64_t size, int fd, uint64_t offset)
{
	assert(window_has(window, address) &&
		address + size <= window->base + window->committed);
	if (mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
		return vgpu_error_origin(-ENOMEM);
	return 0;
}

int window_unmap(struct window *window, uint64_t address, uint64_t size)
{
	assert(window_has(window, address) &&
		address + size <= window->base + window->committed);
	return map_ordinary(address, size);
}

void window_drop(struct window *window, uint64_t address, uint64_t size)
{
	madvise((void *)(uintptr_t)address, size, MADV_DONTNEED);
}
