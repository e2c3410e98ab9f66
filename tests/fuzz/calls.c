/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random calls: the calls
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Inside the project, or as programs have it. */
#ifdef VGPU_CUDA_INTERNAL
#include "vgpu/cuda.h"
#else
#include <cuda.h>
#endif

#include "calls-graph.h"
#include "calls-green.h"
#include "calls-virtual.h"
#include "calls.h"
#include "slots.h"

/* How long waits for words may last, from the start of a program. */
#define HOLD_NS 2000000
#define NAP_NS 100000000
#define HANG_NAPS 60 /* without anything new: a program hangs */

/* No kernel writes 0 to a word: what waits for it would wait for ever. */
static const char kernels[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".global .texref t;\n.global .surfref s;\n"
	".visible .global .align 4 .u32 number = 42;\n"
	".visible .entry write(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
	"ld.param.u64 %d, [p]; ld.global.u32 %r, [number]; or.b32 %r, %r, 1;\n"
	"st.global.u32 [%d], %r; ret; }\n"
	".visible .entry spin(.param .u64 p) { .reg .pred %p; .reg .b64 %d;\n"
	".reg .b32 %r; ld.param.u64 %d, [p];\n"
	"again: ld.volatile.global.u32 %r, [%d]; setp.eq.u32 %p, %r, 0;\n"
	"@%p bra again; ret; }\n"
	".visible .entry fetch(.param .u64 p) { .reg .b64 %d; .reg .b32 %r<4>;\n"
	".reg .b32 %x; ld.param.u64 %d, [p]; mov.b32 %x, 0;\n"
	"tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [t, {%x}];\n"
	"or.b32 %r0, %r0, 1; st.global.u32 [%d], %r0; ret; }\n"
	".visible .entry fault(.param .u64 p) { .reg .b32 %r;\n"
	"ld.global.u32 %r, [16]; ret; }\n"
	".extern .func cudaGraphSetConditional (.param .b64 a, .param .b32 b);\n"
	".visible .entry choose(.param .u64 p) { .reg .b64 %d;\n"
	"ld.param.u64 %d, [p]; { .param .b64 a; st.param.b64 [a], %d;\n"
	".param .b32 b; st.param.b32 [b], 0;\n"
	"call.uni cudaGraphSetConditional, (a, b); } ret; }\n";
static const char *const kernel_names[] = { "write", "spin", "write", "fetch", "choose",
	"spin", "write", "fault" };

static struct {
	CUcontext base;	      /* of the words; never destroyed */
	uint32_t *words;      /* 0: what waits for one waits */
	CUdeviceptr words_at; /* for the device */
	uint8_t *bytes;	      /* memory to copy from and to */
	int n_devices;
	size_t free_size;  /* of device memory, before and after each program */
	uint32_t n_called; /* atomic: functions that were called back */
} world;

/*
 * Choices
 */

CUstream calls_stream(uint8_t x)
{
	switch (x % 16) {
	case 0:
		return NULL;
	case 1:
		return CU_STREAM_PER_THREAD;
	default:
		return slot_get(SLOT_STREAM, x);
	}
}

CUdeviceptr calls_word(uint8_t x)
{
	return world.words_at + 4 * (x % 4);
}

CUdeviceptr calls_place(uint8_t x)
{
	if (x % 8 == 7)
		return calls_virtual_piece(x / 8);
	return x % 2 ? (CUdeviceptr)(uintptr_t)slot_get(SLOT_MEMORY, x)
		     : calls_word(x) + 16;
}

CUfunction calls_function(uint8_t x)
{
	return slot_get(x % 4 ? SLOT_FUNCTION : SLOT_KERNEL, x / 4);
}

void calls_called_back(void *data)
{
	__atomic_fetch_add(&world.n_called, 1, __ATOMIC_RELAXED);
}

static void stream_called_back(CUstream stream, CUresult status, void *data)
{
	calls_called_back(data);
}

/*
 * Contexts
 */

static void context_create(uint8_t a, uint8_t b)
{
	CUcontext made, popped;

	if (cuCtxCreate_v4(&made, NULL, 0, b % world.n_devices))
		return;
	if (a % 2)
		cuCtxPopCurrent_v2(&popped);
	slot_put(SLOT_CONTEXT, a / 2, made);
}

static void context_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(SLOT_CONTEXT, a, b);
}

