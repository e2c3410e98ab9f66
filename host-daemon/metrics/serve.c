/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serve: metrics by HTTP
 *
 * The library's thread owns snapshot and texts; the table of connections is under `lock`,
 * because the main thread looks for old ones. A text is freed by the library when the
 * last connection that sends it ends: SERVE_CONNECTIONS bounds their number.
 */

#include <microhttpd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics/exposition.h"
#include "metrics/serve.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"

/* Prometheus has one connection; others may look, too. */
#define SERVE_CONNECTIONS 32u
/* Without a byte in either direction, and in all. */
#define SERVE_IDLE_S 5u
#define SERVE_MS 20000
/* Of a request's line and headers, for each connection. */
#define SERVE_MEMORY 32768u
#define CACHE_MS 1000

struct connection {
	int fd; /* -1: none */
	int64_t since;
};

struct server {
	struct server_options options;
	struct MHD_Daemon *daemon;

	/* Of the library's thread. */
	bool has_snapshot;
	bool was_up;
	int64_t taken_at;
	struct snapshot snapshot;
	struct MHD_Response *texts[_EXPOSITION_FORMAT_N];
	struct MHD_Response *index, *not_found, *wrong_method, *no_memory;

	pthread_mutex_t lock;
	struct connection connections[SERVE_CONNECTIONS];
};

static const char *const content_types[_EXPOSITION_FORMAT_N] = {
	[EXPOSITION_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[EXPOSITION_OPENMETRICS] =
		"application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/*
 * Texts
 */

static struct MHD_Response *response_new(
	const char *text, size_t size, enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, (void *)text, mode);

	if (!response)
		return NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	/* A connection that stays takes the place of another. */
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	return response;
}

static struct MHD_Response *constant_new(const char *text)
{
	return response_new(
		text, strlen(text), MHD_RESPMEM_PERSISTENT, "text/plain; charset=utf-8");
}

static void forget(struct server *server)
{
	for (unsigned int i = 0; i < _EXPOSITION_FORMAT_N; i++) {
		if (server->texts[i])
			MHD_destroy_response(server->texts[i]);
		server->texts[i] = NULL;
	}
	snapshot_deinit(&server->snapshot);
	server->has_snapshot = false;
}

/* Takes a snapshot unless there is one of the last second. */
static void renew(struct server *server)
{
	if (server->has_snapshot && clock_now() - server->taken_at < CACHE_MS)
		return;
	forget(server);
	/* That vgpud is down is said once. */
	snapshot_take(&server->snapshot, server->options.socket,
		server->options.with_processes, !server->was_up);
	if (server->snapshot.is_up && !server->was_up)
		vgpu_log_info("vgpud %s answers", server->snapshot.release);
	server->was_up = server->snapshot.is_up;
	server->has_snapshot = true;
	server->taken_at = clock_now();
}

/* Return: the text, which stays the server's, or NULL without memory. */
static struct MHD_Response *find_text(
	struct server *server, enum exposition_format format)
{
	size_t size;
	char *text;

	renew(server);
	if (server->texts[format])
		return server->texts[format];
	text = exposition_write(
		&server->snapshot, format, server->options.with_processes, &size);
	if (!text)
		return NULL;
	server->texts[format] =
		response_new(text, size, MHD_RESPMEM_MUST_FREE, content_types[format]);
	if (!server->texts[format])
		free(text);
	return server->texts[format];
}

/*
 * Requests
 */

static enum exposition_format choose_format(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	return accept && strstr(accept, "application/openmetrics-text")
		       ? EXPOSITION_OPENMETRICS
		       : EXPOSITION_PROMETHEUS;
}

static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
	const char *url, const char *method)
{
	struct MHD_Response *text;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return MHD_queue_response(
			connection, MHD_HTTP_METHOD_NOT_ALLOWED, server->wrong_method);
	if (!strcmp(url, "/"))
		return MHD_queue_response(connection, MHD_HTTP_OK, server->index);
	if (strcmp(url, "/metrics") != 0)
		return MHD_queue_response(
			connection, MHD_HTTP_NOT_FOUND, server->not_found);
	text = find_text(server, choose_format(connection));
	if (text)
		return MHD_queue_response(connection, MHD_HTTP_OK, text);
	return MHD_queue_response(
		connection, MHD_HTTP_SERVICE_UNAVAILABLE, server->no_memory);
}

