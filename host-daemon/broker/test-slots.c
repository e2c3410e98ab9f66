/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: assigns slots of a section's quota page to workers
 */

#include <string.h>

#include "broker/slots.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "control/quota.h"
#include "test.h"

#define N_VMS 3u
#define N_CHANNELS 2u

/* Two sections; the first has two VMs. */
static struct config config;
static struct config_vm sections[2];
static struct quota_page pages[2];
static struct account accounts[2];
static struct vm vms[N_VMS];
static struct ledger_channel records[N_VMS][N_CHANNELS];
static struct broker broker;

static void begin(void)
{
	memset(pages, 0, sizeof(pages));
	memset(records, 0, sizeof(records));
	config.n_vms = 2;
	broker = (struct broker){ .config = &config, .accounts = accounts };
	TAILQ_INIT(&broker.vms);
	for (unsigned int i = 0; i < 2; i++)
		accounts[i] =
			(struct account){ .config = &sections[i], .quota = &pages[i] };
	for (unsigned int i = 0; i < N_VMS; i++) {
		vms[i] = (struct vm){ .broker = &broker, .account = &accounts[i / 2] };
		vms[i].layout.n_channels = N_CHANNELS;
		TAILQ_INSERT_TAIL(&broker.vms, &vms[i], entry);
		for (unsigned int k = 0; k < N_CHANNELS; k++) {
			vms[i].channels[k].vm = &vms[i];
			vms[i].channels[k].record = &records[i][k];
		}
	}
}

TEST(channels_of_a_section_have_different_slots)
{
	begin();
	slots_take(&vms[0].channels[0]);
	slots_take(&vms[0].channels[1]);
	slots_take(&vms[1].channels[0]);
	check_eq(records[0][0].quota_slot, 1);
	check_eq(records[0][1].quota_slot, 2);
	check_eq(records[1][0].quota_slot, 3);
	/* The other section has another page. */
	slots_take(&vms[2].channels[0]);
	check_eq(records[2][0].quota_slot, 1);
}

TEST(a_released_slot_is_empty_and_assigned_again)
{
	begin();
	slots_take(&vms[0].channels[0]);
	slots_take(&vms[0].channels[1]);
	quota_set(&pages[0], 1, 100);
	quota_set(&pages[0], 2, 200);
	slots_give(&vms[0].channels[0]);
	check_eq(records[0][0].quota_slot, 0);
	check_eq(pages[0].used[0], 0);
	check_eq(pages[0].used[1], 200);
	slots_take(&vms[1].channels[1]);
	check_eq(records[1][1].quota_slot, 1);
	/* Without a slot there is nothing to release. */
	slots_give(&vms[0].channels[0]);
	check_eq(pages[0].used[1], 200);
}

TEST(only_slots_without_a_channel_are_swept)
{
	begin();
	slots_take(&vms[0].channels[0]);
	pages[0].used[0] = 100;
	/* Written by a worker that does not have these slots. */
	pages[0].used[1] = 1;
	pages[0].used[QUOTA_SLOTS - 1] = 1;
	pages[0].n_slots = 0;
	pages[1].used[0] = 7;
	slots_sweep(&broker, &accounts[0]);
	check_eq(pages[0].used[0], 100);
	check_eq(pages[0].used[1], 0);
	check_eq(pages[0].used[QUOTA_SLOTS - 1], 0);
	check_eq(pages[1].used[0], 7);
	slots_sweep_all(&broker);
	check_eq(pages[1].used[0], 0);
}

TEST(a_slot_whose_session_ends_is_known_until_it_is_released)
{
	begin();
	slots_take(&vms[0].channels[0]);
	slots_take(&vms[0].channels[1]);
	quota_set(&pages[0], 1, 100);
	slots_note_ending(&vms[0].channels[0], true);
	check_eq(quota_of_ending(&pages[0], 2), 100);
	/* One without a slot has nothing to wait for. */
	slots_note_ending(&vms[1].channels[0], true);
	slots_give(&vms[0].channels[0]);
	slots_take(&vms[1].channels[0]);
	quota_set(&pages[0], 1, 50);
	check_eq(quota_of_ending(&pages[0], 2), 0);
	/* Written by a worker, or left by a broker that died. */
	quota_set_ending(&pages[0], 3, true);
	slots_sweep(&broker, &accounts[0]);
	check(quota_is_clear(&pages[0], 3));
	check_eq(pages[0].used[0], 50);
}

static bool is_first(const struct channel *channel)
{
	return channel == &channel->vm->channels[0];
}

TEST(sessions_that_end_are_noted_in_their_section_only)
{
	begin();
	for (unsigned int i = 0; i < N_VMS; i++)
		for (unsigned int k = 0; k < N_CHANNELS; k++)
			slots_take(&vms[i].channels[k]);
	for (uint32_t slot = 1; slot <= 4; slot++)
		quota_set(&pages[0], slot, slot);
	quota_set(&pages[1], 1, 1);
	/* It was, and is not any more. */
	slots_note_ending(&vms[0].channels[1], true);
	slots_note_all(&vms[0], is_first);
	check_eq(quota_of_ending(&pages[0], QUOTA_SLOTS), 1 + 3);
	check_eq(quota_of_ending(&pages[1], QUOTA_SLOTS), 0);
}

TEST(a_sweep_restores_the_limit)
{
	begin();
	sections[0].device_memory = 64 << 20;
	pages[0].limit = 0;
	slots_sweep(&broker, &accounts[0]);
	check_eq(quota_limit(&pages[0]), 64 << 20);
}
