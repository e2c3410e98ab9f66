/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher: takes frames off the ring, in order
 *
 * While calls arrive the dispatcher polls the ring. After SPIN_NS without a call it
 * sleeps on the channel's doorbell, by the ring's sleep protocol, with a timeout in case
 * a wake-up is lost, see vgpu/wake.h. Doorbells of a guest that submits no calls are
 * served at a limited rate. Without doorbells it polls at growing intervals.
 *
 * After EAGER_NS it yields the processor between polls, since the guest may share this
 * processor. It adapts as a guest thread does in its waits: after several long gaps in a
 * row the next one will be long too, and spinning for EAGER_NS is enough, unless a lane
 * has just replied to a guest thread; if a yield took a time slice and no call arrived,
 * other threads need the processor; and if a call arrived, the guest runs on this
 * processor and needs it at once.
 *
 * The duration of calls is measured by the time-stamp counter: the end of one call is the
 * start of the next, unless the ring was empty in between. Only the ticks of a call that
 * may have been slow are converted by the clock, which costs a quarter of the time to
 * take a call. Reading the counter costs a tenth of the time to take a launch, so calls
 * without a reply are timed together, up to RELEASE_EVERY in a row.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cpu.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/flight.h"
#include "worker/base/session.h"
#include "worker/base/trace.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/residency.h"
#include "worker/run/dispatch.h"
#include "worker/run/dispatcher.h"
#include "worker/run/latency.h"
#include "worker/run/recorded.h"
#include "worker/run/session-life.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"

/* A wake-up costs a caller more than ten microseconds. */
#define SPIN_NS 50000u
/* After this time without a call the processor is yielded between polls: a driver thread
 * with work may have no other processor. */
#define EAGER_NS 4000u
/* A piece of a copy that took longer extends that time: at least 4 us for any frequency
 * of the counter. */
#define EAGER_COPY_TICKS 20000u
#define EAGER_MAX_NS 1000000u
/* Polls of the ring between two readings of the clock. */
#define SPIN_LOOKS 64u
/* The same of the counter: so many of them can be part of the next call's duration. */
#define TIME_LOOKS 4u
/* A gap between calls for which spinning does not pay, and the number in a row that stops
 * it. */
#define LONG_NS (4 * SPIN_NS)
#define LONG_GAPS 8u
/* Shorter than any time slice, longer than a guest's work between calls. */
#define SLICE_NS 400000u
/* A yield takes less than this if no other thread is runnable. */
#define YIELD_NS 3000u
/* Calls after a pause for which the results of yields remain valid. */
#define CROWDED_CALLS 64u
#define TOGETHER_CALLS 16u
/* Wake-ups by lanes in a row without a call after them, after which lanes wake the
 * dispatcher only once in VAIN_TRY_EVERY sleeps. */
#define VAIN_WAKES 4u
#define VAIN_TRY_EVERY 32u
/* Frames taken between two publications of the ring's head. */
#define RELEASE_EVERY LATENCY_TOGETHER_MAX
#define SLOW_CALL_NS 1000000u
/* The minimum of ticks in SLOW_CALL_NS: all counters run at 1 GHz or more. */
#define SLOW_CALL_TICKS 1000000u
/* Polling intervals without doorbells: the first and the longest; they double. */
#define PAUSE_MIN_NS 50000u
#define PAUSE_MAX_NS 4000000u
/* Doorbells in a row without a call that are served at once, and the pause before each
 * further one. */
#define EMPTY_WAKES 16u
#define EMPTY_WAKE_NS 1000000u

/* State of the loop; private to the dispatcher. */
struct ring_loop {
	struct session *session;
	uint64_t now;	     /* time of the last reading of the clock */
	uint64_t now_ticks;  /* the time-stamp counter then */
	uint64_t ended;	     /* end of the last timed call, in ticks */
	uint64_t copied;     /* duration of the last call if it was a copy, in ticks */
	uint64_t idle_since; /* when the ring was found empty; 0: not empty */
	uint64_t gap_since;  /* as idle_since, but not reset by sleeping */
	uint64_t away;	     /* duration of the last yield */
	uint32_t n_long;     /* long gaps in a row */
	uint32_t n_crowded;  /* calls that assume other threads need it */
	uint32_t n_together; /* calls that assume the guest shares it */
	bool slept;
	bool expects;	 /* a lane has replied to a guest thread */
	uint32_t n_vain; /* such replies in a row without a call after them */
	uint64_t pause;
	uint32_t n_taken;
	uint32_t n_looks;
	uint32_t n_empty_wakes;
	bool can_spin;
	struct latency_calls untimed; /* since `ended` */
};

/* Whether the guest can run while this thread spins; constant after
 * dispatcher_prepare(). */
static bool can_spin;

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
}

