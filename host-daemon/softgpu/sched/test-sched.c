/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler: order, waiting and faults, with an engine that only notes what it ran
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sched/test-engine.h"
#include "test.h"

TEST(every_block_of_a_launch_runs_once)
{
	struct sched_context context;
	uint64_t counter = 0;
	struct work work = { .counter = &counter };
	uint64_t expected = 0;

	start(&context);
	for (uint64_t n = 1; n < 100000; n = n * 3 + 1) {
		check_eq(launch(&context.legacy, &work, n), 0);
		expected += n;
	}
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, expected);
	sched_context_deinit(&context);
}

static uint32_t n_kernel_threads(void)
{
	uint32_t n;

	sched_lock(&sched);
	n = sched.n_alive;
	sched_unlock(&sched);
	return n;
}

TEST(kernel_threads_start_with_the_work_there_is)
{
	struct sched_context context;
	uint64_t counter = 0, word = 0;
	uint32_t gate = 0;
	struct work gated = { .counter = &counter, .gate = &gate };
	struct work work = { .counter = &counter };
	struct sched_stream *one, *two;

	start(&context);
	one = stream_new(&context, false);
	two = stream_new(&context, false);
	check_eq(write_word(one, &word, 1), 0);
	check_eq(sched_stream_wait(one), 0);
	check_eq(n_kernel_threads(), 0);
	for (int i = 0; i < 20; i++)
		check_eq(launch(one, &work, 1), 0);
	check_eq(sched_stream_wait(one), 0);
	check_eq(n_kernel_threads(), 1);
	/* The thread that waits at the gate is of no use to the other stream. */
	check_eq(launch(one, &gated, 1), 0);
	check_eq(launch(two, &work, 1), 0);
	check_eq(sched_stream_wait(two), 0);
	check_eq(n_kernel_threads(), 2);
	check_eq(launch(two, &work, 1000), 0);
	check_eq(n_kernel_threads(), 3);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 20 + 1 + 1 + 1000);
	check_eq(n_kernel_threads(), 3);
	check_eq(sched.n_useful, 0);
	check(!sched.has_copy_thread && !sched.has_host_thread);
	sched_context_deinit(&context);
}

/* Device code that polls a word which another stream is to set. */
TEST(work_of_another_stream_overtakes_a_kernel_that_waits_for_it)
{
	struct sched_context context;
	uint64_t counter = 0, others = 0;
	uint32_t gates[2] = { 0, 0 };
	static const uint32_t open = 1;
	struct work first = { .counter = &counter, .gate = &gates[0] };
	struct work second = { .counter = &counter, .gate = &gates[1] };
	struct work other = { .counter = &others };
	struct sched_stream *one, *two;
	struct sched_op copy = {
		.kind = SCHED_COPY,
		.copy = { .to = (uintptr_t)&gates[0],
			.from = (uintptr_t)&open,
			.width = 4,
			.height = 1,
			.depth = 1 },
	};

	start(&context);
	one = stream_new(&context, false);
	two = stream_new(&context, false);
	check_eq(launch(one, &first, 1), 0);
	check_eq(launch(one, &second, 1), 0);
	check_eq(launch(two, &other, 5), 0);
	check_eq(sched_submit(two, &copy, false), 0);
	check_eq(sched_stream_wait(two), 0);
	check_eq(others, 5);
	while (load(&counter) < 1)
		sched_yield();
	check(!sched_stream_is_idle(one));
	check_eq(launch(two, &other, 5), 0);
	check_eq(sched_stream_wait(two), 0);
	check_eq(others, 10);
	check_eq(load(&counter), 1);
	__atomic_store_n(&gates[1], 1, __ATOMIC_RELEASE);
	check_eq(sched_stream_wait(one), 0);
	check_eq(load(&counter), 2);
	sched_context_deinit(&context);
}

TEST(a_stream_keeps_the_order_of_its_operations)
{
	struct sched_context context;
	uint64_t counter = 0, word = 0, other = 0;
	uint32_t gate = 0;
	struct work work = { .counter = &counter, .gate = &gate };
	struct sched_stream *stream;
	struct sched_op copy = {
		.kind = SCHED_COPY,
		.copy = { .to = (uintptr_t)&other,
			.from = (uintptr_t)&word,
			.width = 8,
			.height = 1,
			.depth = 1 },
	};

	start(&context);
	stream = stream_new(&context, true);
	check_eq(launch(stream, &work, 10), 0);
	check_eq(write_word(stream, &word, 7), 0);
	check_eq(sched_submit(stream, &copy, false), 0);
	check(!sched_stream_is_idle(stream));
	check_eq(load(&word), 0);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	check_eq(sched_stream_wait(stream), 0);
	check_eq(counter, 10);
	check_eq(word, 7);
	check_eq(other, 7);
	check(sched_stream_is_idle(stream));
	sched_stream_free(stream);
	sched_context_deinit(&context);
}