static void context_current(uint8_t a, uint8_t b)
{
	CUcontext context = slot_get(SLOT_CONTEXT, a), popped;
	unsigned long long id;
	CUdevice device;
	size_t size;

	switch (b % 8) {
	case 0:
		cuCtxPushCurrent_v2(context);
		break;
	case 1:
		cuCtxPopCurrent_v2(&popped);
		break;
	case 2:
		cuCtxGetId(context, &id);
		cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE);
		cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024 + a);
		break;
	case 3:
		cuCtxGetDevice(&device);
		cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1);
		break;
	default:
		cuCtxSetCurrent(context);
		break;
	}
}

static void context_wait(uint8_t a, uint8_t b)
{
	if (b % 4)
		cuCtxSynchronize();
	else
		cuCtxSynchronize_v2(slot_get(SLOT_CONTEXT, a));
}

static void context_events(uint8_t a, uint8_t b)
{
	CUcontext context = slot_get(SLOT_CONTEXT, a);
	CUevent event = slot_get(SLOT_EVENT, b);

	if (a & 128)
		cuCtxRecordEvent(context, event);
	else
		cuCtxWaitEvent(context, event);
}

/* The last device's, if it is not the device of the words. */
static void context_reset(uint8_t a, uint8_t b)
{
	CUcontext primary;

	if (world.n_devices < 2)
		return;
	if (a % 4 == 0)
		cuDevicePrimaryCtxReset_v2(1);
	else if (a % 4 == 1)
		cuDevicePrimaryCtxRelease_v2(1);
	else if (!cuDevicePrimaryCtxRetain(&primary, 1))
		cuCtxSetCurrent(primary);
}

static void context_peer(uint8_t a, uint8_t b)
{
	CUcontext context = slot_get(SLOT_CONTEXT, a);

	if (b % 2)
		cuCtxEnablePeerAccess(context, 0);
	else
		cuCtxDisablePeerAccess(context);
	cuMemcpyPeerAsync(calls_place(a), context, calls_place(b),
		slot_get(SLOT_CONTEXT, b), 4, calls_stream(b));
}

/*
 * Streams and events
 */

static void stream_create(uint8_t a, uint8_t b)
{
	CUstream made;

	if (!cuStreamCreateWithPriority(&made,
		    b % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, -(b / 2 % 8)))
		slot_put(SLOT_STREAM, a, made);
}

static void stream_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(SLOT_STREAM, a, b);
}

static void stream_wait(uint8_t a, uint8_t b)
{
	if (b % 4)
		cuStreamSynchronize(calls_stream(a));
	else
		cuStreamQuery(calls_stream(a));
}

static void stream_ask(uint8_t a, uint8_t b)
{
	CUstream stream = calls_stream(a);
	CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_SPIN };
	unsigned long long id;
	unsigned int flags;
	CUcontext context;
	int priority;

	cuStreamGetFlags(stream, &flags);
	cuStreamGetPriority(stream, &priority);
	cuStreamGetId(stream, &id);
	cuStreamGetCtx(stream, &context);
	cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	cuStreamCopyAttributes(calls_stream(b), stream);
	value.priority = -(b % 8);
	cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

static void stream_hold(uint8_t a, uint8_t b)
{
	cuStreamWaitValue32_v2(
		calls_stream(a), calls_word(b), 1, CU_STREAM_WAIT_VALUE_GEQ);
}

static void stream_write(uint8_t a, uint8_t b)
{
	cuStreamWriteValue32_v2(calls_stream(a), calls_place(b), b, 0);
}

static void stream_call(uint8_t a, uint8_t b)
{
	if (b % 2)
		cuLaunchHostFunc(calls_stream(a), calls_called_back, NULL);
	else
		cuStreamAddCallback(calls_stream(a), stream_called_back, NULL, 0);
}

static void stream_wait_event(uint8_t a, uint8_t b)
{
	cuStreamWaitEvent(calls_stream(a), slot_get(SLOT_EVENT, b), 0);
}

static void event_create(uint8_t a, uint8_t b)
{
	CUevent made;

	if (!cuEventCreate(&made, b % 2 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT))
		slot_put(SLOT_EVENT, a, made);
}

