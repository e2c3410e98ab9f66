/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are destroyed while a call of another thread uses them in the driver
 */

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/uses.h"

static struct fixture fixture;
static const uint64_t event_handle = (uint64_t)VGPU_HANDLE_EVENT << 52 | 1ull << 20 | 7;
static struct vgpu_frame frame;
static uint32_t n_events_destroyed;
static CUresult (*fake_event_destroy)(CUevent);

static CUresult counted_event_destroy(CUevent event)
{
	n_events_destroyed++;
	return fake_event_destroy(event);
}

static void start(void)
{
	Vgpu__CuEventCreateRequest create = VGPU__CU_EVENT_CREATE_REQUEST__INIT;

	fixture_init(&fixture);
	fake_event_destroy = fixture.driver.table.cuEventDestroy_v2;
	fixture.driver.table.cuEventDestroy_v2 = counted_event_destroy;
	n_events_destroyed = 0;
	fixture_enter(&fixture, 0);
	create.event = event_handle;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, VGPU_FRAME_REPLY,
			 &create.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
}

/* A call of a lane's own thread that names the event, and is in the driver with it. */
static CUresult begin(struct call *call, struct runner *runner)
{
	void *driver;

	*call = (struct call){
		.session = &fixture.session,
		.driver = &fixture.session.driver->table,
		.runner = runner,
		.context = context_find(&fixture.session, fixture.context),
		.frame = &frame,
	};
	return object_get(call, VGPU_HANDLE_EVENT, event_handle, false, &driver);
}

static CUresult destroy_event(void)
{
	Vgpu__CuEventDestroyV2Request destroy = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;

	destroy.h_event = event_handle;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventDestroy_v2, VGPU_FRAME_REPLY,
			 &destroy.base),
		0);
	return fixture.result;
}

TEST(an_event_outlives_the_calls_that_wait_for_it)
{
	struct runner one = {}, other = {};
	struct call waits, waits_too;

	start();
	check_eq(begin(&waits, &one), CUDA_SUCCESS);
	check_eq(begin(&waits_too, &other), CUDA_SUCCESS);
	/* At once, and for the guest it is gone. */
	check_eq(destroy_event(), CUDA_SUCCESS);
	check_eq(destroy_event(), CUDA_ERROR_INVALID_HANDLE);
	check_eq(n_events_destroyed, 0);
	uses_end(&waits);
	check_eq(n_events_destroyed, 0);
	uses_end(&waits_too);
	check_eq(n_events_destroyed, 1);
	fixture_deinit(&fixture);
}

/* Its lane counts when the driver has answered, and the stream may have gone since. */
TEST(a_stream_that_is_destroyed_is_owed_nothing_by_calls_that_end_later)
{
	Vgpu__CuStreamCreateWithPriorityRequest create =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamDestroyV2Request destroy = VGPU__CU_STREAM_DESTROY_V2_REQUEST__INIT;
	struct object_table *table = &fixture.session.objects[VGPU_HANDLE_STREAM];
	struct runner lane = {};
	struct stream *stream;

	start();
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamCreateWithPriority,
			 VGPU_FRAME_REPLY, &create.base),
		0);
	destroy.h_stream = vgpu_handle_make(VGPU_HANDLE_STREAM, table->first, 1);
	stream = (struct stream *)object_table_find(table, destroy.h_stream);
	check(stream);
	check_eq(mark_bind(&fixture.session, stream, 3), CUDA_SUCCESS);
	mark_want(&fixture.session, &lane, stream);
	debt_owe(&fixture.session, stream);
	check_eq(fixture.session.marks->n_due, 1);
	check_eq(fixture.session.debts->n_owing, 1);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamDestroy_v2, VGPU_FRAME_REPLY,
			 &destroy.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	mark_want(&fixture.session, &lane, stream);
	debt_owe(&fixture.session, stream);
	check_eq(fixture.session.marks->n_due, 0);
	check_eq(fixture.session.debts->n_owing, 0);
	fixture_deinit(&fixture);
}

TEST(nobody_begins_with_an_event_that_is_destroyed)
{
	struct runner runner = {};
	struct call call;

	start();
	check_eq(destroy_event(), CUDA_SUCCESS);
	check_eq(n_events_destroyed, 1);
	check_eq(begin(&call, &runner), CUDA_ERROR_INVALID_HANDLE);
	uses_end(&call);
	check_eq(n_events_destroyed, 1);
	fixture_deinit(&fixture);
}

TEST(a_destroyed_event_is_released_with_its_context)
{
	Vgpu__CuDevicePrimaryCtxResetV2Request reset =
		VGPU__CU_DEVICE_PRIMARY_CTX_RESET_V2_REQUEST__INIT;
	struct runner runner = {};
	struct call call;

	start();
	check_eq(begin(&call, &runner), CUDA_SUCCESS);
	check_eq(destroy_event(), CUDA_SUCCESS);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuDevicePrimaryCtxReset_v2,
			 VGPU_FRAME_REPLY, &reset.base),
		0);
	/* The driver knows it no more. */
	uses_end(&call);
	check_eq(n_events_destroyed, 0);
	fixture_deinit(&fixture);
}
