/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency: how long calls take, for vgpud to read
 *
 * Calls without a reply come sixteen at a time, and mostly they are the same call, which
 * is added at once: then their cost is that of one.
 */

#include <assert.h>
#include <time.h>

#include "control/control.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "worker/run/latency.h"

static_assert(_VGPU_CALL_N <= CALL_TIMES_MAX, "each call has a place");

/* Long enough for an error of the clock to be less than one in a thousand. */
#define MEASURE_NS 1000000u

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int latency_init(struct latency *latency, int fd)
{
	int r;

	*latency = (struct latency){
		.began_ns = clock_ns(),
		.began_ticks = latency_now(),
	};
	r = call_times_map(&latency->times, fd, WORKER_TIMES_OFF);
	return r ? vgpu_error_trace(r) : 0;
}

void latency_start(struct latency *latency)
{
	const struct timespec pause = { .tv_nsec = MEASURE_NS };
	uint64_t ns, ticks;

	if (!latency->times)
		return;
	if (clock_ns() - latency->began_ns < MEASURE_NS)
		nanosleep(&pause, NULL);
	ns = clock_ns() - latency->began_ns;
	ticks = latency_now() - latency->began_ticks;
	latency->scale =
		(uint64_t)((double)ns / (double)ticks * (1u << LATENCY_SHIFT) + 0.5);
	if (latency->scale > 1u << LATENCY_SHIFT)
		latency->scale = 1u << LATENCY_SHIFT;
}

/* Rounded. A division by a constant power of two is a shift; most others are of 32 bits,
 * which take half as long as those of 64. */
static uint64_t mean_of(uint64_t ns, uint32_t n)
{
	ns += n / 2;
	if (n == LATENCY_TOGETHER_MAX)
		return ns / LATENCY_TOGETHER_MAX;
	return ns <= UINT32_MAX ? (uint32_t)ns / n : ns / n;
}

static void add(struct latency *latency, uint16_t call, uint64_t ns, uint32_t n,
	uint64_t total_ns)
{
	if (call && call < _VGPU_CALL_N)
		histogram_add(&latency->times->by_dispatcher[call], ns, n, total_ns);
}

void latency_add(struct latency *latency, uint16_t call, uint64_t ticks)
{
	const uint64_t ns = latency_ns(latency, ticks);

	if (latency->times)
		add(latency, call, ns, 1, ns);
}

void latency_add_together(
	struct latency *latency, const struct latency_calls *calls, uint64_t ticks)
{
	uint64_t ns, mean;

	if (!latency->times)
		return;
	ns = latency_ns(latency, ticks);
	mean = mean_of(ns, calls->n);
	if (!calls->differ) {
		add(latency, calls->calls[0], mean, calls->n, ns);
		return;
	}
	for (uint32_t i = 0; i < calls->n; i++)
		add(latency, calls->calls[i], mean, 1, mean);
}

void latency_add_shared(struct latency *latency, uint16_t call, uint64_t ticks)
{
	if (latency->times && call < _VGPU_CALL_N)
		histogram_add_shared(
			&latency->times->by_lanes[call], latency_ns(latency, ticks));
}
