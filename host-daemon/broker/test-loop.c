/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop: what the broker relies on from its event loop
 */

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "broker/loop.h"
#include "test.h"
#include "vgpud/container-of.h"

struct counter {
	struct loop_source source;
	struct loop_timer timer;
	struct counter *other;
	int n_calls;
};

static struct loop loop;

static struct counter *of_source(struct loop_source *source)
{
	return container_of(source, struct counter, source);
}

static struct counter *of_timer(struct loop_timer *timer)
{
	return container_of(timer, struct counter, timer);
}

static void start(void)
{
	int r = loop_init(&loop);

	if (r == -EPERM || r == -ENOSYS)
		test_skip("this machine refuses io_uring: %s", strerror(-r));
	check_eq(r, 0);
}

static int count_call(struct loop_source *source)
{
	struct counter *counter = of_source(source);
	uint64_t count;

	counter->n_calls++;
	check_eq(read(source->fd, &count, 8), 8);
	return 0;
}

/* Reads nothing. */
static int quit_at_fourth(struct loop_source *source)
{
	if (++of_source(source)->n_calls == 4)
		loop_quit(source->loop, 7);
	return 0;
}

static int quit(struct loop_timer *timer)
{
	loop_quit(timer->loop ? timer->loop : &loop, 7);
	return 0;
}

static void ring(int fd)
{
	const uint64_t one = 1;

	check_eq(write(fd, &one, 8), 8);
}

TEST(a_descriptor_that_stays_readable_is_reported_again)
{
	struct counter counter = { 0 };
	int fd = eventfd(1, EFD_NONBLOCK);

	start();
	check_eq(loop_add(&loop, &counter.source, fd, quit_at_fourth), 0);
	check_eq(loop_run(&loop), 7);
	loop_remove(&counter.source);
	loop_deinit(&loop);
	close(fd);
}

static int ring_other(struct loop_timer *timer)
{
	struct counter *counter = of_timer(timer);

	ring(counter->source.fd);
	if (counter->n_calls == 3)
		loop_quit(&loop, 0);
	else
		loop_set_timer(&loop, timer, 1, ring_other);
	return 0;
}

TEST(each_ring_is_heard)
{
	struct counter counter = { 0 };
	int fd = eventfd(0, EFD_NONBLOCK);

	start();
	check_eq(loop_add(&loop, &counter.source, fd, count_call), 0);
	loop_set_timer(&loop, &counter.timer, 0, ring_other);
	check_eq(loop_run(&loop), 0);
	check_eq(counter.n_calls, 3);
	loop_remove(&counter.source);
	loop_deinit(&loop);
	close(fd);
}

static int remove_other(struct loop_source *source)
{
	struct counter *counter = of_source(source);

	counter->n_calls++;
	loop_remove(&counter->other->source);
	loop_remove(source);
	return 0;
}

TEST(a_source_removed_while_its_event_waits_is_not_called)
{
	struct counter a = { 0 }, b = { 0 }, c = { 0 };
	int fd_a = eventfd(1, EFD_NONBLOCK), fd_b = eventfd(1, EFD_NONBLOCK);

	start();
	a.other = &b;
	b.other = &a;
	check_eq(loop_add(&loop, &a.source, fd_a, remove_other), 0);
	check_eq(loop_add(&loop, &b.source, fd_b, remove_other), 0);
	loop_set_timer(&loop, &c.timer, 20, quit);
	check_eq(loop_run(&loop), 7);
	check_eq(a.n_calls + b.n_calls, 1);
	loop_deinit(&loop);
	close(fd_a);
	close(fd_b);
}

TEST(a_slot_used_again_gets_no_event_of_its_last_user)
{
	struct counter a = { 0 }, timer = { 0 };
	int fd = eventfd(0, EFD_NONBLOCK), other = eventfd(1, EFD_NONBLOCK);

	start();
	for (int i = 0; i < 1000; i++) {
		check_eq(loop_add(&loop, &a.source, other, count_call), 0);
		loop_remove(&a.source);
	}
	check_eq(loop_add(&loop, &a.source, fd, count_call), 0);
	loop_set_timer(&loop, &timer.timer, 20, quit);
	check_eq(loop_run(&loop), 7);
	check_eq(a.n_calls, 0);
	loop_remove(&a.source);
	loop_deinit(&loop);
	close(fd);
	close(other);
}

