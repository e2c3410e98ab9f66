/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Null driver: libvgpu-null.so
 *
 * A driver for measuring everything but a driver. It has libcuda's interface and executes
 * nothing: kernels do not run, copies and fills move nothing, device memory is a range of
 * addresses without memory, events are complete when they are recorded. Words that a
 * stream is to write are written at once, so that waiters continue. It does what its
 * callers depend on: handles are unique, images are parsed for the names and parameters
 * of their kernels, addresses are in the window. vgpu-bench also calls it in its own
 * process, to measure a call that is not remoted.
 *
 * Results of programs that run on it are wrong. It is for benchmarks, and for tests that
 * need several devices: VGPU_NULL_DEVICES is their number. Device n differs from the
 * others by its UUID, its PCI address (the last device comes first on the bus) and its
 * memory, n GiB more than that of device 0. VGPU_NULL_GATE names a file that cuInit waits
 * for: a driver that takes as long as a test wants.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "vgpu/cuda.h"
#include "softgpu.h"
#pragma GCC visibility pop

#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "ptx/module.h"

#define NULL_VERSION 13000
#define NULL_CC 121
#define NULL_MEMORY (64ull << 30)
#define NULL_ALIGN 512
#define NULL_GRANULARITY (2u << 20)
#define NULL_DEVICES_MAX 16

/* Modules and libraries are the same thing here, and so are functions and kernels. */
struct CUmod_st {
	struct ptx_module *ptx;
};

struct CUlib_st {
	struct CUmod_st module;
};

/* A call without effect and without results. */
#define NOTHING(_call, _params)                                                          \
	CUresult _call _params                                                           \
	{                                                                                \
		return CUDA_SUCCESS;                                                     \
	}

static uint64_t memory_next = 0x200000000000;
static uint64_t handle_next = 0x10000000;
static __thread CUcontext current;

/* Primary contexts are numbers, by which their devices are known. */
static CUcontext primary_context(CUdevice device)
{
	return (CUcontext)(uintptr_t)(0x1000000 + 16 * device);
}

static size_t device_memory(CUdevice device)
{
	return NULL_MEMORY + ((size_t)device << 30);
}

static int n_devices(void)
{
	const char *text = getenv("VGPU_NULL_DEVICES");
	int n = text ? atoi(text) : 1;

	return n > 0 && n <= NULL_DEVICES_MAX ? n : 1;
}

/* A number that no other object has. */
static void *handle_new(void)
{
	return (void *)(uintptr_t)__atomic_add_fetch(&handle_next, 16, __ATOMIC_RELAXED);
}

int softgpu_configure(const struct softgpu_config *config)
{
	return 0;
}

