/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: launches, streams and events of kernels
 *
 * A kernel gets a buffer, in device memory, for the parameters of a launch, stores them,
 * and launches. Handles of streams and events are numbers, which mean something in the
 * grid that made them. All of it goes with the grid. Whatever a kernel passes is checked
 * here: it comes from its own registers.
 */

#include <stdlib.h>
#include <string.h>

#include "api/child.h"
#include "api/launch.h"
#include "sched/children.h"

/* Handles: above the numbers of the special streams, and neither for the other. */
#define STREAM_BASE UINT64_C(0x53000000)
#define EVENT_BASE UINT64_C(0x45000000)

#define STREAM_LEGACY 1u
#define STREAM_PER_THREAD 2u
#define STREAM_TAIL 3u
#define STREAM_FIRE_AND_FORGET 4u

#define STREAM_NON_BLOCKING 1u
#define EVENT_DISABLE_TIMING 2u

/* Memory for the parameters of a launch, and what is known of it so far. */
struct buffer {
	struct buffer *next;
	uint64_t address;
	uint64_t size;
	CUfunction function; /* NULL: the launch says it */
	struct launch launch;
};

struct event {
	bool is_there;
	struct sched_mark *mark; /* of the latest record, a reference; or NULL */
};

/* All of a grid; guarded by its owner_lock. */
struct family {
	CUcontext context;
	struct buffer *buffers;
	bool *streams; /* by number: whether it is there */
	uint32_t n_streams, streams_capacity;
	struct event *events;
	uint32_t n_events, events_capacity;
};

static CUcontext context_of(const struct softgpu_launch *launch)
{
	return ((CUmodule)launch->owner)->object.context;
}

static void parameters_give(CUcontext context, uint64_t address)
{
	pthread_mutex_lock(&context->parameters.lock);
	heap_give(&context->parameters, address);
	pthread_mutex_unlock(&context->parameters.lock);
}

/* With the lock of the scheduler; no kernel of the grid runs any more. */
static void family_release(void *owned)
{
	struct family *family = owned;
	struct buffer *buffer;

	while ((buffer = family->buffers)) {
		family->buffers = buffer->next;
		parameters_give(family->context, buffer->address);
		free(buffer);
	}
	for (uint32_t i = 0; i < family->n_events; i++)
		sched_mark_unref(family->events[i].mark);
	free(family->events);
	free(family->streams);
}

/* Return: that of the grid, locked; NULL: no memory. */
static struct sched_children *family_enter(
	const struct softgpu_launch *launch, struct family **familyp)
{
	struct sched_children *children =
		sched_children_get(launch, sizeof(struct family), family_release);

	if (!children)
		return NULL;
	pthread_mutex_lock(&children->owner_lock);
	*familyp = (struct family *)children->owned;
	(*familyp)->context = context_of(launch);
	return children;
}

static void family_leave(struct sched_children *children)
{
	pthread_mutex_unlock(&children->owner_lock);
}

/* Makes room for one more. Return: whether there is. */
static bool reserve(void *arrayp, uint32_t *capacityp, uint32_t n, size_t size)
{
	uint32_t capacity = *capacityp ? 2 * *capacityp : 16;
	void **array = arrayp, *grown;

	if (n < *capacityp)
		return true;
	if (n >= CHILD_HANDLES_MAX)
		return false;
	grown = realloc(*array, capacity * size);
	if (!grown)
		return false;
	*array = grown;
	*capacityp = capacity;
	return true;
}

/*
 * Streams
 */

static int resolve(const struct family *family, const struct softgpu_request *request,
	uint64_t stream, enum sched_lane_kind *kindp, uint64_t *numberp)
{
	uint64_t thread = request->block * SOFTGPU_BLOCK_THREADS_MAX + request->thread;

	switch (stream) {
	case 0:
	case STREAM_LEGACY:
		*kindp = !stream && request->is_per_thread ? SCHED_LANE_THREAD
							   : SCHED_LANE_BLOCK;
		*numberp = *kindp == SCHED_LANE_THREAD ? thread : request->block;
		return SERVICE_OK;
	case STREAM_PER_THREAD:
		*kindp = SCHED_LANE_THREAD;
		*numberp = thread;
		return SERVICE_OK;
	case STREAM_TAIL:
		*kindp = SCHED_LANE_TAIL;
		*numberp = 0;
		return SERVICE_OK;
	case STREAM_FIRE_AND_FORGET:
		*kindp = SCHED_LANE_ALONE;
		*numberp = 0;
		return SERVICE_OK;
	default:
		*kindp = SCHED_LANE_NAMED;
		*numberp = stream - STREAM_BASE;
		return *numberp < family->n_streams && family->streams[*numberp]
			       ? SERVICE_OK
			       : SERVICE_INVALID_RESOURCE_HANDLE;
	}
}

