/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl server: serves vgpuctl
 *
 * The broker serves it, because it knows everything that is asked for and may die. A
 * client can be any program of the host, hostile or stopped, and must not delay the
 * guests:
 *
 *   - Nothing here waits. A packet has a whole message, so there are no halves of one to
 *     keep; a reply that does not fit the client's socket, because it has not read the
 *     last one, ends the connection.
 *   - Who may do nothing gets one packet that says so, and no place among the clients.
 *   - Connections, requests and connections per second are bounded, and the connections
 *     of one user, so that a member of a group locks nobody else out. A client that sends
 *     no request for a while is disconnected.
 *
 * A change replaces the broker. So a client that asks for one leaves: its connection goes
 * to the keeper, and returns to the broker that has the result (keeper/held-ctl.c). If
 * this broker dies at any instruction the client sees the end of its connection.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/ctl-change.h"
#include "broker/ctl-record.h"
#include "broker/ctl-server.h"
#include "broker/ctl-stats.h"
#include "broker/ctl-trace.h"
#include "broker/ctl-verbs.h"
#include "broker/state.h"
#include "control/ctl-message.h"
#include "control/packet.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"
#include "vgpud/container-of.h"

/* Time for the client's hello, and for each request after the last one. */
#define CTL_HELLO_MS 5000
#define CTL_IDLE_MS 60000
/* Requests of one client at once, and the interval of more: a list of all VMs takes 16.
 */
#define CTL_REQUESTS 64
#define CTL_REQUEST_MS 20
/* The same for connections of all. Refusing one costs some 20 us. */
#define CTL_CONNECTIONS 64
#define CTL_CONNECTION_MS 2
/* Log lines about refused clients. */
#define CTL_LINES 10
#define CTL_LINE_MS 10000
/* Pause after an error of accept(), such as a lack of descriptors. */
#define CTL_PAUSE_MS 1000

static int receive(struct loop_source *source);
static int handle_connection(struct loop_source *source);

int ctl_server_new(struct broker *broker)
{
	struct ctl_server *server = calloc(1, sizeof(*server));
	const int64_t now = clock_now();

	if (!server)
		return vgpu_error_origin(-ENOMEM);
	broker->ctl = server;
	server->broker = broker;
	server->fd = -1;
	recordings_init(&broker->recordings);
	TAILQ_INIT(&server->clients);
	budget_init(&server->connections, CTL_CONNECTIONS, CTL_CONNECTION_MS, now);
	budget_init(&server->log, CTL_LINES, CTL_LINE_MS, now);
	return 0;
}

static void client_free(struct ctl_client *client)
{
	struct ctl_server *server = client->broker->ctl;

	loop_remove(&client->source);
	loop_clear_timer(&client->deadline);
	loop_clear_timer(&client->rest);
	vgpu_close(client->fd);
	TAILQ_REMOVE(&server->clients, client, entry);
	server->n_clients--;
	server->n_monitors -= client->peer.access == VGPU_CTL__ACCESS__MONITOR;
	server->n_users -= !ctl_peer_is_root(&client->peer);
	free(client);
}

void ctl_server_free(struct ctl_server *server)
{
	struct ctl_client *client;

	if (!server)
		return;
	while ((client = TAILQ_FIRST(&server->clients)))
		client_free(client);
	recordings_deinit(&server->broker->recordings);
	loop_remove(&server->source);
	loop_clear_timer(&server->rest);
	vgpu_close(server->fd);
	free(server);
}

/*
 * Replies
 */

/* With a descriptor unless that is -1. Return: whether the client lives. */
static bool reply_with(struct ctl_client *client, const VgpuCtl__Reply *reply, int fd)
{
	const int r = ctl_send_fd(client->fd, &reply->base, CTL_REPLY_MAX, fd);

	if (!r)
		return true;
	if (r != PACKET_E_EOF)
		vgpu_log_debug("ctl pid=%d: no reply can be sent: %s",
			(int)client->peer.who.pid,
			r < 0 ? strerror(-r) : "it has not read the last one");
	client_free(client);
	return false;
}

