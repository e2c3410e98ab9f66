/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The submission ring alone: prebuilt frames, without decoding
 *
 * The lower bound of a call without reply: one thread copies the frame in and another
 * copies it out, through the code that both sides really use.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/cpu.h"
#include "vgpu/ring.h"

#include "bench.h"

/* The size of a launch with nine parameters of eight bytes. */
#define FRAME_SIZE 144u
#define BURST 256u
#define CALL_END UINT16_MAX

struct lane {
	struct vgpu_ring_producer producer;
	struct vgpu_ring_consumer consumer;
	void *area;
	uint64_t taken; /* frames; the producer waits for it */
};

/* Frames gather meanwhile, as they do while a dispatcher is busy with the last one: a
 * consumer that takes each for itself makes the producer wait for its cache lines. */
static void rest(void)
{
	for (int i = 0; i < 64; i++)
		vgpu_cpu_relax();
}

static void *consume(void *userdata)
{
	const struct vgpu_frame *frame = NULL;
	struct lane *lane = userdata;
	uint64_t taken = 0;
	int r;

	do {
		r = vgpu_ring_next(&lane->consumer, &frame);
		if (r == VGPU_RING_E_EMPTY) {
			vgpu_ring_release(&lane->consumer);
			__atomic_store_n(&lane->taken, taken, __ATOMIC_RELEASE);
			rest();
			continue;
		}
		taken++;
		if (taken % 64 == 0)
			vgpu_ring_release(&lane->consumer);
	} while (r == VGPU_RING_E_EMPTY || (!r && frame->call != CALL_END));
	return NULL;
}

static void send(struct lane *lane, const struct vgpu_frame *made)
{
	struct vgpu_frame *frame;

	while (!(frame = vgpu_ring_reserve(&lane->producer, made->size)))
		vgpu_cpu_relax();
	memcpy(frame, made, FRAME_SIZE);
	vgpu_ring_commit(&lane->producer, made->size);
}

static void wait_taken(const struct lane *lane, uint64_t n)
{
	while (__atomic_load_n(&lane->taken, __ATOMIC_ACQUIRE) < n)
		vgpu_cpu_relax();
}

/* Reports the cost of a frame in a burst, and the rate of many. */
static void measure(const struct bench_sink *sink, struct lane *lane)
{
	static uint8_t bytes[FRAME_SIZE] __attribute__((aligned(16)));
	struct vgpu_frame *frame = (struct vgpu_frame *)bytes;
	unsigned int n = bench_count(sink, 20000, 5000);
	struct bench_samples cost = {}, rate = {};
	uint64_t sent = 0;
	double start;

	*frame = (struct vgpu_frame){ .size = FRAME_SIZE, .call = 1 };
	while (bench_more(&cost, bench_count(sink, 101, 5))) {
		start = bench_now();
		for (unsigned int k = 0; k < BURST; k++)
			send(lane, frame);
		bench_sample(&cost, (bench_now() - start) / BURST);
		wait_taken(lane, sent += BURST);
	}
	while (bench_more(&rate, bench_count(sink, 41, 3))) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			send(lane, frame);
		wait_taken(lane, sent += n);
		bench_sample(&rate, n / ((bench_now() - start) / 1e9));
	}
	frame->call = CALL_END;
	send(lane, frame);
	bench_report(sink, "ring_enqueue", "ns", &cost);
	bench_report(sink, "ring_rate", "1/s", &rate);
}

void bench_ring(const struct bench_sink *sink)
{
	static const size_t size = VGPU_RING_OFF + VGPU_RING_SIZE;
	static struct lane lane;
	pthread_t thread;

	if (!bench_wanted(sink->options, "ring_enqueue") &&
		!bench_wanted(sink->options, "ring_rate"))
		return;
	if (sink->options->guest_cpu == sink->options->host_cpu) {
		bench_report_none(
			sink, "ring_enqueue", "ns", "one processor for both sides");
		bench_report_none(
			sink, "ring_rate", "1/s", "one processor for both sides");
		return;
	}
	lane.area = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lane.area == MAP_FAILED)
		return;
	memset(lane.area, 0, size);
	vgpu_ring_consumer_init(&lane.consumer, lane.area);
	vgpu_ring_producer_init(&lane.producer, lane.area);
	if (bench_thread(&thread, sink->options->host_cpu, consume, &lane)) {
		measure(sink, &lane);
		pthread_join(thread, NULL);
	}
	munmap(lane.area, size);
}
