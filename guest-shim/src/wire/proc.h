/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Proc: what /proc tells of a process
 */

#include <stdbool.h>
#include <stdint.h>

struct shim_proc_stat {
	char state;
	uint64_t n_threads;
	uint64_t start_time; /* since boot, in clock ticks */
};

/* Returns: false if it cannot be read; all zeroes then. */
bool shim_proc_read_stat(uint32_t pid, struct shim_proc_stat *stat);

/* Returns: the number of this process's pid namespace, or 0. */
uint64_t shim_proc_pid_namespace(void);

/* The pid of a process in its innermost namespace. Returns: 0 if it cannot be read. */
uint32_t shim_proc_inner_pid(uint32_t pid);
