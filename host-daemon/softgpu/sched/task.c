/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: what the kernel threads take up in turn
 *
 * A task is a grid with untaken blocks, or a block that was set aside. Each thread takes
 * the one that waits longest; a grid moves to the end so that other threads may join. A
 * thread keeps its task until that is complete or, if there are tasks without a thread,
 * until its time slice is over. Then the block it runs is set aside with its scratch, and
 * continues later on any thread. So a kernel can wait for any other one, and one that
 * never ends takes only its share.
 *
 * Priorities decide which blocks begin: none does while a grid of higher priority has one
 * that could. A block that is begun has its turns like any other, whatever its priority,
 * as on a device, where it is resident. A grid that was passed over for long has a turn
 * all the same: a stream of kernels without end may wait for it.
 *
 * The blocks of a grid may wait for each other, too, if no more of them are begun than
 * fit on a device: a block that has polled for long, or has run for very long, is set
 * aside for the next ones of its grid.
 */

#include <stdlib.h>
#include <string.h>

#include "sched/sched.h"

/* The last one in its list. */
static void task_append(struct sched *sched, struct sched_task *task)
{
	struct sched_grid *grid = &task->op->grid;

	task->number = sched->n_tasks++;
	if (!task->is_grid) {
		TAILQ_INSERT_TAIL(&sched->begun, task, link);
		return;
	}
	TAILQ_INSERT_TAIL(&sched->grids[grid->level], task, link);
	grid->listed_ns = sched_now_ns();
	grid->n_turns = sched->n_turns;
}

/* A block that only the allowance has stopped is the next one to continue: otherwise
 * every stop would begin another block of its grid. */
static void task_put_first(struct sched *sched, struct sched_task *task)
{
	task->number = 0;
	TAILQ_INSERT_HEAD(&sched->begun, task, link);
	sched->n_begun++;
}

void sched_task_push(struct sched *sched, struct sched_task *task)
{
	task_append(sched, task);
	if (task->is_grid)
		sched->n_idle_grids[task->op->grid.level]++;
	else
		sched->n_begun++;
}

/*
 * Scratches
 */

/* With the lock. Return: NULL where there is none to spare. */
static struct softgpu_scratch *scratch_take(struct sched *sched)
{
	return sched->n_scratches ? sched->scratches[--sched->n_scratches] : NULL;
}

/* With the lock. Return: the task for which there is no place. */
static struct softgpu_scratch *scratch_give(
	struct sched *sched, struct softgpu_scratch *scratch)
{
	if (!scratch || sched->n_scratches == SCHED_SPARE_SCRATCHES)
		return scratch;
	sched->scratches[sched->n_scratches++] = scratch;
	return NULL;
}

/*
 * A turn
 */

struct turn {
	struct sched_worker *worker;
	struct sched_task *task;
	struct sched_grid *grid;
	struct softgpu_slice slice;
	uint64_t polls_since_ns; /* the block, in this turn; 0: it does not */
	bool has_run;		 /* a block, to its end */
	struct softgpu_fault fault;
};

static bool is_wanted(const struct turn *turn)
{
	return __atomic_load_n(turn->slice.wanted, __ATOMIC_RELAXED);
}

/* Whether grids wait that are passed over as long as others can begin a block. */
static bool is_passing(const struct turn *turn)
{
	/* Partner: sched_tasks_publish(). */
	return __atomic_load_n(&turn->worker->sched->n_passed, __ATOMIC_RELAXED);
}

static bool has_more(const struct turn *turn)
{
	return __atomic_load_n(&turn->grid->next, __ATOMIC_RELAXED) <
	       turn->grid->n_blocks;
}

/* Between two blocks. Return: whether another task shall have the thread now. */
static bool is_over(const struct turn *turn)
{
	/* Partner: sched_tasks_publish(). */
	uint32_t top = __atomic_load_n(&turn->worker->sched->top, __ATOMIC_RELAXED);

	if (turn->has_run && top < turn->grid->level)
		return true;
	if (is_wanted(turn) && sched_now_ns() >= turn->slice.end_ns)
		return true;
	return turn->has_run && is_passing(turn) && sched_now_ns() >= turn->slice.last_ns;
}

/* A block polls. Return: whether others shall have its thread. */
static bool polls_long_enough(struct turn *turn)
{
	const struct sched_grid *grid = turn->grid;
	bool is_wanted_now, more;
	uint64_t now;

	more = has_more(turn) &&
	       __atomic_load_n(&grid->n_begun_aside, __ATOMIC_RELAXED) + grid->n_sms <=
		       grid->begun_max;
	is_wanted_now = is_wanted(turn) || (is_passing(turn) && !more);
	if (!is_wanted_now && !more)
		return false;
	now = sched_now_ns();
	if (!turn->polls_since_ns)
		turn->polls_since_ns = now;
	return now - turn->polls_since_ns >=
	       (is_wanted_now ? SCHED_SLICE_POLLING_NS : SCHED_POLLING_NS);
}