static void look_at_clock(struct ring_loop *loop)
{
	loop->now = clock_now();
	loop->now_ticks = __builtin_ia32_rdtsc();
}

static void pause_for(uint64_t ns)
{
	struct timespec time = { ns / 1000000000u, ns % 1000000000u };

	nanosleep(&time, NULL);
}

/* Converts a duration in ticks that ends now, by the frequency since the last reading of
 * the clock, which was before its start. */
static uint64_t ticks_to_ns(struct ring_loop *loop, uint64_t ticks)
{
	uint64_t now = loop->now, now_ticks = loop->now_ticks;

	look_at_clock(loop);
	return (uint64_t)((double)ticks * (double)(loop->now - now) /
			  (double)(loop->now_ticks - now_ticks));
}

/* Whether a call is timed alone: the duration of a copy is also needed for
 * EAGER_COPY_TICKS. */
static bool is_timed(const struct vgpu_frame *frame)
{
	return frame->flags & VGPU_FRAME_REPLY ||
	       frame->call == VGPU_CALL_cuMemcpyHtoDAsync_v2 ||
	       frame->call == VGPU_CALL_cuMemcpyDtoHAsync_v2;
}

/* Logs and counts `n` calls, the last of them `call`, if they were slow. */
static __attribute__((__noinline__)) void note_slow(
	struct ring_loop *loop, uint32_t n, uint16_t call, uint64_t ticks)
{
	static struct rate rate;
	uint64_t ns = ticks_to_ns(loop, ticks);

	if (ns < SLOW_CALL_NS)
		return;
	session_count(loop->session, slow_calls, 1);
	if (!rate_allows(&rate))
		return;
	if (n == 1)
		vgpu_log_info("%s held the dispatcher for %llu us", vgpu_call_name(call),
			(unsigned long long)ns / 1000);
	else
		vgpu_log_info(
			"%u calls, the last one %s, held the dispatcher for %llu us", n,
			vgpu_call_name(call), (unsigned long long)ns / 1000);
}

static void note_time(struct ring_loop *loop, const struct vgpu_frame *frame)
{
	uint64_t began = loop->ended;

	loop->ended = __builtin_ia32_rdtsc();
	loop->copied = loop->session->runner.copies_piece ? loop->ended - began : 0;
	/* A call that a lane runs was delayed here by the scheduler only. */
	if (loop->session->runner.gave_to_lane)
		return;
	latency_add(loop->session->latency, frame->call, loop->ended - began);
	if (loop->ended - began >= SLOW_CALL_TICKS && dispatch_knows(frame) &&
		!dispatch_goes_to_lane(frame))
		note_slow(loop, 1, frame->call, loop->ended - began);
}

/* The same for the calls since the last timed one. */
static void note_untimed(struct ring_loop *loop)
{
	uint64_t began = loop->ended;
	uint32_t n = loop->untimed.n;

	if (!n)
		return;
	loop->ended = __builtin_ia32_rdtsc();
	latency_add_together(loop->session->latency, &loop->untimed, loop->ended - began);
	if (loop->ended - began >= SLOW_CALL_TICKS)
		note_slow(loop, n, loop->untimed.calls[n - 1], loop->ended - began);
	latency_forget(&loop->untimed);
}

static void count_down(uint32_t *n)
{
	if (*n)
		--*n;
}

/* The ring was empty before this call. */
static void learn_from_gap(struct ring_loop *loop)
{
	if (loop->now - loop->gap_since < LONG_NS)
		loop->n_long = 0;
	else if (loop->n_long < LONG_GAPS)
		loop->n_long++;
	count_down(&loop->n_crowded);
	count_down(&loop->n_together);
	/* If the yield took a time slice, a call would have arrived in any case. */
	if (loop->away > SLICE_NS)
		loop->n_crowded = CROWDED_CALLS;
	else if (loop->away > YIELD_NS)
		loop->n_together = TOGETHER_CALLS;
	loop->away = 0;
	if (loop->expects)
		loop->n_vain = 0;
	loop->expects = false;
	loop->slept = false;
	loop->gap_since = 0;
}

/* The same while a trace is wanted. */
static __attribute__((__noinline__)) int dispatch_traced(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	const uint64_t number = session->runner.number;
	int r;

	trace_call_number = number;
	trace_add(session, TRACE_TAKE, frame, number, 0);
	r = dispatch_frame(session, frame, whyp);
	trace_add(session, TRACE_TAKEN, frame, number, 0);
	trace_call_number = 0;
	return r;
}

