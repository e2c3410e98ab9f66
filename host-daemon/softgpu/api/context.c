/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: primary and explicit ones
 *
 * The primary context is one object for the life of the process, so its handle never
 * changes; between its last release and the next retain it is inactive, and work in it is
 * refused with CONTEXT_IS_DESTROYED. Resetting it frees everything that was created in
 * it, clears a sticky fault, and leaves it usable if it is still retained.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/log.h"

#include "api/capture.h"
#include "api/child.h"

/* With device.lock. */
static void context_setup(CUcontext context)
{
	static uint64_t generations;

	memset(context->peers, 0, sizeof(context->peers));
	context_open_space(context);
	sched_context_open(&context->sched);
	pthread_mutex_lock(&context->lock);
	setting_set(context->limits[CU_LIMIT_STACK_SIZE], 1024);
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] =
		CHILD_PENDING_DEFAULT;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	setting_set(context->cache_config, CU_FUNC_CACHE_PREFER_NONE);
	/* Partners: object_new() and context_is_active(). */
	__atomic_store_n(&context->generation,
		__atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
	__atomic_store_n(&context->is_active, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&context->lock);
}

bool context_is_active(CUcontext context)
{
	return __atomic_load_n(&context->is_active, __ATOMIC_ACQUIRE);
}

uint64_t context_generation(CUcontext context)
{
	return __atomic_load_n(&context->generation, __ATOMIC_ACQUIRE);
}

/* Takes the first object out of a context. */
static struct object *take_first(CUcontext context)
{
	struct object *object;

	pthread_mutex_lock(&context->lock);
	object = TAILQ_FIRST(&context->objects);
	if (object) {
		TAILQ_REMOVE(&context->objects, object, link);
		object->is_listed = false;
	}
	pthread_mutex_unlock(&context->lock);
	return object;
}

/* Ends all that runs in the context and releases all that belongs to it. */
static void context_teardown(CUcontext context)
{
	struct object *object;

	/* Nothing is added from now on. */
	pthread_mutex_lock(&context->lock);
	__atomic_store_n(&context->is_active, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&context->lock);
	capture_forget_context(context);
	sched_context_close(&context->sched, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	print_reset(context);
	pthread_mutex_lock(&context->lock);
	context->gate = sched_mark_unref(context->gate);
	pthread_mutex_unlock(&context->lock);
	while ((object = take_first(context)))
		object_end(object);
	heap_reset(&context->heap);
	heap_reset(&context->parameters);
	memory_free_owner(&softgpu_device.memory, context);
}

/*
 * The heap of device code: made at the first allocation by a kernel, so that programs
 * whose kernels have none lose no memory to it
 */

/* With the heap's lock. */
static void heap_fill(CUcontext context, struct heap *heap, uint64_t size)
{
	struct range range = {
		.size = size,
		.kind = RANGE_HEAP, /* it counts, and calls do not reach it */
		.device = context->device,
		.owner = context,
	};
	uint64_t address;

	if (!size || memory_alloc(&softgpu_device.memory, &range, &address))
		vgpu_log_warning(
			"no memory for a heap of %llu bytes", (unsigned long long)size);
	else if (heap_begin(heap, address, size))
		memory_free(&softgpu_device.memory, address, MEMORY_KIND(RANGE_HEAP));
}

uint64_t context_heap_take(
	CUcontext context, struct heap *heap, uint64_t heap_size, uint64_t size)
{
	uint64_t address;

	pthread_mutex_lock(&heap->lock);
	if (!heap->is_begun)
		heap_fill(context, heap, heap_size);
	heap->is_begun = true;
	address = heap_take(heap, size);
	pthread_mutex_unlock(&heap->lock);
	return address;
}

static uint64_t heap_malloc(void *data, uint64_t size)
{
	CUcontext context = data;

	return context_heap_take(context, &context->heap,
		setting_get(context->limits[CU_LIMIT_MALLOC_HEAP_SIZE]), size);
}

static void heap_free(void *data, uint64_t address)
{
	struct heap *heap = &((CUcontext)data)->heap;

	pthread_mutex_lock(&heap->lock);
	heap_give(heap, address);
	pthread_mutex_unlock(&heap->lock);
}

static bool set_condition(void *conditions, uint64_t handle, uint32_t value)
{
	return sched_condition_set(conditions, handle, value);
}

/* Of an explicit context; a primary one never ends. */
static void context_end(struct object *object)
{
	context_teardown((CUcontext)object);
}

static void context_release(struct object *object)
{
	CUcontext context = (CUcontext)object;

	sched_context_free(&context->sched);
	heap_deinit(&context->heap);
	heap_deinit(&context->parameters);
	print_deinit(context);
	pthread_mutex_destroy(&context->lock);
}

/* With device.lock. */
static CUresult context_new(CUcontext *contextp, CUdevice device, unsigned int flags)
{
	CUcontext context;
	CUresult result;

	result = device_start();
	if (result)
		return result;
	context = object_new(OBJECT_CONTEXT, sizeof(*context), NULL);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->object.end = context_end;
	context->object.release = context_release;
	sched_context_new(&context->sched, &softgpu_device.sched);
	context->device = device;
	context->flags = flags;
	context->id = softgpu_device.next_context_id++;
	pthread_mutex_init(&context->lock, NULL);
	TAILQ_INIT(&context->objects);
	print_init(context);
	context->hooks.malloc = heap_malloc;
	context->hooks.free = heap_free;
	context->hooks.heap = context;
	context->hooks.set_condition = set_condition;
	context->hooks.conditions = &context->sched;
	context->hooks.take_block = sched_grid_take_block;
	context->hooks.serve = child_serve;
	heap_init(&context->heap);
	heap_init(&context->parameters);
	context_make_space(context);
	*contextp = context;
	return CUDA_SUCCESS;
}

/* With the lock. Return: whether the context has what it had in that generation. */
static bool context_is_still(CUcontext context, uint64_t generation)
{
	return context->is_active && context->generation == generation;
}

CUresult context_add(struct object *object)
{
	CUcontext context = object->context;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&context->lock);
	if (!context_is_still(context, object->generation))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	/* Others may destroy it before the call that made it returns. */
	else if (!object_keep(object))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	/* An object that is looked up by its number has no handle. */
	else if (object->kind != OBJECT_TEXTURE && object_enter(object))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		TAILQ_INSERT_TAIL(&context->objects, object, link);
		object->is_listed = true;
	}
	pthread_mutex_unlock(&context->lock);
	return result;
}