TEST(the_legacy_stream_waits_for_blocking_streams_and_they_for_it)
{
	struct sched_context context;
	uint64_t counter = 0, legacy = 0, after = 0, apart = 0;
	uint32_t gate = 0;
	struct work work = { .counter = &counter, .gate = &gate };
	struct sched_stream *blocking, *free_running;

	start(&context);
	blocking = stream_new(&context, true);
	free_running = stream_new(&context, false);
	check_eq(launch(blocking, &work, 1), 0);
	check_eq(write_word(&context.legacy, &legacy, 1), 0);
	check_eq(write_word(blocking, &after, 1), 0);
	check_eq(write_word(free_running, &apart, 1), 0);
	check_eq(sched_stream_wait(free_running), 0);
	check_eq(load(&apart), 1);
	check_eq(load(&legacy), 0);
	check(!sched_stream_is_idle(&context.legacy));
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	check_eq(sched_stream_wait(&context.legacy), 0);
	check_eq(load(&legacy), 1);
	check_eq(sched_context_wait(&context), 0);
	check_eq(load(&after), 1);
	sched_context_deinit(&context);
}

TEST(work_submitted_after_the_legacy_stream_waits_for_it)
{
	struct sched_context context;
	uint64_t counter = 0, word = 0;
	uint32_t gate = 0;
	struct work work = { .counter = &counter, .gate = &gate };
	struct sched_stream *one, *two;

	start(&context);
	one = stream_new(&context, true);
	two = stream_new(&context, true);
	check_eq(launch(&context.legacy, &work, 1), 0);
	check_eq(write_word(one, &word, 1), 0);
	check_eq(write_word(two, &word, 2), 0);
	check_eq(load(&word), 0);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	check_eq(sched_stream_wait(one), 0);
	check_eq(sched_stream_wait(two), 0);
	check(load(&word) != 0);
	sched_context_deinit(&context);
}

TEST(a_stream_that_waits_for_a_mark_continues_after_it)
{
	struct sched_context context;
	uint64_t counter = 0, word = 0;
	uint32_t gate = 0;
	struct work work = { .counter = &counter, .gate = &gate };
	struct sched_stream *one, *two;
	struct sched_mark *mark;
	struct sched_op op = { .kind = SCHED_MARK };

	start(&context);
	one = stream_new(&context, false);
	two = stream_new(&context, false);
	check_eq(launch(one, &work, 1), 0);
	mark = sched_mark_new(&sched);
	op.mark = sched_mark_ref(mark);
	check_eq(sched_submit(one, &op, false), 0);
	op.kind = SCHED_WAIT;
	op.mark = sched_mark_ref(mark);
	check_eq(sched_submit(two, &op, false), 0);
	check_eq(write_word(two, &word, 1), 0);
	check(!sched_mark_is_done(mark));
	check_eq(load(&word), 0);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	sched_mark_wait(mark);
	check_eq(sched_stream_wait(two), 0);
	check_eq(load(&word), 1);
	sched_mark_unref(mark);
	sched_context_deinit(&context);
}

TEST(a_stream_waits_for_a_word_that_another_writes)
{
	struct sched_context context;
	uint64_t word = 0, after = 0;
	struct sched_stream *one, *two;
	struct sched_op op = {
		.kind = SCHED_WAIT_VALUE,
		.word = { .address = (uintptr_t)&word,
			.value = 5,
			.size = 8,
			.compare = SCHED_COMPARE_GEQ },
	};

	start(&context);
	one = stream_new(&context, false);
	two = stream_new(&context, false);
	check_eq(sched_submit(one, &op, false), 0);
	check_eq(write_word(one, &after, 1), 0);
	check_eq(write_word(two, &word, 4), 0);
	check_eq(sched_stream_wait(two), 0);
	check_eq(load(&after), 0);
	check_eq(write_word(two, &word, 5), 0);
	check_eq(sched_stream_wait(one), 0);
	check_eq(load(&after), 1);
	sched_context_deinit(&context);
}

