/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meter: the device time of a session, by events around batches of its work
 */

#include <errno.h>
#include <stdlib.h>

#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/wait/meter.h"

/* How often the thread asks while work is under way: with a limit, and without. */
#define LOOK_LIMITED_NS 500000u
#define LOOK_NS 2000000u
/* Looks without work after which it sleeps until there is some. */
#define IDLE_LOOKS 16u
/* Looks that find a batch open, after which it ends with its next call. */
#define OPEN_LOOKS 2u
/* With a limit a batch is about that long, so that the next one is measured before much
 * more is submitted. */
#define LIMITED_BATCH_NS 500000u
/* What a call is expected to take before the first one is measured. */
#define CALL_NS 20000u
/* A batch that does not begin for so long waits for something else than its turn. */
#define BEGIN_MAX_NS 20000000u
/* A later event becomes the base after this time: the driver's difference of two events
 * has 24 bits. */
#define BASE_NS INT64_C(4000000000)

enum kind {
	KIND_NONE,
	KIND_WORK,
	KIND_WAIT,    /* its stream may wait for others or for the host */
	KIND_CAPTURE, /* it begins one */
};

static enum kind kind_of(uint32_t call)
{
	switch (call) {
	case VGPU_CALL_cuStreamWaitEvent:
	case VGPU_CALL_cuStreamAddCallback:
	case VGPU_CALL_cuLaunchHostFunc:
	case VGPU_CALL_cuStreamWaitValue32_v2:
	case VGPU_CALL_cuStreamWaitValue64_v2:
	case VGPU_CALL_cuStreamBatchMemOp_v2:
		return KIND_WAIT;
	case VGPU_CALL_cuStreamWriteValue32_v2:
	case VGPU_CALL_cuStreamWriteValue64_v2:
	case VGPU_CALL_cuEventRecord:
	case VGPU_CALL_cuEventRecordWithFlags:
		return KIND_NONE;
	case VGPU_CALL_cuStreamBeginCapture_v2:
	case VGPU_CALL_cuStreamBeginCaptureToGraph:
		return KIND_CAPTURE;
	default:
		return vgpu_call_flags[call] & VGPU_CALL_F_STREAM_ORDERED ? KIND_WORK
									  : KIND_NONE;
	}
}

static bool is_on(const struct session *session)
{
	return session->stream_fn;
}

static const struct vgpu_driver *driver_of(const struct meter *meter)
{
	return &meter->session->driver->table;
}

static struct context *context_of(const struct stream *stream)
{
	return stream->green ? stream->green : stream->context;
}

/*
 * Events
 */

/* Return: nanoseconds from one event to the other, both of which are complete. */
static CUresult difference(
	const struct meter *meter, CUevent from, CUevent to, int64_t *nsp)
{
	const struct vgpu_driver *driver = driver_of(meter);
	CUresult result;
	float ms = 0;

	result = driver->cuEventElapsedTime_v2
			 ? driver->cuEventElapsedTime_v2(&ms, from, to)
			 : driver->cuEventElapsedTime(&ms, from, to);
	*nsp = (int64_t)((double)ms * 1e6);
	return result;
}

static void give_event(const struct meter *meter, struct meter_line *line, CUevent event)
{
	if (!event)
		return;
	if (line->n_events < sizeof(line->events) / sizeof(*line->events))
		line->events[line->n_events++] = event;
	else
		driver_of(meter)->cuEventDestroy_v2(event);
}

