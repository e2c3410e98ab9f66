/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: asynchronous copies, and barriers in shared memory
 *
 * mbarrier.h has the meaning of a barrier's bits. PTX leaves misuse undefined; here it
 * ends the kernel.
 */

#include <string.h>

#include "exec/mbarrier.h"

static uint64_t *find(
	struct warp *w, const struct insn *ip, uint32_t lane, uint64_t address)
{
	return mbarrier_find(w, ip, lane, generic_address(ip, address));
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

/* Of copies there is nothing to wait for; who is watched shall do it all the same. */
HANDLER(COPIES_WAIT)
{
	return ip + 1;
}

HANDLER(COPIES_SIGNAL)
{
	return ip + 1;
}

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
