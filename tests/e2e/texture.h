/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fixture of the end-to-end tests of textures and surfaces
 */

#include <math.h>
#include <stdint.h>

#include "e2e.h"

/*
 * Each kernel gets an object, an array of four coordinates a thread, and room for four
 * results a thread; what it does in between is the one instruction.
 */
#define KERNEL(_name, _instructions)                                                     \
	".visible .entry " _name "(.param .u64 object, .param .u64 in, "                 \
	".param .u64 out) {\n"                                                           \
	".reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<2>;\n"                         \
	"ld.param.u64 %d0, [object]; ld.param.u64 %d1, [in];\n"                          \
	"ld.param.u64 %d2, [out]; mov.u32 %r0, %tid.x;\n"                                \
	"mul.wide.u32 %d3, %r0, 16; add.s64 %d1, %d1, %d3;\n"                            \
	"add.s64 %d2, %d2, %d3; mov.b32 %r4, 0; mov.b32 %r5, 0;\n"                       \
	"mov.b32 %r6, 0; mov.b32 %r7, 0;\n"                                              \
	"ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1];\n" _instructions                \
	"st.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7}; ret; }\n"

#define RESULT "{%r4, %r5, %r6, %r7}"

enum { THREADS = 32 };

union four {
	float f[4];
	uint32_t u[4];
	int32_t s[4];
};

struct bench {
	struct fixture fixture;
	CUmodule module;
	CUdeviceptr in;
	CUdeviceptr out;
};

static inline struct bench bench_new(const char *ptx)
{
	struct bench bench = { .fixture = fixture_new() };

	check_ok(cuModuleLoadData(&bench.module, ptx));
	check_ok(cuMemAlloc(&bench.in, THREADS * sizeof(union four)));
	check_ok(cuMemAlloc(&bench.out, THREADS * sizeof(union four)));
	return bench;
}

/* Runs a kernel in one warp. Return: what became of it. */
static inline CUresult run(struct bench *bench, const char *name,
	unsigned long long object, const union four *in, union four *out)
{
	void *parameters[] = { &object, &bench->in, &bench->out };
	CUfunction function;
	CUresult r;

	check_ok(cuModuleGetFunction(&function, bench->module, name));
	check_ok(cuMemcpyHtoD(bench->in, in, THREADS * sizeof(*in)));
	check_ok(cuMemsetD8(bench->out, 0xee, THREADS * sizeof(*out)));
	check_ok(cuLaunchKernel(
		function, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
	r = cuCtxSynchronize();
	if (r == CUDA_SUCCESS)
		check_ok(cuMemcpyDtoH(out, bench->out, THREADS * sizeof(*out)));
	return r;
}

static inline CUarray make_array(size_t width, size_t height, size_t depth,
	CUarray_format format, unsigned int n_channels, unsigned int flags)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = format,
		.NumChannels = n_channels,
		.Flags = flags,
	};
	CUarray array;

	check_ok(cuArray3DCreate(&array, &descriptor));
	return array;
}

static inline void fill_array(
	CUarray array, const void *from, size_t row, size_t height, size_t depth)
{
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = row,
		.srcHeight = height,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = array,
		.WidthInBytes = row,
		.Height = height,
		.Depth = depth,
	};

	check_ok(cuMemcpy3D(&copy));
}

static inline CUDA_RESOURCE_DESC over_array(CUarray array)
{
	return (CUDA_RESOURCE_DESC){
		.resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = array,
	};
}

static inline CUtexObject make_texture(const CUDA_RESOURCE_DESC *resource,
	CUaddress_mode mode, CUfilter_mode filter, unsigned int flags)
{
	const CUDA_TEXTURE_DESC texture = {
		.addressMode = { mode, mode, mode },
		.filterMode = filter,
		.flags = flags,
		.maxMipmapLevelClamp = 16.0f,
		.borderColor = { 0.25f, 0.5f, 0.75f, 1.0f },
	};
	CUtexObject object = 0;

	check_ok(cuTexObjectCreate(&object, resource, &texture, NULL));
	check(object);
	return object;
}

static inline CUsurfObject make_surface(CUarray array)
{
	const CUDA_RESOURCE_DESC resource = over_array(array);
	CUsurfObject object = 0;

	check_ok(cuSurfObjectCreate(&object, &resource));
	check(object);
	return object;
}

/* The device may round otherwise, but not by more than this. */
static inline void check_near(float got, float wanted)
{
	if (!(fabsf(got - wanted) <= 1e-5f * (1.0f + fabsf(wanted))))
		test_fail(__FILE__, __LINE__, "%.9g instead of %.9g", got, wanted);
}
