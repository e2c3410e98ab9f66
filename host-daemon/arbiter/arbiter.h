/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arbiter: a thread that shares the device's time among the workers of all VMs
 *
 * It maps the allowance of each worker with a session (softgpu/softgpu.h,
 * WORKER_ALLOWANCE_OFF), reads what the worker has used, decides (fair.h) and writes the
 * limit, up to 1000 times a second while several processes have work. It sleeps while
 * fewer than two could, unless one has a limit of its own.
 *
 * Limits lapse a moment after the arbiter has ended, so workers outlive it. It keeps
 * nothing that the next one needs: leads and deficits, which are about a quantum, begin
 * at zero.
 *
 * All functions may be called while the thread runs, by one other thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/handle.h"

struct arbiter;
struct arbiter_vm;
struct arbiter_worker;

/* Return: 0 or -errno. */
int arbiter_new(struct arbiter **arbiterp, uint64_t quantum_ns);

/* Without any VM. */
struct arbiter *arbiter_free(struct arbiter *arbiter);

/*
 * How much of the device works at the same time: threads of softgpu, or devices.
 *
 * @overlaps:	workers say for how long a device has had work of theirs, whoever else has
 *		used it meanwhile; see fair.h
 */
void arbiter_set_units(struct arbiter *arbiter, uint32_t n_units, bool overlaps);

/* What a VM is given, see fair.h. */
struct arbiter_share {
	uint32_t weight;
	uint32_t priority;
	bool is_paused;
	uint32_t percent; /* of one unit's time, 0: any */
};

/* Return: 0 or -errno. */
int arbiter_add_vm(struct arbiter *arbiter, struct arbiter_vm **vmp,
	const struct arbiter_share *share);

/* Without any worker. */
struct arbiter_vm *arbiter_remove_vm(struct arbiter_vm *vm);

/* Numbers that a worker and its VM have for devices to those of all of them. */
struct arbiter_devices {
	uint8_t numbers[VGPU_DEVICES_MAX];
};

/*
 * Adds a worker that has, or is about to have, a session.
 *
 * @stats:	the file that it shares with vgpud, which is not kept
 * @devices:	NULL: it has the numbers of all
 *
 * Return: 0, or -errno: it is not limited.
 */
int arbiter_add_worker(struct arbiter_vm *vm, struct arbiter_worker **workerp, int stats,
	const struct arbiter_devices *devices);

/* What it has used of the device's time, as it says itself (softgpu.h), but time in which
 * several had work for a device is theirs together. used_ns never becomes
 * less. */
struct arbiter_use {
	uint64_t used_ns;
	uint64_t held_ns;
	uint64_t n_pending; /* launches that have not begun, plus 1; 0: unknown */
	bool is_held;
};

void arbiter_read_worker(struct arbiter_worker *worker, struct arbiter_use *use);

/* Before its session ends, or after. NULL is ignored. */
struct arbiter_worker *arbiter_remove_worker(struct arbiter_worker *worker);
