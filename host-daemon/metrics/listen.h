/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Listen: the socket where metrics are served
 *
 * A UNIX socket, or a port of this machine's loopback: what is served has no password and
 * no encryption, so other addresses are refused.
 */

#include <sys/socket.h>
#include <sys/un.h>

struct listen_address {
	struct sockaddr_storage storage;
	socklen_t size;
	const char *path; /* of a UNIX socket, into the text; else NULL */
};

/* Reads "/PATH", "127.0.0.1:PORT" or "[::1]:PORT". Return: NULL, or why not, a sentence
 * that is never freed. */
const char *listen_parse(struct listen_address *address, const char *text);

/*
 * Listens there. A UNIX socket is for its owner and group; one that nobody serves is
 * replaced.
 *
 * Return: 0 or -errno, -EADDRINUSE if somebody serves it.
 */
int listen_open(int *fdp, const struct listen_address *address);
