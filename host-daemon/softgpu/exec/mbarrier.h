/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Barriers in shared memory
 *
 * An mbarrier is opaque to programs, 64 bits that only these handlers know:
 *
 *	bits 0 to 19	arrivals that the phase still waits for
 *	bits 20 to 39	arrivals of each phase
 *	bits 40 to 61	bytes that copies have still to bring, in two's complement
 *	bit 63		the phase, counted from 0
 *
 * One that has been invalidated is 0. The state that an arrival returns is the barrier
 * before it. Shared memory belongs to the thread that runs the block, so nothing here is
 * atomic. PTX leaves misuse undefined; here it ends the kernel.
 */

#include "exec/memory.h"

#define COUNT_BITS 20
#define COUNT_MAX ((1u << COUNT_BITS) - 1)
#define TX_SHIFT (2 * COUNT_BITS)
#define TX_BITS 22
#define TX_MAX ((1 << 20) - 1)
#define PHASE (UINT64_C(1) << 63)

struct mbarrier {
	uint32_t pending;
	uint32_t expected;
	int32_t tx;
	uint64_t phase;
};

SCALAR struct mbarrier unpack(uint64_t word)
{
	uint32_t tx = (uint32_t)(word >> TX_SHIFT) & ((1u << TX_BITS) - 1);

	return (struct mbarrier){
		.pending = (uint32_t)word & COUNT_MAX,
		.expected = (uint32_t)(word >> COUNT_BITS) & COUNT_MAX,
		.tx = (int32_t)(tx << (32 - TX_BITS)) >> (32 - TX_BITS),
		.phase = word & PHASE,
	};
}

SCALAR uint64_t pack(const struct mbarrier *barrier)
{
	uint64_t tx = (uint32_t)barrier->tx & ((1u << TX_BITS) - 1);

	return barrier->phase | tx << TX_SHIFT |
	       (uint64_t)barrier->expected << COUNT_BITS | barrier->pending;
}

/* Begins the next phase if nothing is outstanding. */
SCALAR void settle(struct mbarrier *barrier)
{
	if (barrier->pending || barrier->tx)
		return;
	barrier->phase ^= PHASE;
	barrier->pending = barrier->expected;
}

/* Each returns what is wrong, or NULL. */

SCALAR const char *arrive(struct mbarrier *barrier, uint32_t count)
{
	if (!count || count > barrier->pending)
		return "more arrivals at an mbarrier than it expects";
	barrier->pending -= count;
	settle(barrier);
	return NULL;
}

SCALAR const char *arrive_and_drop(struct mbarrier *barrier, uint32_t count)
{
	if (count > barrier->expected)
		return "more arrivals at an mbarrier than it expects";
	barrier->expected -= count;
	return arrive(barrier, count);
}

SCALAR const char *expect(struct mbarrier *barrier, uint32_t bytes)
{
	if (bytes > TX_MAX || barrier->tx > TX_MAX - (int32_t)bytes)
		return "an mbarrier expects too many bytes";
	barrier->tx += (int32_t)bytes;
	return NULL;
}

SCALAR const char *complete(struct mbarrier *barrier, uint32_t bytes)
{
	if (bytes > TX_MAX || barrier->tx < (int32_t)bytes - TX_MAX)
		return "an mbarrier gets too many bytes";
	barrier->tx -= (int32_t)bytes;
	settle(barrier);
	return NULL;
}

/* Returns: the barrier at the generic address @at, which is in shared memory, or NULL
 * with a fault. */
SCALAR uint64_t *mbarrier_find(
	struct warp *w, const struct insn *ip, uint32_t lane, uint64_t at)
{
	int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	uint64_t *word = NULL;

	if (at - SOFTGPU_GENERIC_SHARED < SOFTGPU_GENERIC_RANGE)
		word = warp_resolve(w, lane, at, sizeof(*word), sizeof(*word) - 1,
			SOFTGPU_READ | SOFTGPU_WRITE, &code);
	if (!word)
		warp_fault(w, ip, code, lane, at, fault_sentence(code));
	return word;
}

/* Bytes have come. Return: false with a fault. */
SCALAR bool mbarrier_complete(
	struct warp *w, const struct insn *ip, uint32_t lane, uint64_t at, uint32_t bytes)
{
	uint64_t *word = mbarrier_find(w, ip, lane, at);
	struct mbarrier barrier;
	const char *wrong;

	if (!word)
		return false;
	barrier = unpack(*word);
	wrong = complete(&barrier, bytes);
	if (wrong) {
		warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, lane, at, wrong);
		return false;
	}
	*word = pack(&barrier);
	return true;
}
