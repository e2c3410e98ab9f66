/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch allocates nothing
 *
 * The functions are counted where the program defines them (they come before libc's), or
 * by the hooks of a sanitizer, which already intercepts them.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "test.h"

#include <cuda.h>

#define CHECK(_call) check_eq((_call), CUDA_SUCCESS)
#define LAUNCHES 10000

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry k(.param .u64 a, .param .u32 b)\n{\n\tret;\n}\n";

static struct pair pair;
static unsigned long n_allocations;

#ifdef __SANITIZE_ADDRESS__

int __sanitizer_install_malloc_and_free_hooks(
	void (*allocated)(const volatile void *, size_t),
	void (*freed)(const volatile void *));

static void count_allocation(const volatile void *pointer, size_t size)
{
	n_allocations++;
}

static void count_nothing(const volatile void *pointer)
{
}

static void begin_counting(void)
{
	check(__sanitizer_install_malloc_and_free_hooks(count_allocation, count_nothing) >
		0);
	n_allocations = 0;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *pointer, size_t size);

__attribute__((__visibility__("default"))) void *malloc(size_t size)
{
	n_allocations++;
	return __libc_malloc(size);
}

__attribute__((__visibility__("default"))) void *calloc(size_t n, size_t size)
{
	n_allocations++;
	return __libc_calloc(n, size);
}

__attribute__((__visibility__("default"))) void *realloc(void *pointer, size_t size)
{
	n_allocations++;
	return __libc_realloc(pointer, size);
}

__attribute__((__visibility__("default"))) void *mmap(
	void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	n_allocations++;
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static void begin_counting(void)
{
	n_allocations = 0;
}

#endif

static void launch(void)
{
	unsigned int value = 0;
	CUdeviceptr pointer;
	CUcontext context;
	CUfunction function;
	CUmodule module;
	void *params[] = { &pointer, &value }, *counted;
	CUstream stream;

	CHECK(cuInit(0));
	CHECK(cuCtxCreate_v2(&context, 0, 0));
	CHECK(cuMemAlloc(&pointer, 4096));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&function, module, "k"));
	CHECK(cuStreamCreate(&stream, 0));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));

	begin_counting();
	/* The counter counts. */
	counted = malloc(100);
	/* An optimising compiler leaves out an allocation that nobody can see. */
	__asm__ volatile("" : : "r"(counted) : "memory");
	free(counted);
	check(n_allocations > 0);
	n_allocations = 0;
	for (int i = 0; i < LAUNCHES; i++)
		CHECK(cuLaunchKernel(
			function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamSynchronize(stream));
	check_eq(n_allocations, 0);
}

TEST(launches_allocate_nothing)
{
	const struct pair_options options = { .driver = NULL_DRIVER };
	struct pair_session session;
	int status;
	pid_t pid;

	pair_start(&pair, &options);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		launch();
		exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.launches, LAUNCHES + 1);
	check_eq(session.refused_async, 0);
	pair_stop(&pair);
}