/* A new one needs the context of the line. */
static CUevent take_event(const struct meter *meter, struct meter_line *line)
{
	CUevent event;

	if (line->n_events)
		return line->events[--line->n_events];
	if (session_is_capturing(meter->session) ||
		driver_of(meter)->cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
		return NULL;
	return event;
}

/* Whether an event in a stream would be no part of a capture, and end none. */
static bool may_record(const struct meter *meter, const struct stream *stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;

	if (!session_is_capturing(meter->session))
		return true;
	return driver_of(meter)->cuStreamIsCapturing &&
	       driver_of(meter)->cuStreamIsCapturing(stream->object.driver, &status) ==
		       CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * Lines
 */

static struct meter_line *find_line(
	const struct meter *meter, const struct context *context, bool is_leaving)
{
	struct meter_line *line;

	for (line = meter->lines; line; line = line->next)
		if (line->context == context && line->is_leaving == is_leaving)
			return line;
	return NULL;
}

static struct meter_line *get_line(struct meter *meter, struct context *context)
{
	struct meter_line *line = find_line(meter, context, false);

	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->context = context;
	line->next = meter->lines;
	meter->lines = line;
	return line;
}

static void remove_line(struct meter *meter, struct meter_line *line)
{
	struct meter_line **nextp = &meter->lines;

	while (*nextp != line)
		nextp = &(*nextp)->next;
	*nextp = line->next;
	meter->n_leaving -= line->is_leaving;
	free(line);
}

/*
 * What others see
 */

/* Whether the device could work for a batch, as far as is known: not if it waits for
 * something else, such as another process, which others would be held for in vain. */
static bool is_work(const struct meter_batch *batch, uint64_t now)
{
	if (batch->state == METER_FREE)
		return false;
	return batch->has_begun ||
	       (!batch->waits &&
		       (!batch->seen_ns || now - batch->seen_ns < BEGIN_MAX_NS));
}

static uint64_t devices_of(const struct meter *meter, uint64_t now)
{
	const struct meter_line *line;
	uint64_t devices = 0;

	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++)
		if (is_work(&meter->batches[i], now))
			devices |= (uint64_t)1 << meter->batches[i].line->context->device;
	for (line = meter->lines; line; line = line->next)
		if (line->is_leaving)
			devices |= (uint64_t)1 << line->context->device;
	return devices;
}

static void publish_devices(struct meter *meter, uint64_t devices)
{
	struct softgpu_allowance *allowance = meter->gate.allowance;

	/* The last ones that were busy stay named: to them belongs what is counted. */
	if (devices)
		__atomic_store_n(&allowance->devices, devices, __ATOMIC_RELAXED);
	__atomic_store_n(&allowance->n_busy, (uint32_t)__builtin_popcountll(devices),
		__ATOMIC_RELAXED);
}

static void add_used(struct meter *meter, uint64_t ns)
{
	__atomic_fetch_add(&meter->gate.allowance->used_ns, ns, __ATOMIC_RELAXED);
}

/*
 * Batches
 */

static void end_batch(struct meter *meter, struct meter_batch *batch)
{
	if (batch->state == METER_OPEN) {
		batch->stream->batch = NULL;
		__atomic_store_n(&meter->n_open, meter->n_open - 1, __ATOMIC_RELAXED);
	}
	give_event(meter, batch->line, batch->begin);
	give_event(meter, batch->line, batch->end);
	batch->state = METER_FREE;
	meter->n_batches--;
}

static bool is_submitting(const struct meter_batch *batch, const struct runner *except)
{
	/* Partner: meter_submitted(). */
	return batch->runner != except &&
	       __atomic_load_n(&batch->runner->batch, __ATOMIC_ACQUIRE) == batch;
}

/*
 * Puts the event behind a batch. Not while another thread submits to it, or where the
 * event would become part of a capture: it stays open then.
 */
static void close_batch(
	struct meter *meter, struct runner *runner, struct meter_batch *batch)
{
	struct stream *stream = batch->stream;

	if (is_submitting(batch, runner))
		return;
	if (context_enter(meter->session, runner, batch->line->context) != CUDA_SUCCESS) {
		end_batch(meter, batch);
		return;
	}
	if (!may_record(meter, stream))
		return;
	if (driver_of(meter)->cuEventRecord(batch->end, stream->object.driver) !=
		CUDA_SUCCESS) {
		end_batch(meter, batch);
		return;
	}
	batch->state = METER_CLOSED;
	stream->batch = NULL;
	__atomic_store_n(&meter->n_open, meter->n_open - 1, __ATOMIC_RELAXED);
}

static void close_all(struct meter *meter, struct runner *runner)
{
	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++)
		if (meter->batches[i].state == METER_OPEN)
			close_batch(meter, runner, &meter->batches[i]);
}