/* The first call of a request has its headers. A body is refused by the method. */
static enum MHD_Result handle_request(void *data, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *body,
	size_t *body_sizep, void **statep)
{
	static int seen;

	(void)version;
	(void)body;
	if (!*statep) {
		*statep = &seen;
		return MHD_YES;
	}
	if (*body_sizep) {
		*body_sizep = 0;
		return MHD_YES;
	}
	return answer(data, connection, url, method);
}

/*
 * Connections
 */

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* Puts a descriptor in the place of another one, under the lock. */
static void replace(struct server *server, int old, int fd)
{
	for (unsigned int i = 0; i < SERVE_CONNECTIONS; i++) {
		if (server->connections[i].fd != old)
			continue;
		server->connections[i] = (struct connection){ fd, clock_now() };
		return;
	}
}

/* The library closes the descriptor after this, so none in the table is another's. */
static void note_connection(void *data, struct MHD_Connection *connection,
	void **contextp, enum MHD_ConnectionNotificationCode code)
{
	struct server *server = data;
	const int fd = fd_of(connection);

	(void)contextp;
	if (fd < 0)
		return;
	pthread_mutex_lock(&server->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		replace(server, -1, fd);
	else
		replace(server, fd, -1);
	pthread_mutex_unlock(&server->lock);
}

void server_tick(struct server *server)
{
	const int64_t oldest = clock_now() - SERVE_MS;

	pthread_mutex_lock(&server->lock);
	for (unsigned int i = 0; i < SERVE_CONNECTIONS; i++)
		if (server->connections[i].fd >= 0 &&
			server->connections[i].since < oldest)
			shutdown(server->connections[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&server->lock);
}

/*
 * Beginning and end
 */

static bool make_constants(struct server *server)
{
	server->index = constant_new("vGPU: see /metrics\n");
	server->not_found = constant_new("there is /metrics only\n");
	server->wrong_method = constant_new("there is GET only\n");
	server->no_memory = constant_new("there is no memory\n");
	if (server->wrong_method)
		MHD_add_response_header(
			server->wrong_method, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return server->index && server->not_found && server->wrong_method &&
	       server->no_memory;
}

/* The library's messages are about clients, who could fill the log with them. */
static void ignore_message(void *data, const char *format, va_list ap)
{
	(void)data;
	(void)format;
	(void)ap;
}

struct server *server_start(const struct server_options *options)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server) {
		close(options->fd);
		return NULL;
	}
	server->options = *options;
	/* The first failure is said. */
	server->was_up = true;
	pthread_mutex_init(&server->lock, NULL);
	for (unsigned int i = 0; i < SERVE_CONNECTIONS; i++)
		server->connections[i].fd = -1;
	if (make_constants(server))
		server->daemon =
			MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL |
						 MHD_USE_ERROR_LOG,
				0, NULL, NULL, handle_request, server,
				/* First, for what it says of the others. */
				MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL,
				MHD_OPTION_LISTEN_SOCKET, options->fd,
				MHD_OPTION_CONNECTION_LIMIT, SERVE_CONNECTIONS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_MEMORY,
				MHD_OPTION_CONNECTION_TIMEOUT, SERVE_IDLE_S,
				MHD_OPTION_NOTIFY_CONNECTION, note_connection, server,
				MHD_OPTION_END);
	if (server->daemon)
		return server;
	close(options->fd);
	server->options.fd = -1;
	server_stop(server);
	return NULL;
}

void server_stop(struct server *server)
{
	struct MHD_Response *const constants[] = { server->index, server->not_found,
		server->wrong_method, server->no_memory };

	/* It closes the socket that listens. */
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	forget(server);
	for (unsigned int i = 0; i < sizeof(constants) / sizeof(*constants); i++)
		if (constants[i])
			MHD_destroy_response(constants[i]);
	pthread_mutex_destroy(&server->lock);
	free(server);
}
