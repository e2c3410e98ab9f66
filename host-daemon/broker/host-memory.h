/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host memory: the memory that the workers of each VM use
 */

#include <stdint.h>

struct account;
struct broker;
struct worker;

/* Checks all workers, at a limited rate, and ends the largest worker of a VM whose
 * workers use more than host-memory. */
void host_memory_check(struct broker *broker);

/* Ends a worker with a channel for its memory. It is not counted any more, so that no
 * other worker is ended for it. */
void host_memory_condemn(struct worker *worker, uint32_t reason);
