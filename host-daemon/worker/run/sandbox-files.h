/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox files: which files a worker may open, before a guest and after
 */

#include "driver/driver.h"
#include "worker/run/landlock.h"

/*
 * Sets no_new_privs, and keeps only the files that NVIDIA's driver reads, and its
 * devices. For a process of one thread, whose later threads inherit it: drivers start
 * threads of their own.
 *
 * @landlock:	to be kept for as long as the driver is used
 *
 * Return: 0, also if the kernel has no Landlock, or -errno.
 */
int sandbox_files_limit(struct landlock *landlock, const struct driver_options *options);

/* Leaves none to this thread and those it starts. Returns: as above. */
int sandbox_files_end(struct landlock *landlock);
