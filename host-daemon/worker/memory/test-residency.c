/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency: memory of a mover that only pretends, which leaves and returns
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/residency.h"

/* Sizes that are not multiples of anything, and one that no run of extents takes. */
static const uint64_t sizes[] = { 1000, 5 << 20, 70000 };
#define N 3u
#define TOTAL (1024 + (5 << 20) + 70144)

static struct {
	uint8_t bytes[N][5 << 20];
	bool is_there[N];
	bool stays[N]; /* is not dropped */
	bool is_freed[N];
	int list_result;
	uint32_t n_bad_copies; /* of so many, after the first one */
	uint32_t n_bad_makes;
	CUresult bad;
	uint32_t n_lists, n_drops;
} device;

static struct fixture fixture;
static struct session *session;
static struct residency *residency;

static int list(struct session *of, struct mover_list *into)
{
	check(of == session);
	device.n_lists++;
	for (uint32_t i = 0; i < N; i++)
		check_eq(mover_list_add(into,
				 &(struct mover_piece){
					 .address = (i + 1) << 24,
					 .size = sizes[i],
					 .id = i,
				 }),
			0);
	return device.list_result;
}

static CUresult copy(struct session *of, const struct mover_piece *piece, uint64_t at,
	void *host, uint64_t size, bool is_out)
{
	uint8_t *bytes = device.bytes[piece->id] + at;

	check(of == session);
	check_eq(piece->address, (piece->id + 1) << 24);
	check(at + size <= sizes[piece->id] && size);
	if (piece->id && device.n_bad_copies) {
		device.n_bad_copies--;
		return device.bad;
	}
	if (device.is_freed[piece->id])
		return CUDA_SUCCESS;
	check(device.is_there[piece->id]);
	if (is_out)
		memcpy(host, bytes, size);
	else
		memcpy(bytes, host, size);
	return CUDA_SUCCESS;
}

static void drop(struct session *of, struct mover_list *pieces)
{
	device.n_drops++;
	for (size_t i = 0; i < pieces->n; i++) {
		const uint64_t id = pieces->pieces[i].id;

		if (device.stays[id])
			continue;
		device.is_there[id] = false;
		memset(device.bytes[id], 0xee, sizes[id]);
		pieces->pieces[i].is_gone = true;
	}
}

static CUresult make(struct session *of, const struct mover_list *pieces)
{
	for (size_t i = 0; i < pieces->n; i++) {
		if (i && device.n_bad_makes) {
			device.n_bad_makes--;
			return device.bad;
		}
		device.is_there[pieces->pieces[i].id] = true;
	}
	return CUDA_SUCCESS;
}

static int softgpu_list(struct softgpu_piece **piecesp, size_t *n_piecesp)
{
	return -ENOTSUP;
}

static const struct mover mover = {
	.list = list,
	.copy = copy,
	.drop = drop,
	.make = make,
};

static uint8_t byte_of(uint32_t piece, uint64_t at)
{
	return (uint8_t)(at * 31 + at / 4096 + piece);
}

/* Extents that the broker has granted before. */
static void add_run(uint32_t first, uint32_t n_extents)
{
	check_eq(arena_add_run(session, first, n_extents), 0);
	residency->runs[residency->n_runs++] = (struct residency_run){ first, n_extents };
	residency->runs_size += (uint64_t)n_extents * VGPU_EXTENT_SIZE;
}

static void begin(void)
{
	int fd = memfd_create("room", MFD_CLOEXEC);

	fixture_init(&fixture);
	memset(&device, 0, sizeof(device));
	session = &fixture.session;
	residency = session->residency;
	check(fd >= 0 && !ftruncate(fd, 4096));
	check_eq(residency_open(session, fd), 0);
	close(fd);
	residency->mover = &mover;
	add_run(7, 1);
	add_run(10, 3);
	check(residency_take(session, TOTAL));
	device.bad = CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < N; i++) {
		device.is_there[i] = true;
		for (uint64_t at = 0; at < sizes[i]; at++)
			device.bytes[i][at] = byte_of(i, at);
	}
}

/* Each byte of what was not freed is there. */
static void check_bytes(void)
{
	for (uint32_t i = 0; i < N; i++) {
		if (device.is_freed[i])
			continue;
		check(device.is_there[i]);
		for (uint64_t at = 0; at < sizes[i]; at++)
			check(device.bytes[i][at] == byte_of(i, at));
	}
}

static void end(void)
{
	fixture_deinit(&fixture);
}

