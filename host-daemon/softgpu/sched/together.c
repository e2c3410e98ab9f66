/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooperative grids: blocks that wait for each other
 *
 * All blocks of such a grid are begun before any is run, each in a separate scratch, and
 * then resumed in turn by one thread at a time until the last is complete. They
 * synchronise by a word in a workspace of the grid, whose address the kernel reads from
 * two registers that the driver sets.
 */

#include <stdlib.h>

#include "sched/sched.h"

#define TOGETHER_ENVREG_HIGH 1
#define TOGETHER_ENVREG_LOW 2

struct sched_together {
	uint32_t envreg[SOFTGPU_ENVREGS];
	uint64_t n_scratches;
	uint64_t n_alive; /* blocks that are not complete: those of the first scratches */
	uint64_t at;	  /* whose turn it is */
	size_t size;
	struct softgpu_scratch *scratches[];
};

struct sched_together *sched_together_free(struct sched_together *together)
{
	if (!together)
		return NULL;
	while (together->n_scratches)
		softgpu_scratch_free(together->scratches[--together->n_scratches]);
	free(together);
	return NULL;
}

size_t sched_together_size(const struct sched_together *together)
{
	return together->size;
}

/* Return: all blocks, begun; NULL: no memory. */
static struct sched_together *together_begin(
	struct sched_worker *worker, struct sched_grid *grid, struct softgpu_fault *fault)
{
	uint64_t n = grid->n_blocks, place;
	struct sched_together *together =
		calloc(1, sizeof(*together) + n * sizeof(*together->scratches));
	uint64_t *words;

	if (!together)
		return NULL;
	place = worker->sched->workspaces +
		(grid->workspace - 1) * (uint64_t)SCHED_WORKSPACE_SIZE;
	words = (uint64_t *)(uintptr_t)place;
	for (size_t i = 0; i < SCHED_WORKSPACE_SIZE / sizeof(*words); i++)
		words[i] = 0;
	together->envreg[TOGETHER_ENVREG_HIGH] = place >> 32;
	together->envreg[TOGETHER_ENVREG_LOW] = (uint32_t)place;
	grid->launch.envreg = together->envreg;
	while (together->n_scratches < n) {
		struct softgpu_scratch **scratchp =
			&together->scratches[together->n_scratches];

		if (softgpu_scratch_new(scratchp, worker->smid))
			return sched_together_free(together);
		together->n_scratches++;
		if (softgpu_block_begin(
			    *scratchp, &grid->launch, together->n_alive, fault))
			return sched_together_free(together);
		together->n_alive++;
		together->size += softgpu_scratch_size(*scratchp);
	}
	return together;
}

/* Resumes each block that is left. Return: whether that was all of them. */
static enum sched_turn together_round(struct sched_together *together,
	const struct softgpu_slice *slice, struct softgpu_fault *fault)
{
	while (together->at < together->n_alive) {
		struct softgpu_scratch **scratchp = &together->scratches[together->at];
		struct softgpu_scratch *done = *scratchp;

		switch (softgpu_block_resume(done, slice, fault)) {
		case SOFTGPU_BLOCK_FAULTED:
			return SCHED_TURN_FAULT;
		case SOFTGPU_BLOCK_DONE:
			*scratchp = together->scratches[--together->n_alive];
			together->scratches[together->n_alive] = done;
			break;
		case SOFTGPU_BLOCK_PREEMPTED:
			together->at++;
			return SCHED_TURN_OVER;
		default:
			together->at++;
			break;
		}
	}
	together->at = 0;
	return SCHED_TURN_DONE;
}

enum sched_turn sched_together_run(
	struct sched_worker *worker, struct sched_task *task, struct softgpu_fault *fault)
{
	struct sched_grid *grid = &task->op->grid;
	struct softgpu_slice slice = sched_slice(worker);
	uint64_t polls_until = sched_now_ns() + SCHED_SLICE_POLLING_NS;
	enum sched_turn r = SCHED_TURN_DONE;

	if (!task->together && sched_grid_is_late(grid, fault))
		return SCHED_TURN_FAULT;
	if (!task->together)
		task->together = together_begin(worker, grid, fault);
	if (!task->together) {
		fault->code = SOFTGPU_ERROR_LAUNCH_OUT_OF_RESOURCES;
		fault->kernel = softgpu_kernel_info(grid->launch.kernel)->name;
		return SCHED_TURN_FAULT;
	}
	while (r == SCHED_TURN_DONE && task->together->n_alive) {
		/* Partner: context_fail(). */
		if (__atomic_load_n(grid->launch.stop, __ATOMIC_RELAXED))
			return SCHED_TURN_DONE;
		r = together_round(task->together, &slice, fault);
		if (r == SCHED_TURN_DONE && task->together->n_alive &&
			__atomic_load_n(slice.wanted, __ATOMIC_RELAXED) &&
			sched_now_ns() >= polls_until)
			r = SCHED_TURN_OVER;
	}
	return r;
}
