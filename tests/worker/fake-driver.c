/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake driver: for tests of the worker
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-driver.h"
#include "driver/driver.h"
#include "fake-objects.h"
#include "vgpu/checked.h"
#include "worker/base/objects.h"

struct fake_range {
	uint64_t start, size;
	bool registered;
};

#define N_OBJECTS 4096u
#define N_RANGES 512u

struct fake_counts fake_counts;

static struct fake_object objects[N_OBJECTS];
static uint32_t n_objects;
static struct fake_range ranges[N_RANGES];
static uint64_t memory_base;
static struct fake_object *primary;
static __thread struct fake_object *current;

void fake_broken(const char *what)
{
	fprintf(stderr, "fake driver: %s\n", what);
	abort();
}

static void *make(enum fake_kind kind, void *parent)
{
	struct fake_object *object = &objects[n_objects++ % N_OBJECTS];

	*object = (struct fake_object){ .kind = kind, .parent = parent };
	return object;
}

struct fake_object *fake_use(const void *handle, enum fake_kind kind)
{
	struct fake_object *object = (struct fake_object *)handle;

	if (object < objects || object >= objects + N_OBJECTS || object->kind != kind)
		fake_broken("a handle that is not one of mine, or not of this kind");
	return object;
}

static void destroy(const void *handle, enum fake_kind kind)
{
	struct fake_object *object = fake_use(handle, kind);
	uint32_t i;

	object->kind = FAKE_FREE;
	for (i = 0; i < N_OBJECTS; i++)
		if (objects[i].kind != FAKE_FREE && objects[i].parent == object)
			objects[i].kind = FAKE_FREE;
}

static void need_context(void)
{
	if (!current || current->kind != FAKE_CONTEXT)
		fake_broken("a call without a current context");
}

void fake_use_stream(CUstream stream)
{
	need_context();
	if (stream)
		fake_use(stream, FAKE_STREAM);
}

static uint64_t take_memory(uint64_t size)
{
	uint64_t at = memory_base, i, k;

	for (i = 0; i < N_RANGES; i++) {
		if (ranges[i].size)
			continue;
		for (k = 0; k < N_RANGES; k++)
			if (ranges[k].size && !ranges[k].registered &&
				ranges[k].start + ranges[k].size > at)
				at = (ranges[k].start + ranges[k].size + 255) & ~255ull;
		if (size > memory_base + FAKE_MEMORY - at)
			return 0;
		ranges[i] = (struct fake_range){ at, size, false };
		return at;
	}
	return 0;
}

void fake_use_memory(uint64_t address, uint64_t size)
{
	uint32_t i;

	for (i = 0; i < N_RANGES; i++)
		if (ranges[i].size &&
			vgpu_range_within(address, size, ranges[i].start, ranges[i].size))
			return;
	/* A copy may reach over two runs of the arena that touch. */
	for (i = 0; i < N_RANGES; i++)
		if (ranges[i].registered &&
			vgpu_range_within(address, 1, ranges[i].start, ranges[i].size))
			return;
	fake_broken("an address that is not mine");
}

static CUresult fake_init(unsigned int flags)
{
	return CUDA_SUCCESS;
}