/* vgpud wants it to go, and has its answer. */
static void leave(void)
{
	static uint32_t number;

	room_wish_move(residency->room, ++number);
	check(residency_is_wanted(session));
	residency_leave(session);
	check(!residency_is_wanted(session));
}

static void check_numbers(uint64_t resident, uint64_t evicted)
{
	struct room_reading reading;

	check_eq(residency->resident, resident);
	check_eq(residency->evicted, evicted);
	room_read(residency->room, &reading);
	check_eq(reading.need, resident);
	check_eq(reading.evicted, evicted);
	check_eq(residency_is_out(session), evicted != 0);
	check_eq(session_control(session)->n_captures != 0, evicted != 0);
}

TEST(memory_goes_and_comes_back)
{
	begin();
	for (uint32_t i = 1; i <= 3; i++) {
		leave();
		check(!device.is_there[0] && !device.is_there[1] && !device.is_there[2]);
		check_numbers(0, TOTAL);
		check_eq(residency_return(session, i % 2), CUDA_SUCCESS);
		check_bytes();
		check_numbers(TOTAL, 0);
		check_eq(session->stats->evictions, i);
		check_eq(session->stats->returned_bytes, i * (uint64_t)TOTAL);
	}
	end();
}

TEST(a_session_with_calls_or_work_keeps_it)
{
	begin();
	session->debts->n_running = 1;
	leave();
	check_eq(device.n_lists, 0);
	session->debts->n_running = 0;
	session->n_captures = 1;
	leave();
	check_eq(device.n_lists, 0);
	session->n_captures = 0;
	device.list_result = -EBUSY;
	leave();
	check_eq(device.n_lists, 1);
	check_eq(device.n_drops, 0);
	check_bytes();
	check_numbers(TOTAL, 0);
	end();
}

TEST(it_stays_if_there_is_no_place_for_it)
{
	begin();
	residency->runs_size = VGPU_EXTENT_SIZE;
	residency->n_runs = RESIDENCY_RUNS_MAX;
	leave();
	check_eq(device.n_drops, 0);
	check_bytes();
	check_numbers(TOTAL, 0);
	end();
}

TEST(it_stays_if_it_cannot_be_copied)
{
	begin();
	device.n_bad_copies = 1;
	leave();
	check_eq(device.n_drops, 0);
	check_bytes();
	check_numbers(TOTAL, 0);
	leave();
	check_numbers(0, TOTAL);
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	check_bytes();
	end();
}

TEST(what_the_driver_keeps_is_counted_as_there)
{
	begin();
	device.stays[1] = true;
	leave();
	check(!device.is_there[0] && device.is_there[1] && !device.is_there[2]);
	check_numbers(5 << 20, TOTAL - (5 << 20));
	/* It is used, and what was copied of it is forgotten. */
	device.bytes[1][77]++;
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	device.bytes[1][77]--;
	check_bytes();
	device.stays[0] = device.stays[2] = true;
	leave();
	check_bytes();
	check_numbers(TOTAL, 0);
	end();
}

TEST(a_driver_without_room_for_a_moment_is_asked_again)
{
	begin();
	leave();
	device.bad = CUDA_ERROR_OUT_OF_MEMORY;
	device.n_bad_makes = 3;
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	check_eq(device.n_drops, 4);
	check_bytes();
	check_numbers(TOTAL, 0);
	/* For a call that cannot fail, as often as it takes. */
	leave();
	device.n_bad_makes = 12;
	check_eq(residency_return(session, false), CUDA_SUCCESS);
	check_bytes();
	end();
}

/* vgpud, which meets so many requests of a session that lacks memory, and refuses the
 * rest. */
static struct {
	pthread_t thread;
	bool ends;
	uint32_t n_met;
	uint32_t n_asked;
	struct room_reading last; /* of those requests */
} vgpud;

static void *answer_all(void *data)
{
	struct worker_room *room = residency->room;
	struct room_reading reading;
	uint32_t answered = 0;

	while (!__atomic_load_n(&vgpud.ends, __ATOMIC_ACQUIRE)) {
		room_read(room, &reading);
		if (!reading.is_waiting || reading.asked == answered) {
			usleep(100);
			continue;
		}
		answered = reading.asked;
		if (!reading.lacking) {
			room_grant(room, reading.need);
			continue;
		}
		vgpud.last = reading;
		if (vgpud.n_asked++ < vgpud.n_met)
			room_meet(room, answered);
		else
			room_refuse(room, answered);
	}
	return data;
}

static void begin_vgpud(uint32_t n_met)
{
	vgpud.n_met = n_met;
	vgpud.n_asked = 0;
	vgpud.ends = false;
	room_grant(residency->room, residency->resident);
	check_eq(pthread_create(&vgpud.thread, NULL, answer_all, NULL), 0);
}

