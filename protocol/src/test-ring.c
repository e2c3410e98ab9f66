/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests: submission ring
 *
 * The same file is built a second time with the thread sanitizer, which judges the
 * two-thread tests.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"
#include "vgpu/ring.h"

struct pair {
	uint8_t *area;
	struct vgpu_ring_producer producer;
	struct vgpu_ring_consumer consumer;
};

static struct pair *pair_new(void)
{
	struct pair *pair = malloc(sizeof(*pair));

	check(pair);
	pair->area = mmap(NULL, VGPU_AREA_SIZE, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(pair->area != MAP_FAILED);
	vgpu_ring_consumer_init(&pair->consumer, pair->area);
	vgpu_ring_producer_init(&pair->producer, pair->area);
	return pair;
}

static void pair_free(struct pair *pair)
{
	munmap(pair->area, VGPU_AREA_SIZE);
	free(pair);
}

/* Submits a frame with a body of that many bytes; call and bytes encode `number`. */
static bool submit(struct vgpu_ring_producer *producer, uint32_t number, uint32_t body)
{
	uint32_t size = sizeof(struct vgpu_frame) + body;
	struct vgpu_frame *frame = vgpu_ring_reserve(producer, size);

	if (!frame)
		return false;
	*frame = (struct vgpu_frame){ .size = size, .call = 1, .sequence = number };
	memset(frame->body, number & 0xff, body);
	vgpu_ring_commit(producer, size);
	return true;
}

static void expect(struct vgpu_ring_consumer *consumer, uint32_t number, uint32_t body)
{
	const struct vgpu_frame *frame;

	check_eq(vgpu_ring_next(consumer, &frame), 0);
	check_eq(frame->sequence, number);
	check_eq(frame->size, sizeof(*frame) + body);
	for (uint32_t i = 0; i < body; i++)
		check_eq(frame->body[i], number & 0xff);
	vgpu_ring_release(consumer);
}

TEST(frames_come_out_in_order_and_whole_over_many_laps)
{
	struct pair *pair = pair_new();
	const struct vgpu_frame *frame;
	uint32_t body = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		body = (body * 31 + 17) % 5000;
		check(submit(&pair->producer, i, body));
		expect(&pair->consumer, i, body);
	}
	check_eq(vgpu_ring_next(&pair->consumer, &frame), VGPU_RING_E_EMPTY);
	pair_free(pair);
}

TEST(full_ring_refuses_until_space_is_released)
{
	struct pair *pair = pair_new();
	uint32_t n = 0;

	while (submit(&pair->producer, n, 1000))
		n++;
	check_eq(n, VGPU_RING_SIZE / vgpu_frame_padded(1016));
	check(!submit(&pair->producer, n, 1000));
	expect(&pair->consumer, 0, 1000);
	check(submit(&pair->producer, n, 1000));
	for (uint32_t i = 1; i <= n; i++)
		expect(&pair->consumer, i, 1000);
	pair_free(pair);
}

TEST(largest_frame_fits_wherever_the_tail_is)
{
	struct pair *pair = pair_new();
	uint32_t body = VGPU_FRAME_MAX - sizeof(struct vgpu_frame);

	for (uint32_t i = 0; i < 64; i += 2) {
		check(submit(&pair->producer, i, 16 * i));
		expect(&pair->consumer, i, 16 * i);
		check(submit(&pair->producer, i + 1, body));
		expect(&pair->consumer, i + 1, body);
	}
	pair_free(pair);
}

TEST(commit_asks_for_the_doorbell_only_while_the_consumer_sleeps)
{
	struct pair *pair = pair_new();
	struct vgpu_frame *frame;

	frame = vgpu_ring_reserve(&pair->producer, 16);
	*frame = (struct vgpu_frame){ .size = 16, .call = 1 };
	vgpu_ring_commit(&pair->producer, 16);
	check(!vgpu_ring_is_asleep(&pair->producer));
	expect(&pair->consumer, 0, 0);
	vgpu_ring_announce_idle(&pair->consumer);
	check(vgpu_ring_prepare_sleep(&pair->consumer));
	frame = vgpu_ring_reserve(&pair->producer, 16);
	*frame = (struct vgpu_frame){ .size = 16, .call = 1 };
	vgpu_ring_commit(&pair->producer, 16);
	check(vgpu_ring_is_asleep(&pair->producer));
	vgpu_ring_awake(&pair->consumer);
	/* a frame that came first keeps the consumer awake */
	check(!vgpu_ring_prepare_sleep(&pair->consumer));
	pair_free(pair);
}

