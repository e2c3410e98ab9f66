/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the host side of a channel is given up
 */

#include <stdint.h>

#include "test.h"
#include "vgpu/ring-layout.h"

#include "wire/channel.h"

#define SECOND 1000000000ull

static struct shim_channel channel;
static struct vgpu_channel_entry entry;
static struct vgpu_channel_control control;
static uint64_t silence_ns;
static unsigned int n_rings;

static uint64_t get_silence(struct shim_transport *transport)
{
	(void)transport;
	return silence_ns;
}

static void ring(struct shim_transport *transport, uint32_t number)
{
	(void)transport;
	check_eq(number, VGPU_DOORBELL_CHANNEL(3));
	n_rings++;
}

static void begin(void)
{
	static const struct shim_transport_ops ops = {
		.silence_ns = get_silence,
		.doorbell = ring,
	};

	entry.state = VGPU_CHANNEL_OPEN;
	channel = (struct shim_channel){
		.transport.ops = &ops,
		.number = 3,
		.entry = &entry,
		.control = &control,
	};
}

/* The worker, when it is idle. */
static void answer(void)
{
	control.answered = control.asked;
}

/* As if that were so long ago. */
static void let_pass(uint64_t ns)
{
	channel.answered_ns -= ns;
}

TEST(a_host_that_is_heard_of_is_not_asked)
{
	begin();
	silence_ns = SECOND / 2;
	check(!shim_channel_find_dead(&channel));
	check_eq(n_rings, 0);
	check_eq(control.asked, 0);
}

TEST(a_silent_host_with_a_worker_that_answers_is_not_dead)
{
	begin();
	for (int i = 0; i < 20; i++) {
		silence_ns = (2 + i) * SECOND;
		check(!shim_channel_find_dead(&channel));
		check_eq(n_rings, i + 1);
		answer();
		let_pass(3 * SECOND);
	}
	check(!channel.dead);
}

TEST(a_worker_that_takes_frames_need_not_answer)
{
	begin();
	silence_ns = 10 * SECOND;
	check(!shim_channel_find_dead(&channel));
	for (int i = 0; i < 20; i++) {
		let_pass(3 * SECOND);
		control.head += 64;
		check(!shim_channel_find_dead(&channel));
	}
}

TEST(a_silent_host_whose_worker_is_silent_too_is_dead)
{
	begin();
	silence_ns = 2 * SECOND;
	check(!shim_channel_find_dead(&channel));
	/* Asked once, and given some time. */
	silence_ns = 3 * SECOND + 1;
	check(!shim_channel_find_dead(&channel));
	check_eq(n_rings, 1);
	let_pass(2 * SECOND);
	check(shim_channel_find_dead(&channel));
	/* For good. */
	silence_ns = 0;
	answer();
	check(shim_channel_find_dead(&channel));
}

TEST(a_worker_is_not_given_up_before_the_host_was_silent_for_long)
{
	begin();
	silence_ns = 2 * SECOND;
	check(!shim_channel_find_dead(&channel));
	let_pass(100 * SECOND);
	check(!shim_channel_find_dead(&channel));
}

TEST(a_host_that_is_gone_for_certain_is_dead_at_once)
{
	begin();
	silence_ns = SHIM_GONE;
	check(shim_channel_find_dead(&channel));
	check_eq(n_rings, 0);
}

TEST(a_channel_that_the_host_ended_is_dead_at_once)
{
	begin();
	entry.state = VGPU_CHANNEL_DEAD;
	check(shim_channel_find_dead(&channel));
}
