/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups: what waits for them, and what does not
 */

#include <pthread.h>
#include <sched.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/lane.h"
#include "worker/base/lookup.h"
#include "worker/base/object-handles.h"

static struct fixture fixture;
static struct vgpu_frame frame;
static struct call call;
static int module, other, library; /* the driver's */
static uint64_t module_handle;

static void make_call(uint16_t id)
{
	frame = (struct vgpu_frame){ .size = sizeof(frame), .call = id };
	call_init(&call, &fixture.session, &fixture.session.runner,
		lane_get(&fixture.session, 0), fixture.context, &frame);
}

static struct session *begin(bool is_softgpu)
{
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	/* Another driver places variables by itself. */
	if (!is_softgpu)
		fixture.driver.set_window = NULL;
	make_call(VGPU_CALL_cuModuleGetGlobal_v2);
	check_eq(object_add(&call, VGPU_HANDLE_MODULE, &module, &module_handle),
		CUDA_SUCCESS);
	return &fixture.session;
}

static CUresult look_up(
	struct lookup *lookup, enum vgpu_handle_kind kind, uint64_t handle)
{
	struct object *object = NULL;
	CUresult result = lookup_begin(lookup, &call, kind, handle, &object);

	check(result != CUDA_SUCCESS || object_is(object, handle));
	return result;
}

/* A thread that waits, and what has been done by then. */
static struct {
	const void *parent;
	const struct context *context;
	bool is_waiting, has_ended; /* atomic */
} waiter;

static void *wait_for_lookups(void *unused)
{
	__atomic_store_n(&waiter.is_waiting, true, __ATOMIC_RELEASE);
	if (waiter.parent)
		lookups_await(&fixture.session, waiter.parent);
	else
		lookups_await_context(&fixture.session, waiter.context);
	check(__atomic_load_n(&waiter.has_ended, __ATOMIC_ACQUIRE));
	return NULL;
}

/* Ends look-ups while a thread waits for them. */
static void check_awaited(
	const void *parent, const struct context *context, struct lookup *lookups, int n)
{
	pthread_t thread;

	waiter.parent = parent;
	waiter.context = context;
	waiter.is_waiting = waiter.has_ended = false;
	check_eq(pthread_create(&thread, NULL, wait_for_lookups, NULL), 0);
	while (!__atomic_load_n(&waiter.is_waiting, __ATOMIC_ACQUIRE))
		sched_yield();
	/* If it did not wait, it would probably be past the check by then. */
	for (int i = 0; i < 100; i++)
		sched_yield();
	for (int i = 0; i < n; i++) {
		__atomic_store_n(&waiter.has_ended, i == n - 1, __ATOMIC_RELEASE);
		lookup_end(&lookups[i]);
	}
	check_eq(pthread_join(thread, NULL), 0);
}

TEST(an_unload_waits_for_the_look_ups_in_its_module)
{
	struct session *session = begin(false);
	struct lookup lookups[2] = {};

	check_eq(look_up(&lookups[0], VGPU_HANDLE_MODULE, module_handle), CUDA_SUCCESS);
	check_eq(look_up(&lookups[1], VGPU_HANDLE_MODULE, module_handle), CUDA_SUCCESS);
	/* Nobody waits for another one. */
	lookups_await(session, &other);
	check_awaited(&module, NULL, lookups, 2);
	lookups_await(session, &module);
	fixture_deinit(&fixture);
}

TEST(the_module_of_a_library_goes_with_it)
{
	struct session *session = begin(false);
	struct lookup lookups[2] = {};
	struct object *object;
	uint64_t handle, child;

	check_eq(object_add(&call, VGPU_HANDLE_LIBRARY, &library, &handle), CUDA_SUCCESS);
	check_eq(object_find(&call, VGPU_HANDLE_LIBRARY, handle, &object), CUDA_SUCCESS);
	check_eq(object_add_child(&call, VGPU_HANDLE_MODULE, &other, object, &child),
		CUDA_SUCCESS);
	check_eq(look_up(&lookups[0], VGPU_HANDLE_MODULE, child), CUDA_SUCCESS);
	check_eq(look_up(&lookups[1], VGPU_HANDLE_LIBRARY, handle), CUDA_SUCCESS);
	check(!lookups[0].owner && !lookups[1].owner);
	lookups_await(session, &other);
	check_awaited(&library, NULL, lookups, 2);
	fixture_deinit(&fixture);
}