/* With the family's lock: so a stream is not destroyed in between. */
static int submit(struct sched_children *children, const struct softgpu_request *request,
	uint64_t stream, const struct sched_op *template)
{
	const struct family *family = (const struct family *)children->owned;
	CUcontext context = family->context;
	enum sched_lane_kind kind;
	uint64_t number;
	int r = resolve(family, request, stream, &kind, &number);

	if (r) {
		sched_op_discard(template);
		return r;
	}
	r = sched_children_submit(children, kind, number, template,
		setting_get(context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT]));
	return r == SCHED_E_PENDING ? SERVICE_LAUNCH_PENDING_COUNT_EXCEEDED : r;
}

int child_submit(const struct softgpu_launch *launch,
	const struct softgpu_request *request, uint64_t stream,
	const struct sched_op *template)
{
	struct sched_children *children;
	struct family *family;
	int r;

	children = family_enter(launch, &family);
	if (!children)
		return SERVICE_MEMORY_ALLOCATION;
	r = submit(children, request, stream, template);
	family_leave(children);
	return r;
}

static int return_handle(struct softgpu_request *request, uint64_t handle)
{
	memcpy(request->out, &handle, sizeof(handle));
	request->out_size = sizeof(handle);
	return SERVICE_OK;
}

static int stream_create(struct family *family, struct softgpu_request *request)
{
	if ((uint32_t)request->words[1] != STREAM_NON_BLOCKING)
		return SERVICE_INVALID_VALUE;
	if (!reserve(&family->streams, &family->streams_capacity, family->n_streams,
		    sizeof(*family->streams)))
		return SERVICE_MEMORY_ALLOCATION;
	family->streams[family->n_streams] = true;
	return return_handle(request, STREAM_BASE + family->n_streams++);
}

/* Its operations are done nevertheless. */
static int stream_destroy(struct family *family, const struct softgpu_request *request)
{
	uint64_t number = request->words[0] - STREAM_BASE;

	if (number >= family->n_streams || !family->streams[number])
		return SERVICE_INVALID_RESOURCE_HANDLE;
	family->streams[number] = false;
	return SERVICE_OK;
}

/*
 * Events
 */

static int event_create(struct family *family, struct softgpu_request *request)
{
	if ((uint32_t)request->words[1] != EVENT_DISABLE_TIMING)
		return SERVICE_INVALID_VALUE;
	if (!reserve(&family->events, &family->events_capacity, family->n_events,
		    sizeof(*family->events)))
		return SERVICE_MEMORY_ALLOCATION;
	family->events[family->n_events] = (struct event){ .is_there = true };
	return return_handle(request, EVENT_BASE + family->n_events++);
}

static struct event *event_find(const struct family *family, uint64_t handle)
{
	uint64_t number = handle - EVENT_BASE;

	return number < family->n_events && family->events[number].is_there
		       ? &family->events[number]
		       : NULL;
}

static int event_destroy(struct family *family, const struct softgpu_request *request)
{
	struct event *event = event_find(family, request->words[0]);

	if (!event)
		return SERVICE_INVALID_RESOURCE_HANDLE;
	event->mark = sched_mark_unref(event->mark);
	event->is_there = false;
	return SERVICE_OK;
}

/* CUDA documents that these two streams can neither be recorded nor waited in. */
static bool has_no_events(uint64_t stream)
{
	return stream == STREAM_TAIL || stream == STREAM_FIRE_AND_FORGET;
}

static int record_event(struct sched_children *children, struct family *family,
	const struct softgpu_request *request)
{
	struct event *event = event_find(family, request->words[0]);
	struct sched_op op = { .kind = SCHED_MARK };
	uint64_t stream = request->words[1];
	struct sched_mark *mark;
	int r;

	if (!event)
		return SERVICE_INVALID_RESOURCE_HANDLE;
	if (has_no_events(stream) ||
		(request->service == SERVICE_EVENT_RECORD_WITH_FLAGS &&
			(uint32_t)request->words[2]))
		return SERVICE_INVALID_VALUE;
	mark = sched_mark_new(family->context->sched.sched);
	if (!mark)
		return SERVICE_MEMORY_ALLOCATION;
	op.mark = sched_mark_ref(mark);
	r = submit(children, request, stream, &op);
	if (r) {
		sched_mark_unref(mark);
		return r;
	}
	sched_mark_unref(event->mark);
	event->mark = mark;
	return SERVICE_OK;
}

