/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: copies and reductions of many bytes
 *
 * One side is always in the shared memory of a block. Alignment and size are those of
 * PTX, 16 bytes.
 */

#include <string.h>

#include "exec/mbarrier.h"
#include "exec/update.h"

#define BULK_ALIGN 16u

struct piece {
	uint8_t *to;
	const uint8_t *from;
	uint32_t n;
};

/* Finds both ends. Return: false with a fault. */
static bool find_piece(struct warp *w, const struct insn *ip, uint32_t lane, uint64_t to,
	uint64_t from, uint32_t n, unsigned int access, struct piece *piece)
{
	const uint32_t align = BULK_ALIGN - 1;
	int code = SOFTGPU_ERROR_MISALIGNED_ADDRESS;

	*piece = (struct piece){ .n = n };
	if (n & align || n > SOFTGPU_SHARED_MAX) {
		warp_fault(w, ip, code, lane, n,
			"a size that is no multiple of 16, or too large");
		return false;
	}
	piece->to = warp_resolve(w, lane, to, n, align, access, &code);
	if (!piece->to) {
		warp_fault(w, ip, code, lane, to, fault_sentence(code));
		return false;
	}
	piece->from = warp_resolve(w, lane, from, n, align, SOFTGPU_READ, &code);
	if (!piece->from)
		warp_fault(w, ip, code, lane, from, fault_sentence(code));
	return piece->from;
}

HANDLER(CP_BULK)
{
	const uint64_t *to = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint32_t *n = REG(uint32_t, ip->c);
	struct piece piece;

	EACH_SET_LANE(i, mask)
	{
		if (!find_piece(w, ip, i, to[i], from[i], n[i], SOFTGPU_WRITE, &piece))
			return LEAVE;
		memmove(piece.to, piece.from, piece.n);
	}
	return ip + 1;
}

HANDLER(CP_BULK_MASKED)
{
	const uint64_t *to = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint32_t *n = REG(uint32_t, ip->c), *bytes = REG(uint32_t, ip->e);
	struct piece piece;

	EACH_SET_LANE(i, mask)
	{
		if (!find_piece(w, ip, i, to[i], from[i], n[i], SOFTGPU_WRITE, &piece))
			return LEAVE;
		for (uint32_t k = 0; k < piece.n; k++)
			if (bytes[i] & 1u << k % BULK_ALIGN)
				piece.to[k] = piece.from[k];
	}
	return ip + 1;
}

/* To the same place in each block of a mask, and to its barrier there. */
HANDLER(CP_BULK_CAST)
{
	const uint64_t *to = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint64_t *barrier = REG(uint64_t, ip->e);
	const uint32_t *n = REG(uint32_t, ip->c), *blocks = REG(uint32_t, ip->f);
	struct piece piece;

	EACH_SET_LANE(i, mask)
	EACH_SET_LANE(rank, blocks[i] & 0xffff)
	{
		/* An address that is not shared would become one. */
		uint64_t there = is_shared(to[i]) ? shared_of_rank(to[i], rank) : 0;
		uint64_t signal =
			is_shared(barrier[i]) ? shared_of_rank(barrier[i], rank) : 0;

		if (!find_piece(w, ip, i, there, from[i], n[i], SOFTGPU_WRITE, &piece))
			return LEAVE;
		memmove(piece.to, piece.from, piece.n);
		if (!mbarrier_complete(w, ip, i, signal, n[i]))
			return LEAVE;
	}
	return ip + 1;
}

HANDLER(REDUCE_BULK)
{
	const uint64_t *to = REG(uint64_t, ip->a), *from = REG(uint64_t, ip->b);
	const uint32_t *n = REG(uint32_t, ip->c);
	enum update type = (enum update)(ip->off & 0xff);
	uint32_t atom = (uint32_t)ip->off >> UPDATE_ATOM_SHIFT, size = update_size(type);
	struct piece piece;

	EACH_SET_LANE(i, mask)
	{
		if (!find_piece(w, ip, i, to[i], from[i], n[i],
			    SOFTGPU_READ | SOFTGPU_WRITE, &piece))
			return LEAVE;
		for (uint32_t k = 0; k < piece.n; k += size)
			update(type, atom, piece.to + k, piece.from + k,
				to[i] >= SOFTGPU_GLOBAL_LOWEST);
	}
	return ip + 1;
}
