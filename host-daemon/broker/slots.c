/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: assigns slots of a section's quota page to workers
 */

#include <assert.h>
#include <string.h>

#include "broker/slots.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "control/quota.h"

struct slots {
	bool are_used[QUOTA_SLOTS + 1]; /* from 1 */
};

static void find_used(
	const struct broker *broker, const struct account *account, struct slots *slots)
{
	const struct vm *vm;
	uint32_t slot;

	memset(slots, 0, sizeof(*slots));
	TAILQ_FOREACH(vm, &broker->vms, entry) {
		if (vm->account != account)
			continue;
		for (uint32_t i = 0; i < vm->layout.n_channels; i++) {
			slot = vm->channels[i].record->quota_slot;
			assert(slot <= QUOTA_SLOTS);
			slots->are_used[slot] = true;
		}
	}
}

void slots_take(struct channel *channel)
{
	struct account *account = channel->vm->account;
	struct slots slots;
	uint32_t slot = 1;

	find_used(channel->vm->broker, account, &slots);
	while (slot < QUOTA_SLOTS && slots.are_used[slot])
		slot++;
	assert(!slots.are_used[slot]);
	quota_open(account->quota, slot);
	channel->record->quota_slot = slot;
}

void slots_give(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	if (!record->quota_slot)
		return;
	quota_clear(channel->vm->account->quota, record->quota_slot);
	/* Second, so that the next broker clears the slot if this one dies before. */
	__atomic_store_n(&record->quota_slot, 0, __ATOMIC_RELEASE);
}

void slots_note_ending(const struct channel *channel, bool is_ending)
{
	if (channel->record->quota_slot)
		quota_set_ending(channel->vm->account->quota, channel->record->quota_slot,
			is_ending);
}

void slots_note_all(const struct vm *vm, bool (*is_ending)(const struct channel *channel))
{
	const struct vm *other;

	TAILQ_FOREACH(other, &vm->broker->vms, entry) {
		if (other->account != vm->account)
			continue;
		for (uint32_t i = 0; i < other->layout.n_channels; i++)
			slots_note_ending(
				&other->channels[i], is_ending(&other->channels[i]));
	}
}

void slots_sweep(struct broker *broker, struct account *account)
{
	struct quota_page *page = account->quota;
	struct slots slots;

	if (!page)
		return;
	account_limit_memory(account);
	find_used(broker, account, &slots);
	/* The page's own count of slots is not trusted. */
	for (uint32_t slot = 1; slot <= QUOTA_SLOTS; slot++)
		if (!slots.are_used[slot] && !quota_is_clear(page, slot))
			quota_clear(page, slot);
}

void slots_sweep_all(struct broker *broker)
{
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		slots_sweep(broker, &broker->accounts[i]);
}