static void event_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(SLOT_EVENT, a, b);
}

static void event_record(uint8_t a, uint8_t b)
{
	cuEventRecord(slot_get(SLOT_EVENT, a), calls_stream(b));
}

static void event_wait(uint8_t a, uint8_t b)
{
	CUevent event = slot_get(SLOT_EVENT, a);
	float ms;

	if (b % 8 == 0)
		cuEventElapsedTime(&ms, event, slot_get(SLOT_EVENT, b / 8));
	else if (b % 2)
		cuEventSynchronize(event);
	else
		cuEventQuery(event);
}

/*
 * Memory, arrays, textures
 */

static void memory_create(uint8_t a, uint8_t b)
{
	CUdeviceptr made;
	void *pinned;

	if (b % 4) {
		if (!cuMemAlloc_v2(&made, 512u << (b % 8)))
			slot_put(SLOT_MEMORY, a, (void *)(uintptr_t)made);
	} else if (!cuMemHostAlloc(&pinned, 4096, 0)) {
		slot_put(SLOT_PINNED, a, pinned);
	}
}

static void memory_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(b % 4 ? SLOT_MEMORY : SLOT_PINNED, a, b / 4);
}

static void memory_use(uint8_t a, uint8_t b)
{
	CUdeviceptr place = calls_place(a);
	CUstream stream = calls_stream(b);

	switch (b % 8) {
	case 0:
		cuMemcpyHtoD_v2(place, world.bytes, 256);
		break;
	case 1:
		cuMemcpyDtoHAsync_v2(world.bytes, place, 256, stream);
		break;
	case 2:
		cuMemcpyDtoDAsync_v2(place, calls_place(b / 8), 256, stream);
		break;
	case 3:
		cuMemsetD32_v2(place, b, 64);
		break;
	case 4:
		cuMemcpyDtoDAsync_v2(
			place, (uintptr_t)slot_get(SLOT_PINNED, a / 2), 256, stream);
		break;
	default:
		cuMemsetD8Async(place, b, 256, stream);
		break;
	}
}

static void array_create(uint8_t a, uint8_t b)
{
	const CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = 16,
		.Height = b % 2 ? 16 : 0,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
		.Flags = CUDA_ARRAY3D_SURFACE_LDST,
	};
	CUmipmappedArray mipmap;
	CUarray made;

	if (b % 8 == 0) {
		if (!cuMipmappedArrayCreate(&mipmap, &shape, 3))
			slot_put(SLOT_MIPMAP, a, mipmap);
	} else if (!cuArray3DCreate_v2(&made, &shape)) {
		slot_put(SLOT_ARRAY, a, made);
	}
}

static void array_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(b % 8 ? SLOT_ARRAY : SLOT_MIPMAP, a, b / 8);
}

/* An array, or a level of one. */
static CUarray an_array(uint8_t x)
{
	CUarray level;

	if (x % 4 || cuMipmappedArrayGetLevel(&level, slot_get(SLOT_MIPMAP, x / 4), 0))
		return slot_get(SLOT_ARRAY, x / 4);
	return level;
}

static void array_use(uint8_t a, uint8_t b)
{
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = world.bytes,
		.srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = an_array(a),
		.WidthInBytes = 64,
		.Height = 1,
	};
	CUDA_ARRAY3D_DESCRIPTOR shape;

	cuArray3DGetDescriptor_v2(&shape, copy.dstArray);
	if (b % 2)
		cuMemcpy2DAsync_v2(&copy, calls_stream(b));
	else
		cuMemcpy2D_v2(&copy);
}

static void texture_create(uint8_t a, uint8_t b)
{
	const CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = an_array(b),
	};
	const CUDA_TEXTURE_DESC texture = { .flags = CU_TRSF_READ_AS_INTEGER };
	CUtexObject made;

	if (a % 2) {
		if (!cuTexObjectCreate(&made, &resource, &texture, NULL))
			slot_put(SLOT_TEXTURE, a / 2, (void *)(uintptr_t)made);
	} else if (!cuSurfObjectCreate(&made, &resource)) {
		slot_put(SLOT_SURFACE, a / 2, (void *)(uintptr_t)made);
	}
}

