/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the tests of softgpu's driver API
 *
 * They are linked with libvgpu-softgpu.so and call it without anything in between.
 * Kernels are hand-written PTX, in kernels.c.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include <cuda.h>

extern const char kernels_ptx[];

#define check_cu(_call, _expected)                                                       \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		if (r_ != (_expected))                                                   \
			test_fail(__FILE__, __LINE__, "%s is %d, not %d", #_call, r_,    \
				(_expected));                                            \
	} while (0)

#define check_ok(_call) check_cu(_call, CUDA_SUCCESS)

/* A current context; the primary one. */
static inline CUcontext context_new(void)
{
	CUcontext context;

	check_ok(cuInit(0));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	return context;
}

static inline CUfunction kernel(const char *name)
{
	static CUmodule module;
	CUfunction function;

	if (!module)
		check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&function, module, name));
	return function;
}

static inline CUdeviceptr device_memory(size_t size)
{
	CUdeviceptr address;

	check_ok(cuMemAlloc(&address, size));
	check_ok(cuMemsetD8(address, 0, size));
	return address;
}

static inline unsigned int device_word(CUdeviceptr address)
{
	unsigned int word = 0;

	check_ok(cuMemcpyDtoH(&word, address, sizeof(word)));
	return word;
}

/* Pinned memory, zeroed: host and device see the same bytes at the same address. */
static inline void *pinned_memory(size_t size)
{
	void *address = NULL;

	check_ok(cuMemHostAlloc(&address, size, 0));
	memset(address, 0, size);
	return address;
}

/* Starts `gate`: waits until *word is not 0, then adds one to *counter. */
static inline CUresult launch_gate(
	volatile unsigned int *word, CUdeviceptr counter, CUstream stream)
{
	CUdeviceptr address = (uintptr_t)word;
	void *params[] = { &address, &counter };

	return cuLaunchKernel(kernel("gate"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline void open_gate(volatile unsigned int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
}

/* Starts `store`: *address = value. */
static inline CUresult launch_store(
	CUdeviceptr address, unsigned int value, CUstream stream)
{
	void *params[] = { &address, &value };

	return cuLaunchKernel(kernel("store"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}
