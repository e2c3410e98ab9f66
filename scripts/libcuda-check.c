/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libcuda.so.1 answers here?
 *
 * Loads the library as any program would and prints the file that the loader found,
 * whether it is ours (it then carries an ELF note of owner "vGPU"), and what it says
 * of itself. Needs no header of CUDA: six plain functions by name.
 */

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/note.h"

#define EXIT_USAGE 125

static void *need(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	return function;
}

static int ask(void *library)
{
	int (*init)(unsigned int) = need(library, "cuInit");
	int (*version)(int *) = need(library, "cuDriverGetVersion");
	int (*count)(int *) = need(library, "cuDeviceGetCount");
	int (*name)(char *, int, int) = need(library, "cuDeviceGetName");
	int n = 0, driver = 0, r;
	char text[256] = "";

	r = init(0);
	if (r) {
		printf("cuInit: error %d\n", r);
		return EXIT_FAILURE;
	}
	version(&driver);
	count(&n);
	printf("driver version %d.%d, devices: %d\n", driver / 1000, driver % 1000 / 10,
		n);
	for (int i = 0; i < n; i++) {
		name(text, sizeof(text), i);
		printf("device %d: %s\n", i, text);
	}
	return EXIT_SUCCESS;
}

/* Returns: the exit status of a command line with anything on it, -1 for none. */
static int parse(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		puts("usage: libcuda-check [--help | --version]\n"
		     "Names the libcuda.so.1 that programs find here, and its devices.\n"
		     "Exit status: 0 a device answers, 1 none does, 125 wrong command "
		     "line.");
		return EXIT_SUCCESS;
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("libcuda-check (vGPU) " VGPU_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc > 1) {
		fprintf(stderr, "libcuda-check: unknown argument: %s (see --help)\n",
			argv[1]);
		return EXIT_USAGE;
	}
	return -1;
}

int main(int argc, char **argv)
{
	char note[256];
	struct link_map *map;
	void *library;
	bool is_ours;
	int status;

	status = parse(argc, argv);
	if (status >= 0)
		return status;
	library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
		printf("%s\n", dlerror());
		return EXIT_FAILURE;
	}
	is_ours = !vgpu_note_read_path(map->l_name, note, sizeof(note));
	printf("libcuda.so.1 is %s, %s\n", map->l_name,
		is_ours ? "the one of vGPU" : "not one of vGPU");
	if (is_ours)
		puts(note);
	return ask(library);
}
