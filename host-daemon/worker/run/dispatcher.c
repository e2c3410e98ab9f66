/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher: takes frames off the ring, in order
 *
 * While calls flow the dispatcher looks at the ring without sleeping. It sleeps after
 * SPIN_NS without a call, by the ring's sleep protocol, on the channel's doorbell,
 * and now and then looks at the ring in its sleep, see vgpu/wake.h; a guest that rings
 * for nothing is listened to at a limited rate only. Without doorbells it looks again
 * after pauses that grow.
 *
 * After EAGER_NS it lets others run between its looks, since the guest may share this
 * very processor. Three things are learned from how that goes, as a guest thread learns
 * them in its waits: after a number of long gaps in a row the next one will be long too,
 * and a spin of EAGER_NS is enough, unless a lane has just told a guest thread what it
 * waited for; a processor that was away for a time slice without a call having come is
 * wanted by others; and if one had come, the guest runs here and needs it at once.
 *
 * How long a call takes is told by the processor's counter: the end of one is the start
 * of the next. Only for a call that may have been slow is it compared with the clock,
 * which costs as much as a quarter of taking a call. Reading the counter costs a tenth of
 * taking a launch, so calls that nobody waits for are timed together, up to RELEASE_EVERY
 * in a row.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/run/dispatch.h"
#include "worker/run/dispatcher.h"
#include "worker/run/session-life.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"

/* A wake-up costs a caller more than ten microseconds. */
#define SPIN_NS 50000u
/* After this time without a call others run between the looks: a thread of the driver
 * that has work may have no other processor. */
#define EAGER_NS 4000u
/* The same after a piece of a copy that took so long: at least 4 us, whatever the
 * processor counts. */
#define EAGER_COPY_TICKS 20000u
#define EAGER_MAX_NS 1000000u
/* How many looks at the ring between two looks at the clock. */
#define SPIN_LOOKS 64u
/* Gaps between calls that are not worth a spin, and how many in a row say so. */
#define LONG_NS (4 * SPIN_NS)
#define LONG_GAPS 8u
/* Shorter than any time slice, longer than what a guest does between calls. */
#define SLICE_NS 400000u
/* Giving the processor up where nobody wants it takes less than this. */
#define YIELD_NS 3000u
/* How many calls after a pause long what was learned from a yield is believed. */
#define CROWDED_CALLS 64u
#define TOGETHER_CALLS 16u
/* Wake-ups by lanes in a row after which no call came, that say that none will; and for
 * how many sleeps that is believed. */
#define VAIN_WAKES 4u
#define VAIN_TRY_EVERY 32u
/* Frames taken between two publications of the ring's head. */
#define RELEASE_EVERY 16u
#define SLOW_CALL_NS 1000000u
/* No counter has fewer ticks in SLOW_CALL_NS: all count with 1 GHz or more. */
#define SLOW_CALL_TICKS 1000000u
/* Pauses without doorbells: from this to that, doubling. */
#define PAUSE_MIN_NS 50000u
#define PAUSE_MAX_NS 4000000u
/* Rings for nothing in a row that are believed, and the pause for each one more. */
#define EMPTY_WAKES 16u
#define EMPTY_WAKE_NS 1000000u

/* What the loop remembers; the dispatcher's alone. */
struct ring_loop {
	struct session *session;
	uint64_t now;	     /* when the clock was looked at last */
	uint64_t now_ticks;  /* and the processor's counter then */
	uint64_t ended;	     /* when the last call that was timed did, in ticks */
	uint32_t n_untimed;  /* calls since then */
	uint16_t untimed;    /* the last of them */
	uint64_t copied;     /* how long it did if it was a copy, in ticks */
	uint64_t idle_since; /* when the ring was found empty; 0: it was not */
	uint64_t gap_since;  /* the same, through all sleeps up to the next call */
	uint64_t away;	     /* how long the processor was given up just now */
	uint32_t n_long;     /* long gaps in a row */
	uint32_t n_crowded;  /* calls to come for which others want the processor */
	uint32_t n_together; /* calls to come for which the guest shares it */
	bool slept;
	bool expects;	 /* a guest thread was told what it waited for */
	uint32_t n_vain; /* times in a row that it had nothing more to say */
	uint64_t pause;
	uint32_t n_taken;
	uint32_t n_looks;
	uint32_t n_empty_wakes;
	bool can_spin;
};

/* Whether a guest can write while we look: constant once prepared. */
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

/* How long so many ticks are that ended just now, going by those since the last look at
 * the clock: at that time they had not begun. */
static uint64_t ticks_to_ns(struct ring_loop *loop, uint64_t ticks)
{
	uint64_t now = loop->now, now_ticks = loop->now_ticks;

	look_at_clock(loop);
	return (uint64_t)((double)ticks * (double)(loop->now - now) /
			  (double)(loop->now_ticks - now_ticks));
}

