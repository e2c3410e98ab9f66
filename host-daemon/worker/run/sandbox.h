/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox: the rights that a worker gives up before it serves a guest
 */

#include <stdbool.h>
#include <sys/types.h>

#include "driver/driver.h"

enum sandbox_profile {
	SANDBOX_STRICT, /* softgpu, null driver: no files, no new code */
	SANDBOX_DRIVER, /* NVIDIA's driver: its device files and code only */
};

struct sandbox_options {
	bool off;
	uid_t uid;	   /* 0: as vgpud, because vgpud is not root */
	bool unprivileged; /* use NVIDIA's driver nevertheless */
	bool outlives;	   /* the process does not end with its parent */
};

/* The profile for a driver. */
enum sandbox_profile sandbox_profile(const struct driver *driver);

/*
 * Gives up rights that no driver needs. Call it before a driver is loaded, in a process
 * of one thread.
 *
 * Return: 0 or -errno.
 */
int sandbox_begin(
	const struct sandbox_options *options, const struct driver_options *driver);

/*
 * Irrevocably gives up all rights that the initialised driver does not need, in all
 * threads.
 *
 * Return: 0 or -errno; after an error the worker must not serve a guest.
 */
int sandbox_enter(const struct sandbox_options *options, enum sandbox_profile profile);