static CUresult fake_version(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

static CUresult fake_count(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult fake_name(char *name, int size, CUdevice device)
{
	snprintf(name, size, "fake device %d", device);
	return CUDA_SUCCESS;
}

static CUresult fake_total(size_t *size, CUdevice device)
{
	*size = FAKE_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult fake_uuid(CUuuid *uuid, CUdevice device)
{
	memset(uuid, 0x5a, sizeof(*uuid));
	return CUDA_SUCCESS;
}

static CUresult fake_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS ? 1 : 7;
	return attribute > 140 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_retain(CUcontext *context, CUdevice device)
{
	fake_counts.retains++;
	if (!primary)
		primary = make(FAKE_CONTEXT, NULL);
	*context = (CUcontext)primary;
	return CUDA_SUCCESS;
}

static CUresult fake_release(CUdevice device)
{
	fake_counts.releases++;
	destroy(primary, FAKE_CONTEXT);
	primary = NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_set_current(CUcontext context)
{
	fake_counts.set_current++;
	current = context ? fake_use(context, FAKE_CONTEXT) : NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_context_create(CUcontext *context, CUctxCreateParams *params,
	unsigned int flags, CUdevice device)
{
	*context = make(FAKE_CONTEXT, NULL);
	current = (struct fake_object *)*context;
	return CUDA_SUCCESS;
}

static CUresult fake_pop(CUcontext *context)
{
	*context = (CUcontext)current;
	current = NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_context_destroy(CUcontext context)
{
	destroy(context, FAKE_CONTEXT);
	return CUDA_SUCCESS;
}

static CUresult fake_synchronize(void)
{
	need_context();
	return CUDA_SUCCESS;
}

static CUresult fake_register(void *address, size_t size, unsigned int flags)
{
	uint32_t i;

	need_context();
	fake_counts.registered++;
	for (i = 0; i < N_RANGES; i++) {
		if (ranges[i].size)
			continue;
		ranges[i] = (struct fake_range){ (uintptr_t)address, size, true };
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult remove_range(uint64_t address, bool registered)
{
	uint32_t i;

	for (i = 0; i < N_RANGES; i++) {
		if (!ranges[i].size || ranges[i].start != address ||
			ranges[i].registered != registered)
			continue;
		ranges[i].size = 0;
		return CUDA_SUCCESS;
	}
	fake_broken("memory is given back that is not mine");
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_unregister(void *address)
{
	fake_counts.registered--;
	return remove_range((uintptr_t)address, true);
}

static CUresult fake_alloc(CUdeviceptr *address, size_t size)
{
	need_context();
	*address = take_memory(size);
	return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_free(CUdeviceptr address)
{
	return remove_range(address, false);
}

static CUresult fake_info(size_t *free_size, size_t *total)
{
	need_context();
	*free_size = FAKE_MEMORY / 2;
	*total = FAKE_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult copy(uint64_t to, uint64_t from, size_t size, CUstream stream)
{
	fake_use_stream(stream);
	fake_use_memory(to, size);
	fake_use_memory(from, size);
	fake_counts.copies++;
	return CUDA_SUCCESS;
}

static CUresult fake_h2d(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy(to, (uintptr_t)from, size, stream);
}

static CUresult fake_d2h(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy((uintptr_t)to, from, size, stream);
}

static CUresult fake_d2d(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy(to, from, size, stream);
}

static CUresult fake_2d(const CUDA_MEMCPY2D *rectangle, CUstream stream)
{
	uint64_t rows = rectangle->Height ? rectangle->Height - 1 : 0;
	bool from_host = rectangle->srcMemoryType == CU_MEMORYTYPE_HOST;
	bool to_host = rectangle->dstMemoryType == CU_MEMORYTYPE_HOST;

	fake_use_stream(stream);
	if (!rectangle->Height || !rectangle->WidthInBytes)
		return CUDA_SUCCESS;
	fake_use_memory(from_host ? (uintptr_t)rectangle->srcHost : rectangle->srcDevice,
		rows * rectangle->srcPitch + rectangle->WidthInBytes);
	fake_use_memory(to_host ? (uintptr_t)rectangle->dstHost : rectangle->dstDevice,
		rows * rectangle->dstPitch + rectangle->WidthInBytes);
	fake_counts.copies++;
	return CUDA_SUCCESS;
}

void fake_use_box(const CUDA_MEMCPY3D *box)
{
	bool from_host = box->srcMemoryType == CU_MEMORYTYPE_HOST;
	bool to_host = box->dstMemoryType == CU_MEMORYTYPE_HOST;

	if (!box->Depth || !box->Height || !box->WidthInBytes)
		return;
	fake_use_memory(from_host ? (uintptr_t)box->srcHost : box->srcDevice,
		((box->Depth - 1) * box->srcHeight + box->Height - 1) * box->srcPitch +
			box->WidthInBytes);
	fake_use_memory(to_host ? (uintptr_t)box->dstHost : box->dstDevice,
		((box->Depth - 1) * box->dstHeight + box->Height - 1) * box->dstPitch +
			box->WidthInBytes);
}

static CUresult fake_3d(const CUDA_MEMCPY3D *box, CUstream stream)
{
	fake_use_stream(stream);
	fake_use_box(box);
	fake_counts.copies += box->Depth && box->Height && box->WidthInBytes;
	return CUDA_SUCCESS;
}

static CUresult fake_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
	CUcontext from_context, size_t size, CUstream stream)
{
	fake_use(to_context, FAKE_CONTEXT);
	fake_use(from_context, FAKE_CONTEXT);
	return fake_d2d(to, from, size, stream);
}

static CUresult fill(uint64_t to, uint64_t size, CUstream stream)
{
	fake_use_stream(stream);
	fake_use_memory(to, size);
	fake_counts.fills++;
	return CUDA_SUCCESS;
}

static CUresult fake_fill_8(CUdeviceptr to, unsigned char v, size_t n, CUstream stream)
{
	return fill(to, n, stream);
}

static CUresult fake_fill_16(CUdeviceptr to, unsigned short v, size_t n, CUstream stream)
{
	return fill(to, n * 2, stream);
}

static CUresult fake_fill_32(CUdeviceptr to, unsigned int v, size_t n, CUstream stream)
{
	return fill(to, n * 4, stream);
}

static CUresult fill_2d(
	uint64_t to, uint64_t pitch, uint64_t width, uint64_t height, CUstream stream)
{
	if (!width || !height)
		return CUDA_SUCCESS;
	return fill(to, pitch * (height - 1) + width, stream);
}

static CUresult fake_fill_2d_8(CUdeviceptr to, size_t pitch, unsigned char v,
	size_t width, size_t height, CUstream stream)
{
	return fill_2d(to, pitch, width, height, stream);
}

static CUresult fake_fill_2d_32(CUdeviceptr to, size_t pitch, unsigned int v,
	size_t width, size_t height, CUstream stream)
{
	return fill_2d(to, pitch, width * 4, height, stream);
}

static CUresult fake_stream_create(CUstream *stream, unsigned int flags)
{
	need_context();
	fake_counts.streams_made++;
	*stream = make(FAKE_STREAM, current);
	return CUDA_SUCCESS;
}

static CUresult fake_stream_create_priority(
	CUstream *stream, unsigned int flags, int priority)
{
	return fake_stream_create(stream, flags);
}

static CUresult fake_stream_destroy(CUstream stream)
{
	fake_counts.streams_gone++;
	fake_graphs_forget_stream(stream);
	destroy(stream, FAKE_STREAM);
	return CUDA_SUCCESS;
}

static CUresult fake_stream_wait(CUstream stream)
{
	fake_use_stream(stream);
	return CUDA_SUCCESS;
}

static CUresult fake_write(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	fake_use_stream(stream);
	fake_use_memory(address, sizeof(value));
	fake_counts.word_writes++;
	fake_counts.last_word_value = value;
	return CUDA_SUCCESS;
}

static CUresult fake_event_create(CUevent *event, unsigned int flags)
{
	need_context();
	*event = make(FAKE_EVENT, current);
	return CUDA_SUCCESS;
}

static CUresult fake_event_destroy(CUevent event)
{
	destroy(event, FAKE_EVENT);
	return CUDA_SUCCESS;
}

static CUresult fake_event_record(CUevent event, CUstream stream)
{
	fake_use(event, FAKE_EVENT);
	fake_use_stream(stream);
	return CUDA_SUCCESS;
}

static CUresult fake_event_wait(CUevent event)
{
	fake_use(event, FAKE_EVENT);
	return CUDA_SUCCESS;
}

static CUresult fake_stream_event(CUstream stream, CUevent event, unsigned int flags)
{
	return fake_event_record(event, stream);
}

static CUresult fake_elapsed(float *time, CUevent start, CUevent end)
{
	fake_use(start, FAKE_EVENT);
	fake_use(end, FAKE_EVENT);
	*time = 1;
	return CUDA_SUCCESS;
}

/* An image is read to its end, as a parser would. */
static CUresult read_image(const void *image)
{
	return strnlen(image, 1 << 20) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

static CUresult fake_module_load(CUmodule *module, const void *image, unsigned int n,
	CUjit_option *options, void **values)
{
	CUresult result = read_image(image);
	struct fake_object *object;

	need_context();
	if (result != CUDA_SUCCESS)
		return result;
	object = make(FAKE_MODULE, current);
	object->address = take_memory(FAKE_GLOBAL_SIZE);
	*module = (CUmodule)object;
	return CUDA_SUCCESS;
}

static CUresult fake_module_unload(CUmodule module)
{
	struct fake_object *object = fake_use(module, FAKE_MODULE);

	if (object->address)
		remove_range(object->address, false);
	destroy(module, FAKE_MODULE);
	return CUDA_SUCCESS;
}

static CUresult find(void **found, void *parent, enum fake_kind kind, const char *name)
{
	uint32_t i;

	if (!strlen(name))
		return CUDA_ERROR_NOT_FOUND;
	for (i = 0; i < N_OBJECTS; i++)
		if (objects[i].kind == kind && objects[i].parent == parent)
			break;
	*found = i < N_OBJECTS ? &objects[i] : make(kind, parent);
	return CUDA_SUCCESS;
}

static CUresult fake_get_function(CUfunction *function, CUmodule module, const char *name)
{
	return find(
		(void **)function, fake_use(module, FAKE_MODULE), FAKE_FUNCTION, name);
}

static CUresult fake_get_global(
	CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
	*address = fake_use(module, FAKE_MODULE)->address;
	*size = FAKE_GLOBAL_SIZE;
	return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult fake_library_load(CUlibrary *library, const void *code,
	CUjit_option *options, void **values, unsigned int n, CUlibraryOption *more,
	void **more_values, unsigned int n_more)
{
	CUresult result = read_image(code);

	if (result == CUDA_SUCCESS)
		*library = make(FAKE_LIBRARY, NULL);
	return result;
}

static CUresult fake_library_unload(CUlibrary library)
{
	destroy(library, FAKE_LIBRARY);
	return CUDA_SUCCESS;
}

static CUresult fake_get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return find((void **)kernel, fake_use(library, FAKE_LIBRARY), FAKE_KERNEL, name);
}

static CUresult param(size_t i, size_t *offset, size_t *size)
{
	if (i >= FAKE_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = i ? 8 + (i - 1) * 4 : 0;
	if (size)
		*size = i ? 4 : 8;
	return CUDA_SUCCESS;
}

static CUresult fake_function_param(
	CUfunction function, size_t i, size_t *offset, size_t *size)
{
	fake_use(function, FAKE_FUNCTION);
	return param(i, offset, size);
}

static CUresult fake_kernel_param(CUkernel kernel, size_t i, size_t *offset, size_t *size)
{
	fake_use(kernel, FAKE_KERNEL);
	return param(i, offset, size);
}

void fake_use_launch(CUfunction function, void **extra)
{
	volatile uint8_t *bytes, sum = 0;
	size_t i;

	if (((struct fake_object *)function)->kind != FAKE_KERNEL)
		fake_use(function, FAKE_FUNCTION);
	if (!extra || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
		*(size_t *)extra[3] != FAKE_PARAM_SIZE)
		fake_broken("a launch with parameters of another size");
	bytes = extra[1];
	for (i = 0; i < FAKE_PARAM_SIZE; i++)
		sum += bytes[i];
}

static CUresult fake_launch(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	fake_use_launch(function, extra);
	fake_use_stream(stream);
	fake_counts.launches++;
	return fake_counts.next_launch;
}

static CUresult fake_launch_ex(
	const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	for (unsigned int i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			fake_use(config->attrs[i].value.launchCompletionEvent.event,
				FAKE_EVENT);
	fake_counts.attributes += config->numAttrs;
	return fake_launch(function, config->gridDimX, config->gridDimY, config->gridDimZ,
		config->blockDimX, config->blockDimY, config->blockDimZ,
		config->sharedMemBytes, config->hStream, params, extra);
}

static int set_window(
	uint64_t base, uint64_t size, uint64_t host_base, uint64_t host_size)
{
	return 0;
}

void fake_driver_init(struct driver *driver, uint64_t base)
{
	memset(objects, 0, sizeof(objects));
	memset(ranges, 0, sizeof(ranges));
	memset(&fake_counts, 0, sizeof(fake_counts));
	n_objects = 0;
	primary = NULL;
	current = NULL;
	memory_base = base;
	*driver = (struct driver){
		.path = "/nowhere/libfake.so",
		.set_window = set_window,
		.table = {
			.cuInit = fake_init,
			.cuDriverGetVersion = fake_version,
			.cuDeviceGetCount = fake_count,
			.cuDeviceGetName = fake_name,
			.cuDeviceTotalMem_v2 = fake_total,
			.cuDeviceGetUuid = fake_uuid,
			.cuDeviceGetAttribute = fake_attribute,
			.cuDevicePrimaryCtxRetain = fake_retain,
			.cuDevicePrimaryCtxRelease_v2 = fake_release,
			.cuCtxSetCurrent = fake_set_current,
			.cuCtxCreate_v4 = fake_context_create,
			.cuCtxPopCurrent_v2 = fake_pop,
			.cuCtxDestroy_v2 = fake_context_destroy,
			.cuCtxSynchronize = fake_synchronize,
			.cuMemHostRegister_v2 = fake_register,
			.cuMemHostUnregister = fake_unregister,
			.cuMemAlloc_v2 = fake_alloc,
			.cuMemFree_v2 = fake_free,
			.cuMemGetInfo_v2 = fake_info,
			.cuMemcpyHtoDAsync_v2 = fake_h2d,
			.cuMemcpyDtoHAsync_v2 = fake_d2h,
			.cuMemcpyDtoDAsync_v2 = fake_d2d,
			.cuMemcpy2DAsync_v2 = fake_2d,
			.cuMemcpy3DAsync_v2 = fake_3d,
			.cuMemcpyPeerAsync = fake_peer,
			.cuMemsetD8Async = fake_fill_8,
			.cuMemsetD16Async = fake_fill_16,
			.cuMemsetD32Async = fake_fill_32,
			.cuMemsetD2D8Async = fake_fill_2d_8,
			.cuMemsetD2D32Async = fake_fill_2d_32,
			.cuStreamCreate = fake_stream_create,
			.cuStreamCreateWithPriority = fake_stream_create_priority,
			.cuStreamDestroy_v2 = fake_stream_destroy,
			.cuStreamSynchronize = fake_stream_wait,
			.cuStreamQuery = fake_stream_wait,
			.cuStreamWaitEvent = fake_stream_event,
			.cuStreamWriteValue64_v2 = fake_write,
			.cuEventCreate = fake_event_create,
			.cuEventDestroy_v2 = fake_event_destroy,
			.cuEventRecord = fake_event_record,
			.cuEventSynchronize = fake_event_wait,
			.cuEventQuery = fake_event_wait,
			.cuEventElapsedTime_v2 = fake_elapsed,
			.cuModuleLoadDataEx = fake_module_load,
			.cuModuleUnload = fake_module_unload,
			.cuModuleGetFunction = fake_get_function,
			.cuModuleGetGlobal_v2 = fake_get_global,
			.cuLibraryLoadData = fake_library_load,
			.cuLibraryUnload = fake_library_unload,
			.cuLibraryGetKernel = fake_get_kernel,
			.cuFuncGetParamInfo = fake_function_param,
			.cuKernelGetParamInfo = fake_kernel_param,
			.cuLaunchKernel = fake_launch,
			.cuLaunchKernelEx = fake_launch_ex,
		},
	};
	fake_graphs_init(&driver->table);
}
