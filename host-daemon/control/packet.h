/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes and descriptors over a UNIX socket
 */

#include <stdbool.h>
#include <stddef.h>

/* Most descriptors in one packet: two memories, and an eventfd each way per vector. */
#define PACKET_FDS_MAX 66

enum {
	_PACKET_E_SUCCESS,
	PACKET_E_EOF,	/* the other side is gone */
	PACKET_E_AGAIN, /* no message to receive, or the socket is full */
};

/*
 * Sends one packet (on a stream: that many bytes, which must fit) with descriptors, which
 * remain owned by the caller. Never raises SIGPIPE.
 *
 * Return: 0, PACKET_E_EOF, PACKET_E_AGAIN or -errno.
 */
int packet_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one packet.
 *
 * @sizep:	bytes received; a packet that was longer than size sets *cutp
 * @fds:	room for n_fds_max descriptors, all others are closed and set *cutp;
 *		those received are the caller's and close-on-exec
 *
 * Return: 0, PACKET_E_EOF, PACKET_E_AGAIN or -errno.
 */
int packet_receive(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp);

/*
 * The same, but the packet remains in the socket, complete. The descriptors are
 * duplicates (a property of Linux, see test-control.c).
 */
int packet_peek(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp);
