/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: primary and explicit ones
 *
 * The primary context is one object for the life of the process, so its handle never
 * changes; between its last release and the next retain it is inactive, and work in
 * it is refused with CONTEXT_IS_DESTROYED. Resetting it takes away all that was made
 * in it, a sticky fault included, and leaves it usable if somebody still retains it.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/log.h"

#include "api/capture.h"

static void context_setup(CUcontext context)
{
	static uint64_t generations;

	context->generation = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
	sched_context_init(&context->sched, &softgpu_device.sched);
	memset(context->peers, 0, sizeof(context->peers));
	context_open_space(context);
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	context->is_active = true;
}

/* Ends all that runs in the context and releases all that belongs to it. */
static void context_teardown(CUcontext context)
{
	struct objects objects = TAILQ_HEAD_INITIALIZER(objects);
	struct object *object;

	context->is_active = false;
	capture_forget_context(context);
	sched_context_deinit(&context->sched);
	print_reset(context);
	pthread_mutex_lock(&context->lock);
	TAILQ_CONCAT(&objects, &context->objects, link);
	pthread_mutex_unlock(&context->lock);
	context->gate = sched_mark_unref(context->gate);
	while ((object = TAILQ_FIRST(&objects))) {
		TAILQ_REMOVE(&objects, object, link);
		object->release(object);
	}
	heap_reset(&context->heap);
	memory_free_owner(&softgpu_device.memory, context);
}

/*
 * The heap of device code: made at the first allocation by a kernel, so that programs
 * whose kernels have none lose no memory to it
 */

static void heap_fill(CUcontext context)
{
	struct range range = {
		.size = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE],
		.kind = RANGE_ARRAY, /* it counts, and calls do not reach it */
		.device = context->device,
		.owner = context,
	};
	uint64_t address;

	if (!range.size || memory_alloc(&softgpu_device.memory, &range, &address))
		vgpu_log_warning("no memory for a heap of %llu bytes",
			(unsigned long long)range.size);
	else if (heap_begin(&context->heap, address, range.size))
		memory_free(&softgpu_device.memory, address, MEMORY_KIND(RANGE_ARRAY));
}

static uint64_t heap_malloc(void *data, uint64_t size)
{
	CUcontext context = data;
	struct heap *heap = &context->heap;
	uint64_t address;

	pthread_mutex_lock(&heap->lock);
	if (!heap->is_begun)
		heap_fill(context);
	heap->is_begun = true;
	address = heap_take(heap, size);
	pthread_mutex_unlock(&heap->lock);
	return address;
}

static void heap_free(void *data, uint64_t address)
{
	struct heap *heap = &((CUcontext)data)->heap;

	pthread_mutex_lock(&heap->lock);
	heap_give(heap, address);
	pthread_mutex_unlock(&heap->lock);
}

/* With device.lock. */
static CUresult context_new(CUcontext *contextp, CUdevice device, unsigned int flags)
{
	CUcontext context;
	CUresult r;

	r = device_start();
	if (r)
		return r;
	context = object_new(OBJECT_CONTEXT, sizeof(*context));
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = device;
	context->flags = flags;
	context->id = softgpu_device.next_context_id++;
	pthread_mutex_init(&context->lock, NULL);
	TAILQ_INIT(&context->objects);
	print_init(context);
	context->hooks.malloc = heap_malloc;
	context->hooks.free = heap_free;
	context->hooks.heap = context;
	heap_init(&context->heap);
	*contextp = context;
	return CUDA_SUCCESS;
}

void context_add(CUcontext context, struct object *object)
{
	object->context = context;
	pthread_mutex_lock(&context->lock);
	TAILQ_INSERT_TAIL(&context->objects, object, link);
	pthread_mutex_unlock(&context->lock);
}

void context_remove(struct object *object)
{
	pthread_mutex_lock(&object->context->lock);
	TAILQ_REMOVE(&object->context->objects, object, link);
	pthread_mutex_unlock(&object->context->lock);
}

CUresult context_current_raw(CUcontext *contextp)
{
	CUcontext context;
	CUresult r;

	r = device_check();
	if (r)
		return r;
	context = stack_top();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!object_is(context, OBJECT_CONTEXT) ||
		!__atomic_load_n(&context->is_active, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*contextp = context;
	return CUDA_SUCCESS;
}

CUresult context_current(CUcontext *contextp)
{
	CUresult r;

	r = context_current_raw(contextp);
	return r ? r : (CUresult)sched_context_fault(&(*contextp)->sched);
}

/*
 * Primary context
 */

/* With device.lock: the object, active or not. */
static CUresult primary_get(CUcontext *contextp, CUdevice device)
{
	CUcontext *primaryp = &softgpu_device.primaries[device];
	CUresult r = CUDA_SUCCESS;

	if (!*primaryp) {
		r = context_new(primaryp, device, 0);
		if (!r)
			(*primaryp)->is_primary = true;
	}
	*contextp = *primaryp;
	return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	r = primary_get(&context, dev);
	if (!r) {
		if (!context->n_retains++)
			context_setup(context);
		*pctx = context;
	}
	pthread_mutex_unlock(&softgpu_device.lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	if (!context || !context->n_retains)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--context->n_retains)
		context_teardown(context);
	pthread_mutex_unlock(&softgpu_device.lock);
	return r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	if (context && context->is_active) {
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

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	if (flags & ~(unsigned int)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	r = primary_get(&context, dev);
	if (!r)
		context->flags = flags;
	pthread_mutex_unlock(&softgpu_device.lock);
	return r;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (flags & ~(unsigned int)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&softgpu_device.lock);
	context = softgpu_device.primaries[dev];
	*flags = context ? context->flags : 0;
	*active = context && context->is_active;
	pthread_mutex_unlock(&softgpu_device.lock);
	return CUDA_SUCCESS;
}

/*
 * Explicit contexts
 */

CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	CUcontext context;
	CUresult r;

	r = device_get(dev);
	if (r)
		return r;
	if (!pctx || flags & ~(unsigned int)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&softgpu_device.lock);
	r = context_new(&context, dev, flags);
	pthread_mutex_unlock(&softgpu_device.lock);
	if (r)
		return r;
	context_setup(context);
	r = stack_push(context);
	if (r) {
		context_teardown(context);
		object_free(&context->object);
		return r;
	}
	*pctx = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUcontext popped;
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(ctx, OBJECT_CONTEXT) || ctx->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack_top() == ctx)
		stack_pop(&popped);
	context_teardown(ctx);
	heap_deinit(&ctx->heap);
	pthread_mutex_destroy(&ctx->lock);
	object_free(&ctx->object);
	return CUDA_SUCCESS;
}

/*
 * Settings
 */

static CUresult context_synchronize(CUcontext context)
{
	CUresult r;

	r = capture_refuse_context(context);
	if (r)
		return r;
	r = sched_context_wait(&context->sched);
	print_flush(context);
	return r;
}

CUresult cuCtxSynchronize(void)
{
	CUcontext context;
	CUresult r;

	r = context_current_raw(&context);
	return r ? r : context_synchronize(context);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult r;

	if (!ctx)
		return cuCtxSynchronize();
	r = device_check();
	if (r)
		return r;
	if (!object_is(ctx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return ctx->is_active ? context_synchronize(ctx)
			      : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static bool context_has_limit(CUlimit limit)
{
	return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE ||
	       limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
	       limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!context_has_limit(limit))
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
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
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
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = context->cache_config;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if ((unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	context->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

/* Banks have four bytes whatever is asked for, as on all current devices. */
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	return (unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = 0;
	return CUDA_SUCCESS;
}