static long count_waits(void)
{
	struct rusage usage;

	check_eq(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw;
}

TEST(a_word_that_nobody_writes_is_looked_at_ever_less_often)
{
	struct sched_context context;
	uint64_t word = 0, after = 0;
	struct sched_stream *stream;
	struct sched_op op = {
		.kind = SCHED_WAIT_VALUE,
		.word = { .address = (uintptr_t)&word,
			.value = 1,
			.size = 8,
			.compare = SCHED_COMPARE_EQ },
	};
	long before;

	start(&context);
	stream = stream_new(&context, false);
	check_eq(sched_submit(stream, &op, false), 0);
	check_eq(write_word(stream, &after, 1), 0);
	before = count_waits();
	usleep(500000);
	/* One every 50 us, as at first, would be 10000. */
	check(count_waits() - before < 2000);
	check_eq(load(&after), 0);
	/* A write by the processor, without notification. */
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	check_eq(sched_stream_wait(stream), 0);
	check_eq(load(&after), 1);
	sched_context_deinit(&context);
}

TEST(a_fault_is_sticky_and_what_follows_is_not_done)
{
	struct sched_context context, other;
	uint64_t counter = 0, word = 0;
	uint32_t gate = 0;
	struct work gated = { .counter = &counter, .gate = &gate };
	struct work faulty = { .counter = &counter, .fault = 700 };
	struct sched_stream *stream, *apart;

	start(&context);
	sched_context_init(&other, &sched);
	stream = stream_new(&context, false);
	apart = stream_new(&context, false);
	check_eq(launch(apart, &gated, 1), 0);
	check_eq(write_word(apart, &word, 1), 0);
	check_eq(launch(stream, &faulty, 1), 0);
	check_eq(sched_stream_wait(stream), 700);
	check_eq(sched_context_wait(&context), 700);
	check_eq(write_word(stream, &word, 2), 700);
	check_eq(load(&word), 0);
	check_eq(counter, 0);
	check_eq(sched_context_fault(&context), 700);

	/* Another context does not notice, and a new life forgets. */
	check_eq(write_word(&other.legacy, &word, 3), 0);
	check_eq(load(&word), 3);
	sched_context_deinit(&context);
	sched_context_init(&context, &sched);
	check_eq(write_word(&context.legacy, &word, 4), 0);
	check_eq(load(&word), 4);
	sched_context_deinit(&context);
	sched_context_deinit(&other);
}

static void *open_gate(void *gate)
{
	usleep(20000);
	__atomic_store_n((uint32_t *)gate, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(a_full_stream_makes_its_submitter_wait)
{
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gate = 0;
	struct work gated = { .counter = &counter, .gate = &gate };
	struct work work = { .counter = &counter };
	pthread_t thread;

	start(&context);
	check_eq(launch(&context.legacy, &gated, 1), 0);
	for (int i = 1; i < SCHED_QUEUE_MAX; i++)
		check_eq(launch(&context.legacy, &work, 1), 0);
	check_eq(context.legacy.n_ops, SCHED_QUEUE_MAX);
	check_eq(pthread_create(&thread, NULL, open_gate, &gate), 0);
	check_eq(launch(&context.legacy, &work, 1), 0);
	check_eq(__atomic_load_n(&gate, __ATOMIC_ACQUIRE), 1);
	check_eq(sched_stream_wait(&context.legacy), 0);
	check_eq(counter, SCHED_QUEUE_MAX + 1);
	pthread_join(thread, NULL);
	sched_context_deinit(&context);
}

static void count_call(const struct sched_host *host, int status)
{
	*(int *)host->data += 1 + 1000 * status;
}

TEST(host_functions_run_in_order_and_only_callbacks_after_a_fault)
{
	struct sched_context context;
	int calls = 0, callbacks = 0;
	uint64_t counter = 0;
	struct work faulty = { .counter = &counter, .fault = 700 };
	struct sched_op op = {
		.kind = SCHED_HOST,
		.host = { .function = count_call, .data = &calls },
	};
	uint32_t gate = 0;
	struct work gated = { .counter = &counter, .gate = &gate };

	start(&context);
	check_eq(sched_submit(&context.legacy, &op, false), 0);
	check_eq(sched_stream_wait(&context.legacy), 0);
	check_eq(calls, 1);
	check_eq(launch(&context.legacy, &gated, 1), 0);
	check_eq(launch(&context.legacy, &faulty, 1), 0);
	check_eq(sched_submit(&context.legacy, &op, false), 0);
	op.host.even_after_fault = true;
	op.host.data = &callbacks;
	check_eq(sched_submit(&context.legacy, &op, false), 0);
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	check_eq(sched_context_wait(&context), 700);
	check_eq(calls, 1);
	check_eq(callbacks, 700001);
	sched_context_deinit(&context);
}

static void *submit_many(void *argument)
{
	struct sched_context *context = argument;
	struct sched_stream *stream = stream_new(context, rand() % 2);
	uint64_t counter = 0, word = 0;
	struct work work = { .counter = &counter };

	for (int i = 1; i <= 2000; i++) {
		if (launch(stream, &work, 1 + i % 7) || write_word(stream, &word, i))
			return "refused";
		if (i % 50 == 0 && sched_submit(&context->legacy,
					   &(struct sched_op){ .kind = SCHED_NOTHING },
					   i % 100 == 0))
			return "legacy refused";
		if (i % 97 == 0 && (sched_stream_wait(stream) || word != (uint64_t)i))
			return "not in order";
	}
	if (sched_stream_wait(stream) || word != 2000)
		return "not done";
	sched_stream_free(stream);
	return NULL;
}

TEST(many_threads_use_many_streams_at_once)
{
	enum { N = 8 };
	struct sched_context context;
	pthread_t threads[N];
	void *failure;

	start(&context);
	for (int i = 0; i < N; i++)
		check_eq(pthread_create(&threads[i], NULL, submit_many, &context), 0);
	for (int i = 0; i < N; i++) {
		check_eq(pthread_join(threads[i], &failure), 0);
		check_str(failure ? (const char *)failure : "", "");
	}
	check_eq(sched_context_wait(&context), 0);
	sched_context_deinit(&context);
}

/*
 * Kernels that share the threads
 */

TEST(kernels_of_more_streams_than_threads_wait_for_each_other)
{
	enum { N = 10 };
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gates[N + 1] = { [N] = 1 };

	start(&context);
	for (int i = 0; i < N; i++) {
		struct work work = {
			.counter = &counter,
			.gate = &gates[i + 1],
			.opens = &gates[i],
		};

		check_eq(launch_alone(&context, &work, 1), 0);
	}
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N);
	check_eq(sched.n_waiting, 0);
	check_eq(sched.aside_size, 0);
	check_eq(sched.n_useful, 0);
	sched_context_deinit(&context);
}

TEST(more_cooperative_kernels_than_threads_wait_for_each_other)
{
	enum { N = SCHED_WORKSPACES + 2 };
	static uint8_t memory[SCHED_WORKSPACES * SCHED_WORKSPACE_SIZE];
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t gates[N + 1] = { [N] = 1 };

	start(&context);
	sched.workspaces = (uintptr_t)memory;
	/* The last ones only begin when others are done, and those wait for the former.
	 */
	for (int i = N - 1; i >= 0; i--) {
		struct work work = {
			.counter = &counter,
			.gate = &gates[i + 1],
			.opens = &gates[i],
		};
		struct sched_op op = launch_of(&work, 3);

		op.grid.is_cooperative = true;
		check_eq(submit_alone(&context, &op), 0);
	}
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 3 * N);
	for (int i = 0; i < SCHED_WORKSPACES; i++)
		check(!sched.has_workspace[i]);
	sched_context_deinit(&context);
}

TEST(blocks_of_a_grid_wait_for_each_other_as_far_as_there_is_room)
{
	enum { N = 40 };
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t met = 0;
	struct work work = { .counter = &counter, .met = &met, .meet = N };
	struct sched_op op = launch_of(&work, N);

	start(&context);
	op.grid.resident_max = N;
	check_eq(submit(&context.legacy, &op), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N);
	sched_context_deinit(&context);
}

TEST(blocks_of_a_confined_stream_stay_on_its_threads)
{
	enum { N = 2000 };
	struct sched_sms pair = {}, single = {};
	struct sched_stream *first, *second;
	struct sched_context context;
	uint32_t n_outside = 0;
	uint64_t counter = 0;
	struct work work = { .counter = &counter, .n_outside = &n_outside };

	start(&context);
	sched_sms_add(&pair, 0);
	sched_sms_add(&pair, 2);
	sched_sms_add(&single, 1);
	first = stream_new(&context, false);
	second = stream_new(&context, false);
	sched_stream_confine(first, &pair, NULL);
	sched_stream_confine(second, &single, NULL);
	/* At first there are no threads, then scratches that others have left. */
	for (int i = 0; i < 5; i++) {
		work.sms = &pair;
		work.works_ns = 1000;
		check_eq(launch(first, &work, N), 0);
		work.sms = &single;
		check_eq(launch(second, &work, N), 0);
		work.sms = NULL;
		work.works_ns = 2 * SCHED_SLICE_NS;
		check_eq(launch(&context.legacy, &work, 10), 0);
		check_eq(sched_context_wait(&context), 0);
	}
	check_eq(counter, 5 * (2 * N + 10));
	check_eq(n_outside, 0);
	sched_stream_free(first);
	sched_stream_free(second);
	sched_context_deinit(&context);
}

/* It has its own default stream, which waits for its blocking streams and no others. */
TEST(confined_streams_follow_their_own_legacy_stream)
{
	struct sched_stream *own, *blocking, *other;
	struct sched_sms all = { .words = { 7 } };
	struct sched_context context;
	uint32_t gate = 0, second = 0;
	uint64_t counter = 0, word = 0;
	struct work waits = { .counter = &counter, .gate = &gate };
	struct work opens = { .counter = &counter, .opens = &gate };
	struct work others = { .counter = &counter, .gate = &second };

	start(&context);
	own = stream_new(&context, true);
	sched_stream_confine(own, &all, NULL);
	blocking = stream_new(&context, true);
	sched_stream_confine(blocking, &all, own);
	other = stream_new(&context, true);
	check_eq(launch(other, &others, 1), 0);
	check_eq(launch(blocking, &waits, 1), 0);
	check_eq(write_word(own, &word, 1), 0);
	check(!sched_stream_is_idle(own));
	check_eq(__atomic_load_n(&word, __ATOMIC_SEQ_CST), 0);
	/* Which waits for `other` alone. */
	check_eq(launch(&context.legacy, &opens, 1), 0);
	check(!sched_stream_is_idle(&context.legacy));
	check_eq(__atomic_load_n(&word, __ATOMIC_SEQ_CST), 0);
	__atomic_store_n(&second, 1, __ATOMIC_SEQ_CST);
	check_eq(sched_stream_wait(own), 0);
	check_eq(__atomic_load_n(&word, __ATOMIC_SEQ_CST), 1);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 3);
	sched_stream_free(own);
	sched_stream_free(blocking);
	sched_stream_free(other);
	sched_context_deinit(&context);
}

