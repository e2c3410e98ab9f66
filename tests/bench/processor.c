/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processor time while there is no work
 *
 * A kernel waits for a word, the program waits for the kernel, and a second thread ends
 * both after a while. On the software device the kernel itself keeps a processor of the
 * host busy, which the same figure of the driver in this process shows, too.
 */

#include <string.h>
#include <unistd.h>

#include "library.h"

#define WAIT_US 500000u
#define QUICK_WAIT_US 50000u
#define SETTLE_US 300000u

struct release {
	uint32_t *word;
	unsigned int us;
};

/* The time used by both sides, in ns. */
struct used {
	double guest, host, when;
};

static struct used read_used(const struct bench *bench)
{
	struct used used = { .when = bench_now() };
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	used.guest = ts.tv_sec * 1e9 + ts.tv_nsec;
	if (bench->host)
		used.host = bench_host_cpu_time(bench->host);
	return used;
}

static void *release_later(void *userdata)
{
	struct release *release = userdata;

	usleep(release->us);
	__atomic_store_n(release->word, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void wait_for_kernel(struct bench *bench)
{
	struct release release = { .us = bench_count(
					   bench->sink, WAIT_US, QUICK_WAIT_US) };
	CUdeviceptr address;
	CUfunction wait_for;
	pthread_t thread;

	must(cuModuleGetFunction(&wait_for, bench->module, "wait_for"));
	must(cuMemHostAlloc((void **)&release.word, sizeof(*release.word),
		CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&address, release.word, 0));
	*release.word = 0;
	if (pthread_create(&thread, NULL, release_later, &release)) {
		fprintf(stderr, "vgpu-bench: no thread\n");
		exit(1);
	}
	must(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, bench->stream,
		(void *[]){ &address }, NULL));
	must(cuStreamSynchronize(bench->stream));
	pthread_join(thread, NULL);
	must(cuMemFreeHost(release.word));
}

static void rest(struct bench *bench)
{
	usleep(bench_count(bench->sink, 2 * WAIT_US, QUICK_WAIT_US));
}

/* Reports <what>_cpu_guest and <what>_cpu_host. */
static void measure_used(
	struct bench *bench, const char *what, void (*pass)(struct bench *bench))
{
	struct bench_samples guest = {}, host = {};
	char name[BENCH_NAME_MAX];
	struct used before, after;

	snprintf(name, sizeof(name), "%s_cpu", what);
	if (!bench_wanted(bench->sink->options, name))
		return;
	usleep(bench_count(bench->sink, SETTLE_US, 0));
	for (unsigned int i = 0; i < bench_count(bench->sink, 3, 1); i++) {
		before = read_used(bench);
		pass(bench);
		after = read_used(bench);
		bench_sample(&guest,
			(after.guest - before.guest) / (after.when - before.when));
		bench_sample(
			&host, (after.host - before.host) / (after.when - before.when));
	}
	snprintf(name, sizeof(name), "%s_cpu_guest", what);
	bench_report(bench->sink, name, "cpu", &guest);
	if (!bench->host)
		return;
	snprintf(name, sizeof(name), "%s_cpu_host", what);
	bench_report(bench->sink, name, "cpu", &host);
}

void measure_processor(struct bench *bench)
{
	measure_used(bench, "idle", rest);
	/* A driver that executes nothing has no kernel that waits. */
	if (strncmp(bench->sink->driver, "null", 4))
		measure_used(bench, "wait", wait_for_kernel);
}
