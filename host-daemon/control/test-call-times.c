/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call times: a worker writes, vgpud reads and keeps the sums
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/call-times.h"
#include "control/control.h"
#include "control/quota.h"
#include "test.h"

#define CALL 300u
#define OTHER 1023u

static struct histogram calls[CALL_TIMES_MAX];
static struct call_times *times;
static uint64_t n_steps;

static int make_file(off_t size)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	return fd;
}

static int make_worker(void)
{
	const int fd = make_file(WORKER_FILE_SIZE);

	check_eq(call_times_map(&times, fd, WORKER_TIMES_OFF), 0);
	check(times);
	return fd;
}

static void unmap(void)
{
	munmap(times, sizeof(*times));
}

/* What vgpud knows of a worker, as a number of calls and their time. */
static void check_worker(int fd, uint32_t call, uint64_t n, uint64_t ns)
{
	memset(calls, 0, sizeof(calls));
	check_eq(call_times_add(calls, fd, WORKER_TIMES_OFF, 0, CALL_TIMES_MAX, &n_steps),
		0);
	check_eq(histogram_count(&calls[call]), n);
	check_eq(calls[call].total_ns, ns);
}

static void check_vm(int fd, uint32_t call, uint64_t n, uint64_t ns)
{
	memset(calls, 0, sizeof(calls));
	check_eq(
		vm_times_add(calls, fd, QUOTA_TIMES_OFF, 0, CALL_TIMES_MAX, &n_steps), 0);
	check_eq(histogram_count(&calls[call]), n);
	check_eq(calls[call].total_ns, ns);
}

TEST(calls_of_the_dispatcher_and_of_lanes_add_up)
{
	const int fd = make_worker();

	histogram_add(&times->by_dispatcher[CALL], 100, 3, 300);
	histogram_add_shared(&times->by_lanes[CALL], 5000);
	histogram_add_shared(&times->by_lanes[OTHER], 7);
	check_worker(fd, CALL, 4, 5300);
	check_eq(histogram_count(&calls[OTHER]), 1);
	check_eq(histogram_count(&calls[0]), 0);
	unmap();
	close(fd);
}

TEST(only_calls_that_are_asked_for_are_read)
{
	const int fd = make_worker();
	const uint32_t at = CALL - 5;

	for (uint32_t i = 0; i < CALL_TIMES_MAX; i++)
		histogram_add_shared(&times->by_lanes[i], 7);
	memset(calls, 0, sizeof(calls));
	n_steps = 0;
	check_eq(call_times_add(calls, fd, WORKER_TIMES_OFF, at, 40, &n_steps), 0);
	for (uint32_t i = 0; i < CALL_TIMES_MAX; i++)
		check_eq(histogram_count(&calls[i]), i >= at && i < at + 40);
	check(n_steps >= 40);
	check(n_steps <= 50);
	/* Ranges that end beyond the last, begin there, or are empty. */
	memset(calls, 0, sizeof(calls));
	check_eq(call_times_add(calls, fd, WORKER_TIMES_OFF, OTHER, UINT32_MAX, &n_steps),
		0);
	check_eq(call_times_add(
			 calls, fd, WORKER_TIMES_OFF, UINT32_MAX, UINT32_MAX, &n_steps),
		0);
	check_eq(call_times_add(calls, fd, WORKER_TIMES_OFF, CALL, 0, &n_steps), 0);
	check_eq(histogram_count(&calls[OTHER]), 1);
	check_eq(histogram_count(&calls[OTHER - 1]), 0);
	check_eq(histogram_count(&calls[CALL]), 0);
	unmap();
	close(fd);
}

TEST(only_pages_in_use_take_memory)
{
	const int fd = make_worker();
	struct stat st;

	histogram_add(&times->by_dispatcher[CALL], 100, 1, 100);
	check_worker(fd, CALL, 1, 100);
	check_eq(fstat(fd, &st), 0);
	/* Its version, and a histogram that can be in three pages. */
	check(st.st_blocks * 512 <= 4 * 4096);
	unmap();
	close(fd);
}

TEST(a_file_of_an_earlier_build_has_no_times)
{
	const int fd = make_file(WORKER_STATS_SIZE + WORKER_MEMORY_SIZE);
	const int vm = make_file(sizeof(struct quota_page));
	const int worker = make_worker();

	unmap();
	check_eq(call_times_map(&times, fd, WORKER_TIMES_OFF), 0);
	check(!times);
	check_worker(fd, CALL, 0, 0);
	check_eq(vm_times_take(vm, QUOTA_TIMES_OFF, worker, WORKER_TIMES_OFF), 0);
	check_vm(vm, CALL, 0, 0);
	close(worker);
	close(vm);
	close(fd);
}

TEST(times_of_another_layout_are_not_read)
{
	const int fd = make_worker();

	histogram_add(&times->by_dispatcher[CALL], 100, 1, 100);
	times->version = CALL_TIMES_VERSION + 1;
	check_worker(fd, CALL, 0, 0);
	unmap();
	close(fd);
}

TEST(sessions_that_have_ended_are_added_once)
{
	int vm;

	check_eq(quota_make(&vm), 0);
	check_vm(vm, CALL, 0, 0);
	for (uint64_t n = 1; n <= 3; n++) {
		const int fd = make_worker();

		histogram_add(&times->by_dispatcher[CALL], 100, 1, 100);
		histogram_add_shared(&times->by_lanes[CALL], 50);
		unmap();
		check_eq(vm_times_take(vm, QUOTA_TIMES_OFF, fd, WORKER_TIMES_OFF), 0);
		check_eq(vm_times_take(vm, QUOTA_TIMES_OFF, fd, WORKER_TIMES_OFF), 0);
		close(fd);
		check_vm(vm, CALL, 2 * n, 150 * n);
	}
	close(vm);
}

TEST(a_worker_that_writes_anything_harms_its_own_numbers_only)
{
	const int fd = make_worker();
	int vm;

	check_eq(quota_make(&vm), 0);
	memset(times->by_dispatcher, 0xff, sizeof(times->by_dispatcher));
	memset(times->by_lanes, 0xff, sizeof(times->by_lanes));
	check_worker(fd, CALL, UINT64_MAX, UINT64_MAX);
	check_eq(vm_times_take(vm, QUOTA_TIMES_OFF, fd, WORKER_TIMES_OFF), 0);
	check_vm(vm, CALL, UINT64_MAX, UINT64_MAX);
	unmap();
	close(vm);
	close(fd);
}
