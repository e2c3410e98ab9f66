/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop: the broker's event loop on io_uring
 *
 * Each source has a slot and one poll request in flight, which is submitted again after
 * its function returned: the kernel checks the descriptor when a poll is submitted, so no
 * event in between is lost. A request carries slot number and generation. A completion
 * for a source that was removed has another generation and is dropped; so a source may be
 * freed at once, while its poll is still being cancelled.
 */

#include <assert.h>
#include <stddef.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "broker/loop.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"
#include "vgpud/clock.h"

#define LOOP_ENTRIES 256
#define LOOP_BATCH 64
/* User data of a request whose completion is ignored. */
#define LOOP_NOBODY UINT64_MAX

static_assert(!offsetof(struct loop_bell, source), "a bell is found by its source");

int loop_init(struct loop *loop)
{
	int r;

	memset(loop, 0, sizeof(*loop));
	TAILQ_INIT(&loop->timers);
	r = io_uring_queue_init(LOOP_ENTRIES, &loop->ring, 0);
	if (r < 0)
		return vgpu_error_origin(r);
	loop->has_ring = true;
	return 0;
}

void loop_deinit(struct loop *loop)
{
	if (loop->has_ring)
		io_uring_queue_exit(&loop->ring);
	loop->has_ring = false;
	free(loop->slots);
	loop->slots = NULL;
}

void loop_quit(struct loop *loop, int status)
{
	loop->quit = true;
	loop->status = status;
}

static uint64_t slot_data(const struct loop *loop, uint32_t slot)
{
	return (uint64_t)loop->slots[slot].generation << 32 | slot;
}

/* Return: a free submission entry, after submitting the queue if it is full. */
static struct io_uring_sqe *get_sqe(struct loop *loop)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

	if (sqe)
		return sqe;
	if (io_uring_submit(&loop->ring) < 0)
		return NULL;
	return io_uring_get_sqe(&loop->ring);
}

static int arm(struct loop *loop, uint32_t slot)
{
	struct io_uring_sqe *sqe = get_sqe(loop);

	if (!sqe)
		return vgpu_error_origin(-EBUSY);
	io_uring_prep_poll_add(sqe, loop->slots[slot].source->fd, POLLIN);
	io_uring_sqe_set_data64(sqe, slot_data(loop, slot));
	return 0;
}

static int find_slot(struct loop *loop, uint32_t *slotp)
{
	uint32_t n = loop->n_slots ? 2 * loop->n_slots : 16;
	struct loop_slot *slots;

	for (uint32_t i = 0; i < loop->n_slots; i++) {
		if (!loop->slots[i].source) {
			*slotp = i;
			return 0;
		}
	}
	slots = reallocarray(loop->slots, n, sizeof(*slots));
	if (!slots)
		return vgpu_error_origin(-ENOMEM);
	memset(slots + loop->n_slots, 0, (n - loop->n_slots) * sizeof(*slots));
	*slotp = loop->n_slots;
	loop->slots = slots;
	loop->n_slots = n;
	return 0;
}

int loop_add(struct loop *loop, struct loop_source *source, int fd, loop_source_fn fn)
{
	int r;

	r = find_slot(loop, &source->slot);
	if (r)
		return vgpu_error_trace(r);
	source->loop = loop;
	source->fd = fd;
	source->fn = fn;
	loop->slots[source->slot].source = source;
	r = arm(loop, source->slot);
	if (r)
		loop_remove(source);
	return r;
}

void loop_remove(struct loop_source *source)
{
	struct loop *loop = source->loop;
	struct io_uring_sqe *sqe;

	if (!loop)
		return;
	sqe = get_sqe(loop);
	if (sqe) {
		io_uring_prep_cancel64(sqe, slot_data(loop, source->slot), 0);
		io_uring_sqe_set_data64(sqe, LOOP_NOBODY);
		/* Before the descriptor is closed and its number reused. */
		io_uring_submit(&loop->ring);
	}
	loop->slots[source->slot].source = NULL;
	loop->slots[source->slot].generation++;
	source->loop = NULL;
}

