/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: what a worker may have while others of its VM have some
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "control/quota.h"
#include "fixture.h"
#include "test.h"
#include "worker/base/lane.h"
#include "worker/memory/device-memory.h"

#define MINE 3
#define THEIRS 7
#define ROUNDS 50000u

static struct fixture fixture;
static struct quota_page *page;

/* When the clock is read for the n-th time, counted down, the other session ends, or so
 * many seconds have passed. */
static struct {
	int n_looks;
	int seconds;
} soon;

/* Replaces the C library's. */
__attribute__((__visibility__("default"))) int clock_gettime(
	clockid_t clock, struct timespec *time)
{
	static int ahead;
	long r = syscall(SYS_clock_gettime, clock, time);

	if (soon.n_looks && !--soon.n_looks) {
		if (soon.seconds)
			ahead += soon.seconds;
		else
			quota_clear(page, THEIRS);
	}
	time->tv_sec += ahead;
	return (int)r;
}

static void begin(uint64_t quota)
{
	int fd;

	fixture_init(&fixture);
	check_eq(quota_make(&fd), 0);
	check_eq(quota_map(&page, fd), 0);
	quota_set_limit(page, quota);
	quota_open(page, MINE);
	quota_open(page, THEIRS);
	check_eq(device_memory_share(&fixture.session, fd, MINE), 0);
}

static void end(void)
{
	page = quota_unmap(page);
	fixture_deinit(&fixture);
}

TEST(a_quota_is_of_all_workers_together)
{
	struct session *session = &fixture.session;

	begin(1000);
	quota_set(page, THEIRS, 600);
	check(!device_memory_charge(session, 0, 401));
	check_eq(page->used[MINE - 1], 0);
	check(device_memory_charge(session, 0, 300));
	check_eq(page->used[MINE - 1], 300);
	check(!device_memory_charge(session, 0, 101));
	check_eq(page->used[MINE - 1], 300);
	check(device_memory_charge(session, 0, 100));
	check(!device_memory_charge(session, 0, 1));
	check_eq(fixture.stats.device_memory, 400);
	/* The other one was killed. */
	quota_clear(page, THEIRS);
	check(device_memory_charge(session, 0, 600));
	check(!device_memory_charge(session, 0, 1));
	device_memory_refund(session, 0, 1000);
	check_eq(page->used[MINE - 1], 0);
	check_eq(fixture.stats.device_memory, 0);
	end();
}

TEST(memory_of_a_session_that_ends_is_waited_for)
{
	struct session *session = &fixture.session;

	begin(1000);
	quota_set(page, THEIRS, 600);
	quota_set_ending(page, THEIRS, true);
	/* What does not fit without it either is refused without a wait. */
	soon.n_looks = 3;
	check(!device_memory_charge(session, 0, 1001));
	check_eq(soon.n_looks, 3);
	check(device_memory_charge(session, 0, 400));
	check_eq(soon.n_looks, 3);
	check(device_memory_charge(session, 0, 600));
	check_eq(soon.n_looks, 0);
	check_eq(page->used[MINE - 1], 1000);
	device_memory_refund(session, 0, 1000);
	end();
}

static uint32_t n_rounds; /* that the other session is to end */

static void *end_sessions(void *data)
{
	uint32_t n = 0;

	(void)data;
	while (n < ROUNDS) {
		while (__atomic_load_n(&n_rounds, __ATOMIC_ACQUIRE) == n)
			sched_yield();
		/* At any moment of the other thread's charge. */
		for (volatile uint32_t i = 0; i < n % 128; i++)
			;
		quota_clear(page, THEIRS);
		n++;
	}
	return NULL;
}

TEST(a_session_may_end_at_any_moment)
{
	struct session *session = &fixture.session;
	pthread_t thread;

	begin(1000);
	n_rounds = 0;
	check_eq(pthread_create(&thread, NULL, end_sessions, NULL), 0);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		quota_set(page, THEIRS, 600);
		quota_set_ending(page, THEIRS, true);
		__atomic_store_n(&n_rounds, n + 1, __ATOMIC_RELEASE);
		check(device_memory_charge(session, 0, 600));
		device_memory_refund(session, 0, 600);
		/* Its bit is erased after its memory. */
		while (!quota_is_clear(page, THEIRS))
			sched_yield();
	}
	pthread_join(thread, NULL);
	end();
}

TEST(a_session_that_does_not_end_is_not_waited_for_any_longer)
{
	struct session *session = &fixture.session;

	begin(1000);
	quota_set(page, THEIRS, 600);
	/* Its worker is stuck, and vgpud has given up on it. */
	quota_set_ending(page, THEIRS, true);
	quota_set_ending(page, THEIRS, false);
	soon.n_looks = 1;
	check(!device_memory_charge(session, 0, 600));
	check_eq(soon.n_looks, 1);
	/* vgpud does not say so, or another worker has written that it ends. */
	quota_set_ending(page, THEIRS, true);
	soon.n_looks = 3;
	soon.seconds = 60;
	check(!device_memory_charge(session, 0, 600));
	check_eq(soon.n_looks, 0);
	check_eq(page->used[MINE - 1], 0);
	end();
}

