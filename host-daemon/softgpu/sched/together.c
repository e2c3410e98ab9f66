/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cooperative grids: blocks that wait for each other
 *
 * All blocks of such a grid are begun before any is run, each in a scratch of its own,
 * and then resumed in turn by one thread until the last is done. Where they meet is a
 * word in the thread's workspace, whose address the kernel finds in two registers
 * that the driver sets.
 */

#include <stdlib.h>

#include "sched/sched.h"

#define TOGETHER_ENVREG_HIGH 1
#define TOGETHER_ENVREG_LOW 2

/* Runs what has been begun. Returns: 0 or the code of a fault. */
static int together_run(struct softgpu_scratch **scratches, uint64_t n_blocks,
	const struct softgpu_launch *launch, struct softgpu_fault *fault)
{
	uint64_t n_alive = n_blocks;
	int r;

	for (uint64_t i = 0; i < n_blocks; i++) {
		r = softgpu_block_begin(scratches[i], launch, i, fault);
		if (r)
			return r;
	}
	while (n_alive) {
		for (uint64_t i = 0; i < n_alive; i++) {
			struct softgpu_scratch *done = scratches[i];

			switch (softgpu_block_resume(done, fault)) {
			case SOFTGPU_BLOCK_FAULTED:
				return fault->code;
			case SOFTGPU_BLOCK_DONE:
				scratches[i--] = scratches[--n_alive];
				scratches[n_alive] = done;
				break;
			default:
				break;
			}
		}
		if (__atomic_load_n(launch->stop, __ATOMIC_RELAXED))
			return 0;
	}
	return 0;
}

int sched_grid_together(
	struct sched_worker *worker, struct sched_grid *grid, struct softgpu_fault *fault)
{
	uint32_t envreg[SOFTGPU_ENVREGS] = {
		[TOGETHER_ENVREG_HIGH] = worker->workspace >> 32,
		[TOGETHER_ENVREG_LOW] = (uint32_t)worker->workspace,
	};
	uint64_t *words = (uint64_t *)(uintptr_t)worker->workspace;
	struct softgpu_scratch **scratches;
	struct softgpu_launch launch = grid->launch;
	uint64_t n_scratches = 0;
	int r = 0;

	for (size_t i = 0; i < SCHED_WORKSPACE_SIZE / sizeof(*words); i++)
		words[i] = 0;
	launch.envreg = envreg;
	scratches = calloc(grid->n_blocks, sizeof(struct softgpu_scratch *));
	while (scratches && !r && n_scratches < grid->n_blocks) {
		r = softgpu_scratch_new(&scratches[n_scratches], worker->smid);
		if (!r)
			n_scratches++;
	}
	if (!scratches || r) {
		r = fault->code = SOFTGPU_ERROR_LAUNCH_OUT_OF_RESOURCES;
		fault->kernel = softgpu_kernel_info(launch.kernel)->name;
	} else {
		r = together_run(scratches, grid->n_blocks, &launch, fault);
	}
	while (n_scratches)
		softgpu_scratch_free(scratches[--n_scratches]);
	free(scratches);
	return r;
}