/* Another thread has unloaded the library while the driver was asked for a part of it. */
TEST(a_library_that_is_gone_has_no_parts_any_more)
{
	struct object *object, *module_object;
	uint64_t handle, child = 0, again, function;
	void *taken;

	begin(false);
	check_eq(object_add(&call, VGPU_HANDLE_LIBRARY, &library, &handle), CUDA_SUCCESS);
	check_eq(object_find(&call, VGPU_HANDLE_LIBRARY, handle, &object), CUDA_SUCCESS);
	check_eq(object_add_part(
			 &call, VGPU_HANDLE_MODULE, &other, object, handle, &child),
		CUDA_SUCCESS);
	check_eq(object_find(&call, VGPU_HANDLE_MODULE, child, &module_object),
		CUDA_SUCCESS);
	check(module_object->parent == object);
	check_eq(object_take_parent(&call, VGPU_HANDLE_LIBRARY, handle, &taken),
		CUDA_SUCCESS);
	check(!object_is(module_object, child));
	/* The entry has another library by now. */
	check_eq(object_add(&call, VGPU_HANDLE_LIBRARY, &library, &again), CUDA_SUCCESS);
	check(again != handle && object_is(object, again));
	check(object_add_part(&call, VGPU_HANDLE_MODULE, &other, object, handle,
		      &child) != CUDA_SUCCESS);
	check(object_add_part(&call, VGPU_HANDLE_FUNCTION, &other, module_object, child,
		      &function) != CUDA_SUCCESS);
	check_eq(
		object_add_part(&call, VGPU_HANDLE_MODULE, &other, object, again, &child),
		CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(a_context_ends_after_the_look_ups_in_it)
{
	struct session *session = begin(false);
	struct lookup lookup = {};

	check_eq(look_up(&lookup, VGPU_HANDLE_MODULE, module_handle), CUDA_SUCCESS);
	check(lookup.owner == call.context && lookup.context == call.context);
	lookups_await_context(session, call.context + 1);
	check_awaited(NULL, call.context, &lookup, 1);
	fixture_deinit(&fixture);
}

TEST(a_look_up_that_comes_too_late_is_refused)
{
	struct session *session = begin(false);
	struct context *context = call.context;
	struct lookup lookup = {}, late = {};
	uint64_t handle;
	void *taken;

	context->life++;
	check_eq(look_up(&lookup, VGPU_HANDLE_MODULE, module_handle),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	lookup_end(&lookup);
	/* A library is there without a context. */
	check_eq(object_add(&call, VGPU_HANDLE_LIBRARY, &library, &handle), CUDA_SUCCESS);
	make_call(VGPU_CALL_cuLibraryGetManaged);
	context->life++;
	lookup = (struct lookup){};
	check_eq(look_up(&lookup, VGPU_HANDLE_LIBRARY, handle), CUDA_SUCCESS);
	lookup_end(&lookup);
	check_eq(object_take(&call, VGPU_HANDLE_MODULE, module_handle, &taken),
		CUDA_SUCCESS);
	check_eq(look_up(&late, VGPU_HANDLE_MODULE, module_handle),
		CUDA_ERROR_INVALID_HANDLE);
	lookup_end(&late);
	check(!session->lookups->first);
	fixture_deinit(&fixture);
}

TEST(softgpu_needs_none)
{
	struct session *session = &fixture.session;
	struct lookup lookup = {};

	begin(true);
	check_eq(look_up(&lookup, VGPU_HANDLE_MODULE, module_handle), CUDA_SUCCESS);
	check(!lookup.session && !session->lookups->first);
	lookups_await(session, &module);
	lookup_end(&lookup);
	fixture_deinit(&fixture);
}
