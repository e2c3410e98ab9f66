/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client: vgpuctl's connection to vgpud
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/packet.h"
#include "ctl/client.h"
#include "vgpu/cleanup.h"

/* vgpud answers at once, or within a second if a broker is replaced meanwhile. */
#define CLIENT_TIMEOUT_S 30
/* Connections for one request, while others change the configuration all the time. */
#define CLIENT_ATTEMPTS 100

/* The end of a connection is printed by who tries no more. */
static enum ctl_status lose(struct client *client)
{
	client->is_lost = true;
	return CTL_NO_VGPUD;
}

static enum ctl_status tell_lost(void)
{
	return ctl_fail(CTL_NO_VGPUD,
		"vgpud has ended the connection: its log may have a reason");
}

static enum ctl_status connect_to(struct client *client)
{
	const char *path = client->path;
	const struct timeval timeout = { .tv_sec = client->timeout_s };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return ctl_fail(CTL_USAGE, "the path %s is too long for a socket", path);
	strcpy(address.sun_path, path);
	client->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
		setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout,
			sizeof(timeout)) < 0 ||
		setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout,
			sizeof(timeout)) < 0)
		return ctl_fail(
			CTL_FAILED, "a socket cannot be made: %s", strerror(errno));
	if (!connect(client->fd, (struct sockaddr *)&address, sizeof(address)))
		return CTL_OK;
	return ctl_fail(CTL_NO_VGPUD,
		"%s: %s: vgpud does not run, or serves another ctl-socket", path,
		strerror(errno));
}

int client_take_descriptor(struct client *client)
{
	const int fd = client->descriptor;

	client->descriptor = -1;
	return fd;
}

/* The packet is to be freed. */
static enum ctl_status receive(struct client *client, uint8_t **packetp, size_t *sizep)
{
	_vgpu_cleanup_(vgpu_freep) uint8_t *packet = malloc(CTL_REPLY_MAX);
	size_t n_fds;
	bool cut;
	int r;

	if (!packet)
		return ctl_fail(CTL_FAILED, "there is no memory");
	vgpu_close(client_take_descriptor(client));
	r = packet_receive(client->fd, packet, CTL_REPLY_MAX, sizep, &client->descriptor,
		1, &n_fds, &cut);
	if (r || !n_fds)
		client->descriptor = -1;
	if (!r && !cut) {
		*packetp = packet;
		packet = NULL;
		return CTL_OK;
	}
	if (r == PACKET_E_AGAIN)
		return ctl_fail(CTL_NO_VGPUD, "vgpud has not answered for %u s",
			client->timeout_s);
	return lose(client);
}

static enum ctl_status receive_hello(struct client *client)
{
	enum ctl_status status;
	const char *reason;
	uint8_t *packet;
	size_t size;

	status = receive(client, &packet, &size);
	if (status)
		return status;
	client->hello = ctl_hello_new(packet, size, &reason);
	free(packet);
	if (!client->hello)
		return ctl_fail(CTL_FAILED, "what answers is not vgpud: %s", reason);
	if (client->hello->version != CTL_VERSION)
		return ctl_fail(CTL_FAILED,
			"vgpud %s speaks version %u of the messages, this vgpuctl "
			"version %u: both have to be of one release",
			client->hello->release, client->hello->version, CTL_VERSION);
	if (client->hello->access == VGPU_CTL__ACCESS__NONE)
		return ctl_fail(CTL_DENIED, "%s", client->hello->reason);
	return CTL_OK;
}

static enum ctl_status status_of(VgpuCtl__Status status)
{
	switch (status) {
	case VGPU_CTL__STATUS__OK:
		return CTL_OK;
	case VGPU_CTL__STATUS__DENIED:
		return CTL_DENIED;
	case VGPU_CTL__STATUS__INVALID:
		return CTL_REFUSED;
	case VGPU_CTL__STATUS__UNKNOWN:
		return CTL_NO_VM;
	default:
		return CTL_FAILED;
	}
}

/* With a status that is permitted the reply is the caller's, too. */
static enum ctl_status receive_reply(struct client *client, uint64_t id,
	VgpuCtl__Status permitted, VgpuCtl__Reply **replyp)
{
	VgpuCtl__Reply *reply;
	enum ctl_status status;
	const char *reason;
	uint8_t *packet;
	size_t size;

	status = receive(client, &packet, &size);
	if (status)
		return status;
	reply = ctl_reply_new(packet, size, &reason);
	free(packet);
	if (!reply)
		return ctl_fail(CTL_FAILED, "vgpud's reply is invalid: %s", reason);
	/* A request that cannot be unpacked has no number. */
	if (reply->id != id && reply->id)
		status = ctl_fail(CTL_FAILED, "vgpud replied to another request");
	else if (reply->status && reply->status != permitted)
		status = ctl_fail(status_of(reply->status), "%s", reply->reason);
	if (status)
		ctl_reply_freep(&reply);
	else
		*replyp = reply;
	return status;
}