TEST(no_more_blocks_are_begun_than_there_is_room_for)
{
	enum { N = 200, ROOM = 7 };
	struct sched_context context;
	uint64_t counter = 0;
	uint32_t resident = 0, most = 0;
	struct work work = {
		.counter = &counter,
		.resident = &resident,
		.resident_max = &most,
		.polls_ns = 3 * SCHED_POLLING_NS,
	};
	struct sched_op op = launch_of(&work, N);

	start(&context);
	op.grid.resident_max = ROOM;
	check_eq(submit_alone(&context, &op), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N);
	check(most > 3 && most <= ROOM);
	sched_context_deinit(&context);
}

/* As in a scan by decoupled look-back, where there is room for no more blocks than there
 * are threads. Eight blocks take longer than a slice. */
TEST(blocks_of_a_grid_wait_for_those_before_them)
{
	enum { N = 300 };
	struct sched_context context;
	uint64_t counter = 0, done = 0;
	struct work work = {
		.counter = &counter,
		.done = &done,
		.works_ns = SCHED_SLICE_NS / 8,
	};
	struct sched_op op = launch_of(&work, N);

	start(&context);
	/* So that a hang is a failure of this test alone. */
	sched.timeout_ns = UINT64_C(60000000000);
	check_eq(submit_alone(&context, &op), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, N);
	sched_context_deinit(&context);
}

