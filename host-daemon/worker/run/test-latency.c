/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long calls take: of the dispatcher, without a reply, and of lanes
 */

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "control/control.h"
#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/run/dispatcher.h"
#include "worker/run/latency.h"

#define SLEEP_NS 5000000ull
#define N_EVENTS 40u

/* The session's memory is in use by its dispatcher to the end. */
const bool test_keeps_descriptors = true;

static struct fixture fixture;
static struct latency latency;

static int make_file(off_t size)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	return fd;
}

static const struct histogram *by_dispatcher(uint32_t call)
{
	return &latency.times->by_dispatcher[call];
}

static void begin(void)
{
	check_eq(latency_init(&latency, make_file(WORKER_FILE_SIZE)), 0);
	check(latency.times);
	latency_start(&latency);
}

TEST(ticks_become_nanoseconds)
{
	uint64_t ns;

	begin();
	check(latency.scale > 0);
	check(latency.scale <= 1u << LATENCY_SHIFT);
	check_eq(latency_ns(&latency, 0), 0);
	/* A counter that went back, and one that ran for days. */
	check_eq(latency_ns(&latency, (uint64_t)-5), 0);
	ns = latency_ns(&latency, UINT64_MAX >> 1);
	check(ns > HISTOGRAM_HIGHEST);
	ns = latency_ns(&latency, 1ull << LATENCY_SHIFT);
	check_eq(ns, latency.scale);
}

TEST(a_call_without_a_reply_has_the_mean_of_those_around_it)
{
	static const uint16_t numbers[] = { 300, 300, 0, 301, 300, UINT16_MAX };
	struct latency_calls calls = {};

	begin();
	latency.scale = 1u << LATENCY_SHIFT;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		latency_collect(&calls, numbers[i]);
	latency_add_together(&latency, &calls, 600);
	check_eq(histogram_count(by_dispatcher(300)), 3);
	check_eq(by_dispatcher(300)->total_ns, 300);
	check_eq(histogram_count(by_dispatcher(301)), 1);
	check_eq(by_dispatcher(301)->max_ns, 100);
	check_eq(histogram_count(by_dispatcher(0)), 0);
	latency_add_shared(&latency, UINT16_MAX, 5);
	latency_add_shared(&latency, 300, 50);
	check_eq(latency.times->by_lanes[300].total_ns, 50);
}

TEST(the_same_call_many_times_is_added_at_once)
{
	struct latency_calls calls = {};

	begin();
	latency.scale = 1u << LATENCY_SHIFT;
	for (uint32_t n = 1; n <= LATENCY_TOGETHER_MAX; n++) {
		const uint64_t before = by_dispatcher(300)->total_ns;

		latency_forget(&calls);
		for (uint32_t i = 0; i < n; i++)
			latency_collect(&calls, 300);
		latency_add_together(&latency, &calls, 1000);
		check_eq(by_dispatcher(300)->total_ns, before + 1000);
		check_eq(histogram_count(by_dispatcher(300)), n * (n + 1) / 2);
		check_eq(by_dispatcher(300)->max_ns, 1000);
	}
}

TEST(without_room_in_the_file_nothing_is_measured)
{
	check_eq(latency_init(&latency, make_file(WORKER_STATS_SIZE)), 0);
	check(!latency.times);
	latency_start(&latency);
	latency_add(&latency, 300, 100);
	latency_add_shared(&latency, 300, 100);
}

static CUresult sleep_long(size_t *free, size_t *total)
{
	nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	*free = *total = 0;
	return CUDA_SUCCESS;
}

static CUresult create(CUevent *event, unsigned int flags)
{
	static uint64_t made;

	*event = (CUevent)&made;
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	return CUDA_SUCCESS;
}

/* As a guest thread does it; the message has no fields. */
static void submit(struct vgpu_ring_producer *producer, uint16_t call, uint32_t sequence)
{
	struct vgpu_frame *frame = vgpu_ring_reserve(producer, sizeof(*frame));

	check(frame);
	*frame = (struct vgpu_frame){
		.size = sizeof(*frame),
		.call = call,
		.flags = VGPU_FRAME_REPLY,
		.sequence = sequence,
	};
	vgpu_ring_commit(producer, sizeof(*frame));
}

static void wait_for(const struct histogram *histogram, uint64_t n)
{
	while (histogram_count(histogram) < n)
		sched_yield();
	check_eq(histogram_count(histogram), n);
}

/* The dispatcher and the lane end with the test's process. */
TEST(a_dispatcher_times_its_calls_and_lanes_theirs)
{
	struct vgpu_ring_producer producer;
	const struct call_times *times;
	uint32_t sequence = 1000;
	pthread_t thread;

	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture.session.doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(fixture.session.doorbell >= 0);
	fixture.driver.table.cuMemGetInfo_v2 = sleep_long;
	fixture.driver.table.cuEventCreate = create;
	fixture.driver.table.cuCtxSynchronize = synchronize;
	check_eq(latency_init(fixture.session.latency, make_file(WORKER_FILE_SIZE)), 0);
	times = fixture.session.latency->times;
	vgpu_ring_producer_init(&producer, fixture.session.area);
	for (uint32_t i = 0; i < N_EVENTS; i++)
		fixture_submit_event(&producer, sequence++);
	submit(&producer, VGPU_CALL_cuMemGetInfo_v2, sequence++);
	submit(&producer, VGPU_CALL_cuCtxSynchronize, sequence++);
	check_eq(pthread_create(&thread, NULL, dispatcher_main, &fixture.session), 0);
	check_eq(pthread_detach(thread), 0);

	wait_for(&times->by_dispatcher[VGPU_CALL_cuEventCreate], N_EVENTS);
	wait_for(&times->by_dispatcher[VGPU_CALL_cuMemGetInfo_v2], 1);
	check(times->by_dispatcher[VGPU_CALL_cuMemGetInfo_v2].max_ns >= SLEEP_NS / 2);
	wait_for(&times->by_lanes[VGPU_CALL_cuCtxSynchronize], 1);
	while (!__atomic_load_n(
		&times->by_lanes[VGPU_CALL_cuCtxSynchronize].max_ns, __ATOMIC_RELAXED))
		sched_yield();
	check(times->by_lanes[VGPU_CALL_cuCtxSynchronize].max_ns >= SLEEP_NS / 2);
	check_eq(histogram_count(&times->by_dispatcher[VGPU_CALL_cuCtxSynchronize]), 0);
}
