/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a driver like NVIDIA's that softgpu does not give
 *
 * Host and device may access managed memory at the same time. That is true of softgpu,
 * too, which says no because a guest's device cannot.
 *
 * No host thread may access a managed variable whose module or library was unloaded:
 * softgpu's freed memory reads as zeros, and here it faults until code is loaded again.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "vgpu/cuda.h"

#define EXPORT __attribute__((__visibility__("default")))

#define PAGE 4096u
/* Variables of a test that are looked up while others are. */
#define N_VARIABLES 1024u

/* Has the linker keep the library that has the rest. */
__attribute__((__used__)) static CUresult (*const rest)(unsigned int) = cuInit;

/* Declares softgpu's function of that name as `next`. */
#define NEXT(_name, ...)                                                                 \
	CUresult (*next)(__VA_ARGS__);                                                   \
                                                                                         \
	*(void **)&next = dlsym(RTLD_NEXT, #_name);                                      \
	if (!next)                                                                       \
	return CUDA_ERROR_UNKNOWN

EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	CUresult result;
	NEXT(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice);

	result = next(pi, attrib, dev);
	if (result == CUDA_SUCCESS &&
		attrib == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
		*pi = 1;
	return result;
}

/*
 * Managed variables, as far as they were looked up
 */

static struct {
	pthread_mutex_t lock;
	struct variable {
		const void *parent; /* module or library; NULL: unloaded */
		CUdeviceptr address;
		size_t size;
	} variables[N_VARIABLES];
	unsigned int n;
} managed = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The pages that have nothing but the variable. */
static void protect(const struct variable *variable, int protection)
{
	const uint64_t start = (variable->address + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	const uint64_t end = (variable->address + variable->size) & ~(uint64_t)(PAGE - 1);

	if (start < end &&
		mprotect((void *)(uintptr_t)start, end - start, protection) < 0)
		abort();
}

static CUresult note(const void *parent, CUdeviceptr *address, size_t *size)
{
	unsigned int is_managed = 0;

	if (cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		    *address) != CUDA_SUCCESS ||
		!is_managed)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&managed.lock);
	if (managed.n == N_VARIABLES)
		abort();
	managed.variables[managed.n++] = (struct variable){ parent, *address, *size };
	pthread_mutex_unlock(&managed.lock);
	return CUDA_SUCCESS;
}

static void close_memory(const void *parent)
{
	pthread_mutex_lock(&managed.lock);
	for (unsigned int i = 0; i < managed.n; i++)
		if (managed.variables[i].parent == parent) {
			protect(&managed.variables[i], PROT_NONE);
			managed.variables[i].parent = NULL;
		}
	pthread_mutex_unlock(&managed.lock);
}

/* softgpu may put the next variable there. */
static void open_memory(void)
{
	pthread_mutex_lock(&managed.lock);
	for (unsigned int i = managed.n; i-- > 0;)
		if (!managed.variables[i].parent) {
			protect(&managed.variables[i], PROT_READ | PROT_WRITE);
			managed.variables[i] = managed.variables[--managed.n];
		}
	pthread_mutex_unlock(&managed.lock);
}

EXPORT CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	CUresult result;
	NEXT(cuModuleGetGlobal_v2, CUdeviceptr *, size_t *, CUmodule, const char *);

	result = next(dptr, bytes, hmod, name);
	return result == CUDA_SUCCESS ? note(hmod, dptr, bytes) : result;
}

EXPORT CUresult cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUresult result;
	NEXT(cuLibraryGetManaged, CUdeviceptr *, size_t *, CUlibrary, const char *);

	result = next(dptr, bytes, library, name);
	return result == CUDA_SUCCESS ? note(library, dptr, bytes) : result;
}

EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
	CUresult result;
	NEXT(cuModuleUnload, CUmodule);

	result = next(hmod);
	close_memory(hmod);
	return result;
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	CUresult result;
	NEXT(cuLibraryUnload, CUlibrary);

	result = next(library);
	close_memory(library);
	return result;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	NEXT(cuModuleLoadDataEx, CUmodule *, const void *, unsigned int, CUjit_option *,
		void **);

	open_memory();
	return next(module, image, numOptions, options, optionValues);
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	NEXT(cuLibraryLoadData, CUlibrary *, const void *, CUjit_option *, void **,
		unsigned int, CUlibraryOption *, void **, unsigned int);

	open_memory();
	return next(library, code, jitOptions, jitOptionsValues, numJitOptions,
		libraryOptions, libraryOptionValues, numLibraryOptions);
}
