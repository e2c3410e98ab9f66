/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's part of the flight recorder
 */

#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/flight.h"

static struct fixture fixture;

/* What a consumer of the ring has: the frame and room for the largest. */
static union {
	struct vgpu_frame frame;
	uint8_t bytes[VGPU_FRAME_MAX];
} taken;

static void take(uint16_t call, uint32_t body_size)
{
	taken.frame = (struct vgpu_frame){
		.size = (uint32_t)sizeof(taken.frame) + body_size,
		.call = call,
		.lane = 4,
	};
	flight_begin(&fixture.session, &taken.frame, 1000 + call);
}

TEST(a_call_is_recorded_before_it_runs_and_its_result_after)
{
	const struct flight_call *entry = &fixture.flight.calls[1];

	fixture_init(&fixture);
	memset(taken.bytes + sizeof(taken.frame), 7, 200);
	take(12, 200);
	check_eq(entry->number, 1);
	check_eq(entry->ticks, 1012);
	check_eq(entry->call, 12);
	check_eq(entry->lane, 4);
	check_eq(entry->body_size, 200);
	check_eq(entry->body[FLIGHT_BODY_SIZE - 1], 7);
	check_eq(entry->result, FLIGHT_RUNNING);
	flight_end(&fixture.session, &fixture.session.runner, CUDA_ERROR_INVALID_VALUE);
	check_eq(entry->result, CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(a_result_that_comes_late_spares_the_entry_of_another_call)
{
	struct runner slow;

	fixture_init(&fixture);
	take(1, 0);
	slow = fixture.session.runner;
	for (uint32_t i = 0; i < FLIGHT_CALLS; i++)
		take(2, 0);
	flight_end(&fixture.session, &slow, CUDA_ERROR_INVALID_VALUE);
	for (uint32_t i = 0; i < FLIGHT_CALLS; i++) {
		check_eq(fixture.flight.calls[i].call, 2);
		check_eq(fixture.flight.calls[i].result, FLIGHT_RUNNING);
	}
	fixture_deinit(&fixture);
}

TEST(calls_after_a_fault_do_not_hide_those_before_it)
{
	fixture_init(&fixture);
	take(3, 8);
	flight_freeze(&fixture.flight);
	for (uint32_t i = 0; i < FLIGHT_CALLS; i++)
		take(4, 8);
	check_eq(fixture.flight.calls[1].call, 4);
	check_eq(fixture.flight.at_fault[1].call, 3);
	fixture_deinit(&fixture);
}

TEST(names_are_kept_cut_and_passed_on)
{
	char name[300];

	fixture_init(&fixture);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	flight_name(&fixture.session, 10, "short");
	flight_name(&fixture.session, 11, name);
	flight_name_like(&fixture.session, 12, 10);
	flight_name_like(&fixture.session, 13, 99);
	check_eq(fixture.flight.n_names, 3);
	check(!strcmp(fixture.flight.names[0].text, "short"));
	check(!memcmp(fixture.flight.names[1].text, name,
		sizeof(fixture.flight.names[1].text)));
	check_eq(fixture.flight.names[2].handle, 12);
	check(!strcmp(fixture.flight.names[2].text, "short"));
	fixture_deinit(&fixture);
}

TEST(a_failed_call_is_the_last_error)
{
	fixture_init(&fixture);
	flight_note_error(&fixture.session, 5, CUDA_ERROR_INVALID_HANDLE);
	check_eq(fixture.flight.error_call, 5);
	check_eq(fixture.flight.error_result, CUDA_ERROR_INVALID_HANDLE);
	check(fixture.flight.error_ns >= fixture.flight.base_ns);
	fixture_deinit(&fixture);
}

TEST(a_file_of_an_earlier_vgpud_has_no_recorder)
{
	const int fd = memfd_create("stats", MFD_CLOEXEC);
	struct flight *flight;

	check(fd >= 0 && !ftruncate(fd, WORKER_FLIGHT_OFF));
	check_eq(flight_map(&flight, fd), 0);
	flight->n_names = 1;
	check_eq(lseek(fd, 0, SEEK_END), (off_t)WORKER_FLIGHT_OFF);
	check(!munmap(flight, sizeof(*flight)));
	check(!ftruncate(fd, WORKER_FILE_SIZE));
	check_eq(flight_map(&flight, fd), 0);
	flight->n_names = 7;
	check(!munmap(flight, sizeof(*flight)));
	check_eq(flight_map(&flight, fd), 0);
	check_eq(flight->n_names, 7);
	check(!munmap(flight, sizeof(*flight)));
	close(fd);
}
