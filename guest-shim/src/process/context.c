/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and their local storage
 *
 * Context structures are never freed: the current context of a thread may have been
 * destroyed by another thread, which has to be detected.
 */

#include <stdlib.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"

#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/thread.h"
#include "process/words.h"

#define STACK_FIRST 8u

static struct {
	struct shim_lock lock;
	int n_primaries;
	struct shim_context primaries[VGPU_DEVICES_MAX];
	/* Those that were created. */
	struct shim_context *created;
	uint64_t n_created;
} contexts;

/* Counts changes of all local storage: a thread's cached value is valid while this is
 * unchanged. */
static uint64_t locals_epoch = 1;

static __thread struct {
	uint64_t epoch;
	struct shim_context *context;
	void *key;
	void *value;
} last_local __attribute__((tls_model("initial-exec")));

static shim_context_wiped_fn wiped_fn;

static void context_init(struct shim_context *context, uint64_t handle, CUdevice device)
{
	*context = (struct shim_context){
		.handle = handle,
		.id = ++contexts.n_created,
		.device = device,
		.home = context,
		.epoch = 1,
		.default_stream.word = SHIM_WORD_NONE,
	};
}

void shim_context_setup(int n_devices)
{
	for (int i = 0; i < n_devices; i++) {
		context_init(&contexts.primaries[i],
			vgpu_handle_make(
				VGPU_HANDLE_CONTEXT, (uint32_t)shim_device_to_host(i), 1),
			i);
		contexts.primaries[i].is_primary = true;
	}
	contexts.n_primaries = n_devices;
}

struct shim_context *shim_context_primary(CUdevice device)
{
	return device >= 0 && device < contexts.n_primaries ? &contexts.primaries[device]
							    : NULL;
}

struct shim_context *shim_context_find(CUcontext handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct shim_context *context = NULL;

	if (vgpu_handle_kind(number) != VGPU_HANDLE_CONTEXT)
		return NULL;
	if (vgpu_handle_index(number) < VGPU_DEVICES_MAX) {
		context = shim_context_primary(
			shim_device_from_host((CUdevice)vgpu_handle_index(number)));
		return context && context->handle == number ? context : NULL;
	}
	/* Entries are only ever added in front. */
	context = __atomic_load_n(&contexts.created, __ATOMIC_ACQUIRE);
	while (context && context->handle != number)
		context = context->next;
	return context;
}

struct shim_context *shim_context_add(
	uint64_t handle, CUdevice device, unsigned int flags)
{
	struct shim_context *context = malloc(sizeof(*context));

	if (!context)
		return NULL;
	shim_lock(&contexts.lock);
	context_init(context, handle, device);
	context->flags = flags;
	context->is_live = 1;
	context->next = contexts.created;
	__atomic_store_n(&contexts.created, context, __ATOMIC_RELEASE);
	shim_unlock(&contexts.lock);
	return context;
}

struct shim_context *shim_context_add_green(
	uint64_t handle, uint64_t green, unsigned int n_sms, struct shim_context *home)
{
	struct shim_context *context = malloc(sizeof(*context));

	if (!context)
		return NULL;
	shim_lock(&contexts.lock);
	context_init(context, handle, home->device);
	context->home = home;
	context->green = green;
	context->n_sms = n_sms;
	context->flags = home->flags;
	context->is_live = 1;
	context->next = contexts.created;
	__atomic_store_n(&contexts.created, context, __ATOMIC_RELEASE);
	shim_unlock(&contexts.lock);
	return context;
}

struct shim_context *shim_context_find_green(CUgreenCtx handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct shim_context *context =
		__atomic_load_n(&contexts.created, __ATOMIC_ACQUIRE);

	if (vgpu_handle_kind(number) != VGPU_HANDLE_GREEN)
		return NULL;
	while (context && context->green != number)
		context = context->next;
	return context;
}

void shim_context_on_wipe(shim_context_wiped_fn fn)
{
	wiped_fn = fn;
}

