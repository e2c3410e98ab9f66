/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota: what the guest processes of one VM hold of its device memory, together
 */

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/quota.h"
#include "test.h"

static struct quota_page *page;

static int begin(void)
{
	int fd;

	check_eq(quota_make(&fd), 0);
	check_eq(quota_map(&page, fd), 0);
	return fd;
}

static void end(int fd)
{
	page = quota_unmap(page);
	close(fd);
}

TEST(limits_are_read_when_they_change)
{
	struct quota_limits limits = { .values = { [QUOTA_HANDLES] = 7 } }, read;
	int fd = begin();
	uint64_t n;

	check(!quota_limits_changed(page, 0));
	quota_set_limits(page, &limits);
	check(quota_limits_changed(page, 0));
	n = quota_read_limits(page, &read);
	check_eq(read.values[QUOTA_HANDLES], 7);
	check_eq(read.values[QUOTA_IMAGE_MEMORY], 0);
	quota_set_limits(page, &limits);
	check(!quota_limits_changed(page, n));
	limits.values[QUOTA_IMAGE_MEMORY] = 1ull << 40;
	quota_set_limits(page, &limits);
	check(quota_limits_changed(page, n));
	quota_read_limits(page, &read);
	check_eq(read.values[QUOTA_IMAGE_MEMORY], 1ull << 40);
	end(fd);
}

TEST(limits_of_a_broker_that_died_while_it_wrote_them_are_seen)
{
	struct quota_limits limits = { .values = { [QUOTA_HANDLES] = 7 } }, read;
	int fd = begin();
	uint64_t n;

	quota_set_limits(page, &limits);
	/* It has begun, and a worker has read what was there; then it wrote all, and died
	 * before it said so. */
	page->n_changes++;
	n = quota_read_limits(page, &read);
	check_eq(read.values[QUOTA_HANDLES], 7);
	limits.values[QUOTA_HANDLES] = 9;
	page->limits[QUOTA_HANDLES] = 9;
	check(!quota_limits_changed(page, n));
	quota_set_limits(page, &limits);
	check(quota_limits_changed(page, n));
	n = quota_read_limits(page, &read);
	check_eq(read.values[QUOTA_HANDLES], 9);
	quota_set_limits(page, &limits);
	check(!quota_limits_changed(page, n));
	end(fd);
}

TEST(copies_take_their_time_after_a_burst)
{
	const uint64_t now = 1000000000000u, ms = 1000000;
	int fd = begin();

	/* 1000 bytes a ms: the burst is 50000. */
	check_eq(quota_charge_copy(page, now, 50000, 1000000), 0);
	check_eq(quota_charge_copy(page, now, 10000, 1000000), 0);
	check_eq(quota_charge_copy(page, now, 5000, 1000000), 10 * ms);
	check_eq(quota_charge_copy(page, now, 1, 1000000), 15 * ms);
	/* Later there is as much again as time has passed, at most a burst. */
	check_eq(quota_charge_copy(page, now + 65 * ms + 1000, 1, 1000000), 0);
	check_eq(quota_charge_copy(page, now + 3600000 * ms, 100000, 1000000), 0);
	check_eq(quota_charge_copy(page, now + 3600000 * ms, 1, 1000000), 50 * ms);
	/* Nothing that another worker writes makes one wait for long. */
	page->copied_until = UINT64_MAX;
	check_eq(quota_charge_copy(page, now, 1, 1000000), 0);
	page->copied_until = 0;
	check_eq(quota_charge_copy(page, now, UINT64_MAX, 1), 0);
	check(quota_charge_copy(page, now, 1, 1) <= 60000 * ms);
	end(fd);
}

TEST(each_slot_counts_for_all_others)
{
	int fd = begin();

	check_eq(quota_of_others(page, 1), 0);
	quota_open(page, 1);
	quota_open(page, 3);
	check_eq(page->n_slots, 3);
	quota_set(page, 1, 100);
	quota_set(page, 3, 20);
	check_eq(quota_of_others(page, 1), 20);
	check_eq(quota_of_others(page, 3), 100);
	check_eq(quota_of_others(page, 2), 120);
	quota_set(page, 3, 7);
	quota_clear(page, 1);
	check_eq(quota_of_others(page, 2), 7);
	/* What the last one had is not the next one's. */
	quota_open(page, 3);
	check_eq(quota_of_others(page, 2), 0);
	check_eq(page->n_slots, 3);
	quota_open(page, QUOTA_SLOTS);
	quota_set(page, QUOTA_SLOTS, 1);
	check_eq(quota_of_others(page, 1), 1);
	end(fd);
}

