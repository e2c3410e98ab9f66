/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: that end while they are used, and which of them has a fault
 */

#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/context-end.h"

static struct fixture fixture;
static CUcontext current;      /* in the fake driver */
static CUcontext broken;       /* whose work ended in a fault */
static uint64_t other;	       /* handle of a second context */
static CUcontext other_driver; /* the driver's */
static uint64_t ends;	       /* what another thread destroys in the call */
static bool is_free;	       /* whether others had the lock while a context ended */
static CUresult refused;       /* the dispatcher's messages meanwhile */

static CUresult (*set_current)(CUcontext);
static CUresult (*stream_create)(CUstream *, unsigned int, int);
static CUresult (*memory_alloc)(CUdeviceptr *, size_t);
static CUresult (*release)(CUdevice);
static CUresult (*retain)(CUcontext *, CUdevice);

static CUresult noted_set_current(CUcontext context)
{
	current = context;
	return set_current(context);
}

static CUresult fault_of(CUcontext context)
{
	return context == broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* The awaited stream belongs to the other context. */
static CUresult wait_for_stream(CUstream stream)
{
	return fault_of(stream ? other_driver : current);
}

static void begin(void)
{
	struct vgpu_driver *table = &fixture.driver.table;
	CUcontext popped;

	fixture_init(&fixture);
	set_current = table->cuCtxSetCurrent;
	stream_create = table->cuStreamCreateWithPriority;
	memory_alloc = table->cuMemAlloc_v2;
	release = table->cuDevicePrimaryCtxRelease_v2;
	table->cuCtxSetCurrent = noted_set_current;
	table->cuStreamSynchronize = wait_for_stream;
	table->cuStreamQuery = wait_for_stream;
	broken = NULL;
	fixture_enter(&fixture, 0);
	check_eq(table->cuCtxCreate_v4(&other_driver, NULL, 0, 0), CUDA_SUCCESS);
	table->cuCtxPopCurrent_v2(&popped);
	check_eq(context_add(&fixture.session, other_driver, 0, &other), CUDA_SUCCESS);
	ends = 0;
}

static CUresult create_stream(uint32_t lane)
{
	Vgpu__CuStreamCreateWithPriorityRequest request =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;

	check_eq(fixture_call(&fixture, lane, VGPU_CALL_cuStreamCreateWithPriority,
			 VGPU_FRAME_REPLY, &request.base),
		0);
	return fixture.result;
}

static CUresult wait_for(uint64_t stream)
{
	Vgpu__CuStreamSynchronizeRequest request =
		VGPU__CU_STREAM_SYNCHRONIZE_REQUEST__INIT;

	request.h_stream = stream;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamSynchronize,
			 VGPU_FRAME_REPLY, &request.base),
		0);
	return fixture.result;
}

static CUresult fault_in(uint64_t context)
{
	return context_find(&fixture.session, context)->fault;
}

static uint64_t stream_in_other(void)
{
	struct object_table *table = &fixture.session.objects[VGPU_HANDLE_STREAM];
	uint64_t handle = vgpu_handle_make(VGPU_HANDLE_STREAM, table->first, 1);

	lane_get(&fixture.session, 1)->context = other;
	check_eq(create_stream(1), CUDA_SUCCESS);
	check(object_table_find(table, handle));
	return handle;
}

