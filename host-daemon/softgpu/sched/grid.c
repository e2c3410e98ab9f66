/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids: launches whose blocks are divided among the kernel threads
 *
 * A launch at the head of its stream is offered to the threads as a task, until its last
 * block has been taken. Threads take its blocks one by one, in ascending order: a block
 * may wait for those before it, as in a scan by decoupled look-back, and the first one
 * that is not done has always been begun. The launch is complete when no thread works on
 * it and none of it is set aside; the thread that finds so completes the operation,
 * unless the grid has launched others.
 */

#include <stdio.h>

#include "vgpu/log.h"
#include "vgpu/rate.h"

#include "sched/children.h"
#include "sched/graph.h"
#include "sched/sched.h"

/* Return: whether there is a place where the blocks of the grid can meet. */
static bool grid_take_workspace(struct sched *sched, struct sched_grid *grid)
{
	for (uint32_t i = 0; i < SCHED_WORKSPACES; i++)
		if (!sched->has_workspace[i]) {
			sched->has_workspace[i] = true;
			grid->workspace = i + 1;
			return true;
		}
	return false;
}

uint32_t sched_sms_count(const struct sched_sms *sms)
{
	uint32_t n = 0;

	for (size_t i = 0; i < SCHED_THREADS_MAX / 64; i++)
		n += (uint32_t)__builtin_popcountll(sms->words[i]);
	return n;
}

/* Return: how many threads there have to be for all of a set to exist. */
static uint32_t sms_end(const struct sched_sms *sms)
{
	uint32_t end = SCHED_THREADS_MAX;

	while (end && !sched_sms_has(sms, end - 1))
		end--;
	return end;
}

static void grid_offer(struct sched *sched, struct sched_grid *grid)
{
	const struct sched_stream *stream = grid->task.op->stream;

	grid->is_listed = true;
	sched_task_push(sched, &grid->task);
	sched_grid_want(sched, grid, grid->n_useful);
	sched->n_useful += grid->n_useful;
	sched_staff_kernels(sched, stream->is_confined ? sms_end(&stream->sms) : 0);
}

/* The threads of a set cannot be woken alone. */
void sched_grid_want(struct sched *sched, const struct sched_grid *grid, uint32_t n)
{
	sched->n_wanted += grid->task.op->stream->is_confined ? sched->n_threads : n;
}

void sched_budget_begin(const struct sched *sched, struct sched_budget *budget)
{
	uint64_t limit = __atomic_load_n(&sched->launch_ns, __ATOMIC_RELAXED);

	*budget = (struct sched_budget){ .is_limited = limit, .left_ns = limit };
}

/* Children have their parent's, which is not complete before them, and kernels of a graph
 * that of its launch. */
static struct sched_budget *find_budget(struct sched *sched, struct sched_op *op)
{
	const struct sched_stream *stream = op->stream;

	if (stream->children)
		return stream->children->parent->grid.budget;
	if (stream->graph)
		return &stream->graph->launch->run.budget;
	sched_budget_begin(sched, &op->grid.own_budget);
	return &op->grid.own_budget;
}

/* The priority is read once: a change of the stream's is for later launches. */
static uint32_t level_of(const struct sched_op *op)
{
	int priority = op->grid.has_priority ? op->grid.priority
					     : sched_stream_priority(op->stream);

	return (uint32_t)(sched_priority_clamp(priority) - SCHED_PRIORITY_GREATEST);
}

void sched_grid_begin(struct sched *sched, struct sched_op *op)
{
	struct sched_grid *grid = &op->grid;

	grid->next = 0;
	grid->n_threads = 0;
	grid->n_aside = 0;
	grid->n_begun_aside = 0;
	grid->idle_since_ns = 0;
	grid->launch.stop = &op->stream->context->stop;
	grid->launch.grid_id = sched->next_grid_id++;
	grid->launch.deadline_ns = 0;
	grid->deadline_ns = 0;
	grid->budget = find_budget(sched, op);
	grid->is_begun = false;
	grid->children = NULL;
	grid->workspace = 0;
	grid->level = level_of(op);
	grid->task = (struct sched_task){ .op = op, .is_grid = true };
	grid->n_sms = op->stream->is_confined ? sched_sms_count(&op->stream->sms)
					      : sched->n_threads;
	grid->begun_max =
		(uint32_t)((uint64_t)grid->resident_max * grid->n_sms / sched->n_threads);
	if (grid->begun_max < grid->n_sms)
		grid->begun_max = grid->n_sms;
	grid->n_useful =
		grid->n_blocks < grid->n_sms ? (uint32_t)grid->n_blocks : grid->n_sms;
	if (grid->is_cooperative)
		grid->n_useful = 1;
	if (grid->is_cooperative && !grid_take_workspace(sched, grid))
		TAILQ_INSERT_TAIL(&sched->held, &grid->task, link);
	else
		grid_offer(sched, grid);
}

/* Return: the grid that has waited longest for a place, of the highest priority; NULL:
 * none waits. */
static struct sched_task *first_held(const struct sched *sched)
{
	struct sched_task *task, *first = NULL;

	TAILQ_FOREACH(task, &sched->held, link)
		if (!first || task->op->grid.level < first->op->grid.level)
			first = task;
	return first;
}