TEST(memory_of_slots_that_end_is_counted_until_they_have)
{
	int fd = begin();
	uint32_t n_ended;

	for (uint32_t slot = 1; slot < 4; slot++)
		quota_open(page, slot);
	quota_open(page, QUOTA_SLOTS);
	quota_set(page, 1, 1);
	quota_set(page, 2, 20);
	quota_set(page, 3, 300);
	quota_set(page, QUOTA_SLOTS, 4000);
	check_eq(quota_of_ending(page, 1), 0);
	n_ended = quota_n_ended(page);
	quota_set_ending(page, 2, true);
	quota_set_ending(page, QUOTA_SLOTS, true);
	check_eq(quota_of_ending(page, 1), 4020);
	/* Its own memory a worker does not wait for. */
	check_eq(quota_of_ending(page, 2), 4000);
	check_eq(quota_n_ended(page), n_ended);
	check(!quota_is_clear(page, 2));
	quota_clear(page, 2);
	check(quota_is_clear(page, 2));
	check_eq(quota_of_ending(page, 1), 4000);
	check_eq(quota_n_ended(page), n_ended + 1);
	/* It does not end after all, or not soon; which is counted once. */
	quota_set_ending(page, QUOTA_SLOTS, false);
	quota_set_ending(page, QUOTA_SLOTS, false);
	check_eq(quota_of_ending(page, 1), 0);
	check_eq(quota_n_ended(page), n_ended + 2);
	/* Bits of slots that there are not, and numbers that are too large. */
	memset(page->ending, 0xff, sizeof(page->ending));
	check_eq(quota_of_ending(page, 1), 4300);
	page->used[1] = UINT64_MAX;
	check(quota_of_ending(page, 1) == UINT64_MAX);
	end(fd);
}

TEST(nonsense_in_the_page_is_no_more_than_too_much)
{
	int fd = begin();

	quota_open(page, 1);
	page->n_slots = UINT64_MAX;
	page->used[5] = UINT64_MAX;
	page->used[6] = 2;
	check_eq(quota_of_others(page, 1), UINT64_MAX);
	quota_open(page, 2);
	check_eq(quota_of_others(page, 6), 2);
	end(fd);
}

TEST(each_lower_limit_is_counted_once)
{
	int fd = begin();
	uint32_t n;

	quota_set_limit(page, 500);
	n = quota_n_lowered(page);
	quota_set_limit(page, 500);
	quota_set_limit(page, 600);
	quota_set_limit(page, 0);
	check_eq(quota_n_lowered(page), n);
	quota_set_limit(page, 700);
	check_eq(quota_n_lowered(page), n + 1);
	quota_set_limit(page, 699);
	quota_set_limit(page, 699);
	check_eq(quota_n_lowered(page), n + 2);
	/* A broker that died before it counted, and a worker that changed the limit. */
	page->limit = 300;
	quota_set_limit(page, 300);
	check_eq(quota_n_lowered(page), n + 3);
	page->limit = 1;
	quota_set_limit(page, 300);
	check_eq(quota_n_lowered(page), n + 3);
	check_eq(quota_limit(page), 300);
	end(fd);
}

static void *nap(void *n_lowered)
{
	while (quota_n_lowered(page) == *(const uint32_t *)n_lowered)
		quota_nap(page, *(const uint32_t *)n_lowered, 1000000);
	return NULL;
}

TEST(a_lower_limit_wakes_all_who_wait)
{
	int fd = begin();
	pthread_t threads[3];
	uint32_t n_lowered;

	quota_set_limit(page, 500);
	n_lowered = quota_n_lowered(page);
	for (int i = 0; i < 3; i++)
		check_eq(pthread_create(&threads[i], NULL, nap, &n_lowered), 0);
	quota_set_limit(page, 499);
	for (int i = 0; i < 3; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	end(fd);
}

TEST(nobody_can_change_the_size)
{
	int fd = begin();

	check(ftruncate(fd, 0) < 0);
	check(ftruncate(fd, 1 << 20) < 0);
	check(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	end(fd);
}

/* Takes one of two, as a worker does, until it had it so many times. */
static void __attribute__((__noreturn__)) take_turns(uint32_t slot, uint64_t *held)
{
	for (int n = 0; n < 2000;) {
		quota_set(page, slot, 1);
		if (!quota_of_others(page, slot)) {
			if (__atomic_add_fetch(held, 1, __ATOMIC_SEQ_CST) != 1)
				_exit(1);
			__atomic_sub_fetch(held, 1, __ATOMIC_SEQ_CST);
			n++;
		}
		quota_set(page, slot, 0);
		/* Not in step with the other. */
		usleep((slot * 7 + n * slot) % 13);
	}
	_exit(0);
}

TEST(two_at_the_same_time_do_not_both_have_the_last_piece)
{
	int fd = begin(), status;
	/* In the page itself, in a slot that is not given out. */
	uint64_t *held = &page->used[100];
	pid_t pid[2];

	quota_open(page, 1);
	quota_open(page, 2);
	for (uint32_t i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i])
			take_turns(i + 1, held);
	}
	for (int i = 0; i < 2; i++) {
		check_eq(waitpid(pid[i], &status, 0), pid[i]);
		check_eq(status, 0);
	}
	end(fd);
}
