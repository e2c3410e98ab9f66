/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notices: tell the guest that its VM's quota was lowered below its use
 *
 * One lane of the guest waits for the next notice, and sleeps on the quota page, which a
 * broker changes when a new configuration lowers the limit. A session whose guest never
 * asks has no such lane, and no call reads anything for notices.
 *
 * A notice is due when the limit was lowered since the last look, and the VM uses more
 * than it. The last look is the one for the last notice, or that of notices_arm(). So a
 * guest is told once of each lowering; of several before it looks, it is told of the last
 * one, with the number of that time.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct session;

struct notices {
	pthread_mutex_t lock; /* guards the rest; not held while a lane sleeps */
	bool is_armed;
	bool is_asked;	    /* a lane waits */
	uint32_t n_lowered; /* of the quota page, at the last look */
};

void notices_init(struct session *session);
void notices_deinit(struct session *session);

/* Limits that are set from now on are looked at. Return: CUDA_ERROR_NOT_SUPPORTED in a
 * session without a quota page. */
CUresult notices_arm(struct session *session);

/*
 * Waits until a notice is due. On a lane.
 *
 * @excessp:	the bytes by which the VM exceeds its limit
 *
 * Return: CUDA_ERROR_NOT_PERMITTED while another lane waits, or before notices_arm().
 */
CUresult notices_next(struct session *session, uint64_t *excessp);
