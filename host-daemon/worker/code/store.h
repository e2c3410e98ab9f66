/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Store: the images that vgpud keeps for all workers of a VM
 */

#include <stdint.h>

#include "control/control.h"
#include "worker/base/ask.h"

struct session;

enum {
	_STORE_E_SUCCESS,

	STORE_E_ABSENT, /* no such image, or no room for a file of that size */
};

struct store {
	struct ask ask;
	/* The answer, under the lock of `ask`. */
	uint64_t size;
	int fd; /* -1: there is no such image */
};

void store_init(struct store *store);
void store_deinit(struct store *store);

/*
 * Requests an image. It is sealed, and not checked otherwise.
 *
 * @fdp:	owned by the caller
 *
 * Return: 0, STORE_E_ABSENT or -errno.
 */
int store_find(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int *fdp, uint64_t *sizep);

/*
 * Requests a file of that size for a new image.
 *
 * @cookiep:	identifies the file, for store_drop()
 *
 * Return: as above.
 */
int store_ask_file(struct session *session, uint64_t size, int *fdp, uint32_t *cookiep);

/* Returns such a file, which is neither mapped nor open any more. */
void store_drop(struct session *session, uint32_t cookie);

/* Offers an image to other processes of the VM. */
void store_keep(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int fd, uint64_t size);

/* First thread: handles an answer. Takes ownership of the descriptor, or -1. */
void store_answered(struct session *session, const struct control_image *answer, int fd);
