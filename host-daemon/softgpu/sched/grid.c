/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids: launches whose blocks the kernel threads share out
 *
 * A launch that is at the head of its stream stands in a list until its last block
 * has been taken. Threads take the first launch of the list and move it to the end,
 * so that kernels of several streams run side by side, and then ascending ranges of
 * its blocks from one counter. Who leaves last completes the operation.
 */

#include "vgpu/log.h"
#include "vgpu/rate.h"

#include "sched/sched.h"

/* Ranges a thread takes on average: few enough atomics, small enough a tail. */
#define GRID_RANGES_PER_THREAD 8
#define GRID_CHUNK_MAX 256

void sched_grid_begin(struct sched *sched, struct sched_op *op)
{
	struct sched_grid *grid = &op->grid;
	uint64_t n = grid->n_blocks / (sched->n_threads * GRID_RANGES_PER_THREAD);

	grid->chunk = n < 1 ? 1 : n > GRID_CHUNK_MAX ? GRID_CHUNK_MAX : n;
	grid->next = 0;
	grid->n_threads = 0;
	grid->launch.stop = &op->stream->context->stop;
	grid->launch.grid_id = sched->next_grid_id++;
	grid->launch.deadline_ns = 0;
	grid->is_begun = false;
	grid->is_listed = true;
	TAILQ_INSERT_TAIL(&sched->grids, op, grid.link);
	grid->n_useful = grid->n_blocks < sched->n_threads ? (uint32_t)grid->n_blocks
							   : sched->n_threads;
	if (grid->is_cooperative)
		grid->n_useful = 1;
	sched->n_wanted += grid->n_useful;
	sched->n_useful += grid->n_useful;
	sched_staff_kernels(sched);
}

static void grid_report(struct sched_op *op, const struct softgpu_fault *fault)
{
	static struct rate rate;
	struct sched_context *context = op->stream->context;

	if (!sched_context_fault(context) && rate_allows(&rate))
		vgpu_log_error("CUDA error %d: %s", fault->code, fault->text);
	sched_context_set_fault(context, fault->code);
}

/* Runs ranges of blocks until there are none. Returns: 0 or the code of a fault. */
static int grid_work(struct sched_grid *grid, struct softgpu_scratch *scratch,
	struct softgpu_fault *fault)
{
	int r;

	for (;;) {
		uint64_t first, n = grid->chunk;

		if (__atomic_load_n(grid->launch.stop, __ATOMIC_RELAXED))
			return 0;
		first = __atomic_fetch_add(&grid->next, n, __ATOMIC_RELAXED);
		if (first >= grid->n_blocks)
			return 0;
		if (n > grid->n_blocks - first)
			n = grid->n_blocks - first;
		r = softgpu_run_blocks(scratch, &grid->launch, first, n, fault);
		if (r)
			return r;
	}
}

/* With the lock: nobody else shall join. */
static void grid_unlist(struct sched *sched, struct sched_op *op)
{
	if (op->grid.is_listed)
		TAILQ_REMOVE(&sched->grids, op, grid.link);
	op->grid.is_listed = false;
}

void sched_grid_serve(struct sched_worker *worker)
{
	struct sched *sched = worker->sched;
	struct sched_op *op = TAILQ_FIRST(&sched->grids);
	struct sched_grid *grid = &op->grid;
	struct softgpu_fault fault = { 0 };
	int r;

	if (grid->is_cooperative) {
		grid_unlist(sched, op);
	} else {
		TAILQ_REMOVE(&sched->grids, op, grid.link);
		TAILQ_INSERT_TAIL(&sched->grids, op, grid.link);
	}
	/* The time limit counts from the first block, not from the place in the list. */
	if (!grid->is_begun && sched->timeout_ns)
		grid->launch.deadline_ns = sched_now_ns() + sched->timeout_ns;
	grid->is_begun = true;
	grid->n_threads++;
	sched_unlock(sched);

	if (grid->is_cooperative)
		r = sched_grid_together(worker, grid, &fault);
	else
		r = grid_work(grid, worker->scratch, &fault);

	sched_lock(sched);
	if (r)
		grid_report(op, &fault);
	grid_unlist(sched, op);
	grid->n_threads--;
	if (!grid->n_threads) {
		sched->n_useful -= grid->n_useful;
		sched_stream_complete(op->stream);
	}
}
