/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared blocks: staging of small copies to the device
 *
 * Small copies that follow each other in one stream lie side by side in one staging
 * block, and only the last of them asks for the block's word: the device writes one word
 * for many copies, and the bytes stay within few cache lines. No copy is held back for
 * that: each is sent before its call returns.
 */

#include <stdbool.h>
#include <stdint.h>

#include "staging.h"

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
 * Takes room in the stream's block. Until shim_share_done() nobody else gets any, so that
 * the pieces are sent in their order.
 *
 * Return: false where the copy has to take a block of its own.
 */
bool shim_share_take(uint64_t size, CUstream stream, struct shim_piece *piece);

/* Ends what the above began. The room of a piece that was not sent is taken again. */
void shim_share_done(const struct shim_piece *piece, bool is_sent);

/*
 * Takes a stream that goes, or is done with, out of the table.
 *
 * Return: whether there is a block that still waits for its word.
 */
bool shim_share_end(CUstream stream, struct shim_block *block);

/* Forgets the blocks of a context that goes, before those of the staging are dropped. */
void shim_share_drop_context(const struct shim_context *context);
