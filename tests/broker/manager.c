/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service manager that keeps descriptors for vgpud, as systemd does
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest.h"
#include "manager.h"
#include "test.h"

#define GIVEN_MAX (MANAGER_FDS_MAX + MANAGER_OFFERS_MAX)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static struct manager_fd kept[MANAGER_FDS_MAX];
static struct manager_fd offers[MANAGER_OFFERS_MAX];
static unsigned int n_kept, n_offers, n_ready;
static bool is_paused, is_idle;
static char path[108];
static int socket_fd = -1, end[2];

/* Return: the value of a line NAME=VALUE in a notification, or NULL. */
static const char *value_of(const char *text, const char *name, char *value, size_t size)
{
	const char *line = strstr(text, name);

	if (!line || (line != text && line[-1] != '\n'))
		return NULL;
	snprintf(value, size, "%s", line + strlen(name));
	value[strcspn(value, "\n")] = '\0';
	return value;
}

void manager_remove(unsigned int i)
{
	close(kept[i].fd);
	kept[i] = kept[--n_kept];
}

void manager_add(const char *name, int fd)
{
	check(n_kept < MANAGER_FDS_MAX);
	kept[n_kept].fd = fd;
	snprintf(kept[n_kept++].name, sizeof(kept->name), "%s", name);
}

void manager_offer(const char *name, int fd)
{
	check(n_offers < MANAGER_OFFERS_MAX);
	offers[n_offers].fd = fd;
	snprintf(offers[n_offers++].name, sizeof(offers->name), "%s", name);
}

void manager_withdraw(void)
{
	n_offers = 0;
}

static void handle(const char *text, int fd)
{
	char name[64] = "", value[16] = "";
	bool is_poll;

	value_of(text, "FDNAME=", name, sizeof(name));
	is_poll = !value_of(text, "FDPOLL=", value, sizeof(value)) || strcmp(value, "0");
	if (!strncmp(text, "READY=1", 7)) {
		n_ready++;
	} else if (!strncmp(text, "FDSTORE=1", 9)) {
		/* systemd would remove a socket like these at once. */
		check(!is_poll);
		check(fd >= 0 && *name);
		manager_add(name, fd);
		return;
	} else if (!strncmp(text, "FDSTOREREMOVE=1", 15)) {
		check(*name);
		for (unsigned int i = n_kept; i-- > 0;)
			if (!strcmp(kept[i].name, name))
				manager_remove(i);
	}
	if (fd >= 0)
		close(fd);
}

/* Return: whether there was a notification. */
static bool receive(void)
{
	char text[512] = "";
	struct iovec iov = { text, sizeof(text) - 1 };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} buffer = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &buffer,
		.msg_controllen = sizeof(buffer),
	};
	const struct cmsghdr *cmsg;
	int fd = -1;

	if (recvmsg(socket_fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return false;
	cmsg = CMSG_FIRSTHDR(&header);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	handle(text, fd);
	return true;
}

static void *run(void *data)
{
	struct pollfd pollers[] = { { end[0], POLLIN, 0 }, { socket_fd, POLLIN, 0 } };

	(void)data;
	while (poll(pollers, 2, 10) >= 0 && !pollers[0].revents) {
		pthread_mutex_lock(&lock);
		if (!is_paused)
			while (receive())
				;
		is_idle = true;
		pthread_mutex_unlock(&lock);
		if (is_paused)
			usleep(1000);
	}
	return NULL;
}

void manager_begin(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(path, sizeof(path), "%s/notify", test_tmpdir());
	strcpy(address.sun_path, path);
	socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check_eq(bind(socket_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq(pipe2(end, O_CLOEXEC), 0);
	n_ready = n_kept = 0;
	is_paused = false;
	check_eq(pthread_create(&thread, NULL, run, NULL), 0);
}

void manager_drop(void)
{
	pthread_mutex_lock(&lock);
	while (n_kept)
		manager_remove(0);
	pthread_mutex_unlock(&lock);
}

void manager_end(void)
{
	close(end[1]);
	check_eq(pthread_join(thread, NULL), 0);
	close(end[0]);
	close(socket_fd);
	manager_drop();
}

/* In the child: there is no other thread. The numbers of what is kept are moved away from
 * their targets first. The process gets nothing else, as from systemd: what the test has
 * open would be there or not, depending on how much is kept. */
void manager_give(void)
{
	static char names[GIVEN_MAX * 65], number[16];
	struct manager_fd given[GIVEN_MAX];
	const unsigned int n = n_offers + n_kept;

	check_eq(setenv("NOTIFY_SOCKET", path, 1), 0);
	check_eq(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
	if (!n)
		return;
	memcpy(given, offers, n_offers * sizeof(*given));
	memcpy(given + n_offers, kept, n_kept * sizeof(*given));
	for (unsigned int i = 0; i < n; i++) {
		given[i].fd = fcntl(given[i].fd, F_DUPFD_CLOEXEC, 3 + GIVEN_MAX);
		check(given[i].fd >= 0);
		if (i)
			strcat(names, ":");
		strcat(names, given[i].name);
	}
	for (unsigned int i = 0; i < n; i++)
		check_eq(dup2(given[i].fd, 3 + i), 3 + (int)i);
	snprintf(number, sizeof(number), "%u", n);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
}

static bool is_settled(void)
{
	bool settled;

	pthread_mutex_lock(&lock);
	settled = is_idle;
	pthread_mutex_unlock(&lock);
	return settled;
}

void manager_settle(void)
{
	pthread_mutex_lock(&lock);
	is_idle = false;
	pthread_mutex_unlock(&lock);
	guest_wait_for(is_settled());
}

static unsigned int count_ready(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = n_ready;
	pthread_mutex_unlock(&lock);
	return n;
}

void manager_wait_ready(unsigned int n)
{
	guest_wait_for(count_ready() >= n);
}

unsigned int manager_count(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = n_kept;
	pthread_mutex_unlock(&lock);
	return n;
}

struct manager_fd *manager_kept(unsigned int *np)
{
	*np = n_kept;
	return kept;
}

void manager_pause(bool paused)
{
	pthread_mutex_lock(&lock);
	is_paused = paused;
	pthread_mutex_unlock(&lock);
}
