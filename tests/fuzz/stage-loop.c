/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage loop: the broker's event loop, one round at a time
 *
 * Replaces loop.c and clock.c: it polls and never sleeps, and time comes from the input,
 * so that a run depends only on the input. As there, sources may be removed and freed
 * inside, and a new one in the same slot is not called.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stage-loop.h"

#define SLOTS_MAX 256u

static int64_t now_ms;

int64_t clock_now(void)
{
	return now_ms;
}

void stage_clock_set(int64_t now)
{
	now_ms = now;
}

void stage_clock_advance(uint32_t ms)
{
	now_ms += ms;
}

int loop_init(struct loop *loop)
{
	memset(loop, 0, sizeof(*loop));
	TAILQ_INIT(&loop->timers);
	loop->slots = calloc(SLOTS_MAX, sizeof(*loop->slots));
	if (!loop->slots)
		return -ENOMEM;
	loop->n_slots = SLOTS_MAX;
	loop->has_ring = true;
	return 0;
}

void loop_deinit(struct loop *loop)
{
	free(loop->slots);
	loop->slots = NULL;
	loop->has_ring = false;
}

void loop_quit(struct loop *loop, int status)
{
	loop->quit = true;
	loop->status = status;
}

int stage_poll(struct pollfd *polls, nfds_t n)
{
	int n_ready;

	do
		n_ready = poll(polls, n, 0);
	while (n_ready < 0 && errno == EINTR);
	return n_ready;
}

int loop_run(struct loop *loop)
{
	(void)loop;
	abort();
}

int loop_add(struct loop *loop, struct loop_source *source, int fd, loop_source_fn fn)
{
	for (uint32_t i = 0; i < loop->n_slots; i++) {
		if (loop->slots[i].source)
			continue;
		*source = (struct loop_source){ loop, fd, i, fn };
		loop->slots[i].source = source;
		return 0;
	}
	abort();
}

void loop_remove(struct loop_source *source)
{
	struct loop *loop = source->loop;

	if (!loop)
		return;
	loop->slots[source->slot].source = NULL;
	loop->slots[source->slot].generation++;
	source->loop = NULL;
}

/* In the real loop a write waits in the kernel; here one that would wait is lost, which
 * to the rest of the broker is the same. */
void loop_ring(struct loop *loop, struct loop_bell *bell, int fd)
{
	static const uint64_t one = 1;
	struct pollfd poll_fd = { fd, POLLOUT, 0 };

	(void)loop, (void)bell;
	if (stage_poll(&poll_fd, 1) == 1 && (poll_fd.revents & POLLOUT))
		(void)!write(fd, &one, sizeof(one));
}

void loop_set_timer(
	struct loop *loop, struct loop_timer *timer, unsigned int ms, loop_timer_fn fn)
{
	struct loop_timer *other;

	loop_clear_timer(timer);
	timer->loop = loop;
	timer->deadline = now_ms + ms;
	timer->fn = fn;
	TAILQ_FOREACH(other, &loop->timers, entry)
		if (other->deadline > timer->deadline)
			break;
	if (other)
		TAILQ_INSERT_BEFORE(other, timer, entry);
	else
		TAILQ_INSERT_TAIL(&loop->timers, timer, entry);
}

void loop_clear_timer(struct loop_timer *timer)
{
	if (!timer->loop)
		return;
	TAILQ_REMOVE(&timer->loop->timers, timer, entry);
	timer->loop = NULL;
}

/* Looks at all descriptors at once. Returns: how many there are. */
static nfds_t look(const struct loop *loop, struct pollfd *polls, uint64_t *slots)
{
	nfds_t n = 0;

	for (uint32_t i = 0; i < loop->n_slots; i++) {
		if (!loop->slots[i].source)
			continue;
		polls[n] = (struct pollfd){ loop->slots[i].source->fd, POLLIN, 0 };
		slots[n++] = (uint64_t)loop->slots[i].generation << 32 | i;
	}
	if (stage_poll(polls, n) < 0)
		abort();
	return n;
}

static int run_timers(struct loop *loop)
{
	struct loop_timer *timer;
	int n = 0, r;

	while ((timer = TAILQ_FIRST(&loop->timers)) && timer->deadline <= now_ms) {
		loop_clear_timer(timer);
		n++;
		r = timer->fn(timer);
		if (r)
			return r;
	}
	return n;
}

int stage_loop_step(struct loop *loop)
{
	struct pollfd polls[SLOTS_MAX];
	uint64_t slots[SLOTS_MAX];
	nfds_t n = look(loop, polls, slots);
	int n_called = 0, r;

	for (nfds_t i = 0; i < n && !loop->quit; i++) {
		const struct loop_slot *slot = &loop->slots[(uint32_t)slots[i]];

		/* A number that is closed is a source that was not removed in time. */
		if (polls[i].revents & POLLNVAL)
			abort();
		if (!polls[i].revents || slot->generation != slots[i] >> 32)
			continue;
		n_called++;
		r = slot->source->fn(slot->source);
		if (r)
			return r;
	}
	if (loop->quit)
		return n_called;
	r = run_timers(loop);
	return r < 0 ? r : n_called + r;
}
