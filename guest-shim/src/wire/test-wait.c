/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for words
 */

#include <pthread.h>
#include <time.h>

#include "test.h"

#include "wire/channel.h"
#include "wire/clock.h"
#include "wire/wait.h"

/* A thread that spins this long would never end the test. */
#define FOR_EVER_NS 3600000000000ull
/* As many waits as a thread needs to learn that they are long. */
#define MANY 1000u
/* Others may want the processor at any one of them. */
#define TRIES 20
/* Longer than is spun for a host that is awake. */
#define WAKES_NS 200000u

static uint64_t word;

TEST(a_reply_that_is_complete_needs_no_wait)
{
	const uint64_t come = 7;
	struct shim_pace pace = { .n_late = 3 };

	shim_wait_setup();
	check(shim_wait_word(&pace, &come, 7, false));
	check(shim_wait_word(&pace, &come, 6, true));
	check(shim_wait_work(&pace, &come, 7, FOR_EVER_NS));
	check_eq(pace.n_late, 0);
}

TEST(a_wait_that_gives_up_at_once_does_not_spin)
{
	struct shim_pace pace = {};

	shim_wait_setup();
	check(!shim_wait_word(&pace, &word, 1, true));
}

TEST(work_is_not_spun_for_where_it_was_late)
{
	struct shim_pace pace = {};

	shim_wait_setup();
	check(!shim_wait_work(&pace, &word, 1, 1000));
	/* If others wanted the processor meanwhile, nothing was learned about the
	 * device. */
	check(pace.n_late || pace.n_crowded);
	pace = (struct shim_pace){ .n_late = 1 };
	check(!shim_wait_work(&pace, &word, 1, FOR_EVER_NS));
	/* Or it would be late for ever. */
	check_eq(pace.n_late, 1);
}

TEST(work_is_not_spun_for_where_others_want_the_processor)
{
	struct shim_pace pace = { .n_crowded = 1 };

	shim_wait_setup();
	check(!shim_wait_work(&pace, &word, 1, FOR_EVER_NS));
	check_eq(pace.n_late, 0);
}

