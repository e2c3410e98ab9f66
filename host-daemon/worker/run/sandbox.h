/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox: what a worker gives up before it meets a guest
 */

#include <stdbool.h>
#include <sys/types.h>

#include "driver/driver.h"

enum sandbox_profile {
	SANDBOX_STRICT, /* our drivers: no file is opened, nothing is executable */
	SANDBOX_DRIVER, /* NVIDIA's: its device files and its own code, no more */
};

struct sandbox_options {
	bool off;
	uid_t uid;	   /* 0: as vgpud, because vgpud is not root */
	bool unprivileged; /* and NVIDIA's driver all the same */
};

/* The profile under which a driver works. */
enum sandbox_profile sandbox_profile(const struct driver *driver);

/*
 * Gives up what no driver needs, before one is loaded, in a process of one thread.
 *
 * Return: 0 or -errno.
 */
int sandbox_begin(
	const struct sandbox_options *options, const struct driver_options *driver);

/*
 * Irrevocably gives up all that the driver does not need any more, in all threads.
 *
 * Return: 0 or -errno; after an error the worker must not serve a guest.
 */
int sandbox_enter(const struct sandbox_options *options, enum sandbox_profile profile);
