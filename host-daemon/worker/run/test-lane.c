/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes, growth and the address window: what threads of the worker do for each other
 */

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/lane.h"
#include "worker/memory/arena.h"
#include "worker/memory/growth.h"
#include "worker/run/dispatch.h"
#include "worker/run/lane-thread.h"
#include "worker/run/reservation.h"
#include "worker/wait/debts.h"

static struct fixture fixture;

static struct vgpu_reply_slot *slot(uint32_t lane)
{
	return (struct vgpu_reply_slot *)(fixture.session.area + VGPU_SLOTS_OFF) + lane;
}

/* A session whose lanes run cannot be taken down, as in a worker. */
static void leave(void)
{
	close(fixture.session.arena->memfd);
}

static void send_bare(uint32_t call, uint32_t lane, uint32_t sequence)
{
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = call,
		.flags = VGPU_FRAME_REPLY,
		.lane = lane,
		.sequence = sequence,
	};

	check_eq(dispatch_frame(&fixture.session, &frame, &fixture.why), 0);
}

static void await_reply(uint32_t lane, uint32_t sequence)
{
	while (__atomic_load_n(&slot(lane)->sequence, __ATOMIC_ACQUIRE) != sequence)
		usleep(100);
}

TEST(a_call_that_may_block_is_answered_by_its_lane)
{
	uint32_t lane;

	fixture_init(&fixture);
	for (lane = 0; lane < 50; lane++)
		fixture_enter(&fixture, lane);
	for (lane = 0; lane < 50; lane++)
		send_bare(VGPU_CALL_cuCtxSynchronize, lane, 100 + lane);
	for (lane = 0; lane < 50; lane++) {
		await_reply(lane, 100 + lane);
		check_eq(slot(lane)->size, 0);
		check(fixture.session.lanes[lane]->started);
	}
	send_bare(VGPU_CALL_cuCtxSynchronize, 7, 200);
	await_reply(7, 200);
	leave();
}

/* The driver's call in which lanes wait until the test lets them go. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static CUresult wait_at_gate(void)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return CUDA_SUCCESS;
}

TEST(a_blocked_lane_delays_no_other)
{
	fixture_init(&fixture);
	fixture.driver.table.cuCtxSynchronize = wait_at_gate;
	fixture_enter(&fixture, 0);
	fixture_enter(&fixture, 1);
	pthread_mutex_lock(&gate);
	send_bare(VGPU_CALL_cuCtxSynchronize, 0, 100);
	send_bare(VGPU_CALL_vgpuHello, 1, 101);
	check_eq(slot(1)->sequence, 101);
	check(slot(0)->sequence != 100);
	pthread_mutex_unlock(&gate);
	await_reply(0, 100);
	leave();
}

static pthread_t dispatcher;
static bool was_dispatcher;

static CUresult is_complete(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult note_thread(CUstream stream)
{
	was_dispatcher = pthread_equal(pthread_self(), dispatcher);
	return CUDA_SUCCESS;
}

/* After the question the call that runs may submit a callback to it, say. */
TEST(the_dispatcher_waits_for_no_complete_stream_while_calls_run)
{
	fixture_init(&fixture);
	fixture.driver.table.cuCtxSynchronize = wait_at_gate;
	fixture.driver.table.cuStreamQuery = is_complete;
	fixture.driver.table.cuStreamSynchronize = note_thread;
	fixture_enter(&fixture, 0);
	fixture_enter(&fixture, 1);
	dispatcher = pthread_self();
	pthread_mutex_lock(&gate);
	send_bare(VGPU_CALL_cuCtxSynchronize, 0, 100);
	send_bare(VGPU_CALL_cuStreamSynchronize, 1, 101);
	await_reply(1, 101);
	check(!was_dispatcher);
	pthread_mutex_unlock(&gate);
	while (__atomic_load_n(&fixture.session.debts->n_running, __ATOMIC_ACQUIRE))
		usleep(100);
	send_bare(VGPU_CALL_cuStreamSynchronize, 1, 102);
	check_eq(slot(1)->sequence, 102);
	check(was_dispatcher);
	leave();
}

TEST(a_thread_that_makes_many_calls_at_once_breaks_the_protocol)
{
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = VGPU_CALL_cuCtxSynchronize,
		.flags = VGPU_FRAME_REPLY,
	};
	int i, r = 0;

	fixture_init(&fixture);
	fixture.driver.table.cuCtxSynchronize = wait_at_gate;
	fixture_enter(&fixture, 0);
	pthread_mutex_lock(&gate);
	for (i = 0; i < 100 && !r; i++)
		r = dispatch_frame(&fixture.session, &frame, &fixture.why);
	check_eq(r, CALL_E_VIOLATION);
	check(i <= (int)LANE_QUEUE_MAX + 2);
	pthread_mutex_unlock(&gate);
	leave();
}