TEST(a_producer_looks_for_a_sleeper_only_once_the_consumer_is_idle)
{
	struct pair *pair = pair_new();

	pair->consumer.control->consumer_sleeping = 1;
	check(!vgpu_ring_is_asleep(&pair->producer));
	vgpu_ring_announce_idle(&pair->consumer);
	check(vgpu_ring_is_asleep(&pair->producer));
	/* the next frame ends the idle time */
	check(submit(&pair->producer, 0, 0));
	expect(&pair->consumer, 0, 0);
	check_eq(pair->consumer.control->consumer_idle, 0);
	check(!vgpu_ring_is_asleep(&pair->producer));
	pair_free(pair);
}

TEST(a_wake_up_without_a_frame_leaves_the_consumer_idle)
{
	struct pair *pair = pair_new();

	vgpu_ring_announce_idle(&pair->consumer);
	check(vgpu_ring_prepare_sleep(&pair->consumer));
	vgpu_ring_awake(&pair->consumer);
	check_eq(pair->consumer.control->consumer_idle, 1);
	check(vgpu_ring_prepare_sleep(&pair->consumer));
	check(vgpu_ring_is_asleep(&pair->producer));
	pair_free(pair);
}

/* Writes a header at the head of the ring, with that tail, as a hostile guest would. */
static void forge(struct pair *pair, struct vgpu_frame header, uint64_t tail)
{
	memcpy(pair->area + VGPU_RING_OFF, &header, sizeof(header));
	pair->consumer.control->tail = tail;
}

static void expect_broken(struct pair *pair)
{
	const struct vgpu_frame *frame;

	check_eq(vgpu_ring_next(&pair->consumer, &frame), VGPU_RING_E_BROKEN);
	check(pair->consumer.reason);
	/* broken stays broken */
	pair->consumer.control->tail = 16;
	check_eq(vgpu_ring_next(&pair->consumer, &frame), VGPU_RING_E_BROKEN);
	check(!vgpu_ring_prepare_sleep(&pair->consumer));
	pair_free(pair);
}

TEST(tail_that_jumps_beyond_the_ring_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 16, .call = 1 }, VGPU_RING_SIZE + 16);
	expect_broken(pair);
}

TEST(tail_that_decreases_is_refused)
{
	struct pair *pair = pair_new();

	check(submit(&pair->producer, 0, 0));
	expect(&pair->consumer, 0, 0);
	pair->consumer.control->tail = 0;
	expect_broken(pair);
}

TEST(tail_that_is_not_aligned_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 16, .call = 1 }, 24);
	expect_broken(pair);
}

TEST(frame_smaller_than_its_header_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 15, .call = 1 }, 16);
	expect_broken(pair);
}

TEST(frame_of_no_size_does_not_hang_the_consumer)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 0, .call = VGPU_CALL_PAD }, 4096);
	expect_broken(pair);
}

TEST(frame_larger_than_what_was_submitted_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 64, .call = 1 }, 32);
	expect_broken(pair);
}

TEST(frame_larger_than_the_maximum_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = VGPU_FRAME_MAX + 16, .call = 1 },
		2 * VGPU_FRAME_MAX);
	expect_broken(pair);
}

TEST(frame_size_near_the_integer_limit_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = UINT32_MAX - 3, .call = 1 }, 4096);
	expect_broken(pair);
}

TEST(frame_with_unknown_flags_is_refused)
{
	struct pair *pair = pair_new();

	forge(pair, (struct vgpu_frame){ .size = 16, .call = 1, .flags = 0x8000 }, 16);
	expect_broken(pair);
}

