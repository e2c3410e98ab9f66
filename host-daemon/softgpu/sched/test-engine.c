/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine for tests of the scheduler, which only notes what it ran
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sched/test-engine.h"
#include "test.h"

struct sched sched;

struct softgpu_scratch {
	const struct softgpu_launch *launch;
	uint32_t smid;
	uint64_t block;
	uint64_t begun_ns;
	uint64_t run_ns;     /* that it was at work */
	uint64_t others_ns;  /* that all had been at work when it began */
	uint64_t limited_ns; /* since when the time limit counts */
};

int softgpu_scratch_new(struct softgpu_scratch **scratchp, uint32_t smid)
{
	*scratchp = calloc(1, sizeof(**scratchp));
	(*scratchp)->smid = smid;
	return 0;
}

struct softgpu_scratch *softgpu_scratch_free(struct softgpu_scratch *scratch)
{
	free(scratch);
	return NULL;
}

void softgpu_scratch_move(struct softgpu_scratch *scratch, uint32_t smid)
{
	scratch->smid = smid;
}

size_t softgpu_scratch_size(const struct softgpu_scratch *scratch)
{
	return sizeof(*scratch);
}

static void note_number(const struct work *work)
{
	uint64_t number = __atomic_fetch_add(work->numbers, 1, __ATOMIC_RELAXED);

	if (!work->notes->n++)
		work->notes->first = number;
	work->notes->last = number;
}

int softgpu_block_begin(struct softgpu_scratch *scratch,
	const struct softgpu_launch *launch, uint64_t block, struct softgpu_fault *fault)
{
	const struct work *work = launch->params;
	uint32_t n;

	*scratch = (struct softgpu_scratch){
		.launch = launch,
		.smid = scratch->smid,
		.block = block,
		.begun_ns = sched_now_ns(),
	};
	if (work->charge) {
		scratch->others_ns = work->charge->run_ns;
		scratch->limited_ns = launch->deadline_ns - work->charge->timeout_ns;
	}
	if (work->launchp)
		__atomic_store_n(work->launchp, launch, __ATOMIC_RELEASE);
	if (work->numbers)
		note_number(work);
	if (work->met)
		__atomic_fetch_add(work->met, 1, __ATOMIC_ACQ_REL);
	if (!work->resident)
		return 0;
	n = __atomic_add_fetch(work->resident, 1, __ATOMIC_ACQ_REL);
	/* Approximate where two begin at once, but never too large. */
	if (n > __atomic_load_n(work->resident_max, __ATOMIC_RELAXED))
		__atomic_store_n(work->resident_max, n, __ATOMIC_RELAXED);
	return 0;
}

uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool is_waiting(const struct softgpu_scratch *scratch, const struct work *work)
{
	if (work->gate && !__atomic_load_n(work->gate, __ATOMIC_ACQUIRE))
		return true;
	if (work->met && __atomic_load_n(work->met, __ATOMIC_ACQUIRE) < work->meet)
		return true;
	if (work->done && load(work->done) < scratch->block)
		return true;
	return sched_now_ns() < scratch->begun_ns + work->polls_ns;
}

/* Another kernel's slices lie wholly between two of this one, whatever else delays the
 * thread: by the clock, at least their time is not this one's. */
static void note_charge(const struct softgpu_scratch *scratch, struct charge *charge)
{
	uint64_t now = sched_now_ns(), deadline = scratch->launch->deadline_ns;
	uint64_t others = charge->run_ns - scratch->others_ns - scratch->run_ns;
	uint64_t charged = now + charge->timeout_ns - deadline;

	if (!others)
		return;
	charge->n_between++;
	charge->n_wrong += charged + others > now - scratch->limited_ns;
}

static bool has_run_enough(const struct softgpu_scratch *scratch, uint64_t slice_ns)
{
	const struct work *work = scratch->launch->params;

	if (work->charge)
		return work->charge->n_between >= 10;
	if (work->is_quiet && is_waiting(scratch, work))
		return false;
	return scratch->run_ns + slice_ns >= work->works_ns;
}

