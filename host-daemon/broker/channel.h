/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Channel: one guest process, from its hello to the release of its last extent
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
	CHANNEL_BEGIN,	  /* a hello arrived */
	CHANNEL_REWINDOW, /* the guest proposes another window */
	CHANNEL_CLOSE,	  /* end the worker, release all memory */
	CHANNEL_CLEAR,	  /* the channel is idle: make the entry FREE */
	CHANNEL_BREACH,	  /* the guest broke the protocol */
	_CHANNEL_ACTION_N,
};

/*
 * Decides from the phase and the guest's state word, which is untrusted. Return: the
 * action to take.
 */
enum channel_action channel_judge(enum channel_phase phase, uint32_t state);

void channel_init(struct channel *channel, struct vm *vm, uint32_t index,
	struct ledger_channel *record);

/* Acts on the entry in shared memory. Return: whether there was anything to do. */
bool channel_look(struct channel *channel);

/* Frees an entry that was claimed long ago without a hello: its process was killed in
 * between. */
void channel_tick(struct channel *channel);

/* Ends the channel because its guest kernel was replaced. */
void channel_reboot(struct channel *channel, const uint8_t boot_id[16]);

/* Whether it counts for the limits of workers. */
bool channel_is_active(const struct channel *channel);

/* Whether a waiting channel can get its first extents now or must be refused. If not,
 * extents will be free soon. */
bool channel_can_begin(const struct channel *channel);

/* Assigns a warm worker to a waiting channel. Return: false if the channel was refused
 * instead. */
bool channel_assign(struct channel *channel, struct worker *worker);

/* Refuses a waiting channel. */
void channel_refuse(struct channel *channel, uint32_t reason);

/* Messages from its worker. Return: false for an invalid message. */
bool channel_handle_opened(struct channel *channel, uint32_t reason);
bool channel_handle_want(struct channel *channel, const struct control_want *want);

/* Whether that request has to wait for arena that will be free soon. */
bool channel_must_wait(const struct channel *channel, const struct control_want *want);

/* Records the reason for the end of its worker. */
void channel_note_reason(struct channel *channel, uint32_t reason);

/* Kills its worker; the session ends with that reason once it was reaped. */
void channel_kill_worker(struct channel *channel, uint32_t reason);

/*
 * Ends the session: STOP now, SIGKILL later.
 *
 * @after:	the state of the entry afterwards
 * @grace_ms:	0: SIGKILL at once
 */
void channel_end(struct channel *channel, enum channel_after after, uint32_t reason,
	unsigned int grace_ms);

/* After the worker was reaped, or is known to be gone: releases its resources. */
void channel_handle_worker_gone(struct channel *channel);

/* Restore a channel from the ledger in a new broker. */
void channel_restore_worker(struct channel *channel, struct worker *worker);
void channel_restore(struct channel *channel);
