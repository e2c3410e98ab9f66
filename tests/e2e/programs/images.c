/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads code from one of several places, and runs it
 *
 *	images WHERE [FILE [TIMES]]
 *
 * WHERE is `self` (a constant of this program), `map` (a file, mapped), `copy` (a file,
 * read), `library` (a shared object that contains it), `file` (cuModuleLoad),
 * `library-file` (cuLibraryLoadFromFile) or `library-map` (cuLibraryLoadData of a file,
 * mapped). With TIMES it is loaded that often, and all but the first are unloaded, then
 * the program prints "ready" and waits for a line. The output of the kernel `fill` is
 * checked; the exit status is 0 if it is right.
 *
 * With AHEAD_S in its environment its clock is so many seconds ahead: files that were
 * just written then seem unmodified for that long.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

extern const char kernels_ptx[];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "images: %s\n", what);
	exit(1);
}

/* In place of the C library's, for the guest library too. */
__attribute__((__visibility__("default"))) int clock_gettime(
	clockid_t clock, struct timespec *time)
{
	const char *ahead = getenv("AHEAD_S");
	long r = syscall(SYS_clock_gettime, clock, time);

	if (!r && ahead && clock == CLOCK_REALTIME)
		time->tv_sec += atoi(ahead);
	return (int)r;
}

static const void *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	must(fd >= 0 && !fstat(fd, &st), path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	must(bytes != MAP_FAILED, "mmap");
	close(fd);
	return bytes;
}

static const void *copy_file(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *bytes;

	must(file && !fstat(fileno(file), &st), path);
	bytes = calloc(1, (size_t)st.st_size + 1);
	must(bytes && fread(bytes, 1, (size_t)st.st_size, file) == (size_t)st.st_size,
		"read");
	fclose(file);
	return bytes;
}

static const void *find_symbol(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	must(library != NULL, path);
	return dlsym(library, "kernels_ptx");
}

static const void *image_of(const char *where, const char *path)
{
	if (!strcmp(where, "self"))
		return kernels_ptx;
	if (!strcmp(where, "map"))
		return map_file(path);
	if (!strcmp(where, "copy"))
		return copy_file(path);
	return find_symbol(path);
}

struct code {
	CUlibrary library; /* NULL: the module was not loaded from a library */
	CUmodule module;
};

static struct code load(const char *where, const char *path)
{
	struct code code = {};
	CUresult result;

	if (!strcmp(where, "file"))
		result = cuModuleLoad(&code.module, path);
	else if (!strcmp(where, "library-file"))
		result = cuLibraryLoadFromFile(
			&code.library, path, NULL, NULL, 0, NULL, NULL, 0);
	else if (!strcmp(where, "library-map"))
		result = cuLibraryLoadData(&code.library, image_of("map", path), NULL,
			NULL, 0, NULL, NULL, 0);
	else
		result = cuModuleLoadData(&code.module, image_of(where, path));
	must(!result, "no code");
	must(!code.library || !cuLibraryGetModule(&code.module, code.library),
		"no module of a library");
	return code;
}

static void unload(struct code code)
{
	must(!(code.library ? cuLibraryUnload(code.library)
			    : cuModuleUnload(code.module)),
		"no unload");
}

/* The module belongs to this image. */
static void run(CUmodule module)
{
	unsigned int value = 77, word = 0, n = 1;
	CUdeviceptr out;
	void *parameters[] = { &out, &value, &n };
	CUfunction fill;

	must(!cuModuleGetFunction(&fill, module, "fill"), "no function");
	must(!cuMemAlloc(&out, sizeof(word)), "no memory");
	must(!cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
		"no launch");
	must(!cuMemcpyDtoH(&word, out, sizeof(word)), "no copy");
	must(word == value, "another value");
}

int main(int argc, char **argv)
{
	const char *where = argv[1], *path = argc > 2 ? argv[2] : NULL;
	int times = argc > 3 ? atoi(argv[3]) : 0;
	CUcontext context;

	must(argc > 1 && !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) &&
			!cuCtxSetCurrent(context),
		"no context");
	run(load(where, path).module);
	for (int i = 1; i < times; i++)
		unload(load(where, path));
	if (!times)
		return 0;
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
