/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Services: the functions of CUDA's device runtime, by which kernels launch kernels
 *
 * A call of one is an operation (SERVE), whether a module defines such a function or not:
 * the library that nvcc adds to relocatable programs defines all of them, in terms of
 * functions of a driver that are not documented. The names have one of two prefixes, the
 * second for code that was not compiled by nvcc. A function with a suffix is the same for
 * programs in which each thread has a default stream.
 */

#include <stdbool.h>
#include <stdint.h>

#define SERVICE_PREFIX "__cudaCDP2"
#define SERVICE_PREFIX_PLAIN "cuda"
#define SERVICE_SUFFIX "_ptsz"

/*
 * X(number, name, sizes, in_size): in the order of the declaration the sizes of the
 * arguments, then after a colon of the result: w is 4 bytes, x 8, d 12 (dim3),
 * e 24 (cudaExtent), p 32 (cudaPitchedPtr). in_size: bytes at the address in the first
 * argument, which are read.
 */
/* clang-format off */
#define SOFTGPU_SERVICES(X)                                                              \
	X(GET_LAST_ERROR, "GetLastError", ":w", 0)                                       \
	X(PEEK_AT_LAST_ERROR, "PeekAtLastError", ":w", 0)                                \
	X(GET_DEVICE, "GetDevice", "x:w", 0)                                             \
	X(GET_DEVICE_COUNT, "GetDeviceCount", "x:w", 0)                                  \
	X(DEVICE_GET_ATTRIBUTE, "DeviceGetAttribute", "xww:w", 0)                        \
	X(DEVICE_GET_LIMIT, "DeviceGetLimit", "xw:w", 0)                                 \
	X(DEVICE_GET_CACHE_CONFIG, "DeviceGetCacheConfig", "x:w", 0)                     \
	X(DEVICE_GET_SHARED_MEM_CONFIG, "DeviceGetSharedMemConfig", "x:w", 0)            \
	X(FUNC_GET_ATTRIBUTES, "FuncGetAttributes", "xx:w", 0)                           \
	X(OCCUPANCY, "OccupancyMaxActiveBlocksPerMultiprocessor", "xxwx:w", 0)           \
	X(OCCUPANCY_WITH_FLAGS, "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",    \
		"xxwxw:w", 0)                                                            \
	X(MALLOC, "Malloc", "xx:w", 0)                                                   \
	X(FREE, "Free", "x:w", 0)                                                        \
	X(STREAM_CREATE, "StreamCreateWithFlags", "xw:w", 0)                             \
	X(STREAM_DESTROY, "StreamDestroy", "x:w", 0)                                     \
	X(STREAM_WAIT_EVENT, "StreamWaitEvent", "xxw:w", 0)                              \
	X(EVENT_CREATE, "EventCreateWithFlags", "xw:w", 0)                               \
	X(EVENT_RECORD, "EventRecord", "xx:w", 0)                                        \
	X(EVENT_RECORD_WITH_FLAGS, "EventRecordWithFlags", "xxw:w", 0)                   \
	X(EVENT_DESTROY, "EventDestroy", "x:w", 0)                                       \
	X(MEMCPY, "MemcpyAsync", "xxxwx:w", 0)                                           \
	X(MEMCPY_2D, "Memcpy2DAsync", "xxxxxxwx:w", 0)                                   \
	X(MEMCPY_3D, "Memcpy3DAsync", "xx:w", 160)                                       \
	X(MEMSET, "MemsetAsync", "xwxx:w", 0)                                            \
	X(MEMSET_2D, "Memset2DAsync", "xxwxxx:w", 0)                                     \
	X(MEMSET_3D, "Memset3DAsync", "pwex:w", 0)                                       \
	X(GET_BUFFER, "GetParameterBuffer", "xx:x", 0)                                   \
	X(GET_BUFFER_V2, "GetParameterBufferV2", "xddw:x", 0)                            \
	X(LAUNCH, "LaunchDevice", "xxddwx:w", 0)                                         \
	X(LAUNCH_V2, "LaunchDeviceV2", "xx:w", 0)
/* clang-format on */

enum softgpu_service {
#define X(_number, _name, _sizes, _in_size) SERVICE_##_number,
	SOFTGPU_SERVICES(X)
#undef X
		_SERVICE_N,
};

/* With what the code names the service: the flag for a function with the suffix. */
#define SERVICE_PER_THREAD 0x100u

#define SERVICE_WORDS_MAX 16u
#define SERVICE_IN_MAX 160u
#define SERVICE_OUT_MAX 80u

/* Codes of the runtime library, which the device runtime returns. */
enum {
	SERVICE_OK = 0,
	SERVICE_INVALID_VALUE = 1,
	SERVICE_MEMORY_ALLOCATION = 2,
	SERVICE_INVALID_CONFIGURATION = 9,
	SERVICE_LAUNCH_PENDING_COUNT_EXCEEDED = 69,
	SERVICE_INVALID_DEVICE_FUNCTION = 98,
	SERVICE_INVALID_DEVICE = 101,
	SERVICE_UNSUPPORTED_LIMIT = 215,
	SERVICE_INVALID_RESOURCE_HANDLE = 400,
	SERVICE_NOT_SUPPORTED = 801,
};

/* One call by one thread. */
struct softgpu_request {
	enum softgpu_service service;
	bool is_per_thread; /* the default stream is that of the thread */
	uint64_t block;	    /* number in the grid */
	uint32_t thread;    /* number in the block */

	/* The arguments: each begins at a word of its own. */
	uint64_t words[SERVICE_WORDS_MAX];
	uint8_t in[SERVICE_IN_MAX] __attribute__((aligned(8)));

	/* What goes to the address in the first argument, if it is not empty. */
	uint8_t out[SERVICE_OUT_MAX] __attribute__((aligned(8)));
	uint32_t out_size;
	uint64_t address; /* the result of a service that returns one */
};
