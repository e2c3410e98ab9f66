/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the end-to-end programs
 *
 * They are ordinary programs of the CUDA Driver API: they are independent of this
 * project, linked with plain -lcuda, and also run on NVIDIA's driver.
 */

#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

/* PTX of tests/e2e/kernels/kernels.cu, with a final NUL. */
extern const char kernels_ptx[];

static inline void cuda_check(CUresult r, const char *what, const char *file, int line)
{
	const char *name = NULL;

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &name);
	fprintf(stderr, "%s:%d: %s: %s (%d)\n", file, line, what, name ? name : "?", r);
	exit(EXIT_FAILURE);
}

#define CU(_call) cuda_check((_call), #_call, __FILE__, __LINE__)

struct program {
	CUdevice device;
	CUcontext context;
	CUmodule module;
};

/* Opens device 0 with a new context and loads the kernels. */
static inline struct program program_start(void)
{
	struct program program;
	char name[256];

	CU(cuInit(0));
	CU(cuDeviceGet(&program.device, 0));
	CU(cuDeviceGetName(name, sizeof(name), program.device));
	printf("device: %s\n", name);
	CU(cuCtxCreate(&program.context, NULL, 0, program.device));
	CU(cuModuleLoadData(&program.module, kernels_ptx));
	return program;
}

static inline CUfunction program_function(const struct program *program, const char *name)
{
	CUfunction function;

	CU(cuModuleGetFunction(&function, program->module, name));
	return function;
}

static inline void program_end(struct program *program)
{
	CU(cuModuleUnload(program->module));
	CU(cuCtxDestroy(program->context));
}

/* Prints the verdict that the demo and the tests look for. */
static inline int program_result(const char *what, size_t n, size_t n_wrong)
{
	printf("%s: %zu values, %zu wrong: %s\n", what, n, n_wrong,
		n_wrong ? "FAIL" : "PASS");
	return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