static enum ctl_status ask_once(struct client *client, VgpuCtl__Request *request,
	VgpuCtl__Status permitted, VgpuCtl__Reply **replyp)
{
	int r;

	*replyp = NULL;
	request->id = ++client->last_id;
	r = ctl_send(client->fd, &request->base, CTL_REQUEST_MAX);
	if (r == -EMSGSIZE)
		return ctl_fail(CTL_REFUSED, "the request is too long");
	if (r)
		return lose(client);
	return receive_reply(client, request->id, permitted, replyp);
}

/*
 * Connections
 */

static enum ctl_status say_hello(struct client *client)
{
	VgpuCtl__Hello hello = VGPU_CTL__HELLO__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	hello.version = CTL_VERSION;
	hello.release = (char *)VGPUD_VERSION;
	request.verb_case = VGPU_CTL__REQUEST__VERB_HELLO;
	request.hello = &hello;
	status = ask_once(client, &request, VGPU_CTL__STATUS__OK, &reply);
	ctl_reply_freep(&reply);
	return status;
}

static void disconnect(struct client *client)
{
	ctl_hello_freep(&client->hello);
	client->hello = NULL;
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	vgpu_close(client_take_descriptor(client));
	client->is_lost = false;
}

static enum ctl_status connect_once(struct client *client)
{
	enum ctl_status status;

	disconnect(client);
	status = connect_to(client);
	if (!status)
		status = receive_hello(client);
	return status ? status : say_hello(client);
}

/* Connects until vgpud has greeted. */
static enum ctl_status connect_again(struct client *client, unsigned int *leftp)
{
	enum ctl_status status;

	do {
		if (!(*leftp)--)
			return tell_lost();
		status = connect_once(client);
	} while (client->is_lost);
	return status;
}

enum ctl_status client_open(struct client *client, const char *path)
{
	return client_open_within(client, path, CLIENT_TIMEOUT_S);
}

enum ctl_status client_open_within(
	struct client *client, const char *path, unsigned int timeout_s)
{
	unsigned int left = CLIENT_ATTEMPTS;
	enum ctl_status status;

	*client = CLIENT_NULL;
	client->path = path;
	client->timeout_s = timeout_s;
	status = connect_again(client, &left);
	if (status)
		client_close(client);
	return status;
}

void client_close(struct client *client)
{
	disconnect(client);
	*client = CLIENT_NULL;
}

/*
 * Requests
 */

enum ctl_status client_ask_permitting(struct client *client, VgpuCtl__Request *request,
	VgpuCtl__Status permitted, VgpuCtl__Reply **replyp)
{
	unsigned int left = CLIENT_ATTEMPTS;
	enum ctl_status status;

	for (;;) {
		status = ask_once(client, request, permitted, replyp);
		if (!client->is_lost)
			return status;
		status = connect_again(client, &left);
		if (status)
			return status;
	}
}

enum ctl_status client_ask(
	struct client *client, VgpuCtl__Request *request, VgpuCtl__Reply **replyp)
{
	return client_ask_permitting(client, request, VGPU_CTL__STATUS__OK, replyp);
}

enum ctl_status client_find_after(
	struct client *client, const char *vm, uint64_t after, VgpuCtl__Reply **replyp)
{
	VgpuCtl__Show show = VGPU_CTL__SHOW__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;
	bool is_shown;

	show.vm = (char *)vm;
	show.after = after;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SHOW;
	request.show = &show;
	status = client_ask_permitting(
		client, &request, VGPU_CTL__STATUS__UNKNOWN, replyp);
	is_shown = !status && (*replyp)->result_case == VGPU_CTL__REPLY__RESULT_SHOW;
	if (!status && !is_shown) {
		if ((*replyp)->status != VGPU_CTL__STATUS__UNKNOWN)
			status = ctl_fail(
				CTL_FAILED, "vgpud's reply does not show a machine");
		ctl_reply_freep(replyp);
		*replyp = NULL;
	}
	return status;
}

enum ctl_status client_find(
	struct client *client, const char *vm, VgpuCtl__Reply **replyp)
{
	return client_find_after(client, vm, 0, replyp);
}

enum ctl_status client_list(
	struct client *client, const char *after, VgpuCtl__Reply **replyp)
{
	VgpuCtl__List list = VGPU_CTL__LIST__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;

	list.after = (char *)after;
	request.verb_case = VGPU_CTL__REQUEST__VERB_LIST;
	request.list = &list;
	status = client_ask(client, &request, replyp);
	if (status || (*replyp)->result_case == VGPU_CTL__REPLY__RESULT_LIST)
		return status;
	ctl_reply_freep(replyp);
	*replyp = NULL;
	return ctl_fail(CTL_FAILED, "vgpud's reply is not a list");
}
