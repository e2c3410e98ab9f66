/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address window
 *
 * Reserved whole with PROT_NONE and MAP_NORESERVE: that costs one kernel object, no
 * memory. Parts of the shared memory are then mapped over it at their places. A
 * window once agreed with the host is kept until the process ends, so that no other
 * mapping can take an address that a device pointer already has.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "wire/window.h"

static const struct vgpu_window candidates[] = VGPU_WINDOW_CANDIDATES;

unsigned int shim_window_n_candidates(void)
{
	return sizeof(candidates) / sizeof(candidates[0]);
}

static bool is_wanted(unsigned int index)
{
	const char *only = getenv(SHIM_WINDOW_ENV);

	return !only || !*only || strtoul(only, NULL, 10) == index;
}

static int reserve(uint64_t base, uint64_t size)
{
	void *map = mmap((void *)(uintptr_t)base, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	/* Kernels before 4.17 take the address for a hint. */
	if ((uintptr_t)map != base) {
		munmap(map, size);
		return -EEXIST;
	}
	/* The reservation is half a terabyte of empty pages: keep it out of core
	 * dumps. */
	madvise(map, size, MADV_DONTDUMP);
	return 0;
}

int shim_window_reserve(struct shim_window *window, unsigned int index, uint64_t shm_size)
{
	const struct vgpu_window *candidate = &candidates[index];
	uint64_t size = candidate->size, smallest = shm_size + VGPU_WINDOW_DEVICE_MIN;
	int r;

	if (!is_wanted(index))
		return -EBUSY;
	while ((r = reserve(candidate->base, size)) == -ENOMEM) {
		size = size / 2 & ~(uint64_t)(VGPU_EXTENT_SIZE - 1);
		if (size < smallest)
			return vgpu_error_origin(-ENOMEM);
	}
	if (r) {
		vgpu_log_info("window %u at %#llx is taken in this process: %s", index,
			(unsigned long long)candidate->base, strerror(-r));
		return -EBUSY;
	}
	if (size < candidate->size)
		vgpu_log_warning(
			"the address-space limit of this process leaves a window "
			"of %llu MiB instead of %llu: less device memory can be "
			"allocated",
			(unsigned long long)size >> 20,
			(unsigned long long)candidate->size >> 20);
	*window = (struct shim_window){
		.base = candidate->base,
		.size = size,
		.shm_size = shm_size,
	};
	return 0;
}

void shim_window_release(struct shim_window *window)
{
	if (window->size)
		munmap((void *)(uintptr_t)window->base, window->size);
	window->size = 0;
}

/* Neither a forked child nor a core dump touches what the device may write. */
static void hide(void *place, uint64_t size)
{
	madvise(place, size, MADV_DONTFORK);
	madvise(place, size, MADV_DONTDUMP);
}

int shim_window_map(
	const struct shim_window *window, int shm_fd, uint64_t offset, uint64_t size)
{
	void *place = shim_window_pointer(window, offset);

	if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shm_fd,
		    (off_t)offset) == MAP_FAILED)
		return vgpu_error_origin(-errno);
	hide(place, size);
	return 0;
}

int shim_window_map_at(int shm_fd, uint64_t address, uint64_t offset, uint64_t size)
{
	void *place = (void *)(uintptr_t)address;

	if (mmap(place, size, PROT_NONE, MAP_SHARED | MAP_FIXED, shm_fd, (off_t)offset) ==
		MAP_FAILED)
		return vgpu_error_origin(-errno);
	hide(place, size);
	return 0;
}

int shim_window_protect(uint64_t address, uint64_t size, int protection)
{
	if (mprotect((void *)(uintptr_t)address, size, protection))
		return vgpu_error_origin(-errno);
	return 0;
}

void shim_window_unmap_at(uint64_t address, uint64_t size)
{
	void *place = (void *)(uintptr_t)address;

	/* If the kernel lacks memory for that, the pages stay where the program was told
	 * not to look for them. */
	if (mmap(place, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		    0) != MAP_FAILED)
		madvise(place, size, MADV_DONTDUMP);
}
