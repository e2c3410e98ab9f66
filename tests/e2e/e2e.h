/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the end-to-end tests
 *
 * Each test is a process that initialises CUDA, creates a context and loads the kernels.
 * The programs are linked with plain -lcuda and independent of which library that is and
 * which driver runs the calls. Every test checks something that a host which reported
 * success and did nothing would get wrong.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include <cuda.h>

extern const char kernels_ptx[];

/* A driver library keeps its connection until the process ends. */
const bool test_keeps_descriptors = true;

#define check_cu(_call, _expected)                                                       \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		const char *name_ = NULL;                                                \
		if (r_ != (_expected)) {                                                 \
			cuGetErrorName(r_, &name_);                                      \
			test_fail(__FILE__, __LINE__, "%s is %s (%d), not %s", #_call,   \
				name_ ? name_ : "?", r_, #_expected);                    \
		}                                                                        \
	} while (0)

#define check_ok(_call) check_cu(_call, CUDA_SUCCESS)

/* The form of a call that a program of that version got. */
static inline void *old_form(const char *name, int version)
{
	void *function = NULL;

	check_ok(cuGetProcAddress(name, &function, version, 0, NULL));
	check(function);
	return function;
}

#define CALL(_name, _version, _types, ...)                                               \
	(((CUresult(*) _types)old_form(_name, _version))(__VA_ARGS__))

struct fixture {
	CUdevice device;
	CUcontext context;
	CUmodule module;
};

static inline struct fixture fixture_new(void)
{
	struct fixture fixture;

	check_ok(cuInit(0));
	check_ok(cuDeviceGet(&fixture.device, 0));
	check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuModuleLoadData(&fixture.module, kernels_ptx));
	return fixture;
}

static inline CUfunction fixture_function(const struct fixture *fixture, const char *name)
{
	CUfunction function;

	check_ok(cuModuleGetFunction(&function, fixture->module, name));
	return function;
}

/* Starts `fill`: n words at `out` become `value`. */
static inline CUresult launch_fill(
	CUfunction fill, CUdeviceptr out, unsigned int value, int n, CUstream stream)
{
	void *parameters[] = { &out, &value, &n };

	return cuLaunchKernel(
		fill, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
}

/* Starts `step`: *x = 3 * *x + 1, `rounds` times. */
static inline CUresult launch_step(
	CUfunction step, CUdeviceptr x, int rounds, CUstream stream)
{
	void *parameters[] = { &x, &rounds };

	return cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static inline unsigned int stepped(unsigned int x, int rounds)
{
	while (rounds--)
		x = 3 * x + 1;
	return x;
}

static inline unsigned int device_word(CUdeviceptr address)
{
	unsigned int word = 0;

	check_ok(cuMemcpyDtoH(&word, address, sizeof(word)));
	return word;
}