/* Its place passes to another grid. */
static void grid_give_workspace(struct sched *sched, struct sched_grid *grid)
{
	struct sched_task *next = first_held(sched);

	if (!grid->workspace)
		return;
	if (!next) {
		sched->has_workspace[grid->workspace - 1] = false;
		return;
	}
	TAILQ_REMOVE(&sched->held, next, link);
	next->op->grid.workspace = grid->workspace;
	grid_offer(sched, &next->op->grid);
}

void sched_grid_fail(struct sched_op *op, const struct softgpu_fault *fault)
{
	static struct rate rate;
	struct sched_context *context = op->stream->context;
	const struct sched *sched = context->sched;
	const bool is_first = !sched_context_fault(context);

	if (is_first && rate_allows(&rate))
		vgpu_log_error("CUDA error %d: %s", fault->code, fault->text);
	if (is_first && sched->fault)
		sched->fault(sched->fault_data, fault->code, fault->text);
	sched_context_set_fault(context, fault->code);
	if (is_first && sched->allowance)
		sched_allowance_count_fault(sched->allowance);
}

/* The threads that begin blocks find none left then. All blocks of a cooperative grid
 * have begun. */
bool sched_grid_take_block(const struct softgpu_launch *launch, uint64_t *numberp)
{
	struct sched_grid *grid = sched_grid_of(launch);

	if (grid->is_cooperative)
		return false;
	*numberp = __atomic_fetch_add(&grid->next, 1, __ATOMIC_RELAXED);
	return *numberp < grid->n_blocks;
}

/* By a thread that is at work on it. */
void sched_grid_unlist(struct sched *sched, struct sched_op *op)
{
	struct sched_grid *grid = &op->grid;

	if (grid->is_listed)
		TAILQ_REMOVE(&sched->grids[grid->level], &grid->task, link);
	grid->is_listed = false;
}

/* The first thread begins to work on the grid. Return: when the time is over, 0: never.
 */
static uint64_t budget_enter(struct sched_budget *budget, uint64_t now)
{
	if (!budget->is_limited)
		return 0;
	if (!budget->n_working++)
		budget->since_ns = now;
	return budget->since_ns + budget->left_ns;
}

/* The last one has left it. */
static void budget_leave(struct sched_budget *budget, uint64_t now)
{
	uint64_t spent;

	if (!budget->is_limited || --budget->n_working)
		return;
	spent = now - budget->since_ns;
	budget->left_ns = spent < budget->left_ns ? budget->left_ns - spent : 0;
}

/* The time limit counts from the first block, not from the place among the tasks, and
 * only while a thread is at work. */
static void grid_wind_up(struct sched *sched, struct sched_grid *grid)
{
	bool is_begun = grid->is_begun;
	uint64_t now, end;

	grid->is_begun = true;
	if (!is_begun)
		sched_op_note(grid->task.op, false);
	if (grid->n_threads || !(sched->timeout_ns || grid->budget->is_limited))
		return;
	now = sched_now_ns();
	if (!is_begun && sched->timeout_ns)
		grid->deadline_ns = now + sched->timeout_ns;
	else if (grid->deadline_ns)
		grid->deadline_ns += now - grid->idle_since_ns;
	end = budget_enter(grid->budget, now);
	grid->launch.deadline_ns = end && (!grid->deadline_ns || end < grid->deadline_ns)
					   ? end
					   : grid->deadline_ns;
}

static void grid_wind_down(struct sched_grid *grid)
{
	uint64_t now;

	if (!grid->launch.deadline_ns)
		return;
	now = sched_now_ns();
	grid->idle_since_ns = now;
	budget_leave(grid->budget, now);
}

bool sched_grid_is_late(const struct sched_grid *grid, struct softgpu_fault *faultp)
{
	const struct softgpu_launch *launch = &grid->launch;

	if (!launch->deadline_ns || sched_now_ns() < launch->deadline_ns)
		return false;
	*faultp = (struct softgpu_fault){ .code = SOFTGPU_ERROR_LAUNCH_TIMEOUT,
		.kernel = softgpu_kernel_info(launch->kernel)->name };
	snprintf(faultp->text, sizeof(faultp->text),
		"time is over before all blocks of %.256s have begun", faultp->kernel);
	return true;
}

void sched_grid_join(struct sched *sched, struct sched_op *op)
{
	struct sched_grid *grid = &op->grid;

	grid_wind_up(sched, grid);
	sched_op_begun(sched, op);
	if (grid->is_listed && !grid->n_threads)
		sched->n_idle_grids[grid->level]--;
	grid->n_threads++;
}

void sched_grid_leave(struct sched *sched, struct sched_op *op)
{
	struct sched_grid *grid = &op->grid;

	grid->n_threads--;
	if (grid->n_threads)
		return;
	grid_wind_down(grid);
	if (grid->is_listed)
		sched->n_idle_grids[grid->level]++;
	if (grid->is_listed || grid->n_aside)
		return;
	sched_op_note(op, true);
	sched->n_useful -= grid->n_useful;
	grid_give_workspace(sched, grid);
	if (sched_children_end(op))
		sched_stream_complete(op->stream);
}
