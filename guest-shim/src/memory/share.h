/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared blocks: staging of small copies to the device
 *
 * Small consecutive copies in one stream share a staging block, and only the last of them
 * requests a write of the block's word: the device writes one word for many copies, and
 * the bytes stay within few cache lines. No copy is delayed for that: each is sent before
 * its call returns.
 */

#include <stdbool.h>
#include <stdint.h>

#include "memory/staging.h"

/* Copies up to this size share; a block has room for four of them. */
#define SHIM_SHARE_MAX (16u << 10)

void shim_share_setup(void);

struct shim_share;

/* Where one copy is staged. */
struct shim_piece {
	uint8_t *data;
	uint32_t word; /* SHIM_WORD_NONE unless it is the block's last */
	uint64_t value;
	uint32_t end;
	struct shim_share *share;
};

/*
 * Takes room in the stream's block. Until shim_share_done() no other thread gets any, so
 * that the pieces are sent in order.
 *
 * Return: false if the copy has to take a block of its own.
 */
bool shim_share_take(uint64_t size, CUstream stream, struct shim_piece *piece);

/* Ends what the above began. The room of a piece that was not sent is taken again. */
void shim_share_done(const struct shim_piece *piece, bool is_sent);

/*
 * Removes a stream that is destroyed, or complete, from the table.
 *
 * Return: whether a block still waits for its word.
 */
bool shim_share_end(CUstream stream, struct shim_block *block);

/* Drops the blocks of a context that ends, before those of the staging are dropped. */
void shim_share_drop_context(const struct shim_context *context);
