/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shares: requests of workers for device memory that guest processes of a VM share
 */

#include <stdbool.h>
#include <stdint.h>

#include "broker/worker.h"
#include "vgpud/link.h"

/*
 * A worker shares memory.
 *
 * @fd:	takes ownership in any case; -1: a file is to be made
 *
 * Return: false if the message breaks the protocol.
 */
bool shares_handle_share(
	struct worker *worker, const struct control_share *shared, int fd);

/* Answers a worker's request for memory that another one shares. */
void shares_handle_take(struct worker *worker, const struct control_share *wanted);

/* A worker has released shared memory. */
void shares_handle_leave(struct worker *worker, const struct control_share *released);

/* A worker has exited. */
void shares_forget_worker(struct worker *worker);

/* Adds an entry, or a holder, that the keeper announces. The first takes ownership of the
 * descriptor. */
void shares_restore(struct broker *broker, const struct link_message *message, int fd);
void shares_restore_holder(struct broker *broker, const struct link_message *message);