static void texture_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(a % 2 ? SLOT_TEXTURE : SLOT_SURFACE, a / 2, b);
}

static void texture_ask(uint8_t a, uint8_t b)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;

	cuTexObjectGetResourceDesc(&resource, (uintptr_t)slot_get(SLOT_TEXTURE, a / 2));
	cuTexObjectGetTextureDesc(&texture, (uintptr_t)slot_get(SLOT_TEXTURE, b));
	cuSurfObjectGetResourceDesc(&resource, (uintptr_t)slot_get(SLOT_SURFACE, b));
}

static void reference_create(uint8_t a, uint8_t b)
{
	CUmodule module = slot_get(SLOT_MODULE, a / 4);
	CUtexref made;

	if (b % 8 == 0) {
		if (!cuTexRefCreate(&made))
			slot_put(SLOT_OWN_TEXREF, a, made);
	} else if (b % 2) {
		if (!cuModuleGetTexRef(&made, module, "t"))
			slot_put(SLOT_TEXREF, a, made);
	} else if (!cuModuleGetSurfRef((CUsurfref *)&made, module, "s")) {
		slot_put(SLOT_SURFREF, a, made);
	}
}

static void reference_use(uint8_t a, uint8_t b)
{
	CUtexref reference = slot_get(a % 8 ? SLOT_TEXREF : SLOT_OWN_TEXREF, a);
	CUarray array;
	size_t offset;

	switch (b % 8) {
	case 0:
		slot_destroy(SLOT_OWN_TEXREF, a, b);
		break;
	case 1:
		cuTexRefSetAddress_v2(&offset, reference, calls_place(a | 1), 256);
		break;
	case 2:
		cuTexRefGetArray(&array, reference);
		break;
	case 3:
		cuSurfRefSetArray(slot_get(SLOT_SURFREF, a), an_array(b), 0);
		break;
	case 4:
		cuTexRefSetFormat(reference, CU_AD_FORMAT_UNSIGNED_INT32, 1);
		cuTexRefSetFlags(reference, CU_TRSF_READ_AS_INTEGER);
		break;
	default:
		cuTexRefSetArray(reference, an_array(b / 8), CU_TRSA_OVERRIDE_FORMAT);
		break;
	}
}

/*
 * Code
 */

static void module_create(uint8_t a, uint8_t b)
{
	CUlibrary library;
	CUmodule module;

	if (b % 4) {
		if (!cuModuleLoadData(&module, kernels))
			slot_put(SLOT_MODULE, a, module);
	} else if (!cuLibraryLoadData(&library, kernels, NULL, NULL, 0, NULL, NULL, 0)) {
		slot_put(SLOT_LIBRARY, a, library);
	}
}

static void module_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(b % 4 ? SLOT_MODULE : SLOT_LIBRARY, a, b / 4);
}

static void module_use(uint8_t a, uint8_t b)
{
	CUmodule module = slot_get(SLOT_MODULE, a);
	CUfunction function;
	CUdeviceptr address;
	size_t size;

	if (!cuModuleGetFunction(&function, module, kernel_names[b % 8]))
		slot_put(SLOT_FUNCTION, a ^ b, function);
	if (b & 8)
		cuModuleGetGlobal_v2(&address, &size, module, "number");
}

static void library_use(uint8_t a, uint8_t b)
{
	CUlibrary library = slot_get(SLOT_LIBRARY, a);
	CUdeviceptr address;
	CUfunction function;
	CUkernel kernel;
	CUmodule module;
	size_t size;

	if (!cuLibraryGetKernel(&kernel, library, kernel_names[b % 8]))
		slot_put(SLOT_KERNEL, a ^ b, kernel);
	if (b & 8)
		cuLibraryGetGlobal(&address, &size, library, "number");
	if (b & 16)
		cuLibraryGetModule(&module, library);
	if (b & 32 && !cuKernelGetFunction(&function, slot_get(SLOT_KERNEL, b)))
		slot_put(SLOT_FUNCTION, a ^ b, function);
}

static void function_ask(uint8_t a, uint8_t b)
{
	CUfunction function = calls_function(a);
	const char *name;
	CUmodule module;
	int value;

	if (!cuFuncGetName(&name, function) && strlen(name) > 16)
		abort();
	cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
	cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1);
	cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, b);
	cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 0);
	cuFuncGetModule(&module, function);
}

