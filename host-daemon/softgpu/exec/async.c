/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: asynchronous copies, and barriers in shared memory
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

#include <string.h>

#include "exec/memory.h"

#define COUNT_BITS 20
#define COUNT_MAX ((1u << COUNT_BITS) - 1)
#define TX_SHIFT (2 * COUNT_BITS)
#define TX_BITS 22
#define TX_MAX ((1 << 20) - 1)
#define PHASE (UINT64_C(1) << 63)

#define BULK_ALIGN 16u

struct mbarrier {
	uint32_t pending;
	uint32_t expected;
	int32_t tx;
	uint64_t phase;
};

static struct mbarrier unpack(uint64_t word)
{
	uint32_t tx = (uint32_t)(word >> TX_SHIFT) & ((1u << TX_BITS) - 1);

	return (struct mbarrier){
		.pending = (uint32_t)word & COUNT_MAX,
		.expected = (uint32_t)(word >> COUNT_BITS) & COUNT_MAX,
		.tx = (int32_t)(tx << (32 - TX_BITS)) >> (32 - TX_BITS),
		.phase = word & PHASE,
	};
}

static uint64_t pack(const struct mbarrier *barrier)
{
	uint64_t tx = (uint32_t)barrier->tx & ((1u << TX_BITS) - 1);

	return barrier->phase | tx << TX_SHIFT |
	       (uint64_t)barrier->expected << COUNT_BITS | barrier->pending;
}

/* Begins the next phase if nothing is outstanding. */
static void settle(struct mbarrier *barrier)
{
	if (barrier->pending || barrier->tx)
		return;
	barrier->phase ^= PHASE;
	barrier->pending = barrier->expected;
}

/* Each returns what is wrong, or NULL. */

static const char *arrive(struct mbarrier *barrier, uint32_t count)
{
	if (!count || count > barrier->pending)
		return "more arrivals at an mbarrier than it expects";
	barrier->pending -= count;
	settle(barrier);
	return NULL;
}

static const char *arrive_and_drop(struct mbarrier *barrier, uint32_t count)
{
	if (count > barrier->expected)
		return "more arrivals at an mbarrier than it expects";
	barrier->expected -= count;
	return arrive(barrier, count);
}

static const char *expect(struct mbarrier *barrier, uint32_t bytes)
{
	if (bytes > TX_MAX || barrier->tx > TX_MAX - (int32_t)bytes)
		return "an mbarrier expects too many bytes";
	barrier->tx += (int32_t)bytes;
	return NULL;
}

static const char *complete(struct mbarrier *barrier, uint32_t bytes)
{
	if (bytes > TX_MAX || barrier->tx < (int32_t)bytes - TX_MAX)
		return "an mbarrier gets too many bytes";
	barrier->tx -= (int32_t)bytes;
	settle(barrier);
	return NULL;
}

static const char *initialise(struct mbarrier *barrier, uint32_t count)
{
	if (!count || count > COUNT_MAX)
		return "an mbarrier for no arrivals, or for too many";
	*barrier = (struct mbarrier){ .pending = count, .expected = count };
	return NULL;
}

static const char *invalidate(struct mbarrier *barrier, uint32_t count)
{
	(void)count;
	*barrier = (struct mbarrier){ 0 };
	return NULL;
}

/* Returns: the lane's barrier, which is in shared memory, or NULL with a fault. */
static uint64_t *find(
	struct warp *w, const struct insn *ip, uint32_t lane, uint64_t address)
{
	uint64_t at = generic_address(ip, address);
	int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	uint64_t *word = NULL;

	if (at - SOFTGPU_GENERIC_SHARED < SOFTGPU_GENERIC_RANGE)
		word = warp_resolve(w, lane, at, sizeof(*word), sizeof(*word) - 1,
			SOFTGPU_READ | SOFTGPU_WRITE, &code);
	if (!word)
		warp_fault(w, ip, code, lane, at, fault_sentence(code));
	return word;
}

/* @_change: of the barrier, by the lane's operand b; @_state: if there is a destination
 */