static int handle_rung(struct loop_source *source)
{
	struct loop_bell *bell = (struct loop_bell *)source;
	struct loop *loop = source->loop;
	bool again = bell->again;

	loop_remove(source);
	if (again)
		loop_ring(loop, bell, source->fd);
	return 0;
}

/* O_NONBLOCK is no protection: any holder of the shared file description can clear the
 * flag and fill the counter. A write in the ring waits without blocking the broker. */
void loop_ring(struct loop *loop, struct loop_bell *bell, int fd)
{
	static const uint64_t one = 1;
	struct loop_source *source = &bell->source;
	struct io_uring_sqe *sqe;

	bell->again = source->loop != NULL;
	if (bell->again || vgpu_wake_is_lost() || find_slot(loop, &source->slot))
		return;
	sqe = get_sqe(loop);
	if (!sqe)
		return;
	source->loop = loop;
	source->fd = fd;
	source->fn = handle_rung;
	loop->slots[source->slot].source = source;
	io_uring_prep_write(sqe, fd, &one, sizeof(one), 0);
	io_uring_sqe_set_data64(sqe, slot_data(loop, source->slot));
	/* Cancel now, while the number still refers to this descriptor. */
	io_uring_submit(&loop->ring);
}

void loop_set_timer(
	struct loop *loop, struct loop_timer *timer, unsigned int ms, loop_timer_fn fn)
{
	struct loop_timer *other;

	loop_clear_timer(timer);
	timer->loop = loop;
	timer->deadline = clock_now() + ms;
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

static int run_timers(struct loop *loop)
{
	struct loop_timer *timer;
	int64_t now = clock_now();
	int r;

	while ((timer = TAILQ_FIRST(&loop->timers)) && timer->deadline <= now) {
		loop_clear_timer(timer);
		r = timer->fn(timer);
		if (r)
			return vgpu_error_trace(r);
	}
	return 0;
}

static int dispatch(struct loop *loop, uint64_t data)
{
	uint32_t slot = data, generation = data >> 32;
	struct loop_source *source;
	int r;

	if (data == LOOP_NOBODY || loop->slots[slot].generation != generation)
		return 0;
	source = loop->slots[slot].source;
	r = source->fn(source);
	if (r)
		return vgpu_error_trace(r);
	/* Only if the slot still has the same source. */
	if (loop->slots[slot].generation == generation && loop->slots[slot].source)
		return arm(loop, slot);
	return 0;
}

/* Sleeps until something completes or the first timer is due. */
static int wait(struct loop *loop)
{
	const struct loop_timer *timer = TAILQ_FIRST(&loop->timers);
	struct __kernel_timespec timeout;
	struct io_uring_cqe *cqe;
	int64_t left;
	int r;

	if (!timer) {
		r = io_uring_submit_and_wait(&loop->ring, 1);
	} else {
		left = timer->deadline - clock_now();
		left = left > 0 ? left : 0;
		timeout.tv_sec = left / 1000;
		timeout.tv_nsec = left % 1000 * 1000000;
		r = io_uring_submit_and_wait_timeout(
			&loop->ring, &cqe, 1, &timeout, NULL);
	}
	if (r < 0 && r != -ETIME && r != -EINTR && r != -EAGAIN && r != -EBUSY)
		return vgpu_error_origin(r);
	return 0;
}

int loop_run(struct loop *loop)
{
	struct io_uring_cqe *cqes[LOOP_BATCH];
	uint64_t data[LOOP_BATCH];
	unsigned int n;
	int r;

	while (!loop->quit) {
		r = wait(loop);
		if (r)
			return vgpu_error_trace(r);
		/* Copy first: the functions called below may submit requests, which may
		 * reuse the entries. */
		n = io_uring_peek_batch_cqe(&loop->ring, cqes, LOOP_BATCH);
		for (unsigned int i = 0; i < n; i++)
			data[i] = io_uring_cqe_get_data64(cqes[i]);
		io_uring_cq_advance(&loop->ring, n);
		for (unsigned int i = 0; i < n && !loop->quit; i++) {
			r = dispatch(loop, data[i]);
			if (r)
				return vgpu_error_trace(r);
		}
		r = run_timers(loop);
		if (r)
			return vgpu_error_trace(r);
	}
	return loop->status;
}
