/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is not linked to libcuda and reaches it at run time
 *
 *	way-in now|deepbind|global|procaddr|procaddr2 LIBRARY
 *
 * Prints how many devices there are.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int init_fn(unsigned int flags);
typedef int count_fn(int *count);
typedef int procaddr_fn(const char *name, void **functionp, int version, uint64_t flags);
typedef int procaddr2_fn(
	const char *name, void **functionp, int version, uint64_t flags, int *statusp);

#define VERSION 13000

static int dlopen_flags(const char *how)
{
	if (!strcmp(how, "deepbind"))
		return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
	if (!strcmp(how, "global"))
		return RTLD_LAZY | RTLD_GLOBAL;
	return RTLD_NOW | RTLD_LOCAL;
}

static void *find(void *library, const char *how, const char *name)
{
	void *function = NULL;

	if (!strcmp(how, "procaddr")) {
		procaddr_fn *get = (procaddr_fn *)dlsym(library, "cuGetProcAddress");

		return get && !get(name, &function, VERSION, 0) ? function : NULL;
	}
	if (!strcmp(how, "procaddr2")) {
		procaddr2_fn *get = (procaddr2_fn *)dlsym(library, "cuGetProcAddress_v2");

		return get && !get(name, &function, VERSION, 0, NULL) ? function : NULL;
	}
	return dlsym(library, name);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "now";
	void *library = dlopen(argc > 2 ? argv[2] : "libcuda.so.1", dlopen_flags(how));
	int count, result;
	count_fn *get_count;
	init_fn *init;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	init = (init_fn *)find(library, how, "cuInit");
	get_count = (count_fn *)find(library, how, "cuDeviceGetCount");
	if (!init || !get_count)
		return 3;
	result = init(0);
	if (!result)
		result = get_count(&count);
	if (result) {
		fprintf(stderr, "result %d\n", result);
		return 4;
	}
	printf("devices=%d\n", count);
	return 0;
}