#define HANDLER_CHANGE(_op, _change, _state)                                             \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint32_t *operand = REG(uint32_t, ip->b);                          \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint64_t *word = find(w, ip, i, address[i]);                     \
			struct mbarrier barrier;                                         \
			const char *wrong;                                               \
                                                                                         \
			if (!word)                                                       \
				return LEAVE;                                            \
			barrier = unpack(*word);                                         \
			wrong = _change(&barrier, operand[i]);                           \
			if (wrong)                                                       \
				return warp_fault(w, ip,                                 \
					SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, i,            \
					address[i], wrong);                              \
			if (_state)                                                      \
				REG(uint64_t, ip->d)[i] = *word;                         \
			*word = pack(&barrier);                                          \
		}                                                                        \
		return ip + 1;                                                           \
	}

HANDLER_CHANGE(MBARRIER_INIT, initialise, false)
HANDLER_CHANGE(MBARRIER_INVAL, invalidate, false)
HANDLER_CHANGE(MBARRIER_EXPECT, expect, false)
HANDLER_CHANGE(MBARRIER_COMPLETE, complete, false)
HANDLER_CHANGE(MBARRIER_ARRIVE, arrive, true)
HANDLER_CHANGE(MBARRIER_DROP, arrive_and_drop, true)

/* @_phase: the phase whose end the lane asks about */
#define HANDLER_WAIT(_op, _T, _phase)                                                    \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const _T *b = REG(_T, ip->b);                                            \
		uint32_t over = 0;                                                       \
                                                                                         \
		w->polled = true;                                                        \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			const uint64_t *word = find(w, ip, i, address[i]);               \
                                                                                         \
			if (!word)                                                       \
				return LEAVE;                                            \
			if ((*word & PHASE) != (_phase))                                 \
				over |= lane_bit[i];                                     \
		}                                                                        \
		/* A thread that waits lets others run. */                               \
		if (over != mask && ip->reserved & MBARRIER_YIELDS)                      \
			w->budget = 1;                                                   \
		pred_write(w, ip->d, mask, over);                                        \
		return ip + 1;                                                           \
	}

HANDLER_WAIT(MBARRIER_TEST, uint64_t, b[i] & PHASE)
HANDLER_WAIT(MBARRIER_PARITY, uint32_t, b[i] & 1 ? PHASE : 0)

HANDLER(MBARRIER_PENDING)
{
	const uint64_t *state = REG(uint64_t, ip->a);
	uint32_t *d = REG(uint32_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = (uint32_t)state[i] & COUNT_MAX;
	return ip + 1;
}

/*
 * Copies
 */

HANDLER(CP_ASYNC)
{
	const uint64_t *address = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint32_t *n_bytes = REG(uint32_t, ip->c);
	const uint32_t align = ip->reserved & ACCESS_ALIGN, size = align + 1;
	int code;

	EACH_SET_LANE(i, mask)
	{
		uint32_t n = n_bytes[i] < size ? n_bytes[i] : size;
		uint64_t at = generic_address(ip, address[i]);
		uint8_t *to = warp_resolve(w, i, at, size, align, SOFTGPU_WRITE, &code);
		const uint8_t *source;

		if (!to)
			return warp_fault(w, ip, code, i, at, fault_sentence(code));
		memset(to + n, 0, size - n);
		if (!n)
			continue;
		source = warp_resolve(w, i, from[i], n, align, SOFTGPU_READ, &code);
		if (!source)
			return warp_fault(w, ip, code, i, from[i], fault_sentence(code));
		memcpy(to, source, n);
	}
	return ip + 1;
}

HANDLER(CP_BULK)
{
	const uint64_t *to = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint32_t *n_bytes = REG(uint32_t, ip->c);
	const uint32_t align = BULK_ALIGN - 1;

	EACH_SET_LANE(i, mask)
	{
		int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
		uint32_t n = n_bytes[i];
		void *place, *source;

		/* One side is always in shared memory. */
		if (n & align || n > SOFTGPU_SHARED_MAX)
			return warp_fault(w, ip, SOFTGPU_ERROR_MISALIGNED_ADDRESS, i, n,
				"a size that is no multiple of 16, or too large");
		place = warp_resolve(w, i, to[i], n, align, SOFTGPU_WRITE, &code);
		if (!place)
			return warp_fault(w, ip, code, i, to[i], fault_sentence(code));
		source = warp_resolve(w, i, from[i], n, align, SOFTGPU_READ, &code);
		if (!source)
			return warp_fault(w, ip, code, i, from[i], fault_sentence(code));
		memmove(place, source, n);
	}
	return ip + 1;
}
