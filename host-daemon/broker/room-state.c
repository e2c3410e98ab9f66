/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room state: what one worker may have on the device, as the broker keeps it
 *
 * The grants of a broker that died are in the workers' files, where a compromised worker
 * may have changed them: the next broker believes it for no more than its VM may have.
 */

#include "broker/room-state.h"
#include "control/quota.h"
#include "control/room.h"
#include "vgpu/error.h"

uint64_t room_state_limit(const struct account *account)
{
	const uint64_t ceiling = account->memory_ceiling;
	uint64_t claimed;

	if (!account->config->device_memory)
		return UINT64_MAX;
	/* More than the limit if that was lowered. A new broker begins with what the
	 * workers say, as quota-watch.c does. */
	if (ceiling && ceiling != UINT64_MAX)
		return ceiling;
	claimed = account->quota ? quota_of_others(account->quota, 0) : 0;
	return claimed > account->config->device_memory ? claimed
							: account->config->device_memory;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int room_state_open(struct room_state *state, int stats, const struct account *account,
	uint64_t total)
{
	struct room_reading reading;
	int r;

	if (state->room)
		return 0;
	r = room_map(&state->room, stats);
	if (r)
		return vgpu_error_trace(r);
	if (!total) {
		room_off(state->room);
		return 0;
	}
	room_read(state->room, &reading);
	state->granted = reading.need;
	if (room_is_on(state->room))
		state->granted = least(reading.need,
			__atomic_load_n(&state->room->granted, __ATOMIC_RELAXED));
	state->granted = least(state->granted, room_state_limit(account));
	state->granted = least(state->granted, total);
	state->move = reading.moved;
	__atomic_store_n(&state->room->move, state->move, __ATOMIC_RELAXED);
	room_grant(state->room, state->granted);
	return 0;
}

void room_state_close(struct room_state *state)
{
	state->room = room_unmap(state->room);
	state->granted = 0;
}

uint64_t room_state_evicted(const struct room_state *state)
{
	return state->room ? __atomic_load_n(&state->room->evicted, __ATOMIC_RELAXED) : 0;
}
