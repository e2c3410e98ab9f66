/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own limits: round trips, and the cost of single steps
 *
 * The lower bounds of any remoting: a cache line that is passed to another processor and
 * back, a thread that is woken there and wakes in turn, a fence, an empty system call.
 */

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpu/cpu.h"

#include "bench.h"

#define BALL_END UINT32_MAX

/*
 * Two threads play: one stores the next number and waits for it to come back. Each
 * kind of play has its own way to send and to wait.
 */
struct ball {
	uint32_t there __attribute__((aligned(64)));
	uint32_t back __attribute__((aligned(64)));
	int event_there, event_back;
};

static inline void relax(void)
{
	vgpu_cpu_relax();
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void futex_store(uint32_t *word, uint32_t value)
{
	store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_wait(uint32_t *word, uint32_t old)
{
	while (load(word) == old)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void *return_by_spin(void *userdata)
{
	struct ball *ball = userdata;
	uint32_t value = 0, old;

	while (value != BALL_END) {
		old = value;
		while ((value = load(&ball->there)) == old)
			relax();
		store(&ball->back, value);
	}
	return NULL;
}

static void send_by_spin(struct ball *ball, uint32_t value)
{
	store(&ball->there, value);
	while (load(&ball->back) != value)
		relax();
}

static void *return_by_futex(void *userdata)
{
	struct ball *ball = userdata;
	uint32_t value = 0;

	while (value != BALL_END) {
		futex_wait(&ball->there, value);
		value = load(&ball->there);
		futex_store(&ball->back, value);
	}
	return NULL;
}

static void send_by_futex(struct ball *ball, uint32_t value)
{
	uint32_t old = load(&ball->back);

	futex_store(&ball->there, value);
	futex_wait(&ball->back, old);
}

static void *return_by_eventfd(void *userdata)
{
	struct ball *ball = userdata;
	uint32_t value = 0;
	eventfd_t count;

	while (value != BALL_END) {
		if (eventfd_read(ball->event_there, &count))
			break;
		value = load(&ball->there);
		eventfd_write(ball->event_back, 1);
	}
	return NULL;
}

static void *return_by_store(void *userdata)
{
	struct ball *ball = userdata;
	uint32_t value = 0;
	eventfd_t count;

	while (value != BALL_END && !eventfd_read(ball->event_there, &count)) {
		value = load(&ball->there);
		store(&ball->back, value);
	}
	return NULL;
}

static void send_by_eventfd(struct ball *ball, uint32_t value)
{
	eventfd_t count;

	store(&ball->there, value);
	eventfd_write(ball->event_there, 1);
	eventfd_read(ball->event_back, &count);
}

/* One wake-up, of a thread that has slept for a while on the other processor: the way of
 * a call that finds the host asleep, and of an answer that is spun for. */
static void measure_asleep(const struct bench_sink *sink, const char *name)
{
	struct ball ball = { .event_there = eventfd(0, EFD_CLOEXEC),
		.event_back = eventfd(0, EFD_CLOEXEC) };
	struct bench_samples samples = {};
	uint32_t value = 0;
	pthread_t thread;
	double start;

	if (bench_thread(&thread, sink->options->host_cpu, return_by_store, &ball)) {
		while (bench_more(&samples, bench_count(sink, 41, 3))) {
			usleep(BENCH_ASLEEP_US);
			start = bench_now();
			store(&ball.there, ++value);
			eventfd_write(ball.event_there, 1);
			while (load(&ball.back) != value)
				relax();
			bench_sample(&samples, bench_now() - start);
		}
		store(&ball.there, BALL_END);
		eventfd_write(ball.event_there, 1);
		pthread_join(thread, NULL);
	}
	close(ball.event_there);
	close(ball.event_back);
	bench_report(sink, name, "ns", &samples);
}

struct play {
	const char *name;
	bool same_core;
	unsigned int n, quick_n; /* round trips in a sample */
	void *(*give_back)(void *ball);
	void (*send)(struct ball *ball, uint32_t value);
};

static void play(const struct bench_sink *sink, const struct play *play)
{
	struct ball ball = { .event_there = eventfd(0, EFD_CLOEXEC),
		.event_back = eventfd(0, EFD_CLOEXEC) };
	unsigned int n = bench_count(sink, play->n, play->quick_n);
	struct bench_samples samples = {};
	uint32_t value = 0;
	pthread_t thread;
	double start;
	int cpu;

	cpu = play->same_core ? sink->options->guest_cpu : sink->options->host_cpu;
	if (bench_thread(&thread, cpu, play->give_back, &ball)) {
		play->send(&ball, ++value); /* it has come to its processor */
		while (bench_more(&samples, bench_count(sink, 101, 5))) {
			start = bench_now();
			for (unsigned int k = 0; k < n; k++)
				play->send(&ball, ++value);
			bench_sample(&samples, (bench_now() - start) / n);
		}
		play->send(&ball, BALL_END);
		pthread_join(thread, NULL);
	}
	close(ball.event_there);
	close(ball.event_back);
	bench_report(sink, play->name, "ns", &samples);
}

/* Two spinning threads on one processor measure the scheduler. */
static bool has_two_processors(const struct bench_sink *sink, const char *name)
{
	if (sink->options->guest_cpu != sink->options->host_cpu)
		return true;
	bench_report_none(sink, name, "ns", "one processor for both sides");
	return false;
}

static void measure_plays(const struct bench_sink *sink)
{
	static const char asleep[] = "eventfd_wake_asleep";
	static const struct play plays[] = {
		{ "spin_round_trip", false, 1000, 200, return_by_spin, send_by_spin },
		{ "futex_wake_cross", false, 20, 5, return_by_futex, send_by_futex },
		{ "futex_wake_same_core", true, 50, 5, return_by_futex, send_by_futex },
		{ "eventfd_wake_cross", false, 20, 5, return_by_eventfd,
			send_by_eventfd },
		{ "eventfd_wake_same_core", true, 50, 5, return_by_eventfd,
			send_by_eventfd },
	};

	for (size_t i = 0; i < BENCH_N(plays); i++) {
		if (!bench_wanted(sink->options, plays[i].name))
			continue;
		if (plays[i].same_core || has_two_processors(sink, plays[i].name))
			play(sink, &plays[i]);
	}
	if (bench_wanted(sink->options, asleep) && has_two_processors(sink, asleep))
		measure_asleep(sink, asleep);
}

/*
 * Steps
 */

static uint64_t word;

static void fence(void)
{
	__atomic_store_n(&word, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void empty_syscall(void)
{
	syscall(SYS_getppid);
}

static void read_clock(void)
{
	bench_now();
}

static void load_word(void)
{
	__atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

void bench_round_trips(const struct bench_sink *sink)
{
	static const struct {
		const char *name;
		void (*step)(void);
	} steps[] = {
		{ "cached_load", load_word },
		{ "store_fence", fence },
		{ "empty_syscall", empty_syscall },
		{ "clock_gettime", read_clock },
	};
	unsigned int n = bench_count(sink, 2000, 1000);

	measure_plays(sink);
	for (size_t i = 0; i < BENCH_N(steps); i++) {
		struct bench_samples samples = {};
		double start;

		if (!bench_wanted(sink->options, steps[i].name))
			continue;
		while (bench_more(&samples, bench_count(sink, 101, 5))) {
			start = bench_now();
			for (unsigned int j = 0; j < n; j++)
				steps[i].step();
			bench_sample(&samples, (bench_now() - start) / n);
		}
		bench_report(sink, steps[i].name, "ns", &samples);
	}
}