/* Whether a call is timed by itself: the length of a copy is also of use. */
static bool is_timed(const struct vgpu_frame *frame)
{
	return frame->flags & VGPU_FRAME_REPLY ||
	       frame->call == VGPU_CALL_cuMemcpyHtoDAsync_v2 ||
	       frame->call == VGPU_CALL_cuMemcpyDtoHAsync_v2;
}

/* So many calls up to that one took so many ticks. */
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
	/* Where a lane runs the call, what passed here was the scheduler's. */
	if (loop->ended - began >= SLOW_CALL_TICKS && !dispatch_goes_to_lane(frame))
		note_slow(loop, 1, frame->call, loop->ended - began);
}

/* The same for the calls since the last that was timed. */
static void note_untimed(struct ring_loop *loop)
{
	uint64_t began = loop->ended;
	uint32_t n = loop->n_untimed;

	if (!n)
		return;
	loop->n_untimed = 0;
	loop->ended = __builtin_ia32_rdtsc();
	if (loop->ended - began >= SLOW_CALL_TICKS)
		note_slow(loop, n, loop->untimed, loop->ended - began);
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
	/* After a time slice of others it says nothing that a call had come. */
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

static void take(struct ring_loop *loop, const struct vgpu_frame *frame)
{
	struct session *session = loop->session;
	const char *why = NULL;
	char text[160];
	bool timed;
	int r;

	/* The wait for this frame is no part of its call. */
	if (loop->idle_since || loop->slept) {
		look_at_clock(loop);
		loop->ended = loop->now_ticks;
		learn_from_gap(loop);
	}
	timed = is_timed(frame);
	if (timed)
		note_untimed(loop);
	session->runner.copies_piece = false;
	r = dispatch_frame(session, frame, &why);
	if (r == CALL_E_VIOLATION) {
		snprintf(text, sizeof(text), "%s (call %u, %s, lane %u)", why,
			frame->call, vgpu_call_name(frame->call), frame->lane);
		session_end(session, VGPU_REASON_PROTOCOL, text);
	}
	if (r)
		session_end(session, VGPU_REASON_HOST, why);
	if (timed) {
		note_time(loop, frame);
	} else {
		loop->n_untimed++;
		loop->untimed = frame->call;
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

/* A lane that made marks possible rings only while it knows of any: look again after
 * announcing sleep, as with frames. Partner: marks_lane_done(). */
static bool prepare_sleep(struct session *session)
{
	vgpu_ring_answer(&session->consumer);
	return vgpu_ring_prepare_sleep(&session->consumer) && !marks_are_due(session);
}

/* Whether a ring was missed is found by looking, in the midst of the sleep. */
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

/* Before the next sleep and not after the last one, when a guest waits: whoever rang
 * before now did it for what is found on the ring. */
static void forget_rings(struct session *session)
{
	uint64_t count;

	if (read(session->doorbell, &count, sizeof(count)) < 0 && errno != EAGAIN)
		session_end(session, VGPU_REASON_HOST, "the doorbell cannot be read");
}

/* Whether a lane that has told a guest thread what it waited for is to wake this thread,
 * so that it looks for what comes next. Where nothing came, time after time, that is a
 * wake-up for nothing. */
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
	/* Still set: the guest's doorbell woke us. Cleared: dispatcher_wake() did. */
	loop->expects = listens && !__atomic_exchange_n(&session->dispatcher_sleeps,
					   false, __ATOMIC_RELAXED);
	/* The guest did not ring that time. */
	if (loop->expects && loop->n_empty_wakes)
		loop->n_empty_wakes--;
}

void dispatcher_wake(struct session *session)
{
	/* Only a hint: one that comes too early, before the sleep, wakes nobody. */
	if (session->doorbell >= 0 &&
		__atomic_exchange_n(&session->dispatcher_sleeps, false, __ATOMIC_RELAXED))
		session_ring(session);
}

/*
 * How long no others run between the looks. Between the pieces of a copy the guest takes
 * about as long for its part as this side for the last one; where either side gives its
 * processor up meanwhile, the other has nothing to do for a time slice and goes to sleep.
 * A tick is less than a ns, so this is some ten times as long as the last piece.
 */
static uint64_t eager_ns(const struct ring_loop *loop)
{
	if (loop->copied < EAGER_COPY_TICKS)
		return EAGER_NS;
	return loop->copied < EAGER_MAX_NS / 8 ? 8 * loop->copied : EAGER_MAX_NS;
}

/* How long to look at an empty ring before sleeping. */
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
		__builtin_ia32_pause();
		return;
	}
	look_at_clock(loop);
	if (!loop->idle_since) {
		loop->idle_since = loop->now;
		vgpu_ring_announce_idle(&session->consumer);
	}
	if (!loop->gap_since)
		loop->gap_since = loop->now;
	if (loop->now - loop->idle_since < spin_ns(loop)) {
		if (loop->n_together || loop->now - loop->idle_since > eager_ns(loop))
			yield(loop);
		return;
	}
	debts_pay(session, &session->runner);
	loop->slept = true;
	sleep_until_called(loop);
	/* After a ring for nothing it sleeps again at once. */
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

	look_at_clock(&loop);
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
