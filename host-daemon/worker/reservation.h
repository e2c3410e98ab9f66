/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reservation: the address windows kept free until the guest has chosen one
 *
 * Made before the driver is loaded, so that nothing else lies there. When the
 * window is known, the others are given back.
 */

#include "vgpu/hello.h"

#define RESERVATION_MAX 4u

struct reservation {
	struct vgpu_window windows[RESERVATION_MAX]; /* size 0: was not to be had */
	uint32_t n_windows;
};

/* Return: 0, or -ENOMEM where not one window could be had. */
int reservation_make(struct reservation *reservation);

/*
 * Keeps one window and gives the others back. It may be smaller than a candidate,
 * or another one that is free now.
 *
 * Return: 0, or -EADDRINUSE: nothing was given back.
 */
int reservation_settle(struct reservation *reservation, const struct vgpu_window *window);
