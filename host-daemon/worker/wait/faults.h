/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Faults: errors that break a context
 */

#include <pthread.h>
#include <stdbool.h>

#include "vgpu/cuda.h"

struct context;
struct session;

struct faults {
	/* Held while a fault is published: other threads with the same fault reply after
	 * that. */
	pthread_mutex_t lock;
};

void faults_init(struct session *session);

/* Whether a result means a broken context rather than a failed call. */
bool fault_is_sticky(CUresult result);

/* Publishes a fault of a context: the guest sees a counter in its control page and
 * requests the details. The first fault of a context is kept until it is destroyed. */
void fault_note(struct session *session, struct context *context, CUresult result);