static struct meter_batch *free_batch(struct meter *meter)
{
	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++)
		if (meter->batches[i].state == METER_FREE)
			return &meter->batches[i];
	return NULL;
}

/* Puts the event in front of a batch. */
static void open_batch(struct meter *meter, struct runner *runner, struct stream *stream)
{
	struct context *context = context_of(stream);
	struct meter_batch *batch = free_batch(meter);
	struct meter_line *line;

	/* Partner: meter_leave_context(), which is called with the flag set. */
	if (!batch || !stream_is_live(stream) ||
		__atomic_load_n(&context->is_leaving, __ATOMIC_RELAXED) ||
		context_enter(meter->session, runner, context) != CUDA_SUCCESS ||
		!may_record(meter, stream))
		return;
	line = get_line(meter, context);
	if (!line)
		return;
	*batch = (struct meter_batch){
		.line = line,
		.stream = stream,
		.runner = runner,
		.waits = stream->waits,
		.begin = take_event(meter, line),
		.end = take_event(meter, line),
	};
	if (!batch->begin || !batch->end ||
		driver_of(meter)->cuEventRecord(batch->begin, stream->object.driver) !=
			CUDA_SUCCESS) {
		give_event(meter, line, batch->begin);
		give_event(meter, line, batch->end);
		return;
	}
	batch->state = METER_OPEN;
	stream->batch = batch;
	__atomic_store_n(&meter->n_open, meter->n_open + 1, __ATOMIC_RELAXED);
	if (!meter->n_batches++)
		vgpu_wake_one(&meter->begun);
	/* Others that have not begun are counted at the next look. */
	publish_devices(meter, devices_of(meter, 0));
}

static uint32_t calls_max(const struct meter *meter)
{
	uint64_t n;

	if (!gate_is_limited(&meter->gate))
		return METER_CALLS_MAX;
	n = LIMITED_BATCH_NS / (meter->call_ns + 1);
	return n < 1 ? 1 : n > METER_CALLS_MAX ? METER_CALLS_MAX : (uint32_t)n;
}

/* The legacy stream's events are barriers: see the top of meter.h. */
static void close_legacy(
	struct meter *meter, struct runner *runner, const struct stream *stream)
{
	struct meter_batch *batch = context_of(stream)->legacy.batch;

	if (batch && batch->stream != stream)
		close_batch(meter, runner, batch);
}

static void add_work(struct meter *meter, struct runner *runner, struct stream *stream)
{
	struct meter_batch *batch = stream->batch;

	close_legacy(meter, runner, stream);
	if (batch && (batch->n_calls >= calls_max(meter) || batch->n_looks >= OPEN_LOOKS))
		close_batch(meter, runner, batch);
	if (!stream->batch)
		open_batch(meter, runner, stream);
	batch = stream->batch;
	if (!batch)
		return;
	batch->n_calls++;
	batch->runner = runner;
	__atomic_store_n(&runner->batch, batch, __ATOMIC_RELAXED);
	__atomic_fetch_add(&meter->gate.ahead_ns, meter->call_ns, __ATOMIC_RELAXED);
}

void meter_stream(struct call *call, struct stream *stream)
{
	struct meter *meter = call->session->meter;
	const enum kind kind = kind_of(call->frame->call);

	if (kind == KIND_NONE || !context_of(stream))
		return;
	pthread_mutex_lock(&meter->lock);
	if (kind == KIND_WORK)
		add_work(meter, call->runner, stream);
	else if (kind == KIND_CAPTURE)
		close_all(meter, call->runner);
	else if (stream->batch)
		close_batch(meter, call->runner, stream->batch);
	if (kind == KIND_WAIT)
		stream->waits = true;
	pthread_mutex_unlock(&meter->lock);
	/* An error is returned by the call itself. */
	if (call->current && call->runner->entered != call->current)
		context_enter(call->session, call->runner, call->current);
}

void meter_submitted(struct runner *runner)
{
	/* Partner: is_submitting(). */
	if (runner->batch)
		__atomic_store_n(&runner->batch, NULL, __ATOMIC_RELEASE);
}