static struct counter many[600];
static int n_called;

static int count_all(struct loop_source *source)
{
	loop_remove(source);
	n_called++;
	if (n_called == 600)
		loop_quit(&loop, 0);
	return 0;
}

TEST(more_sources_than_the_queue_has_entries_are_served)
{
	int fds[600];

	start();
	for (int i = 0; i < 600; i++) {
		fds[i] = eventfd(1, EFD_NONBLOCK);
		check_eq(loop_add(&loop, &many[i].source, fds[i], count_all), 0);
	}
	check_eq(loop_run(&loop), 0);
	check_eq(n_called, 600);
	loop_deinit(&loop);
	for (int i = 0; i < 600; i++)
		close(fds[i]);
}

static int64_t last_deadline;
static int n_order;

static int note_order(struct loop_timer *timer)
{
	check(timer->deadline >= last_deadline);
	last_deadline = timer->deadline;
	of_timer(timer)->n_calls++;
	if (++n_order == 3)
		loop_quit(&loop, 0);
	return 0;
}

TEST(timers_go_off_in_the_order_of_their_deadlines)
{
	struct counter timers[4] = {};

	start();
	loop_set_timer(&loop, &timers[2].timer, 12, note_order);
	loop_set_timer(&loop, &timers[0].timer, 300, note_order);
	loop_set_timer(&loop, &timers[1].timer, 6, note_order);
	loop_set_timer(&loop, &timers[3].timer, 3, note_order);
	loop_set_timer(&loop, &timers[0].timer, 1, note_order);
	loop_clear_timer(&timers[3].timer);
	check_eq(loop_run(&loop), 0);
	for (int i = 0; i < 4; i++)
		check_eq(timers[i].n_calls, i != 3);
	check(TAILQ_EMPTY(&loop.timers));
	loop_deinit(&loop);
}

static struct loop_bell bell;

static int end_soon(struct loop_timer *timer)
{
	loop_quit(&loop, 0);
	return 0;
}

static void run_for(unsigned int ms)
{
	struct loop_timer timer = { 0 };

	loop.quit = false;
	loop_set_timer(&loop, &timer, ms, end_soon);
	check_eq(loop_run(&loop), 0);
}

/* Until no write of the bell is under way. */
static void run_until_rung(void)
{
	do
		run_for(1);
	while (bell.source.loop);
}

TEST(a_bell_rings)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t count;

	start();
	loop_ring(&loop, &bell, fd);
	check_eq(read(fd, &count, 8), 8);
	check_eq(count, 1);
	run_until_rung();
	for (int i = 0; i < 100; i++)
		loop_ring(&loop, &bell, fd);
	check_eq(read(fd, &count, 8), 8);
	check(count >= 1 && count <= 2);
	/* What was rung while one was under way rings once more. */
	run_until_rung();
	check_eq(read(fd, &count, 8), 8);
	loop_deinit(&loop);
	close(fd);
}

TEST(a_doorbell_that_its_other_holder_fills_blocks_nobody)
{
	const uint64_t full = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC); /* it has taken O_NONBLOCK off */
	uint64_t count;

	start();
	check_eq(write(fd, &full, 8), 8);
	for (int i = 0; i < 100; i++) {
		loop_ring(&loop, &bell, fd);
		run_for(1);
	}
	check_eq(read(fd, &count, 8), 8);
	check(count == full);
	run_for(20);
	check_eq(read(fd, &count, 8), 8);
	check(count >= 1 && count <= 2);

	/* And one that is never emptied is freed with its owner. */
	check_eq(write(fd, &full, 8), 8);
	loop_ring(&loop, &bell, fd);
	loop_remove(&bell.source);
	loop_deinit(&loop);
	close(fd);
}