static bool reply_to(struct ctl_client *client, const VgpuCtl__Reply *reply)
{
	return reply_with(client, reply, -1);
}

static bool refuse(struct ctl_client *client, const VgpuCtl__Request *request,
	VgpuCtl__Status status, const char *reason)
{
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	reply.id = request ? request->id : 0;
	reply.status = status;
	reply.reason = (char *)reason;
	return reply_to(client, &reply);
}

static int send_hello(
	const struct broker *broker, int fd, VgpuCtl__Access access, const char *reason)
{
	VgpuCtl__Hello hello = VGPU_CTL__HELLO__INIT;
	char path[PATH_MAX];

	hello.version = CTL_VERSION;
	hello.features = CTL_FEATURE_STATS | CTL_FEATURE_RECORD;
	hello.release = (char *)VGPUD_VERSION;
	hello.access = access;
	hello.reason = (char *)(reason ? reason : "");
	hello.pid = (uint32_t)getppid();
	if (access && broker->path && realpath(broker->path, path))
		hello.config = path;
	return ctl_send(fd, &hello.base, CTL_REPLY_MAX);
}

/*
 * Requests
 */

/* Return: NULL, or why the request is not handled. */
static const char *judge(const struct ctl_client *client, const VgpuCtl__Request *request,
	VgpuCtl__Status *statusp)
{
	*statusp = VGPU_CTL__STATUS__INVALID;
	if (request->verb_case == VGPU_CTL__REQUEST__VERB_HELLO)
		return request->hello->version == CTL_VERSION
			       ? NULL
			       : "vgpuctl and vgpud have to be of releases with the "
				 "same version of these messages";
	if (!client->is_greeted)
		return "the first request has to be a hello";
	if (request->verb_case == VGPU_CTL__REQUEST__VERB_LIST ||
		request->verb_case == VGPU_CTL__REQUEST__VERB_SHOW ||
		request->verb_case == VGPU_CTL__REQUEST__VERB_STATS)
		return NULL;
	*statusp = VGPU_CTL__STATUS__UNKNOWN;
	if (request->verb_case == VGPU_CTL__REQUEST__VERB__NOT_SET)
		return "this vgpud does not know the request";
	*statusp = VGPU_CTL__STATUS__DENIED;
	return client->peer.access == VGPU_CTL__ACCESS__ADMIN
		       ? NULL
		       : "only root and members of the group for administrators may "
			 "change anything";
}

/* Return: whether the client is still one of this broker. */
static bool change(struct ctl_client *client, const VgpuCtl__Request *request)
{
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;
	bool is_left, is_alive = false;

	reply.id = request->id;
	is_left = ctl_change(client->broker, client, request, &reply);
	if (is_left)
		client_free(client);
	else
		is_alive = reply_to(client, &reply);
	ctl_change_free(&reply);
	return is_alive;
}

static bool look_up(struct ctl_client *client, const VgpuCtl__Request *request)
{
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;
	bool is_alive;

	reply.id = request->id;
	if (request->verb_case == VGPU_CTL__REQUEST__VERB_LIST)
		ctl_verbs_list(client->broker, request->list, &reply);
	else if (request->verb_case == VGPU_CTL__REQUEST__VERB_SHOW)
		ctl_verbs_show(client->broker, request->show, &reply);
	else if (request->verb_case == VGPU_CTL__REQUEST__VERB_STATS)
		ctl_stats_reply(client->broker, request->stats, &reply);
	else if (request->verb_case == VGPU_CTL__REQUEST__VERB_TRACE)
		ctl_trace_reply(client->broker, request->trace, &reply);
	is_alive = reply_to(client, &reply);
	ctl_trace_free(&reply);
	ctl_verbs_free(&reply);
	ctl_stats_free(&reply);
	return is_alive;
}

static bool record(struct ctl_client *client, const VgpuCtl__Request *request)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	reply.id = request->id;
	ctl_record_reply(client->broker, request->record, &reply, &fd);
	return reply_with(client, &reply, fd);
}