bool context_remove(struct object *object)
{
	CUcontext context = object->context;
	bool was_listed;

	pthread_mutex_lock(&context->lock);
	was_listed = object->is_listed;
	if (was_listed)
		TAILQ_REMOVE(&context->objects, object, link);
	object->is_listed = false;
	pthread_mutex_unlock(&context->lock);
	return was_listed;
}

CUresult context_alloc(
	struct range *range, CUcontext context, uint64_t generation, uint64_t *addressp)
{
	CUresult result = CUDA_SUCCESS;

	range->owner = context;
	range->device = context->device;
	pthread_mutex_lock(&context->lock);
	if (!context_is_still(context, generation))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else if (memory_alloc(&softgpu_device.memory, range, addressp))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&context->lock);
	return result;
}

bool context_reaches(
	CUcontext context, uint64_t address, uint64_t size, unsigned int access)
{
	if (!context)
		context = stack_hold();
	return memory_covers(&softgpu_device.memory,
		context ? (uint32_t)context->device : 0, access, address, size);
}

CUresult context_current_raw(CUcontext *contextp)
{
	CUcontext context;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!stack_top())
		return CUDA_ERROR_INVALID_CONTEXT;
	context = stack_hold();
	if (!context || !context_is_active(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*contextp = context;
	return CUDA_SUCCESS;
}

CUresult context_current(CUcontext *contextp)
{
	CUresult result;

	result = context_current_raw(contextp);
	return result ? result : (CUresult)sched_context_fault(&(*contextp)->sched);
}

/*
 * Primary context
 */

/* With device.lock: the object, active or not. */
static CUresult primary_get(CUcontext *contextp, CUdevice device)
{
	CUcontext context, *primaryp = &softgpu_device.primaries[device];
	CUresult result;

	if (!*primaryp) {
		result = context_new(&context, device, 0);
		if (result)
			return result;
		context->is_primary = true;
		if (object_enter(&context->object)) {
			object_unref(&context->object);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		*primaryp = context;
	}
	*contextp = *primaryp;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	result = primary_get(&context, dev);
	if (!result) {
		if (!context->n_retains++)
			context_setup(context);
		*pctx = context;
	}
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	if (!context || !context->n_retains)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--context->n_retains)
		context_teardown(context);
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	if (context && context_is_active(context)) {
		context_teardown(context);
		if (context->n_retains)
			context_setup(context);
	}
	pthread_mutex_unlock(&softgpu_device.lock);
	return CUDA_SUCCESS;
}

#define CONTEXT_FLAGS                                                                    \
	(CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |               \
		CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE |                   \
		CU_CTX_SYNC_MEMOPS)

static bool has_legal_flags(unsigned int flags)
{
	unsigned int schedule = flags & CU_CTX_SCHED_MASK;

	/* Each way to wait is one bit; none of them is a way, too. */
	return !(flags & ~(unsigned int)CONTEXT_FLAGS) && !(schedule & (schedule - 1));
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!has_legal_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	result = primary_get(&context, dev);
	if (!result)
		setting_set(context->flags, flags);
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!has_legal_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	setting_set(context->flags, flags);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	*flags = context ? setting_get(context->flags) : 0;
	*active = context && context_is_active(context);
	pthread_mutex_unlock(&softgpu_device.lock);
	return CUDA_SUCCESS;
}

/*
 * Explicit contexts
 */

CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!pctx || !has_legal_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&softgpu_device.lock);
	result = context_new(&context, dev, flags);
	if (!result)
		context_setup(context);
	pthread_mutex_unlock(&softgpu_device.lock);
	if (result)
		return result;
	result = stack_push(context);
	if (!result &&
		(!object_keep(&context->object) || object_enter(&context->object))) {
		stack_pop(&context);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!result) {
		*pctx = context;
		return CUDA_SUCCESS;
	}
	object_end(&context->object);
	return result;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	API_CALL;
	CUcontext popped;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(ctx, OBJECT_CONTEXT) || ctx->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack_top() == ctx)
		stack_pop(&popped);
	/* Another thread may have been here first. */
	if (!object_leave(&ctx->object))
		return CUDA_ERROR_INVALID_CONTEXT;
	object_end(&ctx->object);
	return CUDA_SUCCESS;
}

