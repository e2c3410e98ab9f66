/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host memory: what the workers of each VM take of this host's
 */

#include <stdint.h>

struct account;
struct broker;

/* Looks at all workers, if it was not just done, and ends the largest of a VM whose
 * workers hold more than host-memory. */
void host_memory_check(struct broker *broker);