/* The session's memory has left the device. */
static __attribute__((__noinline__)) int dispatch_returned(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	const bool may_fail = frame->flags & VGPU_FRAME_REPLY;
	CUresult result = CUDA_SUCCESS;

	if (dispatch_knows(frame) && dispatch_uses_memory(frame))
		result = residency_return(session, may_fail);
	if (result == CUDA_SUCCESS)
		return dispatch_frame(session, frame, whyp);
	if (may_fail)
		return dispatch_refuse(session, frame, result, whyp);
	*whyp = "the driver does not bring back memory that had made room on the device";
	return vgpu_error_origin(-EIO);
}

static int dispatch(
	struct session *session, const struct vgpu_frame *frame, const char **whyp)
{
	if (__builtin_expect(residency_is_out(session), 0))
		return dispatch_returned(session, frame, whyp);
	return trace_is_on(session) ? dispatch_traced(session, frame, whyp)
				    : dispatch_frame(session, frame, whyp);
}

static void take(struct ring_loop *loop, const struct vgpu_frame *frame)
{
	struct session *session = loop->session;
	const char *why = NULL;
	char text[160];
	bool timed;
	int r;

	/* The wait for this frame is not part of its duration. */
	if (loop->idle_since || loop->slept) {
		look_at_clock(loop);
		loop->ended = loop->now_ticks;
		residency_note_idle(session, 0);
		learn_from_gap(loop);
	}
	timed = is_timed(frame);
	if (timed)
		note_untimed(loop);
	session->runner.copies_piece = false;
	session->runner.gave_to_lane = false;
	flight_begin(session, frame, loop->ended);
	if (session_is_recorded(session))
		recorded_take(session, frame);
	device_memory_follow_limits(session);
	r = dispatch(session, frame, &why);
	if (r == CALL_E_VIOLATION) {
		snprintf(text, sizeof(text), "%s (call %u, %s, lane %u)", why,
			frame->call, vgpu_call_name(frame->call), frame->lane);
		session_end(session, VGPU_REASON_PROTOCOL, text);
	}
	if (r)
		session_end(session, VGPU_REASON_HOST, why);
	if (session->runner.has_waited) {
		/* For its share of the device's time, which is no duration of a call. */
		session->runner.has_waited = false;
		latency_forget(&loop->untimed);
		look_at_clock(loop);
		loop->ended = loop->now_ticks;
	} else if (timed) {
		note_time(loop, frame);
	} else {
		latency_collect(
			&loop->untimed, session->runner.gave_to_lane ? 0 : frame->call);
		loop->copied = 0;
	}
	loop->idle_since = 0;
	loop->n_looks = 0;
	loop->n_empty_wakes = 0;
	loop->pause = PAUSE_MIN_NS;
	if (++loop->n_taken % RELEASE_EVERY)
		return;
	note_untimed(loop);
	vgpu_ring_release(&session->consumer);
	session_count_own(session, &session->runner);
	marks_make_due(session, &session->runner);
}

/* Announces the sleep, then checks for frames and deferred marks again. Partners: the
 * guest's submission, and marks_lane_done(), which rings only if it sees deferred marks.
 * Return: whether the dispatcher may sleep. */
static bool prepare_sleep(struct session *session)
{
	vgpu_ring_answer(&session->consumer);
	return vgpu_ring_prepare_sleep(&session->consumer) && !marks_are_due(session) &&
	       !residency_is_wanted(session);
}

/* A lost wake-up is detected by polling with growing timeouts. */
static void wait_for_doorbell(struct ring_loop *loop)
{
	struct session *session = loop->session;
	struct pollfd fd = { .fd = session->doorbell, .events = POLLIN };
	struct vgpu_nap nap = {};

	if (loop->n_empty_wakes > EMPTY_WAKES)
		pause_for(EMPTY_WAKE_NS);
	while (!poll(&fd, 1, (int)vgpu_nap_ms(&nap))) {
		if (!prepare_sleep(session))
			return;
		debts_pay(session, &session->runner);
	}
	loop->n_empty_wakes++;
}

/* Resets the doorbell before a sleep, not after one, when a guest waits: frames of
 * earlier rings are found by polling the ring. */
static void forget_rings(struct session *session)
{
	uint64_t count;

	if (read(session->doorbell, &count, sizeof(count)) < 0 && errno != EAGAIN)
		session_end(session, VGPU_REASON_HOST, "the doorbell cannot be read");
}

/* Return: whether lanes are to wake this thread after a reply, because the guest thread
 * will probably send another call. After VAIN_WAKES replies without one they are not,
 * except once in VAIN_TRY_EVERY sleeps. */
static bool decide_to_listen(struct ring_loop *loop)
{
	if (loop->expects || loop->n_vain >= VAIN_WAKES)
		loop->n_vain++;
	return loop->n_vain < VAIN_WAKES || loop->n_vain % VAIN_TRY_EVERY == 0;
}

