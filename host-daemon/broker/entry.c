/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry: the part of a channel in shared memory
 *
 * While the channel lives, the state changes by compare-and-swap from the expected one,
 * so that a concurrent change by the guest is detected and handled by the next scan. The
 * final changes are exchanges: a guest that keeps writing must not delay the broker.
 *
 * The mapping is not accessed once the VM is gone, see vm.c.
 */

#include <limits.h>
#include <string.h>

#include "broker/entry.h"
#include "broker/session-line.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

static struct vgpu_channel_entry *entry_of(const struct channel *channel)
{
	return vm_entry(channel->vm, channel->index);
}

/* Wakes guest processes of this machine that sleep on the word, and raises the
 * interrupt. */
static void announce(struct channel *channel)
{
	vgpu_wake_shared_word(&entry_of(channel)->state, INT_MAX);
	vm_interrupt(channel->vm);
}

void entry_announce(struct channel *channel)
{
	if (!channel->vm->gone)
		announce(channel);
}

uint32_t entry_state(const struct channel *channel)
{
	/* Partner: the guest's release store, after it filled in its hello. */
	return __atomic_load_n(&entry_of(channel)->state, __ATOMIC_ACQUIRE);
}

void entry_read(const struct channel *channel, struct vgpu_channel_entry *copy)
{
	vm_read_shared(copy, entry_of(channel), sizeof(*copy));
}

struct vgpu_version entry_host_version(const struct channel *channel)
{
	const uint32_t minor =
		channel->worker ? channel->worker->protocol_minor : vgpu_version.minor;

	return vgpu_version_agree(
		minor, minor < vgpu_version.minor ? 0 : vgpu_version.features);
}

bool entry_step(struct channel *channel, uint32_t from, uint32_t to)
{
	if (channel->vm->gone)
		return true;
	/* Partner: the guest's acquire load, which then reads the host's part. */
	if (!__atomic_compare_exchange_n(&entry_of(channel)->state, &from, to, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	announce(channel);
	return true;
}

/* The additional number for a reason. */
static uint64_t detail_of(const struct channel *channel, uint32_t reason)
{
	const struct vm *vm = channel->vm;

	switch (reason) {
	case VGPU_REASON_PROCESSES:
		return vm->config->max_processes;
	case VGPU_REASON_WORKERS:
		return vm->broker->config->max_workers;
	case VGPU_REASON_HOST_MEMORY:
		return account_host_memory(vm->account) >> 20;
	case VGPU_REASON_WORKER_DIED:
		return channel->record->signal;
	default:
		return 0;
	}
}

void entry_answer(struct channel *channel, uint32_t reason)
{
	const struct vgpu_version version = entry_host_version(channel);
	struct vgpu_channel_entry *entry = entry_of(channel);

	if (channel->vm->gone)
		return;
	entry->host_protocol_version = VGPU_PROTOCOL_VERSION;
	entry->host_protocol_minor = version.minor;
	/* Read again: a guest that changes its hello meanwhile deceives only itself. */
	entry->host_features =
		version.features & __atomic_load_n(&entry->features, __ATOMIC_RELAXED);
	entry->reason = reason;
	entry->detail = detail_of(channel, reason);
	entry->host_api_version = channel->worker ? channel->record->driver_version : 0;
	entry->worker_pid = channel->worker ? channel->worker->pid : 0;
	entry->area_off = layout_area_off(&channel->vm->layout, channel->index);
	entry->first_extent = channel->record->first_extent;
	entry->n_extents = channel->record->n_extents;
}

void entry_refuse(struct channel *channel, uint32_t reason)
{
	if (account_take_log_line(channel->vm->account))
		vgpu_log_info("vm=%s channel=%u pid=%u: refused: %s",
			channel->vm->config->name, channel->index, channel->record->pid,
			session_line_reason(reason));
	totals_note_refusal(channel->vm->account, reason);
	entry_answer(channel, reason);
	entry_step(channel, VGPU_CHANNEL_OPENING, VGPU_CHANNEL_REFUSED);
}

/* Guest threads sleep on the reply slots of the dead worker: the broker wakes them. */
static void wake_slots(struct channel *channel)
{
	uint8_t *slots = channel->vm->map +
			 layout_area_off(&channel->vm->layout, channel->index) +
			 VGPU_SLOTS_OFF;

	for (uint32_t i = 0; i < VGPU_SLOTS_MAX; i++) {
		struct vgpu_reply_slot *slot =
			(struct vgpu_reply_slot *)(slots + i * VGPU_SLOT_SIZE);

		if (__atomic_load_n(&slot->waiting, __ATOMIC_RELAXED))
			vgpu_wake_shared_word(&slot->sequence, INT_MAX);
	}
}

bool entry_die(struct channel *channel, uint32_t reason)
{
	struct vgpu_channel_entry *entry = entry_of(channel);

	if (channel->vm->gone)
		return false;
	entry->reason = reason;
	entry->detail = detail_of(channel, reason);
	if (__atomic_exchange_n(&entry->state, VGPU_CHANNEL_DEAD, __ATOMIC_ACQ_REL) ==
		VGPU_CHANNEL_CLOSING)
		return false;
	announce(channel);
	wake_slots(channel);
	return true;
}

void entry_free(struct channel *channel)
{
	struct vgpu_channel_entry *entry = entry_of(channel);

	if (channel->vm->gone)
		return;
	memset((char *)entry + sizeof(entry->state), 0,
		sizeof(*entry) - sizeof(entry->state));
	/* Partner: the guest's compare-and-swap that claims it. */
	__atomic_store_n(&entry->state, VGPU_CHANNEL_FREE, __ATOMIC_RELEASE);
	announce(channel);
}
