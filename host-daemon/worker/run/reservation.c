/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservation: candidate address windows, kept free until the guest has chosen one
 */

#include <stdbool.h>
#include <sys/mman.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/run/reservation.h"

static bool reserve(const struct vgpu_window *window)
{
	void *wanted = (void *)(uintptr_t)window->base;
	void *got = mmap(wanted, window->size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return false;
	if (got == wanted)
		return true;
	munmap(got, window->size);
	return false;
}

int reservation_make(struct reservation *reservation)
{
	static const struct vgpu_window candidates[] = VGPU_WINDOW_CANDIDATES;
	uint32_t i;

	reservation->n_windows = 0;
	for (i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
		if (reserve(&candidates[i]))
			reservation->windows[reservation->n_windows++] = candidates[i];
		else
			vgpu_log_info("the window at %#llx is not free in the worker",
				(unsigned long long)candidates[i].base);
	}
	return reservation->n_windows ? 0 : vgpu_error_origin(-ENOMEM);
}

static void give_back(uint64_t base, uint64_t end)
{
	if (base < end)
		munmap((void *)(uintptr_t)base, end - base);
}

int reservation_settle(struct reservation *reservation, const struct vgpu_window *window)
{
	uint64_t end = window->base + window->size;
	bool found = false;
	uint32_t i;

	for (i = 0; i < reservation->n_windows && !found; i++)
		found = vgpu_range_within(window->base, window->size,
			reservation->windows[i].base, reservation->windows[i].size);
	if (!found && !reserve(window))
		return RESERVATION_E_TAKEN;
	for (i = 0; i < reservation->n_windows; i++) {
		const struct vgpu_window *held = &reservation->windows[i];
		uint64_t held_end = held->base + held->size;

		if (end <= held->base || held_end <= window->base) {
			give_back(held->base, held_end);
			continue;
		}
		give_back(held->base, window->base);
		give_back(end, held_end);
	}
	reservation->n_windows = 0;
	return 0;
}
