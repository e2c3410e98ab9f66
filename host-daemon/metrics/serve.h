/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Serve: metrics by HTTP
 *
 * One thread serves all connections, which are few and short: each has one request and
 * ends after SERVE_S whatever it does. All requests of a second get the same text, so
 * scrapers cause at most one look at vgpud a second.
 */

#include <stdbool.h>

struct server;

struct server_options {
	const char *socket; /* of vgpud */
	bool with_processes;
	int fd; /* listens; taken in any case */
};

/* The options are copied, the path is kept. Return: the server, or NULL. */
struct server *server_start(const struct server_options *options);

/* To be called once a second: ends connections that are too old. */
void server_tick(struct server *server);

void server_stop(struct server *server);
