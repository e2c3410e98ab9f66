/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code of the program
 *
 * `registry` and all that it refers to is accessed under `lock`. Constructors of the
 * program register, so nothing here may need the driver before the first call of the API.
 * `n_managed` counts images with managed variables that are not loaded; it is read
 * without the lock, by each call.
 */

#include <pthread.h>

#include "runtime/code.h"
#include "runtime/driver.h"
#include "runtime/register.h"
#include "runtime/registry.h"
#include "runtime/version.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_registry registry;
static int n_managed;

/*
 * Registration
 */

void **__cudaRegisterFatBinary(void *wrapper)
{
	struct rt_image *image;

	pthread_mutex_lock(&lock);
	image = rt_registry_add_image(&registry, wrapper);
	pthread_mutex_unlock(&lock);
	return (void **)image;
}

static void add(void **handle, const struct rt_symbol *symbol)
{
	struct rt_symbol copy = *symbol;

	copy.image = (struct rt_image *)handle;
	if (!copy.image)
		return;
	pthread_mutex_lock(&lock);
	rt_registry_add(&registry, &copy);
	if (copy.kind == RT_MANAGED && !copy.image->has_managed) {
		copy.image->has_managed = true;
		__atomic_fetch_add(&n_managed, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
	const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid,
	int *warp_size)
{
	add(handle,
		&(struct rt_symbol){ .key = host, .kind = RT_FUNCTION, .name = name });
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
	int is_external, size_t size, int is_constant, int is_global)
{
	add(handle,
		&(struct rt_symbol){
			.key = host, .kind = RT_VARIABLE, .name = name, .size = size });
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
	int is_external, size_t size, int is_constant, int is_global)
{
	add(handle,
		&(struct rt_symbol){
			.key = host, .kind = RT_MANAGED, .name = name, .size = size });
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

/* At the end of the program, or of a library that the program closes. */
void __cudaUnregisterFatBinary(void **handle)
{
	struct rt_image *image = (struct rt_image *)handle;
	CUlibrary library = NULL;

	if (!image)
		return;
	pthread_mutex_lock(&lock);
	if (image->is_loaded && !image->load_error)
		library = image->library;
	if (image->has_managed && !image->is_loaded)
		__atomic_fetch_sub(&n_managed, 1, __ATOMIC_RELAXED);
	rt_registry_remove_image(&registry, image);
	pthread_mutex_unlock(&lock);
	if (library)
		rt_driver.cuLibraryUnload(library);
}

/*
 * Loading, under `lock`
 */

static void set_managed(struct rt_image *image)
{
	for (struct rt_symbol *s = image->symbols; s; s = s->next_in_image) {
		CUdeviceptr address = 0;
		size_t size;

		if (s->kind != RT_MANAGED)
			continue;
		if (!rt_driver.cuLibraryGetManaged(
			    &address, &size, image->library, s->name))
			*(void **)s->key = (void *)(uintptr_t)address;
	}
}

static int load(struct rt_image *image)
{
	/* The image stays in the program's memory until it is unregistered. */
	CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
	void *value = (void *)(uintptr_t)1;

	if (image->is_loaded)
		return image->load_error;
	image->is_loaded = true;
	image->load_error = rt_driver.cuLibraryLoadData(
		&image->library, image->wrapper, NULL, NULL, 0, &option, &value, 1);
	if (image->has_managed) {
		__atomic_fetch_sub(&n_managed, 1, __ATOMIC_RELAXED);
		if (!image->load_error)
			set_managed(image);
	}
	return image->load_error;
}

void rt_code_load_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct rt_image *image = registry.images; image; image = image->next)
		load(image);
	pthread_mutex_unlock(&lock);
}

bool rt_code_has_managed(void)
{
	return __atomic_load_n(&n_managed, __ATOMIC_RELAXED) != 0;
}

void rt_code_load_managed(void)
{
	pthread_mutex_lock(&lock);
	for (struct rt_image *image = registry.images; image; image = image->next) {
		if (image->has_managed)
			load(image);
	}
	pthread_mutex_unlock(&lock);
}

/*
 * Kernels
 */

/* Under `lock`: remembers a handle, so that the program may use it as a function. */
static int note_kernel(
	CUkernel kernel, CUlibrary library, struct rt_image *image, const void *host)
{
	struct rt_symbol symbol = {
		.key = kernel,
		.kind = RT_KERNEL,
		.library = library,
		.image = image,
		.host = host,
	};

	if (rt_registry_find(&registry, RT_KERNEL, kernel))
		return 0;
	return rt_registry_add(&registry, &symbol) ? 0 : cudaErrorMemoryAllocation;
}

/* Under `lock`. */
static int find_kernel(struct rt_symbol *symbol)
{
	int error = load(symbol->image);
	CUkernel kernel;

	if (error || symbol->kernel)
		return error;
	error = rt_driver.cuLibraryGetKernel(
		&kernel, symbol->image->library, symbol->name);
	if (!error)
		error = note_kernel(
			kernel, symbol->image->library, symbol->image, symbol->key);
	if (!error)
		symbol->kernel = kernel;
	return error;
}

int rt_kernel_get(CUkernel *kernelp, const void *function)
{
	struct rt_symbol *symbol;
	int error = 0;

	if (!kernelp)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&lock);
	symbol = rt_registry_find(&registry, RT_FUNCTION, function);
	if (symbol) {
		error = find_kernel(symbol);
		*kernelp = symbol->kernel;
	} else if (rt_registry_find(&registry, RT_KERNEL, function)) {
		*kernelp = (CUkernel)function;
	} else {
		error = cudaErrorInvalidDeviceFunction;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

int rt_function_name(const char **namep, const void *function)
{
	struct rt_symbol *symbol;
	CUkernel kernel;
	int error;

	if (!namep)
		return cudaErrorInvalidValue;
	error = rt_kernel_get(&kernel, function);
	/* From CUDA 13 on, what is no function is taken for a handle. */
	if (error == cudaErrorInvalidDeviceFunction && rt_version >= 13000)
		error = cudaErrorInvalidResourceHandle;
	if (error)
		return error;
	pthread_mutex_lock(&lock);
	symbol = rt_registry_find(&registry, RT_FUNCTION, function);
	if (symbol)
		*namep = symbol->name;
	pthread_mutex_unlock(&lock);
	return symbol ? 0 : rt_driver.cuKernelGetName(namep, kernel);
}

const void *rt_kernel_host(CUkernel kernel)
{
	struct rt_symbol *symbol;
	const void *host = NULL;

	pthread_mutex_lock(&lock);
	symbol = rt_registry_find(&registry, RT_KERNEL, kernel);
	if (symbol)
		host = symbol->host;
	pthread_mutex_unlock(&lock);
	return host ? host : (const void *)kernel;
}

int rt_library_kernel(CUkernel *kernelp, CUlibrary library, const char *name)
{
	int error = rt_driver.cuLibraryGetKernel(kernelp, library, name);

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	error = note_kernel(*kernelp, library, NULL, NULL);
	pthread_mutex_unlock(&lock);
	return error;
}

int rt_library_kernels(CUkernel *kernels, unsigned int n, CUlibrary library)
{
	int error = rt_driver.cuLibraryEnumerateKernels(kernels, n, library);
	unsigned int n_kernels = 0;

	if (!error)
		error = rt_driver.cuLibraryGetKernelCount(&n_kernels, library);
	if (n > n_kernels)
		n = n_kernels;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; !error && i < n; i++)
		error = note_kernel(kernels[i], library, NULL, NULL);
	pthread_mutex_unlock(&lock);
	return error;
}

int rt_library_unload(CUlibrary library)
{
	int error = rt_driver.cuLibraryUnload(library);

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	rt_registry_remove_kernels(&registry, library);
	pthread_mutex_unlock(&lock);
	return 0;
}

/*
 * Variables
 */

/* Under `lock`. A program passes the address of a managed variable, which is in the
 * pointer that was registered. */
static struct rt_symbol *find_variable(const void *key)
{
	struct rt_symbol *symbol = rt_registry_find(&registry, RT_VARIABLE, key);

	if (!symbol)
		symbol = rt_registry_find(&registry, RT_MANAGED, key);
	for (struct rt_image *image = registry.images; image && !symbol;
		image = image->next) {
		for (struct rt_symbol *s = image->symbols; s && image->has_managed;
			s = s->next_in_image) {
			if (s->kind == RT_MANAGED && *(void **)s->key == key)
				symbol = s;
		}
	}
	return symbol;
}

/* Under `lock`. */
static int find_global(const void *key, CUdeviceptr *addressp, size_t *sizep)
{
	struct rt_symbol *symbol = key ? find_variable(key) : NULL;
	int error;

	if (!symbol)
		return cudaErrorInvalidSymbol;
	error = load(symbol->image);
	if (error)
		return error;
	error = (symbol->kind == RT_MANAGED ? rt_driver.cuLibraryGetManaged
					    : rt_driver.cuLibraryGetGlobal)(
		addressp, sizep, symbol->image->library, symbol->name);
	return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

int rt_symbol_find(const void *symbol, void **addressp, size_t *sizep)
{
	CUdeviceptr address = 0;
	size_t size = 0;
	int error;

	if (!addressp && !sizep)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&lock);
	error = find_global(symbol, &address, &size);
	pthread_mutex_unlock(&lock);
	if (error)
		return error;
	if (addressp)
		*addressp = (void *)(uintptr_t)address;
	if (sizep)
		*sizep = size;
	return 0;
}