/* Return: whether there is a block to begin; then it is begun next, for others may wait
 * for it that have no room to begin it. */
static bool next_block(struct turn *turn, uint64_t *blockp)
{
	if (!turn->task->is_grid)
		return false;
	*blockp = __atomic_fetch_add(&turn->grid->next, 1, __ATOMIC_RELAXED);
	return *blockp < turn->grid->n_blocks;
}

static enum sched_turn turn_run(struct turn *turn)
{
	struct sched_task *task = turn->task;
	struct softgpu_scratch *scratch = task->scratch;
	const struct softgpu_launch *launch = &turn->grid->launch;
	uint64_t block;

	for (;;) {
		/* Partner: context_fail(). */
		if (__atomic_load_n(launch->stop, __ATOMIC_RELAXED))
			return SCHED_TURN_DONE;
		if (!task->has_block) {
			if (is_over(turn))
				return SCHED_TURN_OVER;
			if (!next_block(turn, &block))
				return SCHED_TURN_DONE;
			if (sched_grid_is_late(turn->grid, &turn->fault))
				return SCHED_TURN_FAULT;
			if (softgpu_block_begin(scratch, launch, block, &turn->fault))
				return SCHED_TURN_FAULT;
			task->has_block = true;
			turn->polls_since_ns = 0;
		}
		switch (softgpu_block_resume(scratch, &turn->slice, &turn->fault)) {
		case SOFTGPU_BLOCK_DONE:
			task->has_block = false;
			turn->has_run = true;
			break;
		case SOFTGPU_BLOCK_FAULTED:
			return SCHED_TURN_FAULT;
		case SOFTGPU_BLOCK_PREEMPTED:
			return SCHED_TURN_OVER;
		default:
			if (polls_long_enough(turn))
				return SCHED_TURN_OVER;
			break;
		}
	}
}

/*
 * The rest of a turn
 */

/* Allocated before the lock is taken again, so that nothing fails then. */
struct leftovers {
	struct sched_task *block;
	struct softgpu_scratch *scratch; /* for the thread, whose own is set aside */
};

static void leftovers_deinit(struct leftovers *left)
{
	free(left->block);
	softgpu_scratch_free(left->scratch);
}

/* Return: whether the turn may end; it continues without memory for that. */
static bool leftovers_init(struct leftovers *left, struct sched_worker *worker,
	const struct sched_task *task)
{
	struct sched *sched = worker->sched;

	*left = (struct leftovers){};
	if (task->has_block || task->together)
		left->block = calloc(1, sizeof(*left->block));
	if (task->has_block && !worker->scratch) {
		sched_lock(sched);
		left->scratch = scratch_take(sched);
		sched_unlock(sched);
		if (!left->scratch && softgpu_scratch_new(&left->scratch, worker->smid))
			left->scratch = NULL;
	}
	if ((task->has_block || task->together) && !left->block)
		return false;
	return !task->has_block || worker->scratch || left->scratch;
}

static void set_aside(struct sched_worker *worker, struct sched_task *task)
{
	struct sched_grid *grid = &task->op->grid;
	struct sched *sched = worker->sched;

	grid->n_aside++;
	if (task->has_block)
		__atomic_fetch_add(&grid->n_begun_aside, 1, __ATOMIC_RELAXED);
	if (task->scratch || task->together) {
		sched->n_aside++;
		sched->aside_size += task->together ? sched_together_size(task->together)
						    : softgpu_scratch_size(task->scratch);
	}
	if (sched_account_is_over(&worker->account))
		task_put_first(sched, task);
	else
		sched_task_push(sched, task);
	sched_grid_want(sched, grid, 1);
}

/* With the lock: leaves what is to be gone on with in the lists. */
static void put_back(
	struct sched_worker *worker, struct sched_task *task, struct leftovers *left)
{
	if (left->block) {
		*left->block = (struct sched_task){
			.op = task->op,
			.has_block = task->has_block,
			.scratch = task->has_block ? task->scratch : NULL,
			.together = task->together,
		};
		set_aside(worker, left->block);
		task->together = NULL;
		if (task->has_block)
			task->scratch = NULL;
	}
	if (left->scratch)
		worker->scratch = left->scratch;
	*left = (struct leftovers){};
}

/*
 * The lists
 */

/* Whether so much is set aside that no block is begun. */
static bool is_full(const struct sched *sched)
{
	return sched->n_aside >= SCHED_ASIDE_MANY &&
	       sched->aside_size >= SCHED_ASIDE_SIZE_MANY;
}

/* A grid has no more blocks under way than there is room for. */
static bool has_room(const struct sched_grid *grid)
{
	return grid->n_begun_aside + grid->n_threads < grid->begun_max;
}

