/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting
 *
 * A wake-up costs more than ten microseconds on both sides, most calls take less: so a
 * waiter spins first, for SPIN_NS. It soon lets others run between its looks, because
 * the host may share this very processor; with one processor it does so at once. Then
 * it sleeps, and looks every LOOK_US whether the host still lives.
 */

#include <sched.h>
#include <time.h>

#include "vgpu/ring-layout.h"

#include "channel.h"
#include "wait.h"

/* Looks without giving the processor up: about 10 us. */
#define EAGER_TURNS 300u
#define SPIN_NS 60000ull
/* Bounds how late the end of the host is noticed. */
#define LOOK_US 100000u
/* Pause of those who poll a word, once they have spun. */
#define POLL_PAUSE_NS 50000
/* A poller asks whether the host lives at every so many pauses. */
#define POLL_LOOK_TURNS 1024u

static bool has_one_processor;

void shim_wait_setup(void)
{
	cpu_set_t set;

	has_one_processor =
		!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1;
}

uint64_t shim_wait_ns(const struct shim_wait *wait)
{
	return wait->started_ns ? shim_now_ns() - wait->started_ns : 0;
}

/* Returns: whether there was still time to spin. */
static bool spin(struct shim_wait *wait)
{
	if (wait->n_turns++ < EAGER_TURNS && !has_one_processor) {
		__builtin_ia32_pause();
		return true;
	}
	if (!wait->started_ns)
		wait->started_ns = shim_now_ns();
	if (shim_wait_ns(wait) > SPIN_NS)
		return false;
	sched_yield();
	return true;
}

bool shim_wait_turn(struct shim_wait *wait, struct shim_channel *channel)
{
	const struct timespec pause = { .tv_nsec = POLL_PAUSE_NS };

	if (spin(wait))
		return true;
	nanosleep(&pause, NULL);
	return wait->n_turns % POLL_LOOK_TURNS != 0 || !shim_channel_is_dead(channel);
}

static bool has_come(const struct vgpu_reply_slot *slot, uint32_t sequence)
{
	/* Partner: the worker's release store after it wrote the reply. */
	return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == sequence;
}

bool shim_wait_reply(
	struct shim_channel *channel, struct vgpu_reply_slot *slot, uint32_t sequence)
{
	struct shim_wait wait = {};
	bool is_dead = false;

	while (!has_come(slot, sequence)) {
		uint32_t seen;

		if (spin(&wait))
			continue;
		__atomic_store_n(&slot->waiting, 1, __ATOMIC_RELAXED);
		/* Either the worker sees that we sleep, or we see its sequence. Partner:
		 * the worker's fence between its sequence and its look at `waiting`. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		seen = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
		if (seen != sequence)
			channel->transport.ops->sleep(
				&channel->transport, &slot->sequence, seen, LOOK_US);
		__atomic_store_n(&slot->waiting, 0, __ATOMIC_RELAXED);
		/* A host that ended may have answered first: one more look decides. */
		if (is_dead)
			return has_come(slot, sequence);
		is_dead = shim_channel_is_dead(channel);
	}
	return true;
}
