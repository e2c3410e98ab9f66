/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: handles the requests of guests in a VM's channel table
 */

#include "broker/boot.h"
#include "broker/channel.h"
#include "broker/doorbell.h"
#include "broker/scan.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "vgpu/error.h"
#include "vgpud/container-of.h"

/* Doorbells with a cause that are handled at once between two heartbeats. */
#define SCAN_MAX 100
/* Time to ignore a doorbell that rang without cause, or too often. */
#define SCAN_REST_MS 5
/* A process whose connection ended needs no reply. */
#define SCAN_GONE_GRACE_MS 500

static struct vm *of_control(struct loop_source *source)
{
	return container_of(source, struct vm, control);
}

static int handle_rested(struct loop_timer *timer)
{
	return scan_listen(container_of(timer, struct vm, rest));
}

/* Limits the time for a guest that rings without cause, or all the time. */
static int handle_doorbell(struct loop_source *source)
{
	struct vm *vm = of_control(source);
	int r;

	r = doorbell_take(source->fd);
	if (r)
		return vgpu_error_trace(r);
	if (scan_look(vm) && ++vm->n_scans <= SCAN_MAX)
		return 0;
	loop_remove(&vm->control);
	loop_set_timer(&vm->broker->loop, &vm->rest, SCAN_REST_MS, handle_rested);
	return 0;
}

int scan_listen(struct vm *vm)
{
	if (vm->gone || !vm->n_doorbells)
		return 0;
	return loop_add(&vm->broker->loop, &vm->control,
		vm->doorbells[VGPU_DOORBELL_CONTROL], handle_doorbell);
}

bool scan_look(struct vm *vm)
{
	struct vgpu_shm_header *header;
	bool found = false;
	uint32_t n;

	if (vm->gone || !vm->broker->synced)
		return true;
	header = vm_header(vm);
	/* Partner: the guest's store, after that of its request or of is_leaving. */
	n = __atomic_load_n(&header->n_requests, __ATOMIC_ACQUIRE);
	boot_note_header(vm);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		found |= channel_look(&vm->channels[i]);
	/* Partner: the load in the driver's removal; the interrupts are sent by now. */
	__atomic_store_n(&header->n_served, n, __ATOMIC_RELEASE);
	return found;
}

void scan_tick(struct vm *vm)
{
	struct vgpu_shm_header *header = vm_header(vm);

	if (vm->gone)
		return;
	if (vm->guard.is_broken) {
		vgpu_log_warning("vm=%s: its memory was taken away: its sessions end",
			vm->config->name);
		scan_handle_gone(vm);
		return;
	}
	vm->n_scans = 0;
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_tick(&vm->channels[i]);
	__atomic_add_fetch(&header->heartbeat, 1, __ATOMIC_RELAXED);
	/* In case a doorbell was lost or does not exist. */
	scan_look(vm);
}

void scan_handle_gone(struct vm *vm)
{
	vm->gone = true;
	loop_remove(&vm->control);
	loop_clear_timer(&vm->rest);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_end(&vm->channels[i], CHANNEL_AFTER_FREE, VGPU_REASON_NONE,
			SCAN_GONE_GRACE_MS);
}

bool scan_is_done(const struct vm *vm)
{
	if (!vm->gone)
		return false;
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		if (vm->channels[i].record->worker || vm_is_emptying(&vm->channels[i]))
			return false;
	return true;
}