/* Green contexts end with their primary context. Return: how many retains they had. */
static uint32_t end_greens(const struct shim_context *home)
{
	struct shim_context *context =
		__atomic_load_n(&contexts.created, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	/* Partner: the exchange in shim_cuGreenCtxDestroy(). */
	for (; context; context = context->next)
		if (context->green && shim_context_home(context) == home)
			n += __atomic_exchange_n(&context->is_live, 0, __ATOMIC_ACQ_REL);
	return n;
}

static void wipe_greens(const struct shim_context *home)
{
	struct shim_context *context =
		__atomic_load_n(&contexts.created, __ATOMIC_ACQUIRE);

	/* Not those of the next life. */
	for (; context; context = context->next)
		if (context->green && shim_context_home(context) == home &&
			!__atomic_load_n(&context->is_live, __ATOMIC_ACQUIRE))
			shim_context_wipe(context);
}

void shim_context_wipe(struct shim_context *context)
{
	struct shim_local *locals;

	if (context->is_primary)
		wipe_greens(context);
	shim_lock(&contexts.lock);
	/* A primary context may be retained again by now. */
	if (!context->is_primary)
		__atomic_store_n(&context->is_live, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&context->home, context, __ATOMIC_RELAXED);
	context->epoch++;
	__atomic_store_n(&context->fault, CUDA_SUCCESS, __ATOMIC_RELAXED);
	locals = context->locals;
	context->locals = NULL;
	__atomic_add_fetch(&locals_epoch, 1, __ATOMIC_SEQ_CST);
	shim_unlock(&contexts.lock);

	/* Without a lock: they are the program's functions and may call anything. */
	while (locals) {
		struct shim_local *local = locals;

		locals = local->next;
		if (local->destroy)
			local->destroy(
				shim_context_public(context), local->key, local->value);
		free(local);
	}
	shim_stream_drop_context(context);
	if (wiped_fn)
		wiped_fn(context);
}

CUresult shim_context_ask_fault(struct shim_context *context, uint32_t n_faults)
{
	Vgpu__VgpuContextFaultRequest request = VGPU__VGPU_CONTEXT_FAULT_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuContextFault);
	uint32_t epoch = __atomic_load_n(&context->epoch, __ATOMIC_RELAXED), fault;
	const ProtobufCMessage *reply;
	CUresult result;

	request.context = context->handle;
	result = shim_call_sync(&call, &request.base,
		&vgpu__vgpu_context_fault_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	fault = (uint32_t)((const Vgpu__VgpuContextFaultReply *)reply)->fault;
	shim_lock(&contexts.lock);
	/* The answer is of no use to a life of the context that has begun since. */
	if (context->epoch == epoch) {
		__atomic_store_n(&context->fault, fault, __ATOMIC_RELAXED);
		/* Partner: the load in shim_context_fault(). */
		__atomic_store_n(&context->n_faults_known, n_faults, __ATOMIC_RELEASE);
	} else {
		fault = CUDA_SUCCESS;
	}
	shim_unlock(&contexts.lock);
	return (CUresult)fault;
}

static CUresult retain_on_host(const struct shim_context *context)
{
	Vgpu__CuDevicePrimaryCtxRetainRequest request =
		VGPU__CU_DEVICE_PRIMARY_CTX_RETAIN_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDevicePrimaryCtxRetain);

	request.dev = shim_device_to_host(context->device);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_device_primary_ctx_retain_reply__descriptor, NULL);
}

static CUresult release_on_host(const struct shim_context *context)
{
	Vgpu__CuDevicePrimaryCtxReleaseV2Request request =
		VGPU__CU_DEVICE_PRIMARY_CTX_RELEASE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDevicePrimaryCtxRelease_v2);

	request.dev = shim_device_to_host(context->device);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_device_primary_ctx_release_v2_reply__descriptor, NULL);
}

