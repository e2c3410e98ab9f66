/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel: the action for each state word
 */

#include "broker/channel.h"
#include "broker/vm.h"
#include "test.h"
#include "vgpu/ring-layout.h"

enum {
	O = CHANNEL_NOTHING,
	N = CHANNEL_BEGIN,
	W = CHANNEL_REWINDOW,
	C = CHANNEL_CLOSE,
	F = CHANNEL_CLEAR,
	X = CHANNEL_BREACH,
};

/* Rows: our phase. Columns: FREE CLAIMED OPENING OPEN REFUSED DEAD CLOSING and a number
 * that is no state. */
static const uint8_t table[_CHANNEL_PHASE_N][_VGPU_CHANNEL_STATE_N + 1] = {
	[CHANNEL_IDLE] = { O, O, N, F, O, F, F, F },
	[CHANNEL_WAITING] = { X, X, O, X, X, X, C, X },
	[CHANNEL_ASSIGNED] = { X, X, O, X, X, X, C, X },
	[CHANNEL_HELD] = { X, X, W, X, O, X, C, X },
	[CHANNEL_OPEN] = { X, X, X, O, X, X, C, X },
	[CHANNEL_ENDING] = { O, O, O, O, O, O, C, O },
	[CHANNEL_DEAD] = { C, C, C, C, C, O, C, C },
	[CHANNEL_EMPTYING] = { O, O, O, O, O, O, O, O },
};

TEST(every_phase_has_an_answer_to_every_state)
{
	for (int phase = 0; phase < _CHANNEL_PHASE_N; phase++)
		for (uint32_t state = 0; state <= _VGPU_CHANNEL_STATE_N; state++)
			check_eq(channel_judge(phase, state), table[phase][state]);
}

TEST(words_that_are_no_states_are_all_alike)
{
	for (int phase = 0; phase < _CHANNEL_PHASE_N; phase++)
		for (uint64_t state = _VGPU_CHANNEL_STATE_N; state <= UINT32_MAX;
			state += 65521)
			check_eq(channel_judge(phase, state),
				table[phase][_VGPU_CHANNEL_STATE_N]);
}

TEST(nothing_begins_and_nothing_is_cleared_while_a_worker_may_live)
{
	for (int phase = CHANNEL_ASSIGNED; phase < CHANNEL_DEAD; phase++)
		for (uint32_t state = 0; state <= _VGPU_CHANNEL_STATE_N; state++) {
			enum channel_action action = channel_judge(phase, state);

			check(action != CHANNEL_BEGIN && action != CHANNEL_CLEAR);
		}
}

static uint8_t owners[64];
static uint8_t memory[VGPU_EXTENT_SIZE];
static struct vm vm = { .extents = { owners, 64 }, .map = memory };

TEST(grants_recorded_in_the_ledger_are_completed_by_the_next_broker)
{
	struct ledger_channel record = {
		.phase = CHANNEL_OPEN,
		.grant_first = 8,
		.grant_n = 4,
	};
	uint32_t first;

	/* As far as the one before came. */
	check_eq(extent_own(&vm.extents, 2, 8, 1), 0);
	channel_init(&vm.channels[2], &vm, 2, &record);
	check_eq(extent_count(&vm.extents, 2), 4);
	check_eq(record.grant_n, 4);
	channel_init(&vm.channels[2], &vm, 2, &record);
	check_eq(extent_count(&vm.extents, 2), 4);
	check_eq(extent_take(&vm.extents, 3, 16, &first), 0);
	check_eq(first, 12);
}

TEST(grants_end_with_their_session)
{
	struct ledger_channel record = {
		.phase = CHANNEL_IDLE,
		.grant_first = 8,
		.grant_n = 4,
	};

	channel_init(&vm.channels[2], &vm, 2, &record);
	check_eq(extent_count(&vm.extents, 2), 0);
	check_eq(record.grant_n, 0);
}