static void sleep_until_called(struct ring_loop *loop)
{
	struct session *session = loop->session;
	bool listens;

	if (session->poll) {
		vgpu_ring_answer(&session->consumer);
		pause_for(loop->pause);
		if (loop->pause < PAUSE_MAX_NS)
			loop->pause *= 2;
		return;
	}
	forget_rings(session);
	/* Partner: dispatcher_wake(). */
	listens = decide_to_listen(loop);
	__atomic_store_n(&session->dispatcher_sleeps, listens, __ATOMIC_RELAXED);
	if (prepare_sleep(session))
		wait_for_doorbell(loop);
	vgpu_ring_awake(&session->consumer);
	/* Still set: the guest's doorbell ended the sleep. Cleared: dispatcher_wake()
	 * did. */
	loop->expects = listens && !__atomic_exchange_n(&session->dispatcher_sleeps,
					   false, __ATOMIC_RELAXED);
	/* The guest did not ring. */
	if (loop->expects && loop->n_empty_wakes)
		loop->n_empty_wakes--;
}

void dispatcher_wake(struct session *session)
{
	/* Only a hint: if the dispatcher does not sleep yet, it has no effect. */
	if (session->doorbell >= 0 &&
		__atomic_exchange_n(&session->dispatcher_sleeps, false, __ATOMIC_RELAXED))
		session_ring(session);
}

/*
 * Time without yielding. Between the pieces of a copy the guest needs about as long for
 * its part as the worker for the previous one; if either side yields meanwhile, the other
 * is idle for a time slice and goes to sleep. A tick is less than a ns, so this is at
 * least eight times the duration of the last piece.
 */
static uint64_t eager_ns(const struct ring_loop *loop)
{
	if (loop->copied < EAGER_COPY_TICKS)
		return EAGER_NS;
	return loop->copied < EAGER_MAX_NS / 8 ? 8 * loop->copied : EAGER_MAX_NS;
}

/* Time to poll an empty ring before sleeping. */
static uint64_t spin_ns(const struct ring_loop *loop)
{
	if (!loop->can_spin)
		return 0;
	if (loop->n_crowded || (loop->n_long >= LONG_GAPS && !loop->expects))
		return eager_ns(loop);
	return SPIN_NS + eager_ns(loop);
}

static void yield(struct ring_loop *loop)
{
	uint64_t before = loop->now;

	sched_yield();
	look_at_clock(loop);
	loop->away = loop->now - before;
}

static void idle(struct ring_loop *loop)
{
	struct session *session = loop->session;

	if (!loop->n_looks) {
		note_untimed(loop);
		vgpu_ring_release(&session->consumer);
		session_count_own(session, &session->runner);
	}
	marks_make_due(session, &session->runner);
	if (loop->away > SLICE_NS)
		loop->n_crowded = CROWDED_CALLS;
	loop->away = 0;
	if (loop->can_spin && ++loop->n_looks % SPIN_LOOKS && !loop->n_together) {
		if (!(loop->n_looks % TIME_LOOKS))
			loop->ended = __builtin_ia32_rdtsc();
		vgpu_cpu_relax();
		return;
	}
	look_at_clock(loop);
	if (!loop->idle_since) {
		loop->idle_since = loop->now;
		vgpu_ring_announce_idle(&session->consumer);
	}
	if (!loop->gap_since)
		loop->gap_since = loop->now;
	/* Events behind work that is complete would be too late. */
	if (loop->now - loop->idle_since > EAGER_NS || spin_ns(loop) <= EAGER_NS)
		meter_flush(session, &session->runner);
	if (loop->now - loop->idle_since < spin_ns(loop)) {
		if (loop->n_together || loop->now - loop->idle_since > eager_ns(loop))
			yield(loop);
		return;
	}
	debts_pay(session, &session->runner);
	residency_note_idle(session, loop->now);
	if (residency_is_wanted(session))
		residency_leave(session);
	loop->slept = true;
	sleep_until_called(loop);
	/* After an empty wake-up it sleeps again at once. */
	loop->idle_since = loop->n_empty_wakes > 1 ? 1 : 0;
}

void dispatcher_prepare(void)
{
	can_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

void *dispatcher_main(void *data)
{
	struct session *session = data;
	struct ring_loop loop = {
		.session = session,
		.ended = __builtin_ia32_rdtsc(),
		.pause = PAUSE_MIN_NS,
		.can_spin = can_spin,
	};
	const struct vgpu_frame *frame;
	int r;

	latency_start(session->latency);
	look_at_clock(&loop);
	loop.ended = loop.now_ticks;
	for (;;) {
		r = vgpu_ring_next(&session->consumer, &frame);
		if (!r)
			take(&loop, frame);
		else if (r == VGPU_RING_E_EMPTY)
			idle(&loop);
		else
			session_end(
				session, VGPU_REASON_PROTOCOL, session->consumer.reason);
	}
	return NULL;
}