TEST(writes_of_another_worker_cost_only_memory)
{
	struct session *session = &fixture.session;

	begin(1000);
	check(device_memory_charge(session, 0, 100));
	quota_set(page, THEIRS, UINT64_MAX);
	check(!device_memory_charge(session, 0, 1));
	quota_set(page, THEIRS, UINT64_MAX - 50);
	check(!device_memory_charge(session, 0, 1));
	/* Into our own slot, which the next change overwrites. */
	quota_set(page, THEIRS, 0);
	quota_set(page, MINE, 0);
	check(device_memory_charge(session, 0, 900));
	check_eq(page->used[MINE - 1], 1000);
	check(!device_memory_charge(session, 0, 1));
	check(!device_memory_charge(session, 0, UINT64_MAX));
	end();
}

TEST(a_limit_that_is_changed_counts_at_once)
{
	struct session *session = &fixture.session;
	size_t total = 0;

	begin(1000);
	check(device_memory_charge(session, 0, 600));
	quota_set_limit(page, 4000);
	quota_set(page, THEIRS, 3000);
	total = device_memory_limit(session, 1 << 20);
	check_eq(total, 4000);
	check(device_memory_charge(session, 0, 400));
	check(!device_memory_charge(session, 0, 1));
	/* Less than is in use: no further allocation, and freed memory is not counted any
	 * more. */
	quota_set_limit(page, 2000);
	check(!device_memory_charge(session, 0, 1));
	device_memory_refund(session, 0, 1000);
	quota_set(page, THEIRS, 1500);
	check(device_memory_charge(session, 0, 500));
	check(!device_memory_charge(session, 0, 1));
	device_memory_refund(session, 0, 500);
	/* None any more. */
	quota_set_limit(page, 0);
	check(device_memory_charge(session, 0, 1ull << 40));
	check_eq(device_memory_limit(session, 1 << 20), 1 << 20);
	device_memory_refund(session, 0, 1ull << 40);
	end();
}

TEST(without_a_quota_others_see_the_use_as_well)
{
	begin(0);
	quota_set(page, THEIRS, UINT64_MAX);
	check(device_memory_charge(&fixture.session, 0, 1ull << 40));
	check_eq(page->used[MINE - 1], 1ull << 40);
	device_memory_refund(&fixture.session, 0, 1ull << 40);
	end();
}

TEST(each_device_has_its_own_count)
{
	struct session *session = &fixture.session;

	begin(1000);
	check(device_memory_charge(session, 0, 300));
	check(device_memory_charge(session, 3, 200));
	check(!device_memory_charge(session, 3, 501));
	check_eq(fixture.use.memory[0], 300);
	check_eq(fixture.use.memory[3], 200);
	device_memory_refund(session, 0, 300);
	check_eq(fixture.use.memory[0], 0);
	check_eq(fixture.use.memory[3], 200);
	check_eq(fixture.stats.device_memory, 200);
	end();
}

TEST(what_an_allocation_costs_is_what_it_takes)
{
	static const uint64_t costs[][2] = {
		{ 1, 512 },
		{ 512, 512 },
		{ 513, 1024 },
		{ 1 << 20, 1 << 20 },
		{ UINT64_MAX, UINT64_MAX },
	};
	struct session *session = &fixture.session;

	begin(1024);
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++)
		check_eq(device_memory_cost(session, costs[i][0]), costs[i][1]);
	/* softgpu asks as a program does, and is told to which limit. */
	check_eq(device_memory_charge_driver(session, 0, 1024), 0);
	check_eq(device_memory_charge_driver(session, 0, 512), -1);
	check_eq(page->used[MINE - 1], 1024);
	device_memory_refund_driver(session, 0, 1024);
	check_eq(page->used[MINE - 1], 0);
	end();
}

TEST(a_slot_that_is_none_is_refused)
{
	int fd;

	fixture_init(&fixture);
	check_eq(device_memory_share(&fixture.session, -1, 0), 0);
	check_eq(quota_make(&fd), 0);
	check_eq(device_memory_share(&fixture.session, fd, 0), -EINVAL);
	check_eq(quota_make(&fd), 0);
	check_eq(device_memory_share(&fixture.session, fd, QUOTA_SLOTS + 1), -EINVAL);
	fixture_deinit(&fixture);
}

static CUresult (*alloc)(CUdeviceptr *address, size_t size);
static unsigned int n_allocs;

static CUresult count_alloc(CUdeviceptr *address, size_t size)
{
	n_allocs++;
	return alloc(address, size);
}

TEST(a_capture_that_forbids_nothing_costs_no_call_of_the_driver)
{
	const struct vgpu_frame frame = { .size = sizeof(frame) };
	struct session *session = &fixture.session;
	uint64_t address[3];
	struct lane *lane;
	struct call call;

	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	alloc = fixture.driver.table.cuMemAlloc_v2;
	fixture.driver.table.cuMemAlloc_v2 = count_alloc;
	lane = lane_get(session, 0);
	call_init(&call, session, &session->runner, lane, fixture.context, &frame);
	check_eq(context_enter(session, call.runner, call.current), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		check_eq(device_memory_alloc(&call, 4096, &address[i]), CUDA_SUCCESS);
	check_eq(n_allocs, 3);
	/* Of another thread, and not global. */
	session->n_captures = 1;
	check_eq(device_memory_free(&call, address[0]), CUDA_SUCCESS);
	check_eq(n_allocs, 3);
	/* Its own, and a global one: the driver would refuse. */
	lane->n_captures = 1;
	check_eq(device_memory_free(&call, address[1]), CUDA_SUCCESS);
	check_eq(n_allocs, 4);
	lane->n_captures = 0;
	session->n_global_captures = 1;
	check_eq(device_memory_free(&call, address[2]), CUDA_SUCCESS);
	check_eq(n_allocs, 5);
	session->n_captures = session->n_global_captures = 0;
	fixture_deinit(&fixture);
}