/* Whether the thread is one of those to which the stream is confined. Without any of
 * these, because none could be created, all others are. */
static bool is_allowed(
	const struct sched_worker *worker, const struct sched_stream *stream)
{
	if (!stream->is_confined || sched_sms_has(&stream->sms, worker->smid))
		return true;
	for (uint32_t smid = 0; smid < worker->sched->n_alive; smid++)
		if (sched_sms_has(&stream->sms, smid))
			return false;
	return true;
}

static bool may_begin(const struct sched_worker *worker, const struct sched_task *task)
{
	return is_allowed(worker, task->op->stream) && has_room(&task->op->grid);
}

/* Grids of higher priority have kept it waiting. */
static bool is_passed_over(const struct sched *sched, const struct sched_grid *grid)
{
	return sched->n_turns - grid->n_turns >= SCHED_PASSES &&
	       sched_now_ns() - grid->listed_ns >= SCHED_TURN_NS;
}

static struct sched_task *choose_of_level(
	const struct sched_worker *worker, uint32_t level)
{
	struct sched_task *task;

	TAILQ_FOREACH(task, &worker->sched->grids[level], link)
		if (may_begin(worker, task))
			return task;
	return NULL;
}

/* Return: NULL if none can begin a block on this thread. */
static struct sched_task *choose_grid(const struct sched_worker *worker)
{
	struct sched_task *task, *chosen = NULL;

	for (uint32_t level = 0; level < SCHED_LEVELS && !is_full(worker->sched);
		level++) {
		task = choose_of_level(worker, level);
		if (!chosen)
			chosen = task;
		else if (task && is_passed_over(worker->sched, &task->op->grid))
			return task;
	}
	return chosen;
}

static struct sched_task *choose_begun(const struct sched_worker *worker)
{
	struct sched_task *task;

	TAILQ_FOREACH(task, &worker->sched->begun, link)
		if (is_allowed(worker, task->op->stream))
			return task;
	return NULL;
}

/* Where no block that is begun is for this thread, a grid goes on without room. */
static struct sched_task *choose_any(const struct sched_worker *worker)
{
	struct sched_task *task;

	for (uint32_t level = 0; level < SCHED_LEVELS; level++)
		TAILQ_FOREACH(task, &worker->sched->grids[level], link)
			if (is_allowed(worker, task->op->stream))
				return task;
	return NULL;
}

/* A grid does not wait for the turns of all blocks of lower priority, which may be many;
 * they have every other one. */
static bool goes_first(const struct sched_worker *worker, const struct sched_task *grid,
	const struct sched_task *begun)
{
	return grid->op->grid.level < begun->op->grid.level && !worker->sched->was_grid;
}

/* Return: NULL if all tasks are for other threads. */
static struct sched_task *choose(const struct sched_worker *worker)
{
	struct sched_task *begun = choose_begun(worker), *grid = choose_grid(worker);

	if (begun && grid)
		return begun->number < grid->number && !goes_first(worker, grid, begun)
			       ? begun
			       : grid;
	if (begun)
		return begun;
	return grid ? grid : choose_any(worker);
}

bool sched_task_is_there(const struct sched_worker *worker)
{
	return choose(worker);
}

/* Whether a grid of that level could begin a block: on a thread that is at work on it as
 * soon as the one before is done. */
static bool level_has_room(const struct sched *sched, uint32_t level)
{
	const struct sched_task *task;

	TAILQ_FOREACH(task, &sched->grids[level], link)
		if (task->op->grid.n_begun_aside < task->op->grid.begun_max)
			return !is_full(sched);
	return false;
}

void sched_tasks_publish(struct sched *sched)
{
	uint32_t top = SCHED_LEVELS, n_waiting = sched->n_begun + sched->n_stops;
	uint32_t n_passed = 0;

	for (uint32_t level = 0; level < SCHED_LEVELS; level++) {
		if (top == SCHED_LEVELS)
			n_waiting += sched->n_idle_grids[level];
		else
			n_passed += sched->n_idle_grids[level];
		if (top == SCHED_LEVELS && level_has_room(sched, level))
			top = level;
	}
	/* Partner: the engine, and is_over(). */
	__atomic_store_n(&sched->n_waiting, n_waiting, __ATOMIC_RELAXED);
	__atomic_store_n(&sched->n_passed, n_passed, __ATOMIC_RELAXED);
	__atomic_store_n(&sched->top, top, __ATOMIC_RELAXED);
	if (sched->allowance)
		sched_allowance_publish(sched->allowance,
			sched->n_useful < sched->n_threads ? sched->n_useful
							   : sched->n_threads);
}

static struct sched_task take_grid(struct sched *sched, struct sched_task *chosen)
{
	struct sched_grid *grid = &chosen->op->grid;
	struct sched_task task = *chosen;

