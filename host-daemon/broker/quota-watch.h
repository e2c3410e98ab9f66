/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Quota watch: the device memory of workers, as the host sees it
 *
 * Workers keep device-memory themselves (control/quota.h), and a compromised one may lie.
 * So the broker compares what they may have with what can be seen from outside: of
 * softgpu the memory file of each worker, of NVIDIA's driver what the card has noted for
 * the process, if sensors are read. Linear memory of softgpu is private memory of the
 * worker, which host-memory bounds.
 */

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct worker;

/* Bytes that a worker may have beyond its VM's limit: pages that are shared with others,
 * and with NVIDIA's driver contexts and code. */
#define QUOTA_WATCH_SLACK (4ull << 20)
#define QUOTA_WATCH_DRIVER_SLACK (1ull << 30)

/*
 * What a VM's workers may have: its limit, or what they had when that was lowered until
 * they have freed it.
 *
 * @before:	the answer at the last look; UINT64_MAX: there was none
 * @limit:	of now, 0: none
 * @claimed:	what they say that they use
 */
uint64_t quota_watch_ceiling(uint64_t before, uint64_t limit, uint64_t claimed);

/* Bytes of device memory in a worker's file, of that many bytes in use and that size. */
uint64_t quota_watch_in_file(uint64_t in_use, uint64_t file_size);

/* Looks at all workers, now and then, and ends the one that lies most of a VM that is
 * twice in a row beyond what it may have. Return: whether it has looked. */
bool quota_watch_check(struct broker *broker);