static bool handle_request(struct ctl_client *client, const VgpuCtl__Request *request)
{
	VgpuCtl__Status status;
	const char *reason = judge(client, request, &status);

	if (reason) {
		if (!refuse(client, request, status, reason))
			return false;
		if (client->is_greeted)
			return true;
		client_free(client);
		return false;
	}
	switch (request->verb_case) {
	case VGPU_CTL__REQUEST__VERB_HELLO:
		client->is_greeted = true;
		__attribute__((fallthrough));
	case VGPU_CTL__REQUEST__VERB_LIST:
	case VGPU_CTL__REQUEST__VERB_SHOW:
	case VGPU_CTL__REQUEST__VERB_STATS:
	case VGPU_CTL__REQUEST__VERB_TRACE:
		return look_up(client, request);
	case VGPU_CTL__REQUEST__VERB_RECORD:
		return record(client, request);
	default:
		return change(client, request);
	}
}

static int handle_deadline(struct loop_timer *timer)
{
	client_free(container_of(timer, struct ctl_client, deadline));
	return 0;
}

static int handle_rested(struct loop_timer *timer)
{
	struct ctl_client *client = container_of(timer, struct ctl_client, rest);

	if (loop_add(&client->broker->loop, &client->source, client->fd, receive))
		client_free(client);
	return 0;
}

/* Ignores a client that asks too often, for a while. */
static void rest(struct ctl_client *client)
{
	const uint32_t ms = budget_wait(&client->requests, clock_now());

	loop_set_timer(
		&client->broker->loop, &client->deadline, CTL_IDLE_MS, handle_deadline);
	if (!ms)
		return;
	loop_remove(&client->source);
	loop_set_timer(&client->broker->loop, &client->rest, ms, handle_rested);
}

/* Receives one request: what else the client has sent waits for the next turn. */
static int receive(struct loop_source *source)
{
	struct ctl_client *client = container_of(source, struct ctl_client, source);
	_vgpu_cleanup_(ctl_request_freep) VgpuCtl__Request *request = NULL;
	uint8_t packet[CTL_REQUEST_MAX];
	const char *reason = "a packet is too long, or has descriptors";
	size_t size, n_fds;
	bool cut = false;
	int r, none;

	r = packet_receive(
		client->fd, packet, sizeof(packet), &size, &none, 0, &n_fds, &cut);
	if (r == PACKET_E_AGAIN)
		return 0;
	if (r) {
		client_free(client);
		return 0;
	}
	if (!cut)
		request = ctl_request_new(packet, size, &reason);
	if (!request) {
		if (refuse(client, NULL, VGPU_CTL__STATUS__INVALID, reason))
			client_free(client);
		return 0;
	}
	budget_take(&client->requests, clock_now());
	if (handle_request(client, request))
		rest(client);
	return 0;
}

/*
 * Connections
 */

/* Takes the descriptor. Return: the client, or NULL. */
static struct ctl_client *client_new(
	struct broker *broker, int fd, const struct ctl_peer *peer, bool is_greeted)
{
	struct ctl_client *client = calloc(1, sizeof(*client));

	if (!client) {
		vgpu_close(fd);
		return NULL;
	}
	client->broker = broker;
	client->fd = fd;
	client->peer = *peer;
	client->is_greeted = is_greeted;
	budget_init(&client->requests, CTL_REQUESTS, CTL_REQUEST_MS, clock_now());
	TAILQ_INSERT_TAIL(&broker->ctl->clients, client, entry);
	broker->ctl->n_clients++;
	broker->ctl->n_monitors += peer->access == VGPU_CTL__ACCESS__MONITOR;
	broker->ctl->n_users += !ctl_peer_is_root(peer);
	loop_set_timer(&broker->loop, &client->deadline,
		is_greeted ? CTL_IDLE_MS : CTL_HELLO_MS, handle_deadline);
	if (loop_add(&broker->loop, &client->source, fd, receive)) {
		client_free(client);
		return NULL;
	}
	return client;
}

static unsigned int count_clients_of(const struct ctl_server *server, uid_t uid)
{
	const struct ctl_client *client;
	unsigned int n = 0;

	TAILQ_FOREACH(client, &server->clients, entry)
		n += client->peer.who.uid == uid;
	return n;
}

