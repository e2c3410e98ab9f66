/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler: priorities and turns of kernels
 *
 * The order in which blocks begin is certain on one thread only. Numbers that blocks take
 * as they begin show it; nothing here depends on time, but that what is to end does.
 */

#include <sched.h>

#include "sched/children.h"
#include "sched/test-engine.h"
#include "test.h"

static struct sched_stream *stream_of(struct sched_context *context, int priority)
{
	struct sched_stream *stream;

	check_eq(sched_stream_new(&stream, context, false, priority), 0);
	return stream;
}

static int wait_for(struct sched_stream *stream, struct sched_mark *mark)
{
	struct sched_op op = { .kind = SCHED_WAIT, .mark = sched_mark_ref(mark) };

	return sched_submit(stream, &op, false);
}

/* Streams that wait for the mark continue at one moment. */
static struct sched_mark *mark_behind(struct sched_stream *stream, const uint64_t *word)
{
	struct sched_mark *mark = sched_mark_new(&sched);
	struct sched_op wait = {
		.kind = SCHED_WAIT_VALUE,
		.word = {
			.address = (uintptr_t)word,
			.value = 1,
			.size = 8,
			.compare = SCHED_COMPARE_EQ,
		},
	};
	struct sched_op op = { .kind = SCHED_MARK, .mark = sched_mark_ref(mark) };

	check_eq(sched_submit(stream, &wait, false), 0);
	check_eq(sched_submit(stream, &op, false), 0);
	return mark;
}

static void set(uint64_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
}

static void open_gate(uint32_t *gate)
{
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

static void end(struct sched_context *context)
{
	check_eq(sched_context_wait(context), 0);
	check_eq(sched.n_waiting, 0);
	check_eq(sched.n_passed, 0);
	check_eq(sched.top, SCHED_LEVELS);
	check_eq(sched.n_begun, 0);
	check_eq(sched.aside_size, 0);
	sched_context_deinit(context);
}

TEST(a_priority_is_clamped_to_the_range)
{
	static const int given[] = { -5, 0, -6, 1, -3, INT32_MIN, INT32_MAX };
	static const int kept[] = { -5, 0, -5, 0, -3, -5, 0 };
	struct sched_context context;
	struct sched_stream *stream;

	start(&context);
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		stream = stream_of(&context, given[i]);
		check_eq(sched_stream_priority(stream), kept[i]);
		sched_stream_set_priority(stream, -1);
		check_eq(sched_stream_priority(stream), -1);
		sched_stream_set_priority(stream, given[i]);
		check_eq(sched_stream_priority(stream), kept[i]);
		sched_stream_free(stream);
	}
	end(&context);
}

TEST(blocks_begin_in_the_order_of_priority)
{
	enum { N = SCHED_LEVELS, N_BLOCKS = 20 };
	struct numbers notes[N] = {};
	struct sched_context context;
	uint64_t counter = 0, numbers = 0, word = 0;
	struct sched_stream *streams[N];
	struct sched_mark *mark;

	start_threads(&context, 1);
	mark = mark_behind(&context.legacy, &word);
	/* The lowest first. */
	for (int i = 0; i < N; i++) {
		struct work work = {
			.counter = &counter,
			.numbers = &numbers,
			.notes = &notes[i],
		};

		streams[i] = stream_of(&context, SCHED_PRIORITY_LEAST - i);
		check_eq(wait_for(streams[i], mark), 0);
		check_eq(launch(streams[i], &work, N_BLOCKS), 0);
	}
	set(&word);
	check_eq(sched_context_wait(&context), 0);
	for (int i = 0; i < N; i++) {
		uint64_t first = (uint64_t)(N - 1 - i) * N_BLOCKS;

		check_eq(notes[i].first, first);
		check_eq(notes[i].last, first + N_BLOCKS - 1);
		sched_stream_free(streams[i]);
	}
	check_eq(counter, N * N_BLOCKS);
	sched_mark_unref(mark);
	end(&context);
}

TEST(a_launch_may_have_another_priority_than_its_stream)
{
	struct numbers notes[2] = {};
	struct sched_context context;
	uint64_t counter = 0, numbers = 0, word = 0;
	struct sched_stream *streams[2];
	struct sched_mark *mark;

	start_threads(&context, 1);
	mark = mark_behind(&context.legacy, &word);
	for (int i = 0; i < 2; i++) {
		struct work work = {
			.counter = &counter,
			.numbers = &numbers,
			.notes = &notes[i],
		};
		struct sched_op op = launch_of(&work, 5);

		/* The other way round, and out of the range. */
		op.grid.has_priority = true;
		op.grid.priority = i ? -100 : 100;
		streams[i] = stream_of(&context, i ? 0 : -5);
		check_eq(wait_for(streams[i], mark), 0);
		check_eq(submit(streams[i], &op), 0);
	}
	set(&word);
	check_eq(sched_context_wait(&context), 0);
	check_eq(notes[1].first, 0);
	check_eq(notes[1].last, 4);
	check_eq(notes[0].first, 5);
	sched_stream_free(streams[0]);
	sched_stream_free(streams[1]);
	sched_mark_unref(mark);
	end(&context);
}

