/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device time by events, which a driver without a device makes happen
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/context.h"
#include "worker/base/session.h"
#include "worker/wait/meter.h"

#define REPLY VGPU_FRAME_REPLY
#define MS 1000000ll
#define EVENTS_MAX 512

static struct fixture fixture;
static struct softgpu_allowance allowance;

/* An event, complete once the test says so; the lock is that of all of them. */
struct fake_event {
	bool is_recorded;
	bool is_complete;
	int64_t at_ns;
	CUstream stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_event events[EVENTS_MAX];
static unsigned int n_events, n_records, n_destroyed;
/* Of all events that are recorded and not complete, in their order. */
static struct fake_event *waiting[EVENTS_MAX];
static unsigned int n_waiting;
static CUresult query_error;
static CUstreamCaptureStatus capture_status;
static CUresult capture_result;

/* Calls of the driver, as letters: 'e' an event, 'l' other work in the legacy stream, 's'
 * in another one. */
static char order[256];

static void note(char what)
{
	const size_t n = strlen(order);

	check(n + 1 < sizeof(order));
	order[n] = what;
}

static CUresult create(CUevent *eventp, unsigned int flags)
{
	check_eq(flags, CU_EVENT_DEFAULT);
	pthread_mutex_lock(&lock);
	check(n_events < EVENTS_MAX);
	*eventp = (CUevent)(void *)&events[n_events++];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult destroy(CUevent event)
{
	n_destroyed++;
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
	struct fake_event *fake = (struct fake_event *)(void *)event;

	pthread_mutex_lock(&lock);
	*fake = (struct fake_event){ .is_recorded = true, .stream = stream };
	check(n_waiting < EVENTS_MAX);
	waiting[n_waiting++] = fake;
	n_records++;
	pthread_mutex_unlock(&lock);
	note('e');
	return CUDA_SUCCESS;
}

static CUresult query(CUevent event)
{
	const struct fake_event *fake = (const struct fake_event *)(void *)event;
	CUresult result;

	pthread_mutex_lock(&lock);
	check(fake->is_recorded);
	result = query_error != CUDA_SUCCESS ? query_error
		 : fake->is_complete	     ? CUDA_SUCCESS
					     : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult elapsed(float *msp, CUevent from, CUevent to)
{
	const struct fake_event *a = (const struct fake_event *)(void *)from;
	const struct fake_event *b = (const struct fake_event *)(void *)to;

	pthread_mutex_lock(&lock);
	check(a->is_complete && b->is_complete);
	*msp = (float)((double)(b->at_ns - a->at_ns) / 1e6);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *statusp)
{
	*statusp = capture_status;
	return capture_result;
}

static CUresult set(CUdeviceptr address, unsigned char value, size_t n, CUstream stream)
{
	note(stream ? 's' : 'l');
	return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	note('w');
	return CUDA_SUCCESS;
}

/* The next event of those that wait is complete at that time of the device. */
static void complete(int64_t at_ns)
{
	pthread_mutex_lock(&lock);
	check(n_waiting > 0);
	waiting[0]->at_ns = at_ns;
	waiting[0]->is_complete = true;
	memmove(waiting, waiting + 1, --n_waiting * sizeof(*waiting));
	pthread_mutex_unlock(&lock);
}

static uint64_t used_ns(void)
{
	return __atomic_load_n(&allowance.used_ns, __ATOMIC_RELAXED);
}

static bool is_busy(void)
{
	return __atomic_load_n(&allowance.n_busy, __ATOMIC_RELAXED);
}

static void wait_until_idle(void)
{
	while (is_busy())
		sched_yield();
}

static void begin(void)
{
	struct vgpu_driver *table;

	fixture_init(&fixture);
	allowance = (struct softgpu_allowance){};
	memset(order, 0, sizeof(order));
	n_events = n_records = n_destroyed = n_waiting = 0;
	query_error = capture_result = CUDA_SUCCESS;
	capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
	table = &fixture.driver.table;
	table->cuEventCreate = create;
	table->cuEventDestroy_v2 = destroy;
	table->cuEventRecord = record;
	table->cuEventQuery = query;
	table->cuEventElapsedTime_v2 = elapsed;
	table->cuStreamIsCapturing = is_capturing;
	table->cuMemsetD8Async = set;
	table->cuStreamWaitEvent = wait_event;
	check_eq(meter_start(&fixture.session, &allowance), 0);
	fixture_enter(&fixture, 0);
}

static void end(void)
{
	meter_stop(&fixture.session);
	fixture_deinit(&fixture);
}

static uint64_t make_stream(void)
{
	Vgpu__CuStreamCreateWithPriorityRequest request =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamCreateWithPriorityReply *reply;
	uint64_t stream;

	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamCreateWithPriority, REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, 0);
	reply = vgpu__cu_stream_create_with_priority_reply__unpack(
		NULL, fixture.reply_size, fixture.reply);
	stream = reply->ph_stream;
	vgpu__cu_stream_create_with_priority_reply__free_unpacked(reply, NULL);
	return stream;
}

/* Memory that is not there is refused, after the stream is known: work all the same. */
static void work(uint64_t stream)
{
	Vgpu__CuMemsetD8AsyncRequest request = VGPU__CU_MEMSET_D8_ASYNC_REQUEST__INIT;

	request.h_stream = stream;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemsetD8Async, 0, &request.base),
		0);
}

