/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of the socket for vgpuctl, which knows the messages only
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/packet.h"
#include "ctl-client.h"
#include "test.h"

#define ANSWER_MS 60000

char ctl_path[104];
static uint8_t packet[2 * CTL_REPLY_MAX];

int ctl_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	check(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", ctl_path);
	check_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Return: the bytes of the next packet, 0: the connection has ended. */
size_t ctl_receive(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	size_t size, n_fds;
	int none, r;
	bool cut;

	check_eq(poll(&poller, 1, ANSWER_MS), 1);
	r = packet_receive(fd, packet, sizeof(packet), &size, &none, 0, &n_fds, &cut);
	check(!r || r == PACKET_E_EOF);
	return r ? 0 : size;
}

VgpuCtl__Access ctl_meet(int fd)
{
	const char *reason;
	VgpuCtl__Hello *hello;
	VgpuCtl__Access access;

	hello = ctl_hello_new(packet, ctl_receive(fd), &reason);
	check(hello != NULL);
	check_eq(hello->version, CTL_VERSION);
	access = hello->access;
	check((access == VGPU_CTL__ACCESS__NONE) == (*hello->reason != '\0'));
	ctl_hello_freep(&hello);
	return access;
}

/* Return: the reply, to be freed; NULL: the connection has ended. */
VgpuCtl__Reply *ctl_hear(int fd)
{
	const size_t size = ctl_receive(fd);
	VgpuCtl__Reply *reply;
	const char *reason;

	if (!size)
		return NULL;
	reply = ctl_reply_new(packet, size, &reason);
	check(reply != NULL);
	return reply;
}

VgpuCtl__Reply *ctl_ask(int fd, VgpuCtl__Request *request)
{
	static uint64_t last_id;
	VgpuCtl__Reply *reply;

	request->id = ++last_id;
	check_eq(ctl_send(fd, &request->base, CTL_REQUEST_MAX), 0);
	reply = ctl_hear(fd);
	check(!reply || reply->id == request->id);
	return reply;
}

VgpuCtl__Reply *ctl_say_hello(int fd, uint32_t version)
{
	VgpuCtl__Hello hello = VGPU_CTL__HELLO__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	hello.version = version;
	request.verb_case = VGPU_CTL__REQUEST__VERB_HELLO;
	request.hello = &hello;
	return ctl_ask(fd, &request);
}

/* Frees the reply. Return: its status. */
VgpuCtl__Status ctl_status_of(VgpuCtl__Reply *reply)
{
	VgpuCtl__Status status;

	check(reply != NULL);
	status = reply->status;
	check((status == VGPU_CTL__STATUS__OK) == (*reply->reason == '\0'));
	ctl_reply_freep(&reply);
	return status;
}

/* Return: a connection of this process on which requests may follow. */
int ctl_open(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
	check_eq(ctl_status_of(ctl_say_hello(fd, CTL_VERSION)), VGPU_CTL__STATUS__OK);
	return fd;
}

VgpuCtl__Reply *ctl_ask_list(int fd)
{
	VgpuCtl__List list = VGPU_CTL__LIST__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	request.verb_case = VGPU_CTL__REQUEST__VERB_LIST;
	request.list = &list;
	return ctl_ask(fd, &request);
}

VgpuCtl__Reply *ctl_ask_show(int fd, const char *vm)
{
	VgpuCtl__Show show = VGPU_CTL__SHOW__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	show.vm = (char *)vm;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SHOW;
	request.show = &show;
	return ctl_ask(fd, &request);
}

VgpuCtl__Reply *ctl_ask_set(int fd, const char *vm, const char *key, const char *value)
{
	VgpuCtl__Setting setting = VGPU_CTL__SETTING__INIT, *settings[] = { &setting };
	VgpuCtl__Set set = VGPU_CTL__SET__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	setting.key = (char *)key;
	setting.value = (char *)value;
	set.vm = (char *)vm;
	set.n_settings = 1;
	set.settings = settings;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SET;
	request.set = &set;
	return ctl_ask(fd, &request);
}

VgpuCtl__Reply *ctl_ask_add(int fd, const char *vm, const char *text)
{
	VgpuCtl__Add add = VGPU_CTL__ADD__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	add.vm = (char *)vm;
	add.text = (char *)text;
	request.verb_case = VGPU_CTL__REQUEST__VERB_ADD;
	request.add = &add;
	return ctl_ask(fd, &request);
}

VgpuCtl__Reply *ctl_ask_remove(int fd, const char *vm)
{
	VgpuCtl__Remove remove = VGPU_CTL__REMOVE__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	remove.vm = (char *)vm;
	request.verb_case = VGPU_CTL__REQUEST__VERB_REMOVE;
	request.remove = &remove;
	return ctl_ask(fd, &request);
}

/* Whether the socket serves as it should. */
void ctl_check_served(void)
{
	const int fd = ctl_open();

	check_eq(ctl_status_of(ctl_ask_list(fd)), VGPU_CTL__STATUS__OK);
	close(fd);
}
