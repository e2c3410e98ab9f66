/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: those that wait for a process of a machine, one for each
 *
 * A client that has gone is seen by its end of the pair of sockets.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "broker/recordings.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

void recordings_init(struct recordings *recordings)
{
	recordings->n = 0;
	TAILQ_INIT(&recordings->list);
}

static void drop(struct recordings *recordings, struct recording_wish *wish)
{
	TAILQ_REMOVE(&recordings->list, wish, entry);
	recordings->n--;
	vgpu_close(wish->fd);
	free(wish);
}

void recordings_deinit(struct recordings *recordings)
{
	struct recording_wish *wish;

	while ((wish = TAILQ_FIRST(&recordings->list)))
		drop(recordings, wish);
}

static bool is_alone(const struct recording_wish *wish)
{
	struct pollfd poller = { .fd = wish->fd };

	return poll(&poller, 1, 0) > 0 && poller.revents & (POLLHUP | POLLERR);
}

void recordings_sweep(struct recordings *recordings)
{
	struct recording_wish *wish, *next;

	for (wish = TAILQ_FIRST(&recordings->list); wish; wish = next) {
		next = TAILQ_NEXT(wish, entry);
		if (is_alone(wish))
			drop(recordings, wish);
	}
}

static struct recording_wish *find(const struct recordings *recordings, const char *vm)
{
	struct recording_wish *wish;

	TAILQ_FOREACH(wish, &recordings->list, entry)
		if (!strcmp(wish->vm, vm))
			return wish;
	return NULL;
}

bool recordings_has(const struct recordings *recordings, const char *vm)
{
	return find(recordings, vm);
}

int recordings_add(struct recordings *recordings, const struct recording_wish *wish)
{
	struct recording_wish *copy = malloc(sizeof(*copy));

	if (!copy)
		return vgpu_error_origin(-ENOMEM);
	*copy = *wish;
	TAILQ_INSERT_TAIL(&recordings->list, copy, entry);
	recordings->n++;
	return 0;
}

int recordings_take(
	struct recordings *recordings, const char *vm, uint32_t pid, const char *command)
{
	struct recording_wish *wish = find(recordings, vm);
	int fd = -1;

	if (!wish || (wish->pid && wish->pid != pid) ||
		(*wish->command &&
			strncmp(wish->command, command, sizeof(wish->command))))
		return -1;
	if (!is_alone(wish)) {
		fd = wish->fd;
		wish->fd = -1;
	}
	drop(recordings, wish);
	return fd;
}
