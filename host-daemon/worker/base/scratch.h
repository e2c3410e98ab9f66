/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scratch: memory for one call
 *
 * Decoded messages and other memory of handlers are in one fixed private block that is
 * reset before each call. So a call needs no system call and no malloc(), and a message
 * that unpacks to more than the block fails to unpack: a limit on what a small frame can
 * make the worker allocate.
 */

#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

/* The largest body, 64 KiB, unpacks to at most one copy of its bytes and small fixed
 * structures; four times that leaves room for a handler's arrays. */
#define SCRATCH_SIZE (256u << 10)

struct scratch {
	ProtobufCAllocator allocator;
	size_t used;
	uint8_t *block;
};

/* Return: 0 or -ENOMEM. */
int scratch_init(struct scratch *scratch);
void scratch_deinit(struct scratch *scratch);

void scratch_reset(struct scratch *scratch);

/* Return: memory of that size aligned to 16 (not zeroed), or NULL. */
void *scratch_alloc(struct scratch *scratch, size_t size);
