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

/* Lives on: moves the heartbeat, and scans if the guest asked without a doorbell. */
void scan_tick(struct vm *vm);

/* Its connection ended: all of it goes. */
void scan_handle_gone(struct vm *vm);

/* Whether a VM that is gone has nothing left; then it is to be freed. */
bool scan_is_done(const struct vm *vm);
