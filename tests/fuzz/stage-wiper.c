/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage wiper: empties memory on request
 *
 * Replaces wiper-thread.c: without a thread, a run depends only on the input. A request
 * is complete by the time that its eventfd is read.
 */

#include <stdlib.h>
#include <sys/eventfd.h>

#include "vgpud/wiper-thread.h"

int wiper_thread_start(struct wiper *wiper)
{
	(void)wiper;
	return 0;
}

void wiper_thread_end(struct wiper *wiper)
{
	(void)wiper;
}

void wiper_thread_ask(struct wiper *wiper, int fd, uint64_t offset, uint64_t size)
{
	wiper->offset = offset;
	wiper->size = size;
	wiper->result = wiper_empty(fd, offset, size);
	if (eventfd_write(wiper->done, 1))
		abort();
}

bool wiper_thread_wait(int fd)
{
	eventfd_t count;

	return !eventfd_read(fd, &count);
}