/*
 * Settings
 */

static CUresult context_synchronize(CUcontext context)
{
	CUresult result;

	result = capture_refuse_context(context);
	if (result)
		return result;
	result = sched_context_wait(&context->sched);
	print_flush(context);
	return result;
}

CUresult cuCtxSynchronize(void)
{
	API_CALL;
	CUgreenCtx green;
	CUcontext context;
	CUresult result;

	result = context_current_raw(&context);
	if (result)
		return result;
	green = stack_green();
	return green ? green_synchronize(green) : context_synchronize(context);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	API_CALL;
	CUcontext context;
	CUgreenCtx green;
	CUresult result;

	if (!ctx)
		return cuCtxSynchronize();
	result = device_check();
	if (result)
		return result;
	context = context_hold(ctx, &green);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_is_active(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return green ? green_synchronize(green) : context_synchronize(context);
}

/* All that are documented, but one: a grid that waits for its children has been no part
 * of devices since compute capability 9.0.
 */
bool context_has_limit(CUlimit limit)
{
	return (unsigned int)limit < CU_LIMIT_MAX &&
	       limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH;
}

/* The other limits are of features that do not exist: persisting cache lines, and
 * contexts shared with a graphics API (CIG). They stay 0. */
static bool context_may_set(CUlimit limit)
{
	return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE ||
	       limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
	       limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ||
	       limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	/* A hint, which may be clamped: to the size that there is. */
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_SUCCESS;
	if (!context_may_set(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if ((limit == CU_LIMIT_STACK_SIZE && value > SOFTGPU_LOCAL_MAX) ||
		(limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128))
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) {
		if (print_has_begun(context))
			return CUDA_ERROR_INVALID_VALUE;
		if (value > API_PRINT_FIFO_MAX)
			value = API_PRINT_FIFO_MAX;
	}
	if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT &&
		value > CHILD_PENDING_MAX)
		value = CHILD_PENDING_MAX;
	/* Pointers into the heap may be anywhere: it stays as it is once it is in use. */
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && heap_has_begun(&context->heap))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context->lock);
	/* A launch reads its stack size without the lock. */
	__atomic_store_n(&context->limits[limit], value, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_has_limit(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	pthread_mutex_lock(&context->lock);
	*pvalue = context->limits[limit];
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = setting_get(context->cache_config);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if ((unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	setting_set(context->cache_config, config);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

/* Banks have four bytes whatever is asked for, as on all current devices. */
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if ((unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (leastPriority)
		*leastPriority = SCHED_PRIORITY_LEAST;
	if (greatestPriority)
		*greatestPriority = SCHED_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}