static void *write_soon(void *written)
{
	const struct timespec time = { .tv_nsec = 1000000 };

	nanosleep(&time, NULL);
	__atomic_store_n((uint64_t *)written, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(work_is_spun_for_also_after_long_waits)
{
	struct shim_pace pace;
	bool came = false;

	shim_wait_setup();
	for (int i = 0; i < TRIES && !came; i++) {
		uint64_t written = 0;
		pthread_t thread;

		pace = (struct shim_pace){ .n_long = MANY };
		check_eq(pthread_create(&thread, NULL, write_soon, &written), 0);
		came = shim_wait_work(&pace, &written, 1, FOR_EVER_NS);
		check_eq(pthread_join(thread, NULL), 0);
		/* There is one reason to give up. */
		check(came || pace.n_crowded);
	}
	if (!came)
		test_skip("others wanted the processor each of %d times", TRIES);
	check_eq(pace.n_long, 0);
}

static uint64_t wait_in_vain_ns(struct shim_pace *pace)
{
	uint64_t before = shim_clock_ns();

	check(!shim_wait_word(pace, &word, 1, false));
	check(!pace->rang);
	return shim_clock_ns() - before;
}

TEST(a_host_that_slept_is_given_the_time_to_wake_up)
{
	struct shim_pace pace;

	shim_wait_setup();
	for (int i = 0; i < TRIES; i++) {
		uint64_t ns;

		pace = (struct shim_pace){ .rang = true };
		ns = wait_in_vain_ns(&pace);
		if (pace.n_crowded)
			continue;
		check(ns > WAKES_NS);
		/* Next time it is known that it has no processor to do so. */
		check(pace.n_slow_wake);
		pace.n_slow_wake = 1;
		pace.rang = true;
		wait_in_vain_ns(&pace);
		check_eq(pace.n_slow_wake, 1);
		return;
	}
	test_skip("others wanted the processor each of %d times", TRIES);
}

/* A host that sleeps until it is rung for so many times, or the guest has slept so often:
 * then it answers. */
static struct {
	struct vgpu_channel_entry entry;
	struct vgpu_channel_control control;
	struct vgpu_reply_slot slot;
	unsigned int n_rings, n_sleeps, answers_after;
	bool was_told; /* that the guest sleeps */
} host;

static void answer_after(unsigned int n)
{
	if (n < host.answers_after)
		return;
	host.control.consumer_sleeping = 0;
	host.control.head = host.control.tail;
	host.slot.sequence = 1;
}

static void ring(struct shim_transport *transport, uint32_t number)
{
	check_eq(number, VGPU_DOORBELL_CHANNEL(3));
	answer_after(++host.n_rings);
}

static void sleep_in_vain(struct shim_transport *transport, const uint32_t *word,
	uint32_t seen, uint32_t timeout_us)
{
	check_eq(*word, seen);
	host.was_told |= host.slot.waiting;
	host.n_sleeps++;
	if (!host.control.consumer_sleeping)
		answer_after(host.n_sleeps);
}

static uint64_t not_silent(struct shim_transport *transport)
{
	return 0;
}

static const struct shim_transport_ops can_wake = { .doorbell = ring,
	.sleep = sleep_in_vain,
	.silence_ns = not_silent,
	.can_be_woken = true };
static const struct shim_transport_ops cannot_wake = {
	.doorbell = ring, .sleep = sleep_in_vain, .silence_ns = not_silent
};

static struct shim_channel begin(
	const struct shim_transport_ops *ops, bool is_asleep, unsigned int answers_after)
{
	shim_wait_setup();
	host.entry.state = VGPU_CHANNEL_OPEN;
	host.control.consumer_sleeping = is_asleep;
	host.control.tail = 64;
	host.answers_after = answers_after;
	return (struct shim_channel){
		.transport = { .ops = ops },
		.number = 3,
		.entry = &host.entry,
		.control = &host.control,
	};
}

TEST(waiting_for_a_reply_rings_again_if_the_host_sleeps)
{
	struct shim_channel channel = begin(&can_wake, true, 3);
	struct shim_pace pace = {};

	check(shim_wait_reply(&channel, &pace, &host.slot, 1, true));
	check_eq(host.n_rings, 3);
	/* Not before it has slept. */
	check_eq(host.n_sleeps, 3);
	check(host.was_told);
	check_eq(host.slot.waiting, 0);
}

TEST(waiting_for_a_busy_host_does_not_ring)
{
	struct shim_channel channel = begin(&can_wake, false, 50);
	struct shim_pace pace = {};

	check(shim_wait_reply(&channel, &pace, &host.slot, 1, true));
	check_eq(host.n_rings, 0);
	check_eq(host.n_sleeps, 50);
}

TEST(a_host_that_sleeps_with_all_taken_is_not_rung_for)
{
	struct shim_channel channel = begin(&can_wake, true, 1);

	host.control.head = host.control.tail;
	for (struct shim_wait wait = {}; wait.n_turns < 1000;)
		check(shim_wait_turn(&wait, &channel));
	check_eq(host.n_rings, 0);
}

TEST(polling_a_word_rings_again_if_the_host_sleeps)
{
	struct shim_channel channel = begin(&can_wake, true, 3);

	for (struct shim_wait wait = {}; !host.slot.sequence;)
		check(shim_wait_turn(&wait, &channel));
	check_eq(host.n_rings, 3);
}

TEST(a_host_that_cannot_wake_is_not_asked_to)
{
	struct shim_channel channel = begin(&cannot_wake, false, 5);
	struct shim_pace pace = {};

	check(shim_wait_reply(&channel, &pace, &host.slot, 1, true));
	check(!host.was_told);
}
