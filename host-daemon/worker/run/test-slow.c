/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that hold the dispatcher
 */

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/run/dispatcher.h"

#define SLEEP_NS 5000000l

/* The session's memory is in use by its dispatcher to the end. */
const bool test_keeps_descriptors = true;

static struct fixture fixture;

static CUresult sleep_long(size_t *free, size_t *total)
{
	nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	*free = *total = 0;
	return CUDA_SUCCESS;
}

/* As a guest thread does it; the message has no fields. */
static void submit(struct vgpu_ring_producer *producer, uint32_t sequence)
{
	struct vgpu_frame *frame = vgpu_ring_reserve(producer, sizeof(*frame));

	check(frame);
	*frame = (struct vgpu_frame){
		.size = sizeof(*frame),
		.call = VGPU_CALL_cuMemGetInfo_v2,
		.flags = VGPU_FRAME_REPLY,
		.sequence = sequence,
	};
	vgpu_ring_commit(producer, sizeof(*frame));
}

static CUresult create_long(CUevent *event, unsigned int flags)
{
	static uint64_t made;

	nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	*event = (CUevent)&made;
	return CUDA_SUCCESS;
}

static uint64_t n_slow(void)
{
	return __atomic_load_n(&fixture.stats.slow_calls, __ATOMIC_RELAXED);
}

/* Its thread, and what it uses, end with the test's process. */
static void prepare(struct vgpu_ring_producer *producer)
{
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture.session.doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(fixture.session.doorbell >= 0);
	fixture.driver.table.cuMemGetInfo_v2 = sleep_long;
	fixture.driver.table.cuEventCreate = create_long;
	vgpu_ring_producer_init(producer, fixture.session.area);
}

static void run_dispatcher(void)
{
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, dispatcher_main, &fixture.session), 0);
	check_eq(pthread_detach(thread), 0);
}

TEST(a_call_that_blocks_the_dispatcher_is_counted)
{
	struct vgpu_ring_producer producer;

	prepare(&producer);
	submit(&producer, 1000);
	submit(&producer, 1001);
	run_dispatcher();
	while (n_slow() < 2)
		sched_yield();
	check_eq(n_slow(), 2);
}

/* They are timed together, apart from the call that is waited for. */
TEST(calls_without_a_reply_are_counted_when_they_block_the_dispatcher)
{
	struct vgpu_ring_producer producer;

	prepare(&producer);
	fixture_submit_event(&producer, 1000);
	fixture_submit_event(&producer, 1001);
	submit(&producer, 1002);
	fixture_submit_event(&producer, 1003);
	run_dispatcher();
	while (n_slow() < 3)
		sched_yield();
	check_eq(n_slow(), 3);
}