int softgpu_set_window(
	uint64_t base, uint64_t size, uint64_t host_base, uint64_t host_size)
{
	if (size)
		__atomic_store_n(&memory_next, base, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Device
 */

CUresult cuInit(unsigned int Flags)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const char *gate = getenv("VGPU_NULL_GATE");

	while (gate && access(gate, F_OK))
		nanosleep(&pause, NULL);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	*driverVersion = NULL_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = n_devices();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return ordinal < 0 || ordinal >= n_devices() ? CUDA_ERROR_INVALID_DEVICE
						     : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	snprintf(name, len, "vGPU null driver");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	memcpy(uuid->bytes, "vGPU null driver", sizeof(uuid->bytes));
	uuid->bytes[0] += (char)dev;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	*bytes = device_memory(dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	static const int values[] = {
		[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
		[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
		[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
		[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
		[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 0x7fffffff,
		[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
		[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
		[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
		[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 101376,
		[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 102400,
		[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
		[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
		[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = 0x7fffffff,
		[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536,
		[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 65536,
		[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 1536,
		[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = 24,
		[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 1,
		[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1000000,
		[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 1000000,
		[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 1,
		[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
		[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
		[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
		[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
		[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = NULL_CC / 10,
		[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = NULL_CC % 10,
		[CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED] = 0,
	};

	if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
		*pi = NULL_DEVICES_MAX - dev;
		return CUDA_SUCCESS;
	}
	if (attrib < 1 || attrib >= sizeof(values) / sizeof(*values))
		return CUDA_ERROR_INVALID_VALUE;
	*pi = values[attrib];
	return CUDA_SUCCESS;
}

/*
 * Contexts
 */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	*pctx = primary_context(dev);
	return CUDA_SUCCESS;
}

NOTHING(cuDevicePrimaryCtxRelease_v2, (CUdevice dev))
NOTHING(cuDevicePrimaryCtxReset_v2, (CUdevice dev))
NOTHING(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags))

CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	*pctx = current = handle_new();
	return CUDA_SUCCESS;
}

NOTHING(cuCtxDestroy_v2, (CUcontext ctx))

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	current = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	*pctx = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (pctx)
		*pctx = current;
	current = NULL;
	return CUDA_SUCCESS;
}

NOTHING(cuCtxSynchronize, (void))

static CUdevice current_device(void)
{
	CUdevice device = 0;

	while (device < NULL_DEVICES_MAX && primary_context(device) != current)
		device++;
	return device % NULL_DEVICES_MAX;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	*device = current_device();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = 0;
	return CUDA_SUCCESS;
}

/*
 * Memory
 */

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	uint64_t size = (bytesize + NULL_ALIGN - 1) / NULL_ALIGN * NULL_ALIGN;

	if (!size || size > NULL_MEMORY)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*dptr = __atomic_fetch_add(&memory_next, size, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* Addresses and memory of cuMemMap are numbers, too: pools of the guest need them. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
	CUdeviceptr addr, unsigned long long flags)
{
	if (!size || size > NULL_MEMORY)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = __atomic_fetch_add(&memory_next, size, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	*handle = 1;
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	*granularity = NULL_GRANULARITY;
	return CUDA_SUCCESS;
}

/* There is no memory that one device could reach in another. */
CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	*canAccessPeer = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	*value = 0;
	return CUDA_SUCCESS;
}

NOTHING(cuMemFree_v2, (CUdeviceptr dptr))

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	*free = *total = device_memory(current_device());
	return CUDA_SUCCESS;
}

NOTHING(cuMemHostRegister_v2, (void *p, size_t bytesize, unsigned int Flags))
NOTHING(cuMemHostUnregister, (void *p))
NOTHING(cuMemcpyHtoDAsync_v2,
	(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream))
NOTHING(cuMemcpyDtoHAsync_v2,
	(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream))
NOTHING(cuMemcpyDtoDAsync_v2, (CUdeviceptr dstDevice, CUdeviceptr srcDevice,
				      size_t ByteCount, CUstream hStream))
NOTHING(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *pCopy, CUstream hStream))
NOTHING(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *pCopy, CUstream hStream))
NOTHING(cuMemsetD8Async,
	(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream))
NOTHING(cuMemsetD16Async,
	(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream))
NOTHING(cuMemsetD32Async,
	(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream))

/*
 * Modules and kernels
 */

static const void *image_container(const void *image)
{
	uint32_t magic;
	const void *container;

	memcpy(&magic, image, sizeof(magic));
	if (magic != 0x466243b1)
		return image;
	memcpy(&container, (const char *)image + 8, sizeof(container));
	return container;
}

static CUresult module_load(struct CUmod_st *module, const void *data)
{
	const void *image = image_container(data);
	struct softgpu_image ptx;
	struct ptx_error error;
	size_t size;
	int r;

	if (fatbin_is_container(image, FATBIN_HEADER_SIZE)) {
		memcpy(&size, (const char *)image + 8, sizeof(size));
		size += FATBIN_HEADER_SIZE;
	} else {
		size = strlen(image) + 1;
	}
	r = softgpu_image_select(image, size, NULL_CC, 0, &ptx);
	if (r)
		return r < 0 ? CUDA_ERROR_OUT_OF_MEMORY
			     : (CUresult)softgpu_image_result(r);
	r = ptx_module_new(&module->ptx, ptx.text, ptx.size, NULL_CC, &error);
	softgpu_image_deinit(&ptx);
	if (r)
		return r < 0 ? CUDA_ERROR_OUT_OF_MEMORY : (CUresult)ptx_result(r);
	return CUDA_SUCCESS;
}

static CUresult library_load(CUlibrary *library, const void *image)
{
	CUresult result;

	*library = calloc(1, sizeof(**library));
	if (!*library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = module_load(&(*library)->module, image);
	if (result)
		free(*library);
	return result;
}

static void library_free(CUlibrary library)
{
	ptx_module_free(library->module.ptx);
	free(library);
}

/* The handle of a kernel is the place of its declaration. */
static CUresult kernel_find(
	void **kernel, const struct CUmod_st *module, const char *name)
{
	uint32_t i = ptx_module_find_function(module->ptx, name);

	if (i == PTX_INDEX_NONE || !module->ptx->functions[i].is_entry)
		return CUDA_ERROR_NOT_FOUND;
	*kernel = &module->ptx->functions[i];
	return CUDA_SUCCESS;
}

static CUresult kernel_param(
	const struct ptx_function *kernel, size_t index, size_t *offset, size_t *size)
{
	if (index >= kernel->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->params[index].offset;
	if (size)
		*size = kernel->params[index].size;
	return CUDA_SUCCESS;
}

static CUresult variable_find(CUdeviceptr *address, size_t *size,
	const struct CUmod_st *module, const char *name)
{
	uint32_t i = ptx_module_find_variable(module->ptx, name);

	if (i == PTX_INDEX_NONE)
		return CUDA_ERROR_NOT_FOUND;
	if (size)
		*size = module->ptx->variables[i].size;
	return cuMemAlloc_v2(address, module->ptx->variables[i].size);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	return library_load((CUlibrary *)module, image);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return library_load((CUlibrary *)module, image);
}

CUresult cuModuleUnload(CUmodule hmod)
{
	library_free((CUlibrary)hmod);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	return kernel_find((void **)hfunc, hmod, name);
}

CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	return variable_find(dptr, bytes, hmod, name);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	return library_load(library, code);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	library_free(library);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	return kernel_find((void **)pKernel, &library->module, name);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	*pMod = &library->module;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return variable_find(dptr, bytes, &library->module, name);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	*pFunc = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(
	CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return kernel_param(
		(const struct ptx_function *)kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return kernel_param(
		(const struct ptx_function *)func, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	*pi = attrib == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
	return CUDA_SUCCESS;
}

NOTHING(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value))
NOTHING(cuLaunchKernel,
	(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
		unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
		unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
		void **kernelParams, void **extra))
NOTHING(cuLaunchKernelEx,
	(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra))

/*
 * Streams and events
 */

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	*phStream = handle_new();
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	*phStream = handle_new();
	return CUDA_SUCCESS;
}

NOTHING(cuStreamDestroy_v2, (CUstream hStream))
NOTHING(cuStreamQuery, (CUstream hStream))
NOTHING(cuStreamSynchronize, (CUstream hStream))
NOTHING(cuStreamWaitEvent, (CUstream hStream, CUevent hEvent, unsigned int Flags))

CUresult cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	__atomic_store_n((uint32_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	*phEvent = handle_new();
	return CUDA_SUCCESS;
}

NOTHING(cuEventDestroy_v2, (CUevent hEvent))
NOTHING(cuEventRecord, (CUevent hEvent, CUstream hStream))
NOTHING(cuEventRecordWithFlags, (CUevent hEvent, CUstream hStream, unsigned int flags))
NOTHING(cuEventQuery, (CUevent hEvent))
NOTHING(cuEventSynchronize, (CUevent hEvent))

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	*pMilliseconds = 0;
	return CUDA_SUCCESS;
}

/*
 * Captures and graphs
 *
 * A graph is a number without nodes, whatever was captured or added. One stream at a time
 * is captured, which is enough for programs that measure.
 */

static struct {
	CUstream stream;
	CUgraph graph;
	cuuint64_t id;
} capture;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode now;
	CUstreamCaptureMode before = now;

	now = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	capture.stream = hStream;
	capture.graph = handle_new();
	capture.id++;
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	*phGraph = hStream == capture.stream ? capture.graph : NULL;
	capture.stream = NULL;
	return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	*captureStatus = hStream && hStream == capture.stream
				 ? CU_STREAM_CAPTURE_STATUS_ACTIVE
				 : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
	size_t *numDependencies_out)
{
	cuStreamIsCapturing(hStream, captureStatus_out);
	if (id_out)
		*id_out = capture.id;
	if (graph_out)
		*graph_out = capture.graph;
	if (dependencies_out)
		*dependencies_out = NULL;
	if (edgeData_out)
		*edgeData_out = NULL;
	if (numDependencies_out)
		*numDependencies_out = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	*phGraph = handle_new();
	return CUDA_SUCCESS;
}

NOTHING(cuGraphDestroy, (CUgraph hGraph))
NOTHING(cuGraphDestroyNode, (CUgraphNode hNode))

static CUresult node_new(CUgraphNode *node)
{
	*node = handle_new();
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return node_new(phGraphNode);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	return node_new(phGraphNode);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	return node_new(phGraphNode);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	return node_new(phGraphNode);
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	return node_new(phGraphNode);
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	*numNodes = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edgeData, size_t *numEdges)
{
	*numEdges = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	*phGraphExec = handle_new();
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	*phGraphExec = handle_new();
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return CUDA_SUCCESS;
}

NOTHING(cuGraphExecKernelNodeSetParams_v2,
	(CUgraphExec hGraphExec, CUgraphNode hNode,
		const CUDA_KERNEL_NODE_PARAMS *nodeParams))
NOTHING(cuGraphExecDestroy, (CUgraphExec hGraphExec))
NOTHING(cuGraphUpload, (CUgraphExec hGraph, CUstream hStream))
NOTHING(cuGraphLaunch, (CUgraphExec hGraph, CUstream hStream))
