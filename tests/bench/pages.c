/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own limits: shared memory in pages of each kind (hugepages of vgpud.conf)
 */

#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (64 * BENCH_MIB)
#define N_SAMPLES 9u

struct kind {
	const char *name;
	unsigned int flags; /* of memfd_create() */
	int advice;	    /* of madvise(), 0: none */
};

static const struct kind kinds[] = {
	{ "small", 0, MADV_NOHUGEPAGE },
	{ "transparent", 0, MADV_HUGEPAGE },
	{ "hugetlb", MFD_HUGETLB | MFD_HUGE_2MB, 0 },
};

/* Return: NULL: there are not enough pages. */
static uint8_t *map(const struct kind *kind)
{
	int fd = memfd_create("vgpu-bench", MFD_CLOEXEC | kind->flags);
	void *at = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, SIZE))
		at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return NULL;
	if (kind->advice)
		madvise(at, SIZE, kind->advice);
	return at;
}

/* The first write to each page, then copies that find all pages. */
static void sample(const struct kind *kind, const uint8_t *from,
	struct bench_samples *touch, struct bench_samples *copy)
{
	uint8_t *to = map(kind);
	double start;

	if (!to)
		return;
	start = bench_now();
	memcpy(to, from, SIZE);
	bench_sample(touch, SIZE / ((bench_now() - start) / 1e9));
	start = bench_now();
	memcpy(to, from, SIZE);
	bench_sample(copy, SIZE / ((bench_now() - start) / 1e9));
	munmap(to, SIZE);
}

static void report(
	const struct bench_sink *sink, const char *name, struct bench_samples *samples)
{
	if (samples->n)
		bench_report(sink, name, "B/s", samples);
	else
		bench_report_none(
			sink, name, "B/s", "no free huge pages (vm.nr_hugepages)");
}

static void measure_kind(
	const struct bench_sink *sink, const struct kind *kind, const uint8_t *from)
{
	struct bench_samples touch = {}, copy = {};
	char touch_name[BENCH_NAME_MAX], copy_name[BENCH_NAME_MAX];

	snprintf(touch_name, sizeof(touch_name), "pages_touch_%s", kind->name);
	snprintf(copy_name, sizeof(copy_name), "pages_copy_%s", kind->name);
	if (!bench_wanted(sink->options, touch_name) &&
		!bench_wanted(sink->options, copy_name))
		return;
	for (unsigned int i = bench_count(sink, N_SAMPLES, 3); i; i--)
		sample(kind, from, &touch, &copy);
	report(sink, touch_name, &touch);
	report(sink, copy_name, &copy);
}

void bench_pages(const struct bench_sink *sink)
{
	uint8_t *from = aligned_alloc(4096, SIZE);

	if (!from)
		return;
	memset(from, 1, SIZE);
	for (size_t i = 0; i < BENCH_N(kinds); i++)
		measure_kind(sink, &kinds[i], from);
	free(from);
}
