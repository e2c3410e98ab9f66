/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closer: closes descriptors on a thread
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "vgpud/closer.h"
#include "vgpu/error.h"
#include "vgpud/helper.h"

static int numbers = -1; /* write end of the pipe of descriptors to close */

static void *run(void *data)
{
	const int from = (int)(intptr_t)data;
	ssize_t n;
	int fd;

	helper_lower_priority();
	for (;;) {
		n = read(from, &fd, sizeof(fd));
		if (n == sizeof(fd))
			close(fd);
		else if (n >= 0 || errno != EINTR)
			return NULL;
	}
}

int closer_start(void)
{
	pthread_t thread;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return vgpu_error_origin(-errno);
	r = fcntl(pair[1], F_SETFL, O_NONBLOCK) < 0 ? vgpu_error_origin(-errno) : 0;
	if (!r)
		r = helper_start(&thread, run, (void *)(intptr_t)pair[0]);
	if (r) {
		close(pair[0]);
		close(pair[1]);
		return vgpu_error_trace(r);
	}
	pthread_detach(thread);
	numbers = pair[1];
	return 0;
}

int closer_close(int fd)
{
	if (fd < 0)
		return -1;
	/* The pipe is full only with thousands of descriptors. */
	if (numbers < 0 || write(numbers, &fd, sizeof(fd)) != sizeof(fd))
		close(fd);
	return -1;
}