static void function_launch(uint8_t a, uint8_t b)
{
	CUdeviceptr where = calls_word(b / 16);
	void *params[] = { &where };

	cuLaunchKernel(calls_function(a), 1 + b % 3, 1, 1, 1, 1, 1, 0, calls_stream(b),
		params, NULL);
}

static void link_use(uint8_t a, uint8_t b)
{
	CUlinkState state = slot_get(SLOT_LINK, a);
	size_t size;
	void *image;

	switch (b % 4) {
	case 0:
		if (!cuLinkCreate_v2(0, NULL, NULL, &state))
			slot_put(SLOT_LINK, a, state);
		break;
	case 1:
		cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)kernels,
			sizeof(kernels), "kernels", 0, NULL, NULL);
		break;
	case 2:
		cuLinkComplete(state, &image, &size);
		break;
	default:
		slot_destroy(SLOT_LINK, a, b / 4);
		break;
	}
}

/*
 * Programs
 */

/* A call that is listed several times is made more often. */
static void (*const calls[])(uint8_t a, uint8_t b) = {
	context_create,
	context_destroy,
	context_current,
	context_current,
	context_wait,
	context_events,
	context_reset,
	context_peer,
	stream_create,
	stream_create,
	stream_create,
	stream_destroy,
	stream_destroy,
	stream_wait,
	stream_wait,
	stream_ask,
	stream_hold,
	stream_write,
	stream_call,
	stream_wait_event,
	stream_wait_event,
	event_create,
	event_create,
	event_destroy,
	event_destroy,
	event_record,
	event_record,
	event_record,
	event_wait,
	event_wait,
	calls_virtual_reserve,
	calls_virtual_create,
	calls_virtual_create,
	calls_virtual_release,
	calls_virtual_map,
	calls_virtual_map,
	calls_virtual_map,
	calls_virtual_unmap,
	calls_virtual_ask,
	memory_create,
	memory_create,
	memory_destroy,
	memory_use,
	memory_use,
	memory_use,
	array_create,
	array_destroy,
	array_use,
	texture_create,
	texture_destroy,
	texture_ask,
	reference_create,
	reference_use,
	reference_use,
	module_create,
	module_destroy,
	module_use,
	module_use,
	library_use,
	library_use,
	function_ask,
	function_launch,
	function_launch,
	function_launch,
	link_use,
	calls_graph_create,
	calls_graph_destroy,
	calls_node_add,
	calls_node_add,
	calls_node_add,
	calls_node_use,
	calls_condition_create,
	calls_conditional_add,
	calls_conditional_add,
	calls_exec_create,
	calls_exec_create,
	calls_exec_launch,
	calls_exec_launch,
	calls_capture_begin,
	calls_capture_end,
	calls_capture_ask,
	calls_user_create,
	calls_user_use,
	calls_green_create,
	calls_green_create,
	calls_green_destroy,
	calls_green_current,
	calls_green_current,
	calls_green_use,
	calls_green_use,
	calls_tensor_use,
};
#define N_CALLS (sizeof(calls) / sizeof(*calls))

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const uint8_t *program;
	size_t size;
	uint32_t n_programs; /* that were begun */
	uint32_t n_running;  /* lanes at work on the last */
	/* What each lane does: 1 + the place of a call in the program, 0: nothing. */
	size_t at[CALLS_LANES];
} run = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* With the lock; bounded, as a wake-up may be lost (vgpu/wake.h). */
static int wait_for_change(long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_cond_timedwait(&run.changed, &run.lock, &until);
}

/* A thread begins each program in a context of its choice. */
static void lane_begin(uint32_t lane)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext popped;

	while (!cuCtxPopCurrent_v2(&popped))
		;
	cuThreadExchangeStreamCaptureMode(&mode);
	cuCtxSetCurrent(slot_get(SLOT_CONTEXT, lane));
}

