/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program starts and ends
 *
 * Each sample is a process that has never loaded the library. It reports its progress
 * with times; its parent sees its end. With a warm worker ("warm") and without ("cold"),
 * and with a large image that its host already has or not.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library.h"

#define IMAGE_SIZE (8 * BENCH_MIB)
#define IMAGE_QUICK_SIZE (256 * BENCH_KIB)
/* A new warm worker is started while the process runs that took the last one. */
#define REFILL_US 200000
/* The digest of a file that was just written is not cached
 * (guest-shim/src/memory/backing.c). */
#define SETTLED_US 3000000

/* Points in time of one process. */
struct moments {
	double begin, init, context, launch, end;
};

struct program {
	const struct bench_sink *sink;
	const char *path;  /* of the library */
	const char *image; /* a file with a large image, or NULL */
};

static void launch_once(CUfunction function)
{
	static uint64_t values[N_PARAMETERS];
	void *parameters[N_PARAMETERS];

	for (int i = 0; i < N_PARAMETERS; i++)
		parameters[i] = &values[i];
	must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	must(cuCtxSynchronize());
}

static void launch_from_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	CUlibrary library;
	CUkernel kernel;
	void *image;

	image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED) {
		fprintf(stderr, "vgpu-bench: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	must(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	must(cuLibraryGetKernel(&kernel, library, "nothing"));
	launch_once((CUfunction)kernel);
}

static void run(const struct program *program, struct moments *moments)
{
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUdevice device;

	moments->begin = bench_now();
	if (library_open(program->path) < 0)
		exit(1);
	must(cuInit(0));
	moments->init = bench_now();
	must(cuDeviceGet(&device, 0));
	must(cuDevicePrimaryCtxRetain(&context, device));
	must(cuCtxSetCurrent(context));
	moments->context = bench_now();
	if (program->image) {
		launch_from_file(program->image);
	} else {
		must(cuModuleLoadData(&module, kernels_ptx));
		must(cuModuleGetFunction(&function, module, "nothing"));
		launch_once(function);
	}
	moments->launch = bench_now();
}

/* Returns: 0 with the moments of one process, or -1 after a line on stderr. */
static int run_apart(const struct program *program, struct moments *moments)
{
	int fds[2], status = 0;
	bool complete;
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = bench_fork();
	if (!pid) {
		close(fds[0]);
		run(program, moments);
		moments->end = bench_now();
		if (write(fds[1], moments, sizeof(*moments)) != sizeof(*moments))
			exit(1);
		/* Not _exit(): a destructor of the library closes the session. */
		exit(0);
	}
	close(fds[1]);
	complete = pid > 0 && read(fds[0], moments, sizeof(*moments)) == sizeof(*moments);
	close(fds[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status && complete) {
		moments->end = bench_now() - moments->end;
		return 0;
	}
	fprintf(stderr, "vgpu-bench: a program that only starts failed\n");
	return -1;
}

static void report(const struct bench_sink *sink, const char *what, const char *suffix,
	struct bench_samples *samples)
{
	char name[BENCH_NAME_MAX];

	snprintf(name, sizeof(name), "start_%s%s", what, suffix);
	if (bench_wanted(sink->options, name))
		bench_report(sink, name, "ns", samples);
}

static int measure_steps(const struct program *program, const char *suffix, int us)
{
	struct bench_samples init = {}, context = {}, launch = {}, end = {};
	const struct bench_sink *sink = program->sink;
	struct moments moments;

	while (bench_more(&init, bench_count(sink, 11, 2))) {
		usleep(us);
		if (run_apart(program, &moments) < 0)
			return -1;
		bench_sample(&init, moments.init - moments.begin);
		bench_sample(&context, moments.context - moments.init);
		bench_sample(&launch, moments.launch - moments.context);
		bench_sample(&end, moments.end);
	}
	report(sink, "init", suffix, &init);
	report(sink, "context", suffix, &context);
	report(sink, "launch", suffix, &launch);
	report(sink, "exit", suffix, &end);
	return 0;
}

static int measure_steps_remoted(const struct program *program, const char *driver)
{
	const struct bench_sink *sink = program->sink;
	struct bench_host host;
	int r = 0;

	for (int n_warm = 1; !r && n_warm >= 0; n_warm--) {
		r = bench_host_start(&host, driver, sink->options->host_cpu, n_warm);
		if (!r)
			r = measure_steps(program, n_warm ? "_warm" : "_cold", REFILL_US);
		bench_host_stop(&host);
	}
	return r;
}

/*
 * A large image: a container of one plain text with many kernels
 */

/* Header, entry header of 64 bytes; the text follows. */
static void write_header(FILE *file, uint64_t text_size)
{
	uint8_t bytes[80] = {};
	uint64_t total = 64 + text_size;

	memcpy(bytes, &(uint32_t){ 0xba55ed50 }, 4);
	memcpy(bytes + 4, &(uint16_t){ 1 }, 2);
	memcpy(bytes + 6, &(uint16_t){ 16 }, 2);
	memcpy(bytes + 8, &total, 8);
	memcpy(bytes + 16, &(uint16_t){ 1 }, 2); /* PTX */
	memcpy(bytes + 18, &(uint16_t){ 0x101 }, 2);
	memcpy(bytes + 20, &(uint32_t){ 64 }, 4);
	memcpy(bytes + 24, &text_size, 8);
	memcpy(bytes + 42, &(uint16_t){ 6 }, 2);    /* ISA 6.0 */
	memcpy(bytes + 44, &(uint32_t){ 50 }, 4);   /* sm_50 */
	memcpy(bytes + 56, &(uint64_t){ 0x11 }, 8); /* 64-bit Linux */
	fwrite(bytes, sizeof(bytes), 1, file);
}

static void write_image(FILE *file, size_t size)
{
	unsigned int n = 0;

	write_header(file, 0);
	fputs(kernels_ptx, file);
	while ((size_t)ftell(file) < size) {
		fprintf(file,
			".visible .entry other_%u(.param .u64 a)\n{\n"
			"  .reg .u64 %%rd<3>;\n  .reg .f32 %%f<3>;\n"
			"  ld.param.u64 %%rd1, [a];\n"
			"  ld.global.f32 %%f1, [%%rd1];\n",
			n++);
		for (int i = 0; i < 16; i++)
			fprintf(file, "  add.f32 %%f1, %%f1, %%f1;\n");
		fprintf(file, "  st.global.f32 [%%rd1], %%f1;\n  ret;\n}\n");
	}
	/* The text ends with a NUL, the entry at a multiple of 8. */
	do
		fputc(0, file);
	while (ftell(file) % 8);
	size = ftell(file) - 80;
	rewind(file);
	write_header(file, size);
}

static int measure_image(const struct program *program, struct bench_samples *samples)
{
	struct moments moments;

	if (run_apart(program, &moments) < 0)
		return -1;
	bench_sample(samples, moments.launch - moments.context);
	return 0;
}

static int measure_images(const struct program *program, const char *driver)
{
	const struct bench_sink *sink = program->sink;
	struct bench_samples first = {}, second = {};
	struct bench_host host;
	int r = 0;

	for (unsigned int i = 0; !r && i < bench_count(sink, 5, 1); i++) {
		if (!driver) {
			r = measure_image(program, &first);
			continue;
		}
		r = bench_host_start(&host, driver, sink->options->host_cpu, 1);
		if (!r) {
			usleep(REFILL_US);
			r = measure_image(program, &first);
			usleep(REFILL_US);
		}
		if (!r)
			r = measure_image(program, &second);
		bench_host_stop(&host);
	}
	report(sink, "image", driver ? "_first" : "", &first);
	report(sink, "image", "_second", &second);
	return r;
}

int bench_start(const struct bench_sink *sink, const char *path, const char *driver)
{
	struct program program = { .sink = sink, .path = path };
	char image[] = "/tmp/vgpu-bench-image.XXXXXX";
	FILE *file;
	int r, fd;

	r = driver ? measure_steps_remoted(&program, driver)
		   : measure_steps(&program, "", 0);
	if (r || !bench_wanted(sink->options, "start_image"))
		return r;
	fd = mkstemp(image);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		fprintf(stderr, "vgpu-bench: %s: %s\n", image, strerror(errno));
		return -1;
	}
	write_image(file, sink->options->quick ? IMAGE_QUICK_SIZE : IMAGE_SIZE);
	program.image = image;
	r = fclose(file);
	if (!r && driver && !sink->options->quick)
		usleep(SETTLED_US);
	r = r ? -1 : measure_images(&program, driver);
	unlink(image);
	return r;
}
