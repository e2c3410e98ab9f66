/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reservation: candidate address windows, kept free until the guest has chosen one
 *
 * Made before the driver is loaded, so that nothing else is mapped there. When the window
 * is known, the others are released.
 */

#include "vgpu/hello.h"

#define RESERVATION_MAX 4u

enum {
	_RESERVATION_E_SUCCESS,

	RESERVATION_E_TAKEN, /* something else is mapped there */
};

struct reservation {
	struct vgpu_window windows[RESERVATION_MAX]; /* size 0: could not be reserved */
	uint32_t n_windows;
};

/* Return: 0, or -ENOMEM if no window could be reserved. */
int reservation_make(struct reservation *reservation);

/*
 * Keeps one window and releases the others. It may be smaller than a candidate, or
 * another one that is free now.
 *
 * Return: 0, or RESERVATION_E_TAKEN: nothing was released.
 */
int reservation_settle(struct reservation *reservation, const struct vgpu_window *window);
