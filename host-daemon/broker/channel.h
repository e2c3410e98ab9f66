/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Channel: one guest process, from its hello to the last extent that is returned
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpud/ledger.h"

struct channel;
struct vm;
struct worker;

/* What the state word in shared memory requests. */
enum channel_action {
	CHANNEL_NOTHING,
	CHANNEL_BEGIN,	  /* a hello came */
	CHANNEL_REWINDOW, /* the guest names another window */
	CHANNEL_CLOSE,	  /* end the worker, give all back */
	CHANNEL_CLEAR,	  /* the channel is idle: make the entry FREE */
	CHANNEL_BREACH,	  /* no honest guest makes this step */
	_CHANNEL_ACTION_N,
};

/*
 * Decides from the phase and a word that the guest wrote, which may be anything.
 * Return: the action to take.
 */
enum channel_action channel_judge(enum channel_phase phase, uint32_t state);

void channel_init(struct channel *channel, struct vm *vm, uint32_t index,
	struct ledger_channel *record);

/* Looks at the entry in shared memory. Returns: whether there was something to do. */
bool channel_look(struct channel *channel);

/* Frees an entry that was claimed long ago and never said hello: its process was killed
 * in between. */
void channel_tick(struct channel *channel);

/* Ends the entry's channel because its guest kernel is gone. */
void channel_reboot(struct channel *channel, const uint8_t boot_id[16]);

/* Whether it takes part in the limits of workers. */
bool channel_is_active(const struct channel *channel);

/* Whether a channel that waits would be given its first arena, or be refused for good;
 * else some is about to be free. */
bool channel_can_begin(const struct channel *channel);

/* A warm worker for a channel that waits. Returns: whether it took the worker. */
bool channel_assign(struct channel *channel, struct worker *worker);

/* No worker will come for a channel that waits. */
void channel_refuse(struct channel *channel, uint32_t reason);

/* Messages from its worker. Returns: whether the message was valid. */
bool channel_handle_opened(struct channel *channel, uint32_t reason);
bool channel_handle_want(struct channel *channel, const struct control_want *want);

/* Whether the answer to that is to wait for arena that is about to be free. */
bool channel_must_wait(const struct channel *channel, const struct control_want *want);

/* Why its worker is about to end by itself, or to be killed. */
void channel_note_reason(struct channel *channel, uint32_t reason);

/* SIGKILL for its worker; the session ends with that reason once it was reaped. */
void channel_kill_worker(struct channel *channel, uint32_t reason);

/*
 * Ends the session: STOP now, SIGKILL later.
 *
 * @after:	what the guest sees then
 * @grace_ms:	0: SIGKILL at once
 */
void channel_end(struct channel *channel, enum channel_after after, uint32_t reason,
	unsigned int grace_ms);

/* After the worker was reaped, or is known to be gone: takes back what it held. */
void channel_handle_worker_gone(struct channel *channel);

/* A new broker finds what the last one left. */
void channel_restore_worker(struct channel *channel, struct worker *worker);
void channel_restore(struct channel *channel);
