/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scan: what the guests of a VM ask for by its channel table
 */

#include <stdbool.h>

struct vm;

/* Starts to listen to the doorbell. Returns: 0 or -errno. */
int scan_listen(struct vm *vm);

/* Looks through the channel table. Returns: whether there was something to do. */
bool scan_look(struct vm *vm);

/* Advances the heartbeat, and scans in case the guest has no doorbell or its ring was
 * lost. */
void scan_tick(struct vm *vm);

/* Ends all its sessions, after its connection ended. */
void scan_handle_gone(struct vm *vm);

/* Whether a VM that is gone has no worker and no memory being emptied, and can be
 * freed. */
bool scan_is_done(const struct vm *vm);