void meter_flush(struct session *session, struct runner *runner)
{
	struct meter *meter = session->meter;

	/* A batch that another thread opens now is that thread's. */
	if (!is_on(session) || !__atomic_load_n(&meter->n_open, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&meter->lock);
	close_all(meter, runner);
	pthread_mutex_unlock(&meter->lock);
	context_leave_green(session, runner);
}

void meter_admit(struct session *session, struct runner *runner, uint32_t call)
{
	struct gate *gate = &session->meter->gate;

	if (!is_on(session) || !gate_is_limited(gate) ||
		(kind_of(call) != KIND_WORK && call != VGPU_CALL_cuMemcpyPeer) ||
		gate_look(gate, gate_now()) == GATE_OPEN)
		return;
	/* It can only be measured when it has ended. */
	meter_flush(session, runner);
	gate_wait(gate);
	runner->has_waited = true;
}

void meter_leave_stream(
	struct session *session, struct runner *runner, struct stream *stream)
{
	struct meter *meter = session->meter;

	if (!is_on(session))
		return;
	pthread_mutex_lock(&meter->lock);
	if (stream->batch)
		close_batch(meter, runner, stream->batch);
	/* It could not be closed: the driver forgets the stream now. */
	if (stream->batch)
		end_batch(meter, stream->batch);
	pthread_mutex_unlock(&meter->lock);
}

/* The events are destroyed, if the context of the line is not. */
static void drop_events(struct meter *meter, struct meter_line *line)
{
	const struct vgpu_driver *driver = driver_of(meter);

	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++)
		if (meter->batches[i].state != METER_FREE &&
			meter->batches[i].line == line)
			end_batch(meter, &meter->batches[i]);
	while (line->n_events)
		driver->cuEventDestroy_v2(line->events[--line->n_events]);
	if (line->base)
		driver->cuEventDestroy_v2(line->base);
	line->base = NULL;
}

void meter_leave_context(struct session *session, struct context *context)
{
	struct meter *meter = session->meter;
	struct meter_line *line;
	uint32_t n_before;

	if (!is_on(session))
		return;
	pthread_mutex_lock(&meter->lock);
	line = find_line(meter, context, false);
	if (line) {
		n_before = meter->n_batches;
		drop_events(meter, line);
		/* The next context may have the same address. */
		meter->current = NULL;
		line->is_leaving = true;
		line->counted_ns = gate_now();
		meter->n_leaving++;
		if (meter->n_batches == n_before)
			remove_line(meter, line);
	}
	pthread_mutex_unlock(&meter->lock);
}

void meter_context_gone(struct session *session, const struct context *context)
{
	struct meter *meter = session->meter;
	struct meter_line *line;

	if (!is_on(session))
		return;
	pthread_mutex_lock(&meter->lock);
	line = find_line(meter, context, true);
	if (line) {
		add_used(meter, gate_now() - line->counted_ns);
		remove_line(meter, line);
		gate_wake(&meter->gate);
	}
	pthread_mutex_unlock(&meter->lock);
}

/*
 * The thread that asks
 */

/* What one look at a line has found. */
struct look {
	struct busy_interval intervals[METER_BATCHES_MAX];
	size_t n;
	uint64_t ahead_ns;
	uint64_t seen_ns; /* the host's time, if something runs */
	bool is_any_complete;
};

/* The event in front of this batch becomes the one to which times are relative. */
static void move_base(struct meter *meter, struct meter_batch *batch)
{
	struct meter_line *line = batch->line;
	const int64_t by = batch->begin_ns;

	busy_move(&line->busy, by);
	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++)
		if (meter->batches[i].state != METER_FREE &&
			meter->batches[i].line == line)
			meter->batches[i].begin_ns -= by;
	give_event(meter, line, line->base);
	line->base = batch->begin;
	batch->begin = NULL;
}