/* Return: why there is no place for it, or NULL. */
static const char *find_refusal(
	const struct ctl_server *server, const struct ctl_peer *peer)
{
	if (!peer->access)
		return peer->reason;
	if (server->n_clients >= CTL_CLIENTS_MAX ||
		(!ctl_peer_is_root(peer) && server->n_users >= CTL_USERS_MAX) ||
		(peer->access == VGPU_CTL__ACCESS__MONITOR &&
			server->n_monitors >= CTL_MONITORS_MAX))
		return "vgpud has as many connections of vgpuctl as it serves at once";
	if (!ctl_peer_is_root(peer) &&
		count_clients_of(server, peer->who.uid) >= CTL_USER_MAX)
		return "vgpud has as many connections of vgpuctl as it serves one user "
		       "at "
		       "once";
	return NULL;
}

/* Takes the descriptor. */
static void admit(struct broker *broker, int fd)
{
	struct ctl_server *server = broker->ctl;
	struct ctl_peer peer;
	const char *reason;
	int r;

	if (ctl_peer_init(&peer, fd, &server->groups)) {
		vgpu_close(fd);
		return;
	}
	reason = find_refusal(server, &peer);
	r = send_hello(broker, fd, reason ? VGPU_CTL__ACCESS__NONE : peer.access, reason);
	if (reason && budget_take(&server->log, clock_now()))
		vgpu_log_warning("ctl uid=%u pid=%d: it is refused: %s",
			(unsigned int)peer.who.uid, (int)peer.who.pid, reason);
	if (r || reason)
		vgpu_close(fd);
	else
		client_new(broker, fd, &peer, false);
}

static int handle_server_rested(struct loop_timer *timer)
{
	struct ctl_server *server = container_of(timer, struct ctl_server, rest);

	return ctl_server_listen(server->broker);
}

static void pause_server(struct broker *broker, uint32_t ms)
{
	if (!ms)
		return;
	loop_remove(&broker->ctl->source);
	loop_set_timer(&broker->loop, &broker->ctl->rest, ms, handle_server_rested);
}

static int handle_connection(struct loop_source *source)
{
	struct ctl_server *server = container_of(source, struct ctl_server, source);
	struct broker *broker = server->broker;
	const int64_t now = clock_now();
	int fd;

	fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		budget_take(&server->connections, now);
		admit(broker, fd);
		pause_server(broker, budget_wait(&server->connections, now));
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return 0;
	if (budget_take(&server->log, now))
		vgpu_log_error("ctl: cannot accept a connection: %m");
	pause_server(broker, CTL_PAUSE_MS);
	return 0;
}

void ctl_server_take(struct broker *broker, int fd)
{
	loop_remove(&broker->ctl->source);
	vgpu_close(broker->ctl->fd);
	broker->ctl->fd = fd;
	ctl_groups_init(&broker->ctl->groups, broker->config);
}

int ctl_server_listen(struct broker *broker)
{
	struct ctl_server *server = broker->ctl;

	if (server->fd < 0 || server->source.loop)
		return 0;
	return loop_add(&broker->loop, &server->source, server->fd, handle_connection);
}

void ctl_server_handle_configured(
	struct broker *broker, uint64_t request, int error, int fd)
{
	VgpuCtl__Changed changed = VGPU_CTL__CHANGED__INIT;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;
	struct ctl_client *client;
	struct ctl_peer peer;

	if (ctl_peer_init(&peer, fd, &broker->ctl->groups)) {
		vgpu_close(fd);
		return;
	}
	client = client_new(broker, fd, &peer, true);
	if (!client)
		return;
	reply.id = request;
	if (error) {
		reply.status = VGPU_CTL__STATUS__FAILED;
		reply.reason = (char *)"the configuration stays as it was; the log of "
				       "vgpud has the reason";
	} else {
		changed.changed = true;
		reply.result_case = VGPU_CTL__REPLY__RESULT_CHANGED;
		reply.changed = &changed;
	}
	reply_to(client, &reply);
}