static void flush(void)
{
	meter_flush(&fixture.session, &fixture.session.runner);
}

TEST(a_batch_is_measured_between_two_events)
{
	begin();
	for (int i = 0; i < 5; i++)
		work(0);
	check_eq(n_records, 1);
	check(is_busy());
	check_eq(allowance.devices, 1);
	flush();
	check_eq(n_records, 2);
	complete(10 * MS);
	complete(17 * MS);
	wait_until_idle();
	check_eq(used_ns(), 7 * MS);
	end();
}

TEST(a_batch_ends_after_so_many_calls)
{
	begin();
	for (unsigned int i = 0; i < METER_CALLS_MAX; i++)
		work(0);
	check_eq(n_records, 1);
	work(0);
	check_eq(n_records, 3);
	flush();
	check_eq(n_records, 4);
	flush();
	check_eq(n_records, 4);
	for (int i = 0; i < 4; i++)
		complete(i * MS);
	wait_until_idle();
	check_eq(used_ns(), 2 * MS);
	end();
}

TEST(events_are_used_again)
{
	begin();
	for (int i = 0; i < 100; i++) {
		work(0);
		flush();
		complete(2 * i * MS);
		complete((2 * i + 1) * MS);
		wait_until_idle();
	}
	check_eq(used_ns(), 100 * MS);
	check(n_events <= 4);
	end();
	check_eq(n_destroyed, n_events);
}

TEST(streams_at_the_same_time_count_once)
{
	uint64_t one, other;

	begin();
	one = make_stream();
	other = make_stream();
	work(one);
	work(other);
	flush();
	check_eq(n_records, 4);
	complete(0);
	complete(1 * MS);
	complete(5 * MS);
	complete(8 * MS);
	wait_until_idle();
	check_eq(used_ns(), 8 * MS);
	end();
}

/* Its event would be a barrier for the work behind it. */
TEST(a_batch_of_the_legacy_stream_ends_before_other_work)
{
	uint64_t stream;

	begin();
	stream = make_stream();
	order[0] = 0;
	work(0);
	work(0);
	work(stream);
	work(stream);
	/* begin, end of the legacy one, begin of the other */
	check_eq(n_records, 3);
	check(!events[0].stream && !events[1].stream);
	check(events[2].stream != NULL);
	end();
}

/* What a stream waits for is no work of its own. */
TEST(a_wait_ends_a_batch)
{
	Vgpu__CuStreamWaitEventRequest request = VGPU__CU_STREAM_WAIT_EVENT_REQUEST__INIT;
	uint64_t stream;

	begin();
	stream = make_stream();
	work(stream);
	check_eq(n_records, 1);
	request.h_stream = stream;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamWaitEvent, 0, &request.base),
		0);
	check_eq(n_records, 2);
	work(stream);
	check_eq(n_records, 3);
	end();
}

