/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Share: memory that processes of the VM share, by way of vgpud
 *
 * The descriptor of the memory goes to vgpud, and the guest receives a token that another
 * process of the VM may present. Memory of softgpu has to be in a file that vgpud makes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/cuda.h"
#include "worker/base/ask.h"

struct session;

/* Memory that this worker shares, or that it uses of another. */
struct share {
	uint32_t cookie; /* vgpud's name for it; 0: none */
	uint8_t token[CONTROL_TOKEN_SIZE];
};

enum {
	_SHARE_E_SUCCESS,

	SHARE_E_REFUSED, /* an unknown token, or too much is shared */
};

/* Maximum of a worker: of softgpu's memory each has a descriptor. */
#define SHARES_MAX 1024u

struct shares {
	struct ask ask;
	uint32_t n; /* atomic: given and taken */
	/* The answer, under the lock of `ask`. */
	struct control_share answer;
	int fd;
	/* The file that softgpu asked for last, and the device of the call in which it
	 * does; guarded by who calls softgpu. */
	struct share made;
	CUdevice device;
};

void shares_init(struct session *session);
void shares_deinit(struct session *session);

/*
 * Shares memory with other processes.
 *
 * @fd:	of the memory; it remains the caller's
 *
 * Return: 0, SHARE_E_REFUSED or -errno.
 */
int share_give(struct session *session, CUdevice device, int fd, uint64_t size,
	struct share *share);

/*
 * Asks for memory that a process shares. The cookie is set in share, which has the token.
 *
 * @fdp:	owned by the caller
 *
 * Return: 0, SHARE_E_REFUSED or -errno.
 */
int share_take(struct session *session, struct share *share, int *fdp);

/* Releases memory that was given or taken, if any. */
void share_leave(struct session *session, struct share *share);

/*
 * softgpu's: makes a file of memory that is to be shared, and notes its share for the
 * caller of softgpu.
 *
 * @data:	the session
 *
 * Return: its descriptor, or -1.
 */
int share_make_file(void *data, uint64_t size);

/* First thread: handles an answer. Takes ownership of the descriptor, or -1. */
void share_answered(struct session *session, const struct control_share *answer, int fd);
