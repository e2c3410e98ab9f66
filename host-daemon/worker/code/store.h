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
 * Asks for an image. Nothing is known of it but that it cannot change any more.
 *
 * @fdp:	the caller's
 *
 * Return: 0, STORE_E_ABSENT or -errno.
 */
int store_find(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int *fdp, uint64_t *sizep);

/*
 * Asks for a file of that size to put an image into.
 *
 * @cookiep:	its name, should it be dropped
 *
 * Return: as above.
 */
int store_ask_file(struct session *session, uint64_t size, int *fdp, uint32_t *cookiep);

/* Gives such a file back; it is neither mapped nor open any more. */
void store_drop(struct session *session, uint32_t cookie);

/* Gives an image for the next process of the VM. */
void store_keep(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int fd, uint64_t size);

/* Control thread: an answer has come. The descriptor, or -1, is its own. */
void store_answered(struct session *session, const struct control_image *answer, int fd);
