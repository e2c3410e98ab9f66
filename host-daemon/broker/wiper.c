/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiper: empties shared memory without anybody waiting for it
 *
 * The thread knows nothing of wipes: it is handed one piece, by way of an eventfd, and
 * hands its result back by another. There is no lock, so a thread that the scheduler has
 * set aside holds up nobody.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/helper.h"
#include "broker/wiper.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

static const uint8_t zeros[1 << 16];

/* Not beyond the end: that would make a file grow again which somebody has cut short. */
static int write_zeros(int fd, uint64_t offset, uint64_t size)
{
	uint64_t end = offset + size;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (end > (uint64_t)st.st_size)
		end = st.st_size;
	while (offset < end) {
		uint64_t left = end - offset;
		ssize_t n = pwrite(fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros),
			(off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		offset += n;
	}
	return 0;
}

int wiper_empty(int fd, uint64_t offset, uint64_t size)
{
	int r;

	do
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)offset, (off_t)size);
	while (r < 0 && errno == EINTR);
	return r < 0 ? write_zeros(fd, offset, size) : 0;
}

static bool wait_for(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	return n == sizeof(count);
}

/* Each eventfd is read before it is written again: there is always room. */
static void tell(int fd)
{
	const uint64_t one = 1;
	ssize_t n;

	do
		n = write(fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

static void *run(void *data)
{
	struct wiper *wiper = data;

	helper_lower_priority();
	/* Partners: start_piece() and wiper_handle_done(), by way of the eventfds. */
	while (wait_for(wiper->asked) &&
		__atomic_load_n(&wiper->fd, __ATOMIC_ACQUIRE) >= 0) {
		int r = wiper_empty(wiper->fd, wiper->offset, wiper->size);

		__atomic_store_n(&wiper->result, r, __ATOMIC_RELEASE);
		tell(wiper->done);
	}
	return NULL;
}

int wiper_init(struct wiper *wiper)
{
	int r;

	*wiper = (struct wiper)WIPER_NULL;
	TAILQ_INIT(&wiper->wipes);
	wiper->asked = eventfd(0, EFD_CLOEXEC);
	wiper->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wiper->asked < 0 || wiper->done < 0)
		return vgpu_error_origin(-errno);
	r = helper_start(&wiper->thread, run, wiper);
	wiper->has_thread = !r;
	return r ? vgpu_error_trace(r) : 0;
}

static void ask(struct wiper *wiper, int fd, uint64_t offset, uint64_t size)
{
	wiper->offset = offset;
	wiper->size = size;
	__atomic_store_n(&wiper->fd, fd, __ATOMIC_RELEASE);
	tell(wiper->asked);
}

void wiper_deinit(struct wiper *wiper)
{
	struct pollfd done = { .fd = wiper->done, .events = POLLIN };
	struct wipe *wipe;

	if (wiper->has_thread) {
		/* After the piece under way: that is another count of the eventfd. */
		if (wiper->current)
			poll(&done, 1, -1);
		ask(wiper, -1, 0, 0);
		pthread_join(wiper->thread, NULL);
		wiper->has_thread = false;
		while ((wipe = TAILQ_FIRST(&wiper->wipes))) {
			TAILQ_REMOVE(&wiper->wipes, wipe, entry);
			wipe->wiper = NULL;
		}
		wiper->current = NULL;
	}
	wiper->asked = vgpu_close(wiper->asked);
	wiper->done = vgpu_close(wiper->done);
}

/* The first wipe of the section that comes after the last one's, in a circle. */
static struct wipe *choose(const struct wiper *wiper)
{
	struct wipe *wipe, *next = NULL, *lowest = NULL;

	TAILQ_FOREACH(wipe, &wiper->wipes, entry) {
		if (!lowest || wipe->section < lowest->section)
			lowest = wipe;
		if (wipe->section > wiper->last_section &&
			(!next || wipe->section < next->section))
			next = wipe;
	}
	return next ? next : lowest;
}

static void start_piece(struct wiper *wiper)
{
	struct wipe *wipe = choose(wiper);
	uint64_t left;

	if (wiper->current || !wipe)
		return;
	left = wipe->end - wipe->offset;
	wiper->current = wipe;
	wiper->last_section = wipe->section;
	ask(wiper, wipe->fd, wipe->offset,
		left < WIPER_PIECE_SIZE ? left : WIPER_PIECE_SIZE);
}

void wiper_add(struct wiper *wiper, struct wipe *wipe)
{
	wipe->wiper = wiper;
	TAILQ_INSERT_TAIL(&wiper->wipes, wipe, entry);
	start_piece(wiper);
}

static void leave(struct wipe *wipe)
{
	TAILQ_REMOVE(&wipe->wiper->wipes, wipe, entry);
	wipe->wiper = NULL;
}

bool wiper_cut(struct wipe *wipe)
{
	if (!wipe->wiper)
		return true;
	wipe->end = wipe->offset;
	if (wipe->wiper->current == wipe)
		return false;
	leave(wipe);
	return true;
}

/* Returns: whether there is more of it. */
static bool go_on(struct wiper *wiper, struct wipe *wipe)
{
	const uint64_t offset = wipe->offset;

	wipe->offset += wiper->size;
	if (wipe->piece_fn)
		wipe->piece_fn(wipe, offset, wiper->size);
	return wipe->offset < wipe->end;
}

void wiper_handle_done(struct wiper *wiper)
{
	struct wipe *wipe = wiper->current;
	int r;

	if (!wipe || !wait_for(wiper->done))
		return;
	r = __atomic_load_n(&wiper->result, __ATOMIC_ACQUIRE);
	wiper->current = NULL;
	if (!r && go_on(wiper, wipe)) {
		/* Behind the others of its section. */
		TAILQ_REMOVE(&wiper->wipes, wipe, entry);
		TAILQ_INSERT_TAIL(&wiper->wipes, wipe, entry);
	} else {
		leave(wipe);
		wipe->done_fn(wiper, wipe, r);
	}
	start_piece(wiper);
}