/* One for each thread runs for ever; none of them polls. */
TEST(kernels_that_never_end_leave_others_their_turn)
{
	struct sched_context context, other;
	uint64_t counter = 0, others = 0;
	struct work endless = { .counter = &counter, .works_ns = UINT64_MAX };
	struct work work = { .counter = &others };

	start(&context);
	sched_context_init(&other, &sched);
	for (int i = 0; i < 4; i++)
		check_eq(launch_alone(&context, &endless, 1), 0);
	check_eq(launch(&other.legacy, &work, 1000), 0);
	check_eq(sched_context_wait(&other), 0);
	check_eq(others, 1000);
	work.counter = &counter;
	check_eq(launch_alone(&context, &work, 100), 0);
	while (load(&counter) < 100)
		sched_yield();
	sched_context_deinit(&context);
	check_eq(counter, 100);
	check_eq(launch(&other.legacy, &work, 100), 0);
	check_eq(sched_context_wait(&other), 0);
	check_eq(counter, 200);
	check_eq(sched.n_waiting, 0);
	check_eq(sched.aside_size, 0);
	sched_context_deinit(&other);
}

TEST(nothing_is_at_work_while_all_is_stopped)
{
	struct sched_context context, other;
	uint64_t counter = 0, others = 0, to = 0, from = 7;
	struct work endless = { .counter = &counter, .works_ns = UINT64_MAX };
	struct work work = { .counter = &others };
	struct sched_op copy = {
		.kind = SCHED_COPY,
		.copy = {
			.to = (uintptr_t)&to,
			.from = (uintptr_t)&from,
			.width = sizeof(to),
			.height = 1,
			.depth = 1,
		},
	};

	start(&context);
	sched_context_init(&other, &sched);
	for (int i = 0; i < 4; i++)
		check_eq(launch_alone(&context, &endless, 1), 0);
	for (int i = 0; i < 100; i++) {
		check_eq(launch(&other.legacy, &work, 10), 0);
		sched_stop(&sched);
		check_eq(sched.n_at_work, 0);
		sched_resume(&sched);
		check_eq(sched_submit(&other.legacy, &copy, i % 2), 0);
	}
	check_eq(sched_context_wait(&other), 0);
	check_eq(others, 1000);
	check_eq(to, 7);
	check_eq(counter, 0);
	sched_context_deinit(&context);
	check_eq(sched.n_waiting, 0);
	check_eq(sched.n_stops, 0);
	sched_context_deinit(&other);
}

