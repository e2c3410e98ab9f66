/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Queue: how much of a session's ring waits for its worker
 */

#include <stdbool.h>
#include <stdint.h>

struct channel;

/* The guest can write both indices at any time: the result is what it shows of itself,
 * and never more than the ring has. */
uint32_t queue_bytes(uint64_t tail, uint64_t head);

/* Return: false if the memory is gone. */
bool queue_read(const struct channel *channel, uint32_t *bytesp);