/* The only thread has many blocks that are begun, and wait for a gate. */
TEST(a_kernel_of_high_priority_begins_before_many_blocks_have_their_turns)
{
	enum { N = 60 };
	struct numbers high = {};
	struct sched_context context;
	uint64_t counter = 0, turns = 0, before;
	uint32_t gate = 0, met = 0;
	struct work low = {
		.counter = &counter,
		.met = &met,
		.gate = &gate,
		.turns = &turns,
	};
	struct work other = {
		.counter = &counter,
		.numbers = &turns,
		.notes = &high,
	};
	struct sched_op op = launch_of(&low, N);
	struct sched_stream *stream;

	start_threads(&context, 1);
	op.grid.resident_max = N;
	check_eq(submit_alone(&context, &op), 0);
	while (__atomic_load_n(&met, __ATOMIC_ACQUIRE) < N)
		sched_yield();
	stream = stream_of(&context, -1);
	check_eq(launch(stream, &other, 1), 0);
	before = load(&turns);
	check_eq(sched_stream_wait(stream), 0);
	check(high.first < before + N / 2);
	open_gate(&gate);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N + 1);
	sched_stream_free(stream);
	end(&context);
}

/* A block that is begun goes on; the next one has to wait. */
TEST(a_kernel_gives_way_between_its_blocks)
{
	struct numbers low = {}, high = {};
	struct sched_context context;
	uint64_t counter = 0, numbers = 0;
	uint32_t gate = 0, met = 0;
	struct work first = {
		.counter = &counter,
		.met = &met,
		.gate = &gate,
		.is_quiet = true,
		.numbers = &numbers,
		.notes = &low,
	};
	struct work second = {
		.counter = &counter,
		.numbers = &numbers,
		.notes = &high,
	};
	struct sched_stream *streams[2];

	start_threads(&context, 1);
	streams[0] = stream_of(&context, 0);
	streams[1] = stream_of(&context, -1);
	check_eq(launch(streams[0], &first, 100), 0);
	while (!__atomic_load_n(&met, __ATOMIC_ACQUIRE))
		sched_yield();
	check_eq(launch(streams[1], &second, 50), 0);
	open_gate(&gate);
	check_eq(sched_context_wait(&context), 0);
	check_eq(high.first, 1);
	check_eq(high.last, 50);
	check_eq(low.first, 0);
	check_eq(low.last, 149);
	check_eq(counter, 150);
	sched_stream_free(streams[0]);
	sched_stream_free(streams[1]);
	end(&context);
}

/* On one thread: none of them ends before one of lower priority has had its turns. */
static void wait_across(uint64_t n_blocks, uint32_t resident_max, bool is_quiet)
{
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gates[3] = {};
	struct work low = {
		.counter = &counter,
		.gate = &gates[0],
		.opens = &gates[1],
		.is_quiet = is_quiet,
	};
	struct work high = {
		.counter = &counter,
		.gate = &gates[1],
		.is_quiet = is_quiet,
	};
	struct work other = { .counter = &counter, .opens = &gates[0] };
	struct sched_op op = launch_of(&high, n_blocks);
	struct sched_stream *streams[3];

	start_threads(&context, 1);
	op.grid.resident_max = resident_max;
	streams[0] = stream_of(&context, -5);
	streams[1] = stream_of(&context, -1);
	streams[2] = stream_of(&context, 0);
	check_eq(submit(streams[0], &op), 0);
	check_eq(launch(streams[1], &low, 1), 0);
	check_eq(launch(streams[2], &other, 1), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, n_blocks + 2);
	for (int i = 0; i < 3; i++)
		sched_stream_free(streams[i]);
	end(&context);
}

TEST(a_kernel_waits_for_one_of_lower_priority)
{
	wait_across(1, 1, false);
}

TEST(a_kernel_waits_for_one_of_lower_priority_without_polling)
{
	wait_across(1, 1, true);
}

/* There is room for few of its blocks. */
TEST(a_large_kernel_waits_for_one_of_lower_priority)
{
	wait_across(40, 3, false);
}

TEST(a_large_kernel_waits_for_one_of_lower_priority_without_polling)
{
	wait_across(40, 3, true);
}

/* A low one is begun, and waits for one of higher priority that comes later. */
TEST(a_kernel_waits_for_one_of_higher_priority)
{
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gate = 0, met = 0;
	struct work low = { .counter = &counter, .met = &met, .gate = &gate };
	struct work high = { .counter = &counter, .opens = &gate };
	struct sched_stream *stream;

	start_threads(&context, 1);
	stream = stream_of(&context, -5);
	check_eq(launch_alone(&context, &low, 1), 0);
	while (!__atomic_load_n(&met, __ATOMIC_ACQUIRE))
		sched_yield();
	check_eq(launch(stream, &high, 1), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 2);
	sched_stream_free(stream);
	end(&context);
}

