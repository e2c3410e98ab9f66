/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stage loop: the broker's event loop, one round at a time
 */

#include <poll.h>
#include <stdint.h>

#include "broker/loop.h"

/* Calls whatever is ready and due now. Returns: how many were called, or -errno. */
int stage_loop_step(struct loop *loop);

/* poll() without waiting. A signal interrupts it all the same: libFuzzer's timer, once in
 * a few seconds. */
int stage_poll(struct pollfd *polls, nfds_t n);

/* The time that clock_now() returns. */
void stage_clock_set(int64_t now);
void stage_clock_advance(uint32_t ms);
