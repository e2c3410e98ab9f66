/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listen fds: the descriptors that the service manager gives to a process that it starts
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/child.h"
#include "keeper/listen-fds.h"
#include "keeper/store.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

/* While one is replaced in the store both are there. */
#define LISTEN_FDS_MAX (2 * STORE_MAX)

/* Return: how many there are for this process. */
static unsigned long count(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	const bool is_ours = pid && n && strtol(pid, NULL, 10) == getpid();
	const unsigned long result = is_ours ? strtoul(n, NULL, 10) : 0;

	return result <= LISTEN_FDS_MAX ? result : 0;
}

static int fill(struct listen_fds *fds, unsigned long n)
{
	const char *variable = getenv("LISTEN_FDNAMES");
	char *names;

	fds->list = calloc(n, sizeof(*fds->list));
	fds->names = strdup(variable ? variable : "");
	if (!fds->list || !fds->names)
		return vgpu_error_origin(-ENOMEM);
	names = fds->names;
	for (unsigned long i = 0; i < n; i++) {
		const int fd = CHILD_FIRST_FD + (int)i;
		const char *name = names ? strsep(&names, ":") : NULL;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			continue;
		fds->list[fds->n++] = (struct listen_fd){
			.fd = fd,
			.name = name && *name ? name : "unknown",
		};
	}
	return 0;
}

int listen_fds_init(struct listen_fds *fds)
{
	const unsigned long n = count();
	int r = 0;

	*fds = (struct listen_fds){ 0 };
	if (n)
		r = fill(fds, n);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (r)
		listen_fds_deinit(fds);
	return r;
}

void listen_fds_deinit(struct listen_fds *fds)
{
	for (size_t i = 0; i < fds->n; i++)
		vgpu_close(fds->list[i].fd);
	free(fds->list);
	free(fds->names);
	*fds = (struct listen_fds){ 0 };
}

int listen_fds_take(struct listen_fds *fds, const char *name)
{
	int fd;

	for (size_t i = 0; i < fds->n; i++) {
		if (fds->list[i].fd < 0 || strcmp(fds->list[i].name, name))
			continue;
		fd = fds->list[i].fd;
		fds->list[i].fd = -1;
		return fd;
	}
	return -1;
}