static uint32_t first, n_granted;

static void *grow(void *data)
{
	*(int *)data = growth_request(&fixture.session, 8, &first, &n_granted);
	return NULL;
}

TEST(a_lane_gets_the_extents_of_its_own_request_only)
{
	struct control_message message;
	struct control_grant grant;
	uint64_t address;
	int sockets[2], r = -1;
	pthread_t thread;

	fixture_init(&fixture);
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	fixture.session.control = sockets[1];
	check_eq(pthread_create(&thread, NULL, grow, &r), 0);
	check_eq(recv(sockets[0], &message, sizeof(message), 0), sizeof(message));
	check_eq(message.type, CONTROL_WANT);
	check_eq(message.want.n_extents, 8);

	address = fixture.session.arena->base + 10ull * VGPU_EXTENT_SIZE;
	grant = (struct control_grant){ .first_extent = 20, .n_extents = 8 };
	grant.cookie = message.want.cookie - 1;
	growth_granted(&fixture.session, &grant);
	growth_granted(&fixture.session, &grant);
	grant.first_extent = 10;
	grant.cookie = message.want.cookie;
	/* Twice, because vgpud was restarted while it answered. */
	growth_granted(&fixture.session, &grant);
	growth_granted(&fixture.session, &grant);
	pthread_join(thread, NULL);
	growth_granted(&fixture.session, &grant);
	check_eq(fixture.session.growth->n_spares, 1);
	check_eq(r, 0);
	check_eq(first, 10);
	check_eq(n_granted, 8);
	check(arena_covers(&fixture.session, address, 8ull * VGPU_EXTENT_SIZE));
	check(!arena_covers(&fixture.session, address - 1, 2));
	check(!arena_covers(&fixture.session, address, 8ull * VGPU_EXTENT_SIZE + 1));
	*(volatile uint64_t *)(uintptr_t)address = 1;

	/* The extents of the answer with the wrong cookie were granted all the same: the
	 * next request takes them without a message. */
	check_eq(growth_request(&fixture.session, 4, &first, &n_granted), 0);
	check_eq(first, 20);
	check_eq(n_granted, 8);
	check(recv(sockets[0], &message, sizeof(message), MSG_DONTWAIT) < 0);
	check_eq(fixture.session.growth->n_spares, 0);
	close(sockets[0]);
	close(sockets[1]);
	fixture_deinit(&fixture);
}

TEST(extents_beyond_the_memory_are_refused)
{
	fixture_init(&fixture);
	check_eq(arena_add_run(&fixture.session, 28, 2), -EINVAL);
	check_eq(arena_add_run(&fixture.session, UINT32_MAX, 2), -EINVAL);
	check_eq(arena_add_run(&fixture.session, 1, UINT32_MAX), -EINVAL);
	check_eq(arena_add_run(&fixture.session, 1, 0), -EINVAL);
	fixture_deinit(&fixture);
}

static bool is_free(uint64_t address)
{
	void *got = mmap((void *)(uintptr_t)address, 4096, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != (void *)(uintptr_t)address)
		return false;
	munmap(got, 4096);
	return true;
}

TEST(the_window_chosen_stays_reserved_and_the_others_are_given_back)
{
	struct reservation reservation;
	struct vgpu_window window;
	uint64_t last;

	check_eq(reservation_make(&reservation), 0);
	last = reservation.windows[reservation.n_windows - 1].base;
	window = (struct vgpu_window){ last + (1ull << 30), 1ull << 32 };
	check_eq(reservation_settle(&reservation, &window), 0);
	check(!is_free(window.base));
	check(!is_free(window.base + window.size - 4096));
	check(is_free(window.base - 4096));
	check(is_free(window.base + window.size));
	check(is_free(last));
}

TEST(a_window_that_is_taken_is_refused_and_costs_nothing)
{
	static char here[8192];
	struct reservation reservation;
	struct vgpu_window window = { (uintptr_t)here & ~4095ull, 8192 };

	check_eq(reservation_make(&reservation), 0);
	check_eq(reservation_settle(&reservation, &window), RESERVATION_E_TAKEN);
	check(reservation.n_windows > 0);
	check(!is_free(reservation.windows[0].base));
}
