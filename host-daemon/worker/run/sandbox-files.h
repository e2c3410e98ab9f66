/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox files: the files that a worker may open, before and after it has a guest
 */

#include "driver/driver.h"
#include "worker/run/landlock.h"

/*
 * Sets no_new_privs, and denies all files except those that NVIDIA's driver reads, and
 * its devices. The process must have one thread; threads of drivers inherit the
 * restriction.
 *
 * @landlock:	must exist as long as the driver is used
 *
 * Return: 0, also if the kernel has no Landlock, or -errno.
 */
int sandbox_files_limit(struct landlock *landlock, const struct driver_options *options);

/* Denies all files to this thread and those that it starts. Return: as above. */
int sandbox_files_end(struct landlock *landlock);