/* Not while intervals are collected, which are relative to the present one. */
static void renew_base(struct meter *meter, const struct meter_line *line)
{
	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++) {
		struct meter_batch *batch = &meter->batches[i];

		if (batch->state != METER_FREE && batch->line == line &&
			batch->has_begun && batch->begin && batch->begin_ns > BASE_NS)
			move_base(meter, batch);
	}
}

/* The event in front of a batch is complete. */
static CUresult see_begin(struct meter *meter, struct meter_batch *batch)
{
	struct meter_line *line = batch->line;
	CUresult result;

	if (!line->base) {
		line->base = batch->begin;
		batch->begin = NULL;
	} else {
		result = difference(meter, line->base, batch->begin, &batch->begin_ns);
		if (result != CUDA_SUCCESS)
			return result;
	}
	batch->has_begun = true;
	if (batch->waits)
		batch->stream->waits = false;
	busy_see(&line->busy, batch->begin_ns, (int64_t)gate_now());
	return CUDA_SUCCESS;
}

static CUresult see_end(
	struct meter *meter, const struct meter_batch *batch, int64_t *endp)
{
	CUresult result;

	/* From its own begin: after a long rest the base is too far away. */
	result = difference(
		meter, batch->begin ? batch->begin : batch->line->base, batch->end, endp);
	if (result != CUDA_SUCCESS)
		return result;
	if (batch->begin)
		*endp += batch->begin_ns;
	busy_see(&batch->line->busy, *endp, (int64_t)gate_now());
	if (*endp > batch->begin_ns)
		meter->call_ns +=
			((uint64_t)(*endp - batch->begin_ns) / batch->n_calls) / 4 -
			meter->call_ns / 4;
	return CUDA_SUCCESS;
}

/* Return: CUDA_SUCCESS if the batch is complete, CUDA_ERROR_NOT_READY if not. */
static CUresult look_at_events(
	struct meter *meter, struct meter_batch *batch, int64_t *endp)
{
	const struct vgpu_driver *driver = driver_of(meter);
	CUresult result = CUDA_SUCCESS;

	if (!batch->has_begun) {
		result = driver->cuEventQuery(batch->begin);
		if (result == CUDA_SUCCESS)
			result = see_begin(meter, batch);
	}
	if (result != CUDA_SUCCESS)
		return result;
	if (batch->state == METER_OPEN)
		return CUDA_ERROR_NOT_READY;
	result = driver->cuEventQuery(batch->end);
	return result == CUDA_SUCCESS ? see_end(meter, batch, endp) : result;
}

static void look_at_batch(
	struct meter *meter, struct meter_batch *batch, struct look *look, int64_t host)
{
	struct busy_interval *interval = &look->intervals[look->n];
	uint64_t left = batch->n_calls * meter->call_ns, done = 0;
	int64_t end = 0;
	CUresult result;

	batch->n_looks += batch->state == METER_OPEN;
	if (!batch->seen_ns)
		batch->seen_ns = (uint64_t)host;
	result = look_at_events(meter, batch, &end);
	if (batch->has_begun) {
		*interval = (struct busy_interval){
			.begin = batch->begin_ns,
			.end = end,
			.runs = result == CUDA_ERROR_NOT_READY,
		};
		if (host + batch->line->busy.offset > batch->begin_ns)
			done = (uint64_t)(host + batch->line->busy.offset -
					  batch->begin_ns);
		if (interval->runs)
			look->seen_ns = (uint64_t)host;
		/* An error: what it has done until now is not known. */
		look->n += result == CUDA_SUCCESS || interval->runs;
	}
	if (result == CUDA_ERROR_NOT_READY) {
		if (is_work(batch, (uint64_t)host))
			look->ahead_ns += left > done ? left - done : 0;
		return;
	}
	look->is_any_complete = true;
	end_batch(meter, batch);
}

static void enter_home(struct meter *meter, const struct meter_line *line)
{
	const CUcontext home = context_home(line->context)->object.driver;

	if (meter->current == home)
		return;
	if (driver_of(meter)->cuCtxSetCurrent(home) == CUDA_SUCCESS)
		meter->current = home;
}

