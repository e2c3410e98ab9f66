/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel whose host is a thread of the test
 */

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "test.h"

#include "fake-host.h"
#include "process/call.h"
#include "process/stream.h"

static void nap(struct shim_transport *transport, const uint32_t *word, uint32_t seen,
	uint32_t timeout_us)
{
	sched_yield();
}

static uint32_t n_rings;

static void ring(struct shim_transport *transport, uint32_t number)
{
	__atomic_add_fetch(&n_rings, 1, __ATOMIC_RELAXED);
}

uint32_t fake_host_n_rings(void)
{
	return __atomic_load_n(&n_rings, __ATOMIC_RELAXED);
}

static uint64_t not_silent(struct shim_transport *transport)
{
	return 0;
}

void fake_host_start(
	const uint32_t *state, struct vgpu_ring_consumer *consumer, void *(*run)(void *))
{
	static const struct shim_transport_ops ops = {
		.doorbell = ring,
		.sleep = nap,
		.silence_ns = not_silent,
	};
	static struct vgpu_channel_entry entry = { .state = VGPU_CHANNEL_OPEN };
	/* Shared with children, as shared memory is. */
	uint8_t *area = mmap(NULL, VGPU_AREA_SIZE, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	check(area != MAP_FAILED);
	vgpu_ring_consumer_init(consumer, area);
	shim_channel.transport.ops = &ops;
	shim_channel.entry = &entry;
	shim_channel.control = (struct vgpu_channel_control *)area;
	shim_channel.words = (struct vgpu_word *)(area + VGPU_WORDS_OFF);
	shim_channel.slots = area + VGPU_SLOTS_OFF;
	shim_statep = state;
	check_eq(shim_call_setup(), 0);
	check_eq(shim_thread_setup(shim_call_lane_exit, shim_stream_drop_thread), 0);
	check_eq(pthread_create(&thread, NULL, run, NULL), 0);
	check_eq(pthread_detach(thread), 0);
}
