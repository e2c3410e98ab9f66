/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session on the fake driver, and a guest in the same process
 */

#include "control/flight.h"
#include "control/trace.h"
#include "fake-driver.h"
#include "g-handlers.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/handle/call-finish.h"
#include "worker/run/call-run.h"
#include "worker/run/session-life.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"

#define FIXTURE_SHM_SIZE (64ull << 20)
#define FIXTURE_AREA_OFF (2ull << 20)
#define FIXTURE_EXTENTS_OFF (6ull << 20)
#define FIXTURE_FIRST_EXTENT 2u
#define FIXTURE_N_EXTENTS 4u

struct fixture {
	struct driver driver;
	struct vgpu_window window;
	struct worker_stats stats;
	struct worker_use use;
	struct flight flight;
	struct worker_wishes wishes;
	struct session session;
	uint32_t sequence;
	uint64_t arena;	  /* address of the first byte granted */
	uint64_t context; /* handle of the primary context */
	const char *why;  /* of the last violation */
	/* Of the last call with a reply. */
	CUresult result;
	uint32_t reply_size;
	uint8_t reply[VGPU_REPLY_MAX];
};

void fixture_init(struct fixture *fixture);
void fixture_deinit(struct fixture *fixture);

/* Limits the device memory of the VM, whose only session this is. */
void fixture_limit_memory(struct fixture *fixture, uint64_t limit);

/*
 * Runs a call of guest thread `lane` here and now, whatever thread would run it. The
 * reply, if asked for, is taken from the slot.
 *
 * Return: as dispatch_call().
 */
int fixture_call(struct fixture *fixture, uint32_t lane, uint32_t call, uint32_t flags,
	const ProtobufCMessage *request);

/* The same with any bytes as the message. */
int fixture_call_bytes(struct fixture *fixture, uint32_t lane, uint32_t call,
	uint32_t flags, const void *body, uint32_t size);

/* As a guest thread does it for a dispatcher that runs: a cuEventCreate, which has no
 * reply. */
void fixture_submit_event(struct vgpu_ring_producer *producer, uint32_t sequence);

/* Makes the primary context current for a lane. */
void fixture_enter(struct fixture *fixture, uint32_t lane);
