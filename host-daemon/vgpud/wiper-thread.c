/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wiper thread: empties one piece after the other
 *
 * The thread does not know wipes: it receives one piece by an eventfd, and returns the
 * result by another. There is no lock, so a thread that is not scheduled blocks no other.
 */

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "vgpud/helper.h"
#include "vgpud/wiper-thread.h"

bool wiper_thread_wait(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	return n == sizeof(count);
}

/* Cannot block: each eventfd is read before it is written again. */
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
	/* Partners: start_piece() and wiper_handle_done(), through the eventfds. */
	while (wiper_thread_wait(wiper->asked) &&
		__atomic_load_n(&wiper->fd, __ATOMIC_ACQUIRE) >= 0) {
		int r = wiper_empty(wiper->fd, wiper->offset, wiper->size);

		__atomic_store_n(&wiper->result, r, __ATOMIC_RELEASE);
		tell(wiper->done);
	}
	return NULL;
}

int wiper_thread_start(struct wiper *wiper)
{
	return helper_start(&wiper->thread, run, wiper);
}

void wiper_thread_ask(struct wiper *wiper, int fd, uint64_t offset, uint64_t size)
{
	wiper->offset = offset;
	wiper->size = size;
	__atomic_store_n(&wiper->fd, fd, __ATOMIC_RELEASE);
	tell(wiper->asked);
}

void wiper_thread_end(struct wiper *wiper)
{
	struct pollfd done = { .fd = wiper->done, .events = POLLIN };

	/* Wait for the piece in progress, because the eventfd must be read before the
	 * next request. */
	if (wiper->current)
		poll(&done, 1, -1);
	wiper_thread_ask(wiper, -1, 0, 0);
	pthread_join(wiper->thread, NULL);
}