TEST(work_that_is_captured_has_no_batch)
{
	begin();
	fixture.session.n_captures = 1;
	capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	work(0);
	check_eq(n_records, 0);
	/* The legacy stream, while a blocking one is captured. */
	capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
	capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	work(0);
	check_eq(n_records, 0);
	check(!is_busy());
	fixture.session.n_captures = 0;
	work(0);
	check_eq(n_records, 1);
	end();
}

TEST(a_batch_stays_open_where_its_event_would_be_captured)
{
	begin();
	work(0);
	fixture.session.n_captures = 1;
	capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	flush();
	check_eq(n_records, 1);
	fixture.session.n_captures = 0;
	flush();
	check_eq(n_records, 2);
	end();
}

TEST(a_stream_that_is_destroyed_leaves_its_work)
{
	Vgpu__CuStreamDestroyV2Request request = VGPU__CU_STREAM_DESTROY_V2_REQUEST__INIT;

	begin();
	request.h_stream = make_stream();
	work(request.h_stream);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuStreamDestroy_v2, REPLY, &request.base),
		0);
	check_eq(n_records, 2);
	complete(0);
	complete(3 * MS);
	wait_until_idle();
	check_eq(used_ns(), 3 * MS);
	end();
}

/* Otherwise work could be hidden by destroying its context while it runs. */
TEST(a_context_that_is_destroyed_is_busy_until_it_is_gone)
{
	struct context *context;
	uint64_t before;

	begin();
	work(0);
	complete(0);
	context = context_find(&fixture.session, fixture.context);
	context->is_leaving = true;
	meter_leave_context(&fixture.session, context);
	before = used_ns();
	while (used_ns() - before < 3 * MS)
		sched_yield();
	check(is_busy());
	/* Nothing is submitted to it. */
	work(0);
	check_eq(n_records, 1);
	meter_context_gone(&fixture.session, context);
	context->is_leaving = false;
	wait_until_idle();
	work(0);
	check_eq(n_records, 2);
	end();
}

TEST(a_broken_context_ends_its_batches)
{
	begin();
	work(0);
	flush();
	query_error = CUDA_ERROR_ILLEGAL_ADDRESS;
	wait_until_idle();
	check_eq(used_ns(), 0);
	end();
}

TEST(a_kernel_is_charged_while_it_runs)
{
	begin();
	work(0);
	flush();
	complete(0);
	while (used_ns() < 5 * MS)
		sched_yield();
	check(is_busy());
	complete(1000000 * MS);
	wait_until_idle();
	check_eq(used_ns(), 1000000 * MS);
	end();
}

/* The driver's differences of times have few digits. */
TEST(times_stay_exact_after_hours)
{
	const int64_t hours = 36000000 * MS;

	begin();
	for (int i = 0; i < 3; i++) {
		const uint64_t before = used_ns();

		work(0);
		flush();
		complete(i * hours);
		complete(i * hours + MS / 8);
		wait_until_idle();
		check_eq(used_ns() - before, MS / 8);
	}
	end();
}

TEST(more_streams_than_batches_do_no_harm)
{
	begin();
	for (unsigned int i = 0; i < 2 * METER_BATCHES_MAX; i++)
		work(make_stream());
	check_eq(n_records, METER_BATCHES_MAX);
	flush();
	check_eq(n_records, 2 * METER_BATCHES_MAX);
	for (unsigned int i = 0; i < 2 * METER_BATCHES_MAX; i++)
		complete(i * MS);
	wait_until_idle();
	check_eq(used_ns(), (2 * METER_BATCHES_MAX - 1) * MS);
	end();
}

/* An estimate, until the first ones are measured. */
TEST(work_that_is_submitted_is_counted_by_the_gate)
{
	const struct gate *gate = &fixture.session.meter->gate;

	begin();
	gate = &fixture.session.meter->gate;
	check_eq(gate->ahead_ns, 0);
	work(0);
	check(__atomic_load_n(&gate->ahead_ns, __ATOMIC_RELAXED) > 0);
	flush();
	complete(0);
	complete(MS);
	wait_until_idle();
	check_eq(__atomic_load_n(&gate->ahead_ns, __ATOMIC_RELAXED), 0);
	end();
}
