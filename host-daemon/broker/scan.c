/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: what the guests of a VM ask for by its channel table
 */

#include "broker/boot.h"
#include "broker/channel.h"
#include "broker/doorbell.h"
#include "broker/scan.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "vgpu/error.h"
#include "vgpud/container-of.h"

/* Doorbells that are handled at once between two heartbeats, if each had a cause. */
#define SCAN_MAX 100
/* How long a doorbell that rang without cause, or too often, is ignored. */
#define SCAN_REST_MS 5
/* Nothing waits for a process whose connection ended. */
#define SCAN_GONE_GRACE_MS 500

static struct vm *of_control(struct loop_source *source)
{
	return container_of(source, struct vm, control);
}

static int handle_rested(struct loop_timer *timer)
{
	return scan_listen(container_of(timer, struct vm, rest));
}

/* A guest that only rings, or rings all the time, does not get our processor. */
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
	bool found = false;

	if (vm->gone || !vm->broker->synced)
		return true;
	boot_note_header(vm);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		found |= channel_look(&vm->channels[i]);
	return found;
}

void scan_tick(struct vm *vm)
{
	struct vgpu_shm_header *header = vm_header(vm);

	if (vm->gone)
		return;
	if (vm->guard.is_broken) {
		vgpu_log_warning("vm=%s: its file was truncated: its sessions end",
			vm->config->name);
		scan_handle_gone(vm);
		return;
	}
	vm->n_scans = 0;
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_tick(&vm->channels[i]);
	__atomic_add_fetch(&header->heartbeat, 1, __ATOMIC_RELAXED);
	/* A doorbell that did not come, or that there is none to ring. */
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