/* The program launches until it sees that the kernel of low priority has run. */
TEST(kernels_without_end_leave_a_turn_to_lower_priorities)
{
	struct sched_context context;
	uint64_t counter = 0, others = 0;
	struct work low = { .counter = &counter };
	struct work high = { .counter = &others };
	struct sched_stream *stream;

	start_threads(&context, 1);
	stream = stream_of(&context, -5);
	check_eq(launch(stream, &high, 1000), 0);
	check_eq(launch_alone(&context, &low, 1), 0);
	while (!load(&counter))
		check_eq(launch(stream, &high, 100), 0);
	check_eq(sched_context_wait(&context), 0);
	sched_stream_free(stream);
	end(&context);
}

/* Neither does a single kernel with blocks without end. */
TEST(a_kernel_of_many_blocks_leaves_a_turn_to_lower_priorities)
{
	struct sched_context context;
	uint64_t counter = 0, others = 0;
	uint32_t gate = 0;
	struct work low = { .counter = &counter, .opens = &gate };
	struct work high = { .counter = &others };
	struct sched_stream *stream;

	start_threads(&context, 1);
	stream = stream_of(&context, -5);
	check_eq(launch(stream, &high, UINT64_C(1) << 62), 0);
	check_eq(launch_alone(&context, &low, 1), 0);
	while (!__atomic_load_n(&gate, __ATOMIC_ACQUIRE))
		sched_yield();
	check_eq(counter, 1);
	sched_context_deinit(&context);
}

/* As a barrier across a grid whose blocks read memory by plain loads. */
TEST(blocks_of_a_grid_wait_for_later_ones_without_polling)
{
	enum { N = 5 };
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t met = 0;
	struct work work = {
		.counter = &counter,
		.met = &met,
		.meet = N,
		.is_quiet = true,
	};
	struct sched_op op = launch_of(&work, N);

	start_threads(&context, 1);
	op.grid.resident_max = N;
	check_eq(submit(&context.legacy, &op), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N);
	end(&context);
}

static void release_nothing(void *owned)
{
}

/* A grid waits for its children, which have its priority. */
TEST(children_have_the_priority_of_their_parent)
{
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gate = 0;
	const struct softgpu_launch *under_way = NULL;
	struct work work = {
		.counter = &counter,
		.gate = &gate,
		.launchp = &under_way,
	};
	struct sched_op op = launch_of(&work, 1);
	struct sched_op nothing = { .kind = SCHED_WAIT };
	struct sched_children *children;
	struct sched_stream *stream;
	struct sched_mark *mark;

	start(&context);
	mark = sched_mark_new(&sched);
	nothing.mark = sched_mark_ref(mark);
	stream = stream_of(&context, -1);
	op.grid.has_priority = true;
	op.grid.priority = -4;
	check_eq(submit(stream, &op), 0);
	while (!__atomic_load_n(&under_way, __ATOMIC_ACQUIRE))
		sched_yield();
	children = sched_children_get(under_way, 0, release_nothing);
	check(children);
	check_eq(sched_children_submit(
			 children, SCHED_LANE_NAMED, 1, &nothing, UINT64_MAX),
		0);
	check_eq(sched_stream_priority(&TAILQ_FIRST(&children->lanes)->stream), -4);
	sched_lock(&sched);
	sched_mark_finish(mark);
	sched_unlock(&sched);
	sched_mark_unref(mark);
	open_gate(&gate);
	sched_stream_free(stream);
	end(&context);
}

/* The places of cooperative kernels are taken: the next one that is free is for the
 * highest priority. */
TEST(cooperative_kernels_that_wait_for_a_place_have_priorities)
{
	enum { N = SCHED_WORKSPACES };
	static uint8_t memory[SCHED_WORKSPACES * SCHED_WORKSPACE_SIZE];
	struct numbers notes[2] = {};
	struct sched_context context;
	uint64_t counter = 0, numbers = 0;
	uint32_t gate = 0;
	struct sched_stream *streams[2];

	start_threads(&context, 1);
	sched.workspaces = (uintptr_t)memory;
	for (int i = 0; i < N + 2; i++) {
		int at = i - N;
		struct work work = {
			.counter = &counter,
			.gate = &gate,
			.numbers = at < 0 ? NULL : &numbers,
			.notes = at < 0 ? NULL : &notes[at],
		};
		struct sched_op op = launch_of(&work, 2);

		op.grid.is_cooperative = true;
		if (at < 0) {
			check_eq(submit_alone(&context, &op), 0);
			continue;
		}
		streams[at] = stream_of(&context, at ? -2 : -1);
		check_eq(submit(streams[at], &op), 0);
	}
	open_gate(&gate);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 2 * (N + 2));
	check_eq(notes[1].first, 0);
	check_eq(notes[1].last, 1);
	sched_stream_free(streams[0]);
	sched_stream_free(streams[1]);
	end(&context);
}
