/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes every request to vgpud, and checks the replies
 *
 *	growing IMAGE [MEBIBYTES]
 *
 * It loads code that is IMAGE's alone, once: there is no second chance to share it. And
 * it takes more pinned memory than a session begins with: so much that there is no room
 * for it twice in shared memory of 256 MiB.
 * Exit status 1: a result was wrong; 2: a call failed. It is an ordinary program of the
 * CUDA Driver API.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define EXIT_WRONG 1
#define EXIT_CALL 2

#define N 65536u
#define BLOCK 256u
#define SMALL_MIB 40u
#define BIG_MIB 128u

/* y[i] = x[i] * 3 + IMAGE. It is in the program's file, so a later process of the program
 * need not send it again. */
/* clang-format off */
#define PTX(_image)                                                                      \
	".version 7.0\n.target sm_50\n.address_size 64\n"                                \
	".visible .entry triple(.param .u64 px, .param .u64 py)\n"                       \
	"{\n"                                                                            \
	"	.reg .b32 %r<6>;\n"                                                      \
	"	.reg .b64 %d<6>;\n"                                                      \
	"	ld.param.u64 %d1, [px];\n"                                               \
	"	ld.param.u64 %d2, [py];\n"                                               \
	"	mov.u32 %r1, %ctaid.x;\n"                                                \
	"	mov.u32 %r2, %ntid.x;\n"                                                 \
	"	mov.u32 %r3, %tid.x;\n"                                                  \
	"	mad.lo.s32 %r4, %r1, %r2, %r3;\n"                                        \
	"	mul.wide.u32 %d3, %r4, 4;\n"                                             \
	"	add.s64 %d4, %d1, %d3;\n"                                                \
	"	add.s64 %d5, %d2, %d3;\n"                                                \
	"	ld.global.u32 %r5, [%d4];\n"                                             \
	"	mad.lo.s32 %r5, %r5, 3, " _image ";\n"                                   \
	"	st.global.u32 [%d5], %r5;\n"                                             \
	"	ret;\n"                                                                  \
	"}\n"
/* clang-format on */

static const char *const images[] = { PTX("0"), PTX("1"), PTX("2") };

#define N_IMAGES (sizeof(images) / sizeof(*images))

static void check_call(CUresult result, const char *what)
{
	const char *name = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "growing: %s: %s (%d)\n", what, name ? name : "?", result);
	exit(EXIT_CALL);
}

#define CU(_call) check_call((_call), #_call)

/* The last words of a block, so that all of it has to be there. */
static uint32_t *allocate(unsigned int mib)
{
	size_t size = (size_t)mib << 20;
	void *block;

	CU(cuMemAllocHost(&block, size));
	for (size_t at = 0; at < size; at += 1 << 20)
		*(uint32_t *)((char *)block + at) = (uint32_t)at;
	for (size_t at = 0; at < size; at += 1 << 20)
		if (*(uint32_t *)((char *)block + at) != (uint32_t)at)
			exit(EXIT_WRONG);
	return (uint32_t *)((char *)block + size) - N;
}

static void compute(const char *text, unsigned int image, unsigned int mib)
{
	uint32_t *x = allocate(mib), *y = allocate(SMALL_MIB);
	CUdeviceptr dx, dy;
	CUfunction function;
	CUmodule module;
	void *parameters[] = { &dx, &dy };

	CU(cuModuleLoadData(&module, text));
	CU(cuModuleGetFunction(&function, module, "triple"));
	CU(cuMemAlloc(&dx, N * sizeof(*x)));
	CU(cuMemAlloc(&dy, N * sizeof(*y)));
	for (uint32_t i = 0; i < N; i++)
		x[i] = i ^ image;
	CU(cuMemcpyHtoD(dx, x, N * sizeof(*x)));
	CU(cuLaunchKernel(
		function, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL));
	CU(cuMemcpyDtoH(y, dy, N * sizeof(*y)));
	for (uint32_t i = 0; i < N; i++) {
		if (y[i] == x[i] * 3 + image)
			continue;
		fprintf(stderr, "growing: %u is %u\n", i, y[i]);
		exit(EXIT_WRONG);
	}
	CU(cuModuleUnload(module));
}

int main(int argc, char **argv)
{
	unsigned int image = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	unsigned int mib = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : BIG_MIB;
	CUcontext context;

	if (image >= N_IMAGES)
		return EXIT_CALL;
	CU(cuInit(0));
	CU(cuCtxCreate(&context, NULL, 0, 0));
	compute(images[image], image, mib);
	CU(cuCtxDestroy(context));
	return EXIT_SUCCESS;
}
