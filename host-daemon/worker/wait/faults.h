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
	/* Held while a fault is made known: who met it too does not answer before. */
	pthread_mutex_t lock;
};

void faults_init(struct session *session);

/* Whether a result tells of a broken context rather than of the call it answers. */
bool fault_is_sticky(CUresult result);

/* Notes a fault of a context's work; the guest finds in its control page that there is
 * one, and asks. The first one stays until the context is gone. */
void fault_note(struct session *session, struct context *context, CUresult result);