static void look_at_line(struct meter *meter, struct meter_line *line, struct look *look)
{
	/* Before the driver is asked: what is not complete then was not now. */
	const uint64_t now = gate_now();

	if (line->is_leaving) {
		add_used(meter, now - line->counted_ns);
		line->counted_ns = now;
		look->seen_ns = now;
		return;
	}
	look->n = 0;
	for (unsigned int i = 0; i < METER_BATCHES_MAX; i++) {
		struct meter_batch *batch = &meter->batches[i];

		if (batch->state == METER_FREE || batch->line != line)
			continue;
		enter_home(meter, line);
		look_at_batch(meter, batch, look, (int64_t)now);
	}
	if (look->n)
		add_used(meter,
			busy_count(&line->busy, look->intervals, look->n, (int64_t)now));
	renew_base(meter, line);
}

/* With the lock. */
static void look(struct meter *meter)
{
	struct look look = {};
	struct meter_line *line;

	/* A question would end a capture. */
	if (!meter->is_relaxed && session_is_capturing(meter->session))
		return;
	for (line = meter->lines; line; line = line->next)
		look_at_line(meter, line, &look);
	__atomic_store_n(&meter->gate.ahead_ns, look.ahead_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&meter->gate.allowance->seen_ns, look.seen_ns, __ATOMIC_RELAXED);
	publish_devices(meter, devices_of(meter, gate_now()));
	if (look.is_any_complete)
		gate_wake(&meter->gate);
}

static void pause_for(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void *run(void *data)
{
	struct meter *meter = data;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct vgpu_nap nap;
	uint32_t n_idle = 0;

	if (driver_of(meter)->cuThreadExchangeStreamCaptureMode &&
		driver_of(meter)->cuThreadExchangeStreamCaptureMode(&mode) ==
			CUDA_SUCCESS)
		meter->is_relaxed = true;
	pthread_mutex_lock(&meter->lock);
	while (!meter->ends) {
		nap = (struct vgpu_nap){};
		while (n_idle >= IDLE_LOOKS && !meter->n_batches && !meter->n_leaving &&
			!meter->ends)
			vgpu_nap_cond(&nap, &meter->begun, &meter->lock);
		n_idle = meter->n_batches || meter->n_leaving ? 0 : n_idle + 1;
		/* Once more without work: others are told. */
		if (n_idle <= 1)
			look(meter);
		pthread_mutex_unlock(&meter->lock);
		pause_for(gate_is_limited(&meter->gate) ? LOOK_LIMITED_NS : LOOK_NS);
		pthread_mutex_lock(&meter->lock);
	}
	pthread_mutex_unlock(&meter->lock);
	return NULL;
}

static bool can_measure(const struct vgpu_driver *driver)
{
	return driver->cuEventCreate && driver->cuEventDestroy_v2 &&
	       driver->cuEventRecord && driver->cuEventQuery &&
	       (driver->cuEventElapsedTime_v2 || driver->cuEventElapsedTime);
}

int meter_start(struct session *session, struct softgpu_allowance *allowance)
{
	struct meter *meter = session->meter;
	int r;

	if (!can_measure(&session->driver->table))
		return vgpu_error_origin(-ENOTSUP);
	meter->session = session;
	meter->gate.allowance = allowance;
	meter->call_ns = CALL_NS;
	pthread_mutex_init(&meter->lock, NULL);
	pthread_cond_init(&meter->begun, NULL);
	r = -pthread_create(&meter->thread, NULL, run, meter);
	if (r)
		return vgpu_error_origin(r);
	session->stream_fn = meter_stream;
	return 0;
}

void meter_stop(struct session *session)
{
	struct meter *meter = session->meter;

	if (!is_on(session))
		return;
	pthread_mutex_lock(&meter->lock);
	meter->ends = true;
	pthread_mutex_unlock(&meter->lock);
	vgpu_wake_one(&meter->begun);
	pthread_join(meter->thread, NULL);
	while (meter->lines) {
		drop_events(meter, meter->lines);
		remove_line(meter, meter->lines);
	}
	session->stream_fn = NULL;
	pthread_cond_destroy(&meter->begun);
	pthread_mutex_destroy(&meter->lock);
}