static void end_vgpud(void)
{
	__atomic_store_n(&vgpud.ends, true, __ATOMIC_RELEASE);
	check_eq(pthread_join(vgpud.thread, NULL), 0);
}

static bool may_retry(CUresult result, uint32_t *n_triesp)
{
	return device_memory_may_retry(session, result, 0, 1000, n_triesp);
}

TEST(a_driver_that_refuses_memory_is_asked_again_when_others_have_gone)
{
	uint32_t n = 0;

	begin();
	/* vgpud does not limit it: nobody goes. */
	check(!may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	n = 0;
	begin_vgpud(1000);
	check(!may_retry(CUDA_SUCCESS, &n));
	check(!may_retry(CUDA_ERROR_INVALID_VALUE, &n));
	check_eq(vgpud.n_asked, 0);
	for (uint32_t i = 0; i < RESIDENCY_LACK_TRIES; i++)
		check(may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	check(!may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	end_vgpud();
	check_eq(vgpud.n_asked, RESIDENCY_LACK_TRIES);
	check_eq(vgpud.last.lacking, 1000);
	check(!vgpud.last.is_back);
	/* What was taken stays taken. */
	check_numbers(TOTAL, 0);
	check(!residency->room->is_waiting);
	n = 0;
	begin_vgpud(1);
	check(may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	check(!may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	end_vgpud();
	check_eq(vgpud.n_asked, 2);
	end();
}

TEST(nobody_goes_for_more_than_the_device_has)
{
	uint32_t n = 0;

	begin();
	begin_vgpud(1000);
	fixture.use.memory[0] = UINT64_MAX;
	check(!may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	fixture.use.memory[0] = 0;
	check(may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	/* Nor for softgpu, which shares its memory with no other worker. */
	fixture.driver.list_memory = softgpu_list;
	check(!may_retry(CUDA_ERROR_OUT_OF_MEMORY, &n));
	fixture.driver.list_memory = NULL;
	end_vgpud();
	check_eq(vgpud.n_asked, 1);
	end();
}

TEST(memory_comes_back_when_others_have_gone)
{
	begin();
	leave();
	begin_vgpud(2);
	device.bad = CUDA_ERROR_OUT_OF_MEMORY;
	device.n_bad_makes = 2;
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	end_vgpud();
	check_eq(vgpud.n_asked, 2);
	check_eq(vgpud.last.lacking, TOTAL);
	check_eq(vgpud.last.need, TOTAL);
	check(vgpud.last.is_back);
	check_bytes();
	check_numbers(TOTAL, 0);
	end();
}

TEST(a_failure_on_the_way_back_loses_nothing)
{
	begin();
	leave();
	for (uint32_t i = 0; i < 4; i++) {
		/* Only a call that cannot fail waits for room. */
		device.bad = i ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
		device.n_bad_makes = i < 2 ? 1000 : 0;
		device.n_bad_copies = i < 2 ? 0 : 1000;
		check_eq(residency_return(session, i != 3), device.bad);
		check(!device.is_there[0] && !device.is_there[1] && !device.is_there[2]);
		check_numbers(0, TOTAL);
	}
	device.n_bad_copies = 0;
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	check_bytes();
	check_numbers(TOTAL, 0);
	end();
}

TEST(memory_that_is_freed_while_it_is_away_needs_no_room)
{
	begin();
	leave();
	device.is_freed[1] = true;
	residency_give(session, 5 << 20);
	check_numbers(0, TOTAL - (5 << 20));
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	check_bytes();
	check_numbers(TOTAL - (5 << 20), 0);
	end();
}

TEST(pages_are_given_back_when_all_is_back)
{
	const uint8_t *place;

	begin();
	leave();
	place = (const uint8_t *)(uintptr_t)(session->arena->base +
					     7 * (uint64_t)VGPU_EXTENT_SIZE);
	check(place[1] == byte_of(0, 1));
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	check(place[1] == 0);
	end();
}

TEST(what_the_guest_writes_there_is_all_that_changes)
{
	uint8_t *place;

	begin();
	leave();
	place = (uint8_t *)(uintptr_t)(session->arena->base +
				       7 * (uint64_t)VGPU_EXTENT_SIZE);
	memset(place, 0x55, 1000);
	check_eq(residency_return(session, true), CUDA_SUCCESS);
	for (uint64_t at = 0; at < sizes[0]; at++) {
		check(device.bytes[0][at] == 0x55);
		device.bytes[0][at] = byte_of(0, at);
	}
	check_bytes();
	end();
}
