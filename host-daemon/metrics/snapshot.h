/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Snapshot: what vgpud tells of all its virtual machines at one time
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/times.h"

/* One machine; the messages are of the snapshot's replies. */
struct snapshot_vm {
	const VgpuCtl__Vm *vm;
	struct times times;
	VgpuCtl__Session **sessions; /* only if processes are wanted */
	size_t n_sessions;
};

struct snapshot {
	bool is_up;	   /* vgpud has answered everything; else all below is empty */
	char release[64];  /* of vgpud */
	uint64_t taken_ns; /* how long that took */
	struct snapshot_vm *vms;
	size_t n_vms;
	VgpuCtl__Reply **replies; /* owned */
	size_t n_replies;
};

/*
 * Asks vgpud, for at most some seconds.
 *
 * @with_processes:	also for the sessions of each machine
 * @is_quiet:		a failure is not printed
 */
void snapshot_take(struct snapshot *snapshot, const char *socket, bool with_processes,
	bool is_quiet);
void snapshot_deinit(struct snapshot *snapshot);