static int wait_for_event(struct sched_children *children, const struct family *family,
	const struct softgpu_request *request)
{
	const struct event *event = event_find(family, request->words[1]);
	struct sched_op op = { .kind = SCHED_WAIT };
	uint64_t stream = request->words[0];

	if (!event)
		return SERVICE_INVALID_RESOURCE_HANDLE;
	if (has_no_events(stream) || (uint32_t)request->words[2])
		return SERVICE_INVALID_VALUE;
	if (!event->mark)
		return SERVICE_OK;
	op.mark = sched_mark_ref(event->mark);
	return submit(children, request, stream, &op);
}

/*
 * Launches
 */

CUfunction child_function(
	const struct softgpu_launch *launch, uint64_t address, int *errorp)
{
	CUmodule module = launch->owner;
	size_t number = softgpu_program_find_kernel(module->program, address);

	*errorp = SERVICE_INVALID_DEVICE_FUNCTION;
	if (number >= module->n_functions)
		return NULL;
	*errorp = function_load_logged(&module->functions[number]);
	return *errorp ? NULL : &module->functions[number];
}

static int check_launch(CUfunction function, const struct launch *launch)
{
	CUresult result = launch_check(function, launch);

	return result == CUDA_ERROR_INVALID_VALUE ? SERVICE_INVALID_CONFIGURATION
						  : (int)result;
}

static void read_dim3(uint32_t to[3], const uint64_t words[2])
{
	memcpy(to, words, 3 * sizeof(*to));
}

static int buffer_new(struct family *family, struct buffer **bufferp, uint64_t size)
{
	struct heap *heap = &family->context->parameters;
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return SERVICE_MEMORY_ALLOCATION;
	/* Without parameters, too, it is an address. */
	buffer->size = size;
	buffer->address =
		context_heap_take(family->context, heap, CHILD_PARAMETERS_SIZE, size + 1);
	if (!buffer->address) {
		free(buffer);
		return SERVICE_LAUNCH_PENDING_COUNT_EXCEEDED;
	}
	buffer->next = family->buffers;
	family->buffers = buffer;
	*bufferp = buffer;
	return SERVICE_OK;
}

static int get_buffer(struct family *family, struct softgpu_request *request)
{
	uint64_t align = request->words[0], size = request->words[1];
	struct buffer *buffer;
	int r;

	if (align > 1u << HEAP_UNIT_SHIFT || align & (align - 1) ||
		size > SOFTGPU_PARAMS_MAX)
		return SERVICE_INVALID_VALUE;
	r = buffer_new(family, &buffer, size);
	if (!r)
		request->address = buffer->address;
	return r;
}

static int get_buffer_v2(struct family *family, CUfunction function,
	const struct launch *launch, struct softgpu_request *request)
{
	struct buffer *buffer;
	int r = check_launch(function, launch);

	if (!r)
		r = buffer_new(family, &buffer, function->info->params_size);
	if (r)
		return r;
	buffer->function = function;
	buffer->launch = *launch;
	request->address = buffer->address;
	return SERVICE_OK;
}

/* Takes it out of the list. Return: NULL: it is no buffer. */
static struct buffer *buffer_take(struct family *family, uint64_t address)
{
	struct buffer **at = &family->buffers, *buffer;

	while (*at && (*at)->address != address)
		at = &(*at)->next;
	buffer = *at;
	if (buffer)
		*at = buffer->next;
	return buffer;
}

static int submit_launch(struct sched_children *children,
	const struct softgpu_request *request, CUfunction function,
	const struct launch *launch, const void *params, uint64_t stream)
{
	struct sched_op op = { .kind = SCHED_LAUNCH };
	uint32_t size = function->info->params_size;
	uint8_t *block = op.grid.params;
	int r;

	launch_describe(&op.grid, function, launch);
	if (size > SCHED_PARAMS_INLINE) {
		block = op.grid.long_params = malloc(size);
		if (!block)
			return SERVICE_MEMORY_ALLOCATION;
	}
	if (size)
		memcpy(block, params, size);
	op.grid.launch.params = block;
	r = softgpu_launch_check(&op.grid.launch);
	if (r) {
		free(op.grid.long_params);
		return r == SOFTGPU_ERROR_INVALID_VALUE ? SERVICE_INVALID_CONFIGURATION
							: r;
	}
	return submit(children, request, stream, &op);
}