/* Two on one thread: each has the time limit to itself. */
static void check_charges(uint64_t timeout_ns, uint64_t launch_ns)
{
	struct sched_context context;
	struct charge charge = { .timeout_ns = timeout_ns ? timeout_ns : launch_ns };
	uint64_t counter = 0;
	struct work work = {
		.counter = &counter,
		.charge = &charge,
	};

	check_eq(sched_init(&sched, 1), 0);
	sched.timeout_ns = timeout_ns;
	sched.launch_ns = launch_ns;
	sched_context_init(&context, &sched);
	check_eq(launch_alone(&context, &work, 1), 0);
	check_eq(launch_alone(&context, &work, 1), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(counter, 2);
	check_eq(charge.n_wrong, 0);
	sched_context_deinit(&context);
}

TEST(the_time_limit_counts_only_while_a_thread_is_at_work)
{
	check_charges(60000000000, 0);
}

TEST(so_does_that_of_a_launch)
{
	check_charges(0, 60000000000);
}

TEST(of_two_limits_the_lower_one_counts)
{
	check_charges(60000000000, 3600000000000);
}

/* Once in a test: threads remain. @n_blocks: all of them end, or none does */
static void check_limit(
	uint64_t timeout_ns, uint64_t launch_ns, uint64_t works_ns, uint64_t n_blocks)
{
	struct sched_context context;
	uint64_t counter = 0;
	struct work work = { .counter = &counter, .works_ns = works_ns };

	check_eq(sched_init(&sched, 1), 0);
	sched.timeout_ns = timeout_ns;
	sched.launch_ns = launch_ns;
	sched_context_init(&context, &sched);
	check_eq(launch(&context.legacy, &work, n_blocks), 0);
	check_eq(sched_context_wait(&context), SOFTGPU_ERROR_LAUNCH_TIMEOUT);
	sched_context_deinit(&context);
}

TEST(a_kernel_that_never_ends_meets_the_time_limit)
{
	check_limit(50000000, 0, UINT64_MAX, 1);
}

TEST(a_kernel_that_never_ends_meets_the_limit_of_its_launch)
{
	check_limit(0, 50000000, UINT64_MAX, 1);
}

TEST(the_limit_of_a_launch_counts_below_that_of_a_kernel)
{
	check_limit(UINT64_MAX / 4, 50000000, UINT64_MAX, 1);
}

/* Each block ends before anyone looks at a clock. */
TEST(a_kernel_of_too_many_blocks_meets_the_time_limit)
{
	check_limit(50000000, 0, 0, UINT64_MAX);
}

TEST(a_kernel_of_too_many_blocks_meets_the_limit_of_its_launch)
{
	check_limit(0, 50000000, 0, UINT64_MAX);
}
