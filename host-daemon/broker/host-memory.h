/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host memory: the memory that the workers of each VM use
 */

#include <stdint.h>

struct account;
struct broker;

/* Checks all workers, at a limited rate, and ends the largest worker of a VM whose
 * workers use more than host-memory. */
void host_memory_check(struct broker *broker);