static void *lane_main(void *data)
{
	uint32_t lane = (uintptr_t)data, n_programs = 0;

	for (;;) {
		pthread_mutex_lock(&run.lock);
		while (run.n_programs == n_programs)
			wait_for_change(NAP_NS);
		n_programs = run.n_programs;
		pthread_mutex_unlock(&run.lock);
		lane_begin(lane);
		for (size_t i = 0; i + CALLS_CALL_SIZE <= run.size;
			i += CALLS_CALL_SIZE) {
			const uint8_t *call = run.program + i;

			if (call[0] % CALLS_LANES != lane)
				continue;
			__atomic_store_n(&run.at[lane], i + 1, __ATOMIC_RELAXED);
			calls[call[1] % N_CALLS](call[2], call[3]);
		}
		__atomic_store_n(&run.at[lane], 0, __ATOMIC_RELAXED);
		pthread_mutex_lock(&run.lock);
		run.n_running--;
		pthread_cond_broadcast(&run.changed);
		pthread_mutex_unlock(&run.lock);
	}
	return NULL;
}

static void set_words(uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		__atomic_store_n(&world.words[i], value, __ATOMIC_SEQ_CST);
}

static void must(CUresult result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, result);
	abort();
}

/* The contexts that a program begins with: others of the first device, and one that is
 * there for all. */
static void make_contexts(void)
{
	CUcontext made, popped;

	for (unsigned int i = 0; i < 3; i++) {
		must(cuCtxCreate_v4(&made, NULL, 0, i % world.n_devices), "a context");
		must(cuCtxPopCurrent_v2(&popped), "its place on the stack");
		slot_put(SLOT_CONTEXT, i, made);
	}
	if (world.n_devices > 1) {
		must(cuDevicePrimaryCtxRetain(&made, 1), "a primary context");
		slot_put(SLOT_CONTEXT, 3, made);
	}
}

void calls_start(void)
{
	pthread_t thread;
	size_t total;
	void *words;

	must(cuInit(0), "cuInit");
	must(cuDeviceGetCount(&world.n_devices), "devices");
	must(cuDevicePrimaryCtxRetain(&world.base, 0), "the first context");
	must(cuCtxSetCurrent(world.base), "the first context is current");
	must(cuMemHostAlloc(&words, 4096, CU_MEMHOSTALLOC_PORTABLE), "words");
	must(cuMemHostGetDevicePointer_v2(&world.words_at, words, 0), "their address");
	must(cuMemGetInfo_v2(&world.free_size, &total), "memory in use");
	calls_virtual_start();
	world.words = words;
	world.bytes = calloc(1, 4096);
	for (uintptr_t i = 0; i < CALLS_LANES; i++)
		if (pthread_create(&thread, NULL, lane_main, (void *)i))
			abort();
}

/* For the log of a program that hangs. */
static void tell_lanes(void)
{
	for (unsigned int i = 0; i < CALLS_LANES; i++)
		fprintf(stderr, "lane %u is in call %zu\n", i,
			__atomic_load_n(&run.at[i], __ATOMIC_RELAXED) / CALLS_CALL_SIZE);
}

static void wait_for_lanes(void)
{
	int n_naps = 0;

	while (run.n_running && !wait_for_change(HOLD_NS)) {
	}
	set_words(1);
	while (run.n_running)
		if (wait_for_change(NAP_NS) && ++n_naps == HANG_NAPS)
			tell_lanes();
}

/* The objects of the programs are destroyed, so all of its memory is free again. */
static void check_memory(void)
{
	size_t free_size, total;

	must(cuMemGetInfo_v2(&free_size, &total), "memory in use");
	if (free_size == world.free_size)
		return;
	fprintf(stderr, "of %zu bytes that were free %zu are now\n", world.free_size,
		free_size);
	abort();
}

void calls_run(const uint8_t *program, size_t size)
{
	set_words(0);
	make_contexts();
	pthread_mutex_lock(&run.lock);
	run.program = program;
	run.size = size;
	run.n_running = CALLS_LANES;
	run.n_programs++;
	pthread_cond_broadcast(&run.changed);
	wait_for_lanes();
	pthread_mutex_unlock(&run.lock);
	calls_virtual_clear();
	slots_clear();
	if (world.n_devices > 1) {
		cuDevicePrimaryCtxReset_v2(1);
		while (!cuDevicePrimaryCtxRelease_v2(1))
			;
	}
	must(cuCtxSynchronize(), "the first context works");
	check_memory();
}
