/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota: what the guest processes of one VM hold of its device memory, together
 */

#include <fcntl.h>
#include <pthread.h>
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
