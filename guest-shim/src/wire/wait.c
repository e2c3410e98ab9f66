/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting
 *
 * A wake-up costs more than ten microseconds on both sides, and most calls take less: so
 * a waiter spins first, for SPIN_NS, and then sleeps. It soon yields the processor
 * between its looks, because the host may run on the same one.
 *
 * That is right on an idle machine. Each thread learns by itself if it is not, see
 * pace.h.
 *
 * A host that was asleep is given the time to wake up in addition: otherwise this thread
 * would go to sleep just before the reply, and have to be woken in turn.
 *
 * If the duration of the work is known, as with copies, a spin of that length costs no
 * more processor time than NVIDIA's driver, which spins by default, and saves the
 * wake-up.
 *
 * A thread sleeps in naps (vgpu/wake.h), and after each of them checks whether the host
 * is alive, and whether it sleeps although there are frames on the ring: then it missed
 * the doorbell, and is rung again. That follows any spin, so it costs nothing if no
 * doorbell is lost.
 */

#include <sched.h>
#include <time.h>

#include "vgpu/cpu.h"
#include "vgpu/ring-layout.h"
#include "vgpu/wake.h"

#include "wire/channel.h"
#include "wire/clock.h"
#include "wire/wait.h"

/* Looks without giving the processor up: about 10 us. */
#define EAGER_TURNS 300u
/* The same for a process with one processor, which its other threads want to share: the
 * time of a call that is answered at once. If the host does not have another processor, a
 * thread soon learns so. */
#define EAGER_TURNS_ALONE 50u
#define SPIN_NS 60000ull
/* Polling for work of known duration lasts that long, up to this limit. A thread that
 * yields the processor during a copy in pieces gets it back after another thread's time
 * slice, and the other side, which finds no work, goes to sleep. */
#define EAGER_MAX_NS 1000000ull
/* A sleeping host is awake after this time, if it has a processor of its own. */
#define HOST_WAKES_NS 200000ull
/* Naps of those who wait for a reply: the first is longer than the wake-up of a host
 * that was rung, the last bounds how late the end of the host is noticed. */
#define NAP_MIN_MS 2u
#define NAP_MAX_MS 100u
/* Pause between polls of a word, after spinning. */
#define POLL_PAUSE_NS 50000
/* A poller asks whether the host missed a doorbell at every so many pauses, and whether
 * it lives. */
#define POLL_RING_TURNS 32u
#define POLL_LOOK_TURNS 1024u
/* How often a program that polls gets its answer from the driver. */
#define ASK_NS 10000000ull

static bool has_one_processor;

void shim_wait_setup(void)
{
	cpu_set_t set;

	has_one_processor =
		!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1;
}

uint64_t shim_wait_ns(const struct shim_wait *wait)
{
	return wait->started_ns ? shim_clock_ns() - wait->started_ns : 0;
}

/* Whether this look is to be followed by the next without giving the processor up. */
static bool is_eager(struct shim_wait *wait, uint32_t n_turns)
{
	if (wait->n_turns++ < n_turns)
		return true;
	if (!wait->worth_ns)
		return false;
	if (!wait->started_ns)
		wait->started_ns = shim_clock_ns();
	return shim_wait_ns(wait) <
	       (wait->worth_ns < EAGER_MAX_NS ? wait->worth_ns : EAGER_MAX_NS);
}

/* Returns: whether there was still time to spin. While this thread looks, the host has
 * work enough: to give the processor up at once would cost a busy machine's time slice
 * for a wait of a few microseconds. */
static bool spin(struct shim_wait *wait)
{
	bool eager = has_one_processor ? wait->n_turns++ < EAGER_TURNS
				       : is_eager(wait, EAGER_TURNS);

	if (eager && !wait->is_together) {
		vgpu_cpu_relax();
		return true;
	}
	if (!wait->started_ns)
		wait->started_ns = shim_clock_ns();
	if (shim_wait_ns(wait) > SPIN_NS)
		return false;
	sched_yield();
	return true;
}

/* Where it is known how long the work takes, that it is long is no news. */
static bool may_yield(const struct shim_wait *wait, const struct shim_pace *pace)
{
	return wait->worth_ns ? !pace->n_crowded : shim_pace_yields(pace);
}

/* The same with what the thread has learned. */
static bool spin_at_pace(struct shim_wait *wait, struct shim_pace *pace)
{
	const uint32_t eager = has_one_processor ? EAGER_TURNS_ALONE : EAGER_TURNS;
	uint64_t now;

	if (!pace->n_together && is_eager(wait, eager)) {
		vgpu_cpu_relax();
		return true;
	}
	now = shim_clock_ns();
	if (!wait->started_ns)
		wait->started_ns = now;
	if (wait->looked_ns)
		shim_pace_note_away(pace, now - wait->looked_ns);
	if (!may_yield(wait, pace))
		return false;
	if (now - wait->started_ns > SPIN_NS + wait->worth_ns + wait->wakes_ns) {
		if (wait->wakes_ns)
			shim_pace_note_slow_wake(pace);
		return false;
	}
	wait->looked_ns = now;
	sched_yield();
	return true;
}

/* The awaited work was submitted just now. */
static void note_host(struct shim_wait *wait, struct shim_pace *pace)
{
	wait->wakes_ns = pace->rang && !pace->n_slow_wake ? HOST_WAKES_NS : 0;
	pace->rang = false;
}