CUresult shim_context_retain(struct shim_context *context)
{
	CUresult result = CUDA_SUCCESS;
	/* Held while the host makes the context: a second retainer waits for it. */
	SHIM_LOCKED(&context->retain_lock);

	if (!__atomic_load_n(&context->is_live, __ATOMIC_RELAXED))
		result = retain_on_host(context);
	if (result != CUDA_SUCCESS)
		return result;
	context->n_retains++;
	__atomic_store_n(&context->is_live, 1, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult shim_context_release(struct shim_context *context)
{
	CUresult result;

	shim_lock(&context->retain_lock);
	/* The last retain of a context that was reset: nothing is left to destroy. */
	if (context->n_retains != 1 ||
		!__atomic_load_n(&context->is_live, __ATOMIC_RELAXED)) {
		result = context->n_retains ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
		context->n_retains -= context->n_retains != 0;
		shim_unlock(&context->retain_lock);
		return result;
	}
	result = release_on_host(context);
	context->n_retains = 0;
	__atomic_store_n(&context->is_live, 0, __ATOMIC_RELEASE);
	/* Of which there are some if the program has released what they held. */
	end_greens(context);
	shim_unlock(&context->retain_lock);
	shim_context_wipe(context);
	return result;
}

void shim_context_reset(struct shim_context *context)
{
	uint32_t n_greens;

	shim_lock(&context->retain_lock);
	__atomic_store_n(&context->is_live, 0, __ATOMIC_RELEASE);
	n_greens = end_greens(context);
	context->n_retains -=
		n_greens < context->n_retains ? n_greens : context->n_retains;
	shim_unlock(&context->retain_lock);
	shim_context_wipe(context);
}

static CUresult grow_stack(struct shim_thread *thread)
{
	uint32_t max = thread->max_contexts ? thread->max_contexts * 2 : STACK_FIRST;
	struct shim_context **grown = realloc(thread->contexts, max * sizeof(*grown));

	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	thread->contexts = grown;
	thread->max_contexts = max;
	return CUDA_SUCCESS;
}

CUresult shim_context_push(struct shim_context *context)
{
	struct shim_thread *thread = shim_thread_get();
	CUresult result = thread ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (thread && thread->n_contexts == thread->max_contexts)
		result = grow_stack(thread);
	if (result == CUDA_SUCCESS)
		thread->contexts[thread->n_contexts++] = context;
	return result;
}

CUresult shim_context_pop(struct shim_context **contextp)
{
	struct shim_thread *thread = shim_thread_get();

	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!thread->n_contexts)
		return CUDA_ERROR_INVALID_CONTEXT;
	*contextp = thread->contexts[--thread->n_contexts];
	return CUDA_SUCCESS;
}

CUresult shim_context_set_current(struct shim_context *context)
{
	struct shim_thread *thread = shim_thread_get();

	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (context && !thread->n_contexts)
		return shim_context_push(context);
	if (context)
		thread->contexts[thread->n_contexts - 1] = context;
	else if (thread->n_contexts)
		thread->n_contexts--;
	return CUDA_SUCCESS;
}

bool shim_context_lend(struct shim_context *context)
{
	struct shim_thread *thread = context ? shim_thread_get() : NULL;

	return thread && !thread->n_contexts &&
	       shim_context_check(context) == CUDA_SUCCESS &&
	       shim_context_push(context) == CUDA_SUCCESS;
}

static struct shim_local **find_local(struct shim_context *context, const void *key)
{
	struct shim_local **localp = &context->locals;

	while (*localp && (*localp)->key != key)
		localp = &(*localp)->next;
	return localp;
}

CUresult shim_context_local_put(struct shim_context *context, void *key, void *value,
	shim_local_destroy_fn destroy)
{
	struct shim_local *local = calloc(1, sizeof(*local)), **localp;

	if (!local)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shim_lock(&contexts.lock);
	localp = find_local(context, key);
	if (!*localp) {
		*localp = local;
		local = NULL;
	}
	(*localp)->key = key;
	(*localp)->value = value;
	(*localp)->destroy = destroy;
	__atomic_add_fetch(&locals_epoch, 1, __ATOMIC_SEQ_CST);
	shim_unlock(&contexts.lock);
	free(local);
	return CUDA_SUCCESS;
}

CUresult shim_context_local_delete(struct shim_context *context, void *key)
{
	struct shim_local *local, **localp;

	shim_lock(&contexts.lock);
	localp = find_local(context, key);
	local = *localp;
	if (local)
		*localp = local->next;
	__atomic_add_fetch(&locals_epoch, 1, __ATOMIC_SEQ_CST);
	shim_unlock(&contexts.lock);
	free(local);
	return local ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult shim_context_local_get(struct shim_context *context, void *key, void **valuep)
{
	/* Read first: a change during the search makes what is remembered stale. */
	uint64_t epoch = __atomic_load_n(&locals_epoch, __ATOMIC_SEQ_CST);
	const struct shim_local *local;

	/* Every call of a CUDA runtime asks once: the answer is kept by the thread. */
	if (last_local.epoch == epoch && last_local.context == context &&
		last_local.key == key) {
		*valuep = last_local.value;
		return CUDA_SUCCESS;
	}
	shim_lock(&contexts.lock);
	local = *find_local(context, key);
	if (local)
		*valuep = local->value;
	shim_unlock(&contexts.lock);
	if (!local)
		return CUDA_ERROR_INVALID_HANDLE;
	last_local.epoch = epoch;
	last_local.context = context;
	last_local.key = key;
	last_local.value = *valuep;
	return CUDA_SUCCESS;
}