TEST(a_fault_is_that_of_the_context_whose_stream_is_waited_for)
{
	uint64_t stream;

	begin();
	stream = stream_in_other();
	broken = other_driver;
	check_eq(wait_for(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(fault_in(other), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(fault_in(fixture.context), CUDA_SUCCESS);
	check_eq(session_control(&fixture.session)->n_faults, 1);
	fixture_deinit(&fixture);
}

TEST(a_fault_is_attributed_to_the_current_context)
{
	begin();
	stream_in_other();
	/* Makes the context of the lane current in the driver. */
	check_eq(wait_for(0), CUDA_SUCCESS);
	broken = current;
	check_eq(wait_for(0), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(fault_in(fixture.context), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(fault_in(other), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

/* A second device, whose primary context was not used yet. */
static CUresult retain_second(CUcontext *context, CUdevice device)
{
	CUcontext popped;
	CUresult result;

	if (!device)
		return retain(context, device);
	result = fixture.driver.table.cuCtxCreate_v4(context, NULL, 0, device);
	fixture.driver.table.cuCtxPopCurrent_v2(&popped);
	return result;
}

/* For its look-ups alone. */
static CUresult record_event(CUcontext context, CUevent event)
{
	return CUDA_SUCCESS;
}

static uint64_t add_second_device(void)
{
	const uint64_t handle = vgpu_handle_make(VGPU_HANDLE_CONTEXT, 1, 1);
	const struct context like = { .device = 1, .primary = true };
	struct object *object;

	retain = fixture.driver.table.cuDevicePrimaryCtxRetain;
	fixture.driver.table.cuDevicePrimaryCtxRetain = retain_second;
	fixture.driver.table.cuCtxRecordEvent = record_event;
	check_eq(object_table_add_at(&fixture.session.contexts.table, handle, NULL, NULL,
			 &like.object, &object),
		0);
	return handle;
}

TEST(a_context_that_is_retained_because_it_is_named_does_not_become_current)
{
	Vgpu__CuCtxRecordEventRequest request = VGPU__CU_CTX_RECORD_EVENT_REQUEST__INIT;
	uint64_t second;

	begin();
	second = add_second_device();
	lane_get(&fixture.session, 0)->context = other;
	check_eq(wait_for(0), CUDA_SUCCESS);
	check(current == other_driver);
	request.h_ctx = second;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuCtxRecordEvent, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	check(context_find(&fixture.session, second)->object.driver);
	check_eq(wait_for(0), CUDA_SUCCESS);
	check(current == other_driver);
	fixture_deinit(&fixture);
}

/* As another lane does it while this one is in the driver. */
static void end_context(void)
{
	if (ends == other)
		check_eq(context_destroy(&fixture.session, ends), CUDA_SUCCESS);
	else
		check_eq(context_reset(&fixture.session, &fixture.session.runner,
				 context_find(&fixture.session, ends)),
			CUDA_SUCCESS);
}

static CUresult stream_create_late(CUstream *stream, unsigned int flags, int priority)
{
	CUresult result = stream_create(stream, flags, priority);

	end_context();
	return result;
}

static CUresult memory_alloc_late(CUdeviceptr *address, size_t size)
{
	CUresult result = memory_alloc(address, size);

	end_context();
	return result;
}

static void check_nothing_is_added(uint64_t context)
{
	Vgpu__CuMemAllocV2Request request = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;

	begin();
	ends = context;
	lane_get(&fixture.session, 0)->context = context;
	fixture.driver.table.cuStreamCreateWithPriority = stream_create_late;
	check_eq(create_stream(0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_eq(fixture.session.objects[VGPU_HANDLE_STREAM].n_live, 0);
	fixture_deinit(&fixture);

	begin();
	ends = context;
	lane_get(&fixture.session, 0)->context = context;
	fixture.driver.table.cuMemAlloc_v2 = memory_alloc_late;
	request.bytesize = 4096;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemAlloc_v2, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	check_eq(fixture.session.ranges.n_items, 0);
	check_eq(fixture.stats.device_memory, 0);
	fixture_deinit(&fixture);
}

TEST(nothing_is_added_to_a_context_that_was_destroyed_meanwhile)
{
	check_nothing_is_added(
		vgpu_handle_make(VGPU_HANDLE_CONTEXT, VGPU_DEVICES_MAX, 1));
}

TEST(nothing_is_added_to_the_next_life_of_a_primary_context)
{
	check_nothing_is_added(vgpu_handle_make(VGPU_HANDLE_CONTEXT, 0, 1));
}

/* The driver waits for the context's work here, which may wait for the dispatcher. */
static CUresult release_and_look(CUdevice device)
{
	pthread_mutex_t *lock = &fixture.session.contexts.lock;

	is_free = !pthread_mutex_trylock(lock);
	if (is_free)
		pthread_mutex_unlock(lock);
	if (is_free)
		refused = context_ensure(&fixture.session, &fixture.session.runner,
			context_find(&fixture.session, fixture.context));
	return release(device);
}

TEST(the_dispatcher_does_not_wait_for_the_end_of_a_context)
{
	struct context *context;

	begin();
	context = context_find(&fixture.session, fixture.context);
	fixture.driver.table.cuDevicePrimaryCtxRelease_v2 = release_and_look;
	check_eq(wait_for(0), CUDA_SUCCESS);
	check_eq(context_reset(&fixture.session, &fixture.session.runner, context),
		CUDA_SUCCESS);
	check(is_free);
	check_eq(refused, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* Afterwards it is there anew. */
	check_eq(wait_for(0), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}
