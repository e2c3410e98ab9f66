/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiper: empties shared memory in the background
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/huge-file.h"
#include "vgpud/wiper-thread.h"
#include "vgpud/wiper.h"

static const uint8_t zeros[1 << 16];

/* Not beyond the end, which would extend a truncated file. */
static int write_zeros(int fd, uint64_t offset, uint64_t size)
{
	uint64_t end = offset + size;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vgpu_error_origin(-errno);
	if (end > (uint64_t)st.st_size)
		end = st.st_size;
	while (offset < end) {
		uint64_t left = end - offset;
		ssize_t n = pwrite(fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros),
			(off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return vgpu_error_origin(n < 0 ? -errno : -EIO);
		offset += n;
	}
	return 0;
}

int wiper_empty(int fd, uint64_t offset, uint64_t size)
{
	int r;

	if (huge_file_is(fd))
		return huge_file_empty(fd, offset, size);
	do
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)offset, (off_t)size);
	while (r < 0 && errno == EINTR);
	return r < 0 ? write_zeros(fd, offset, size) : 0;
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
	r = wiper_thread_start(wiper);
	wiper->has_thread = !r;
	return r ? vgpu_error_trace(r) : 0;
}

void wiper_deinit(struct wiper *wiper)
{
	struct wipe *wipe;

	if (wiper->has_thread) {
		wiper_thread_end(wiper);
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

/* The first wipe of the next section, round robin. */
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
	wiper_thread_ask(wiper, wipe->fd, wipe->offset,
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

/* Return: whether there is another piece. */
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

	if (!wipe || !wiper_thread_wait(wiper->done))
		return;
	r = __atomic_load_n(&wiper->result, __ATOMIC_ACQUIRE);
	wiper->current = NULL;
	if (!r && go_on(wiper, wipe)) {
		/* After the other wipes of its section. */
		TAILQ_REMOVE(&wiper->wipes, wipe, entry);
		TAILQ_INSERT_TAIL(&wiper->wipes, wipe, entry);
	} else {
		leave(wipe);
		wipe->done_fn(wiper, wipe, r);
	}
	start_piece(wiper);
}