static int launch_v2(struct sched_children *children, struct family *family,
	const struct softgpu_request *request)
{
	struct buffer *buffer = buffer_take(family, request->words[0]);
	int r = SERVICE_INVALID_VALUE;

	if (!buffer)
		return r;
	if (buffer->function)
		r = submit_launch(children, request, buffer->function, &buffer->launch,
			(const void *)(uintptr_t)buffer->address, request->words[1]);
	parameters_give(family->context, buffer->address);
	free(buffer);
	return r;
}

static int launch_v1(struct sched_children *children, struct family *family,
	CUfunction function, const struct launch *launch,
	const struct softgpu_request *request)
{
	struct buffer *buffer = NULL;
	int r = check_launch(function, launch);

	if (!r && (request->words[1] || function->info->params_size)) {
		buffer = buffer_take(family, request->words[1]);
		if (!buffer || buffer->size < function->info->params_size)
			r = SERVICE_INVALID_VALUE;
	}
	if (!r)
		r = submit_launch(children, request, function, launch,
			buffer ? (const void *)(uintptr_t)buffer->address : NULL,
			request->words[7]);
	if (buffer)
		parameters_give(family->context, buffer->address);
	free(buffer);
	return r;
}

/* Those that need a kernel, which is decoded before the lock is taken, and its shape. */
static int serve_kernel(
	const struct softgpu_launch *launch, struct softgpu_request *request)
{
	bool is_launch = request->service == SERVICE_LAUNCH;
	unsigned int at = is_launch ? 2 : 1;
	struct launch child = { .shared_size = (uint32_t)request->words[at + 4] };
	struct sched_children *children;
	struct family *family;
	CUfunction function;
	int r;

	function = child_function(launch, request->words[0], &r);
	if (!function)
		return r;
	read_dim3(child.grid, &request->words[at]);
	read_dim3(child.block, &request->words[at + 2]);
	children = family_enter(launch, &family);
	if (!children)
		return SERVICE_MEMORY_ALLOCATION;
	if (is_launch)
		r = launch_v1(children, family, function, &child, request);
	else
		r = get_buffer_v2(family, function, &child, request);
	family_leave(children);
	return r;
}

static int serve_family(
	const struct softgpu_launch *launch, struct softgpu_request *request)
{
	struct sched_children *children;
	struct family *family;
	int r = SERVICE_NOT_SUPPORTED;

	children = family_enter(launch, &family);
	if (!children)
		return SERVICE_MEMORY_ALLOCATION;
	switch (request->service) {
	case SERVICE_STREAM_CREATE:
		r = stream_create(family, request);
		break;
	case SERVICE_STREAM_DESTROY:
		r = stream_destroy(family, request);
		break;
	case SERVICE_STREAM_WAIT_EVENT:
		r = wait_for_event(children, family, request);
		break;
	case SERVICE_EVENT_CREATE:
		r = event_create(family, request);
		break;
	case SERVICE_EVENT_RECORD:
	case SERVICE_EVENT_RECORD_WITH_FLAGS:
		r = record_event(children, family, request);
		break;
	case SERVICE_EVENT_DESTROY:
		r = event_destroy(family, request);
		break;
	case SERVICE_GET_BUFFER:
		r = get_buffer(family, request);
		break;
	case SERVICE_LAUNCH_V2:
		r = launch_v2(children, family, request);
		break;
	default:
		break;
	}
	family_leave(children);
	return r;
}

int child_serve(const struct softgpu_launch *launch, struct softgpu_request *request)
{
	switch (request->service) {
	case SERVICE_GET_BUFFER_V2:
	case SERVICE_LAUNCH:
		return serve_kernel(launch, request);
	case SERVICE_MEMCPY:
	case SERVICE_MEMCPY_2D:
	case SERVICE_MEMCPY_3D:
	case SERVICE_MEMSET:
	case SERVICE_MEMSET_2D:
	case SERVICE_MEMSET_3D:
		return child_copy(launch, request);
	case SERVICE_STREAM_CREATE:
	case SERVICE_STREAM_DESTROY:
	case SERVICE_STREAM_WAIT_EVENT:
	case SERVICE_EVENT_CREATE:
	case SERVICE_EVENT_RECORD:
	case SERVICE_EVENT_RECORD_WITH_FLAGS:
	case SERVICE_EVENT_DESTROY:
	case SERVICE_GET_BUFFER:
	case SERVICE_LAUNCH_V2:
		return serve_family(launch, request);
	default:
		return child_query(launch, request);
	}
}