/* Return: whether it is done with what needs no other. */
static bool work_on(struct softgpu_scratch *scratch, const struct softgpu_slice *slice)
{
	const struct work *work = scratch->launch->params;
	uint64_t before = sched_now_ns(), now = before;

	if (work->charge)
		note_charge(scratch, work->charge);
	while (!has_run_enough(scratch, now - before)) {
		now = sched_now_ns();
		if (__atomic_load_n(scratch->launch->stop, __ATOMIC_RELAXED))
			break;
		if (scratch->launch->deadline_ns && now >= scratch->launch->deadline_ns)
			break;
		if (now >= (__atomic_load_n(slice->wanted, __ATOMIC_RELAXED)
					   ? slice->end_ns
					   : slice->last_ns))
			break;
	}
	scratch->run_ns += now - before;
	if (work->charge)
		work->charge->run_ns += now - before;
	return has_run_enough(scratch, 0);
}

enum softgpu_progress softgpu_block_resume(struct softgpu_scratch *scratch,
	const struct softgpu_slice *slice, struct softgpu_fault *fault)
{
	static const struct softgpu_scratch *last;
	const struct softgpu_launch *launch = scratch->launch;
	const struct work *work = launch->params;
	bool is_done;

	if (work->turns &&
		__atomic_exchange_n(&last, scratch, __ATOMIC_RELAXED) != scratch)
		__atomic_fetch_add(work->turns, 1, __ATOMIC_RELAXED);
	is_done = work_on(scratch, slice);

	if (work->sms && !sched_sms_has(work->sms, scratch->smid))
		__atomic_fetch_add(work->n_outside, 1, __ATOMIC_RELAXED);
	fault->kernel = "work";
	fault->code = (int)__atomic_load_n(launch->stop, __ATOMIC_RELAXED);
	if (!fault->code && launch->deadline_ns && sched_now_ns() >= launch->deadline_ns)
		fault->code = SOFTGPU_ERROR_LAUNCH_TIMEOUT;
	if (!fault->code && !is_done)
		return SOFTGPU_BLOCK_PREEMPTED;
	if (!fault->code && is_waiting(scratch, work)) {
		sched_yield();
		return SOFTGPU_BLOCK_YIELDED;
	}
	if (!fault->code)
		fault->code = work->fault;
	if (fault->code)
		return SOFTGPU_BLOCK_FAULTED;
	if (work->resident)
		__atomic_fetch_sub(work->resident, 1, __ATOMIC_ACQ_REL);
	__atomic_fetch_add(work->counter, 1, __ATOMIC_RELAXED);
	if (work->done)
		__atomic_fetch_add(work->done, 1, __ATOMIC_RELEASE);
	if (work->opens)
		__atomic_store_n(work->opens, 1, __ATOMIC_RELEASE);
	return SOFTGPU_BLOCK_DONE;
}

const struct softgpu_kernel_info *softgpu_kernel_info(const struct softgpu_kernel *kernel)
{
	static const struct softgpu_kernel_info info = { .name = "work" };

	return &info;
}

void start_threads(struct sched_context *context, uint32_t n_threads)
{
	check_eq(sched_init(&sched, n_threads), 0);
	sched_context_init(context, &sched);
}

void start(struct sched_context *context)
{
	start_threads(context, 3);
}

struct sched_op launch_of(const struct work *work, uint64_t n_blocks)
{
	struct sched_op op = { .kind = SCHED_LAUNCH };

	op.grid.launch.params_size = sizeof(*work);
	memcpy(op.grid.params, work, sizeof(*work));
	op.grid.n_blocks = n_blocks;
	return op;
}

int submit(struct sched_stream *stream, struct sched_op *op)
{
	op->grid.launch.params = op->grid.params;
	return sched_submit(stream, op, false);
}

int launch(struct sched_stream *stream, const struct work *work, uint64_t n_blocks)
{
	struct sched_op op = launch_of(work, n_blocks);

	return submit(stream, &op);
}

int write_word(struct sched_stream *stream, uint64_t *word, uint64_t value)
{
	struct sched_op op = {
		.kind = SCHED_WRITE,
		.word = { .address = (uintptr_t)word, .value = value, .size = 8 },
	};

	return sched_submit(stream, &op, false);
}

struct sched_stream *stream_new(struct sched_context *context, bool is_blocking)
{
	struct sched_stream *stream;

	check_eq(sched_stream_new(&stream, context, is_blocking, 0), 0);
	return stream;
}

int submit_alone(struct sched_context *context, struct sched_op *op)
{
	struct sched_stream *stream = stream_new(context, false);
	int r = submit(stream, op);

	sched_stream_free(stream);
	return r;
}

int launch_alone(
	struct sched_context *context, const struct work *work, uint64_t n_blocks)
{
	struct sched_op op = launch_of(work, n_blocks);

	return submit_alone(context, &op);
}
