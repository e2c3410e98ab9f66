/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scan: handles the requests of guests in a VM's channel table
 */

#include <stdbool.h>

struct vm;

/* Adds the doorbell to the loop. Return: 0 or -errno. */
int scan_listen(struct vm *vm);

/* Scans the channel table. Return: whether there was anything to do. */
bool scan_look(struct vm *vm);

/* Advances the heartbeat, and scans in case the guest has no doorbell or its ring was
 * lost. */
void scan_tick(struct vm *vm);

/* Ends all its sessions, after its connection ended. */
void scan_handle_gone(struct vm *vm);

/* Whether a VM that is gone has no worker and no memory being emptied, and can be
 * freed. */
bool scan_is_done(const struct vm *vm);