/* It arrived while spinning. */
static void learn_from_spin(const struct shim_wait *wait, struct shim_pace *pace)
{
	shim_pace_note_come(
		pace, wait->looked_ns ? shim_clock_ns() - wait->looked_ns : 0);
}

/* For those who have waited for a while. */
static void ring_if_missed(struct shim_channel *channel)
{
	if (vgpu_ring_is_missed(channel->control))
		channel->transport.ops->doorbell(
			&channel->transport, VGPU_DOORBELL_CHANNEL(channel->number));
}

bool shim_wait_turn(struct shim_wait *wait, struct shim_channel *channel)
{
	const struct timespec pause = { .tv_nsec = POLL_PAUSE_NS };

	if (spin(wait))
		return true;
	nanosleep(&pause, NULL);
	if (wait->n_turns % POLL_RING_TURNS == 0)
		ring_if_missed(channel);
	return wait->n_turns % POLL_LOOK_TURNS != 0 || !shim_channel_find_dead(channel);
}

bool shim_wait_word(
	struct shim_pace *pace, const uint64_t *word, uint64_t value, bool gives_up)
{
	struct shim_wait wait = {};

	note_host(&wait, pace);
	/* Partner: the device, or the worker on its behalf, after the work in front. */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		if (gives_up || !spin_at_pace(&wait, pace))
			return false;
	learn_from_spin(&wait, pace);
	return true;
}

bool shim_wait_work(
	struct shim_pace *pace, const uint64_t *word, uint64_t value, uint64_t worth_ns)
{
	struct shim_wait wait = { .worth_ns = worth_ns };

	note_host(&wait, pace);
	/* Nothing is learned from a wait that was cut short. */
	if (pace->n_late && worth_ns > EAGER_MAX_NS)
		wait.worth_ns = EAGER_MAX_NS;
	/* Partner: as above. */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		if (spin_at_pace(&wait, pace))
			continue;
		if (worth_ns && wait.worth_ns == worth_ns)
			shim_pace_note_late(pace);
		return false;
	}
	learn_from_spin(&wait, pace);
	return true;
}

static bool has_come(const struct vgpu_reply_slot *slot, uint32_t sequence)
{
	/* Partner: the worker's release store after it wrote the reply. */
	return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == sequence;
}

static void sleep_for(struct shim_channel *channel, struct vgpu_reply_slot *slot,
	uint32_t sequence, uint32_t ms)
{
	const struct shim_transport_ops *ops = channel->transport.ops;
	uint32_t seen;

	__atomic_store_n(&slot->waiting, ops->can_be_woken, __ATOMIC_RELAXED);
	/* Either the worker sees that we sleep, or we see its sequence. Partner: the
	 * worker's fence between its sequence and its look at `waiting`. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	seen = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
	if (seen != sequence)
		ops->sleep(&channel->transport, &slot->sequence, seen, ms * 1000);
	__atomic_store_n(&slot->waiting, 0, __ATOMIC_RELAXED);
}

bool shim_wait_reply(struct shim_channel *channel, struct shim_pace *pace,
	struct vgpu_reply_slot *slot, uint32_t sequence, bool parks)
{
	struct shim_wait wait = {};
	struct vgpu_nap nap = {};
	bool is_dead = false;

	note_host(&wait, pace);
	while (!has_come(slot, sequence)) {
		if (!parks && spin_at_pace(&wait, pace))
			continue;
		if (!wait.started_ns)
			wait.started_ns = shim_clock_ns();
		parks = true;
		sleep_for(channel, slot, sequence,
			vgpu_nap_next(&nap, NAP_MIN_MS, NAP_MAX_MS));
		if (has_come(slot, sequence))
			break;
		/* A host that ended may have answered first: one more look decides. */
		if (is_dead)
			return false;
		ring_if_missed(channel);
		is_dead = shim_channel_find_dead(channel);
	}
	if (parks)
		shim_pace_note_woken(pace, shim_wait_ns(&wait));
	else
		learn_from_spin(&wait, pace);
	return true;
}

static void rest_for(struct shim_channel *channel, struct vgpu_reply_slot *slot,
	uint32_t sequence, uint32_t ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	/* The transport's own sleep looks a thousand times a second there. */
	if (channel->transport.ops->can_be_woken)
		sleep_for(channel, slot, sequence, ms);
	else
		nanosleep(&pause, NULL);
}

bool shim_wait_rest(
	struct shim_channel *channel, struct vgpu_reply_slot *slot, uint32_t sequence)
{
	struct vgpu_nap nap = {};
	bool is_dead = false;

	while (!has_come(slot, sequence)) {
		/* As in shim_wait_reply(): one more look decides. */
		if (is_dead)
			return false;
		rest_for(channel, slot, sequence, vgpu_nap_ms(&nap));
		if (has_come(slot, sequence))
			break;
		ring_if_missed(channel);
		is_dead = shim_channel_find_dead(channel);
	}
	return true;
}

bool shim_wait_take_poll(struct shim_pace *pace)
{
	/* As exact as the timer, which is enough, and cheap. */
	const uint64_t now_ns = shim_clock_of(CLOCK_MONOTONIC_COARSE);

	if ((int64_t)(now_ns - pace->asked_ns) < (int64_t)ASK_NS)
		return true;
	pace->asked_ns = now_ns;
	return false;
}
