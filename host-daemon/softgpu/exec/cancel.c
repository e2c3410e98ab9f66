/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: blocks that take the place of others which have not begun
 *
 * An answer is 16 bytes that only softgpu knows, four words: whether a cluster was taken,
 * then the coordinates of its first block. The answer is there when the instruction is
 * done, as all that is asynchronous here.
 */

#include <string.h>

#include "exec/mbarrier.h"

#define ANSWER_SIZE 16u

struct answer {
	uint32_t words[ANSWER_SIZE / sizeof(uint32_t)];
};

static struct answer ask(const struct softgpu_launch *launch)
{
	const struct softgpu_hooks *hooks = launch->hooks;
	struct answer answer = { { 0 } };
	uint64_t number;

	if (!hooks || !hooks->take_block || !hooks->take_block(launch, &number))
		return answer;
	answer.words[0] = 1;
	for (unsigned int i = 0; i < 3; i++) {
		uint32_t width = launch->cluster[i] ? launch->cluster[i] : 1;
		uint32_t n = launch->grid[i] / width;

		answer.words[1 + i] = (uint32_t)(number % n) * width;
		number /= n;
	}
	return answer;
}

/* Return: false with a fault. */
static bool put_answer(struct warp *w, const struct insn *ip, uint32_t lane, uint64_t at,
	uint64_t barrier, const struct answer *answer)
{
	int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
	void *to = is_shared(at) ? warp_resolve(w, lane, at, ANSWER_SIZE, ANSWER_SIZE - 1,
					   SOFTGPU_WRITE, &code)
				 : NULL;

	if (!to) {
		warp_fault(w, ip, code, lane, at, fault_sentence(code));
		return false;
	}
	memcpy(to, answer, ANSWER_SIZE);
	return mbarrier_complete(w, ip, lane, barrier, ANSWER_SIZE);
}

HANDLER(TRY_CANCEL)
{
	const uint64_t *to = REG(uint64_t, ip->a), *barrier = REG(uint64_t, ip->b);
	const struct block *block = w->block;

	EACH_SET_LANE(i, mask)
	{
		struct answer answer = ask(block->launch);

		if (!ip->imm && !put_answer(w, ip, i, to[i], barrier[i], &answer))
			return LEAVE;
		for (uint32_t rank = 0; ip->imm && rank < block->cluster->n_blocks;
			rank++) {
			/* An address that is not shared would become one. */
			uint64_t there =
				is_shared(to[i]) ? shared_of_rank(to[i], rank) : 0;
			uint64_t signal = is_shared(barrier[i])
						  ? shared_of_rank(barrier[i], rank)
						  : 0;

			if (!put_answer(w, ip, i, there, signal, &answer))
				return LEAVE;
		}
	}
	return ip + 1;
}