TEST(pad_that_reaches_beyond_the_lap_is_refused)
{
	struct pair *pair = pair_new();

	for (uint32_t i = 0; i < 4; i++) {
		check(submit(&pair->producer, i, VGPU_RING_SIZE / 8));
		expect(&pair->consumer, i, VGPU_RING_SIZE / 8);
	}
	memcpy(pair->area + VGPU_RING_OFF + pair->consumer.head % VGPU_RING_SIZE,
		&(struct vgpu_frame){ .size = VGPU_RING_SIZE, .call = VGPU_CALL_PAD },
		sizeof(struct vgpu_frame));
	pair->consumer.control->tail = pair->consumer.head + VGPU_RING_SIZE;
	expect_broken(pair);
}

#define N_FRAMES 50000

static void *produce(void *argument)
{
	struct pair *pair = argument;

	for (uint32_t i = 0; i < N_FRAMES; i++)
		while (!submit(&pair->producer, i, i % 700))
			sched_yield();
	return NULL;
}

TEST(two_threads_exchange_frames_without_loss)
{
	struct pair *pair = pair_new();
	const struct vgpu_frame *frame;
	pthread_t thread;
	int r;

	check_eq(pthread_create(&thread, NULL, produce, pair), 0);
	for (uint32_t i = 0; i < N_FRAMES;) {
		r = vgpu_ring_next(&pair->consumer, &frame);
		if (r == VGPU_RING_E_EMPTY) {
			/* the sleep protocol without sleeping */
			vgpu_ring_prepare_sleep(&pair->consumer);
			vgpu_ring_awake(&pair->consumer);
			sched_yield();
			continue;
		}
		check_eq(r, 0);
		check_eq(frame->sequence, i);
		check_eq(frame->size, sizeof(*frame) + i % 700);
		check(i % 700 == 0 || frame->body[i % 700 - 1] == (i & 0xff));
		vgpu_ring_release(&pair->consumer);
		i++;
	}
	pthread_join(thread, NULL);
	pair_free(pair);
}

#ifndef TEST_RING_THREAD_SANITIZER

struct flipper {
	uint8_t *data;
	bool stop;
};

static void *flip(void *argument)
{
	struct flipper *flipper = argument;
	uint64_t x = 88172645463325252ull;

	while (!__atomic_load_n(&flipper->stop, __ATOMIC_RELAXED)) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		/* header bytes of the few frames in flight, most of the time */
		((volatile uint8_t *)flipper->data)[x % 512] ^= 1u << (x >> 32) % 8;
	}
	return NULL;
}

/* Takes one frame, whatever it has become, and checks what the consumer promises. */
static bool take_promised(struct pair *pair)
{
	const struct vgpu_frame *frame;
	uint32_t size;
	int r;

	r = vgpu_ring_next(&pair->consumer, &frame);
	if (r)
		return false;
	size = frame->size;
	check(size >= sizeof(*frame) && size <= VGPU_FRAME_MAX);
	check(pair->consumer.head <= pair->consumer.tail);
	check(!(frame->flags & ~_VGPU_FRAME_FLAGS));
	return true;
}

/* More where a bug was planted, which needs two writers to meet: on a busy machine that
 * takes its time. */
#ifndef TEST_RING_LAPS
#define TEST_RING_LAPS 100
#endif

TEST_SECONDS(bytes_that_change_under_the_consumer_never_break_its_promises, 110)
{
	struct flipper flipper = {};
	uint32_t n_taken = 0;
	pthread_t thread;

	for (int lap = 0; lap < TEST_RING_LAPS; lap++) {
		struct pair *pair = pair_new();

		flipper = (struct flipper){ .data = pair->area + VGPU_RING_OFF };
		check_eq(pthread_create(&thread, NULL, flip, &flipper), 0);
		for (int i = 0; i < 2000; i++) {
			/* start over at the first bytes, where the flipper works */
			vgpu_ring_producer_init(&pair->producer, pair->area);
			vgpu_ring_consumer_init(&pair->consumer, pair->area);
			for (uint32_t j = 0; j < 8; j++)
				submit(&pair->producer, j, 48);
			while (take_promised(pair))
				n_taken++;
		}
		__atomic_store_n(&flipper.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		pair_free(pair);
	}
	check(n_taken > 0);
}

#endif
