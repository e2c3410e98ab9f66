/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage arbiter: shares no device
 *
 * Replaces arbiter.c: without a thread, a run depends only on the input. Workers without
 * a share are not limited.
 */

#include <stddef.h>

#include "arbiter/arbiter.h"

int arbiter_new(struct arbiter **arbiterp, uint64_t quantum_ns)
{
	(void)quantum_ns;
	*arbiterp = NULL;
	return 0;
}

struct arbiter *arbiter_free(struct arbiter *arbiter)
{
	(void)arbiter;
	return NULL;
}

void arbiter_set_units(struct arbiter *arbiter, uint32_t n_units, bool overlaps)
{
	(void)arbiter;
	(void)n_units;
	(void)overlaps;
}

int arbiter_add_vm(struct arbiter *arbiter, struct arbiter_vm **vmp,
	const struct arbiter_share *share)
{
	(void)arbiter;
	(void)share;
	*vmp = NULL;
	return 0;
}

struct arbiter_vm *arbiter_remove_vm(struct arbiter_vm *vm)
{
	(void)vm;
	return NULL;
}

int arbiter_add_worker(struct arbiter_vm *vm, struct arbiter_worker **workerp, int stats,
	const struct arbiter_devices *devices)
{
	(void)vm;
	(void)stats;
	*workerp = NULL;
	return 0;
}

void arbiter_read_worker(struct arbiter_worker *worker, struct arbiter_use *use)
{
	(void)worker;
	*use = (struct arbiter_use){ 0 };
}

struct arbiter_worker *arbiter_remove_worker(struct arbiter_worker *worker)
{
	(void)worker;
	return NULL;
}