	TAILQ_REMOVE(&sched->grids[grid->level], chosen, link);
	sched->n_turns++;
	task_append(sched, chosen);
	sched_grid_join(sched, task.op);
	if (grid->is_cooperative)
		sched_grid_unlist(sched, task.op);
	return task;
}

static struct sched_task take_begun(struct sched *sched, struct sched_task *chosen)
{
	struct sched_grid *grid = &chosen->op->grid;
	struct sched_task task = *chosen;

	TAILQ_REMOVE(&sched->begun, chosen, link);
	sched->n_begun--;
	grid->n_aside--;
	if (task.has_block)
		__atomic_fetch_sub(&grid->n_begun_aside, 1, __ATOMIC_RELAXED);
	if (task.scratch || task.together) {
		sched->n_aside--;
		sched->aside_size -= task.together ? sched_together_size(task.together)
						   : softgpu_scratch_size(task.scratch);
	}
	free(chosen);
	sched_grid_join(sched, task.op);
	return task;
}

/* Takes what waits longest. */
static struct sched_task take(struct sched_worker *worker)
{
	struct sched_task *chosen = choose(worker);

	worker->sched->was_grid = chosen->is_grid;
	return chosen->is_grid ? take_grid(worker->sched, chosen)
			       : take_begun(worker->sched, chosen);
}

/* On a device that is shared each slice is short, so that the thread looks at its
 * allowance; run() may let it continue with the next one. */
struct softgpu_slice sched_slice(const struct sched_worker *worker)
{
	const struct sched *sched = worker->sched;
	uint64_t now = sched_now_ns(), ns;

	ns = sched_account_turn(&worker->account, SCHED_SLICE_NS, sched->n_threads);
	return (struct softgpu_slice){
		.wanted = &sched->n_waiting,
		.end_ns = now + ns,
		.last_ns = now + (sched->allowance ? ns : SCHED_TURN_NS),
	};
}

/* Whether a turn ended only so that the thread looks at its allowance, and may continue
 * with the next slice. */
static bool goes_on(struct sched_worker *worker, uint64_t began_ns)
{
	if (!worker->account.allowance ||
		__atomic_load_n(&worker->sched->n_waiting, __ATOMIC_RELAXED) ||
		sched_now_ns() - began_ns >= SCHED_TURN_NS)
		return false;
	sched_account_charge(&worker->account);
	return !sched_account_is_over(&worker->account);
}

/* Without the lock. */
static enum sched_turn run(struct sched_worker *worker, struct sched_task *task,
	struct leftovers *left, struct softgpu_fault *fault)
{
	struct turn turn = { .worker = worker, .task = task, .grid = &task->op->grid };
	uint64_t began_ns = worker->account.allowance ? sched_now_ns() : 0;
	enum sched_turn r;

	for (;;) {
		turn.slice = sched_slice(worker);
		turn.polls_since_ns = 0;
		if (turn.grid->is_cooperative)
			r = sched_together_run(worker, task, fault);
		else
			r = turn_run(&turn);
		if (r == SCHED_TURN_FAULT && !turn.grid->is_cooperative)
			*fault = turn.fault;
		if (r == SCHED_TURN_OVER && goes_on(worker, began_ns))
			continue;
		if (r != SCHED_TURN_OVER || leftovers_init(left, worker, task))
			return r;
		leftovers_deinit(left);
	}
}

void sched_task_serve(struct sched_worker *worker)
{
	struct sched *sched = worker->sched;
	struct sched_task task = take(worker);
	struct leftovers left = {};
	struct softgpu_fault fault = {};
	enum sched_turn r;

	sched_work_begin(sched);
	sched_unlock(sched);
	if (!task.scratch && !task.op->grid.is_cooperative) {
		task.scratch = worker->scratch;
		worker->scratch = NULL;
	}
	if (task.scratch)
		softgpu_scratch_move(task.scratch, worker->smid);
	r = run(worker, &task, &left, &fault);
	if (r != SCHED_TURN_OVER)
		task.together = sched_together_free(task.together);

	sched_lock(sched);
	sched_work_end(sched);
	if (r == SCHED_TURN_FAULT)
		sched_grid_fail(task.op, &fault);
	if (r == SCHED_TURN_OVER)
		put_back(worker, &task, &left);
	else if (task.is_grid || r == SCHED_TURN_FAULT)
		sched_grid_unlist(sched, task.op);
	/* The scratch that was used last is prepared for more blocks of the same grid. */
	if (task.scratch) {
		left.scratch = scratch_give(sched, worker->scratch);
		worker->scratch = task.scratch;
	}
	sched_grid_leave(sched, task.op);
	if (!left.scratch)
		return;
	sched_unlock(sched);
	leftovers_deinit(&left);
	sched_lock(sched);
}
