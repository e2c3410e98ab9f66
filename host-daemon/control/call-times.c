/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call times: how long the calls of a session, or of a virtual machine, took in workers
 *
 * The kernel knows which pages of a file were ever written, so the holes are not read.
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/call-times.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

/* Histograms that are read at once. */
#define TOGETHER 16u

/* Return: whether the file has that many bytes there. */
static bool has_room(int fd, off_t offset, size_t size)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size >= offset + (off_t)size;
}

int call_times_map(struct call_times **timesp, int fd, off_t offset)
{
	void *times;

	*timesp = NULL;
	if (!has_room(fd, offset, sizeof(struct call_times)))
		return 0;
	times = mmap(NULL, sizeof(struct call_times), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, offset);
	if (times == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*timesp = times;
	/* Relaxed: a reader that misses it reads the file again later. */
	__atomic_store_n(&(*timesp)->version, CALL_TIMES_VERSION, __ATOMIC_RELAXED);
	return 0;
}

static bool has_version(int fd, off_t offset)
{
	uint32_t version;

	return pread(fd, &version, sizeof(version), offset) == sizeof(version) &&
	       version == CALL_TIMES_VERSION;
}

/* Calls of an array of CALL_TIMES_MAX histograms, in a file from that offset on. */
struct range {
	int fd;
	off_t offset;
	uint32_t first, end;
};

static off_t place_of(const struct range *range, uint32_t call)
{
	return range->offset + (off_t)(call * sizeof(struct histogram));
}

static int add_some(struct histogram *calls, const struct range *range)
{
	struct histogram read[TOGETHER];
	const uint32_t n = range->end - range->first;
	const size_t size = n * sizeof(*read);

	assert(n <= TOGETHER);
	if (pread(range->fd, read, size, place_of(range, range->first)) != (ssize_t)size)
		return vgpu_error_origin(-EIO);
	for (uint32_t i = 0; i < n; i++)
		histogram_merge(&calls[range->first + i], &read[i]);
	return 0;
}

/* Reduces a range to its first calls that can have data. Return: false if none have. */
static bool find_data(struct range *range)
{
	const off_t size = sizeof(struct histogram);
	const off_t begin = place_of(range, range->first);
	const off_t end = place_of(range, range->end);
	off_t data, hole;

	data = lseek(range->fd, begin, SEEK_DATA);
	if (data < 0 || data >= end)
		return false;
	hole = lseek(range->fd, data, SEEK_HOLE);
	range->first = (uint32_t)((data - range->offset) / size);
	if (hole > data && hole < end)
		range->end = (uint32_t)((hole - range->offset - 1) / size) + 1;
	if (range->end - range->first > TOGETHER)
		range->end = range->first + TOGETHER;
	return true;
}

static int add_range(
	struct histogram *calls, const struct range *whole, uint64_t *n_stepsp)
{
	struct range range = *whole;
	int r = 0;

	while (!r && range.first < whole->end) {
		range.end = whole->end;
		++*n_stepsp;
		if (!find_data(&range))
			return 0;
		*n_stepsp += range.end - range.first;
		r = add_some(calls, &range);
		range.first = range.end;
	}
	return r;
}

static uint32_t end_of(uint32_t first, uint32_t n)
{
	if (first >= CALL_TIMES_MAX)
		return first;
	return n < CALL_TIMES_MAX - first ? first + n : CALL_TIMES_MAX;
}

int call_times_add(struct histogram *calls, int fd, off_t offset, uint32_t first,
	uint32_t n, uint64_t *n_stepsp)
{
	struct range range = { .fd = fd, .first = first, .end = end_of(first, n) };
	int r;

	++*n_stepsp;
	if (!has_version(fd, offset))
		return 0;
	range.offset = offset + (off_t)offsetof(struct call_times, by_dispatcher);
	r = add_range(calls, &range, n_stepsp);
	range.offset = offset + (off_t)offsetof(struct call_times, by_lanes);
	if (!r)
		r = add_range(calls, &range, n_stepsp);
	return r ? vgpu_error_trace(r) : 0;
}

int vm_times_add(struct histogram *calls, int fd, off_t offset, uint32_t first,
	uint32_t n, uint64_t *n_stepsp)
{
	const struct range range = {
		.fd = fd,
		.offset = offset + (off_t)offsetof(struct vm_times, calls),
		.first = first,
		.end = end_of(first, n),
	};
	int r;

	++*n_stepsp;
	if (!has_version(fd, offset))
		return 0;
	r = add_range(calls, &range, n_stepsp);
	return r ? vgpu_error_trace(r) : 0;
}

static int write_all(int fd, const void *bytes, size_t size, off_t offset)
{
	if (pwrite(fd, bytes, size, offset) == (ssize_t)size)
		return 0;
	return vgpu_error_origin(-EIO);
}

/* Writes the sums of those calls that the session made. */
static int write_sums(int fd, off_t offset, const struct histogram *calls)
{
	const off_t first = offset + (off_t)offsetof(struct vm_times, calls);
	int r = 0;

	for (uint32_t i = 0; !r && i < CALL_TIMES_MAX; i++) {
		const off_t place = first + (off_t)(i * sizeof(*calls));
		struct histogram sum;

		if (!histogram_count(&calls[i]))
			continue;
		if (pread(fd, &sum, sizeof(sum), place) != sizeof(sum))
			return vgpu_error_origin(-EIO);
		histogram_merge(&sum, &calls[i]);
		r = write_all(fd, &sum, sizeof(sum), place);
	}
	return r;
}

int vm_times_take(int fd, off_t offset, int worker_fd, off_t worker_offset)
{
	const off_t mark = worker_offset + (off_t)offsetof(struct call_times, is_added);
	static const uint32_t version = CALL_TIMES_VERSION, yes = 1;
	_vgpu_cleanup_(vgpu_freep) struct histogram *calls = NULL;
	uint64_t n_steps = 0;
	uint32_t is_added = 0;
	int r;

	if (!has_room(fd, offset, sizeof(struct vm_times)) ||
		!has_room(worker_fd, worker_offset, sizeof(struct call_times)))
		return 0;
	if (pread(worker_fd, &is_added, sizeof(is_added), mark) != sizeof(is_added) ||
		is_added)
		return 0;
	calls = calloc(CALL_TIMES_MAX, sizeof(*calls));
	if (!calls)
		return vgpu_error_origin(-ENOMEM);
	r = call_times_add(calls, worker_fd, worker_offset, 0, CALL_TIMES_MAX, &n_steps);
	if (!r)
		r = write_all(fd, &version, sizeof(version), offset);
	if (!r)
		r = write_sums(fd, offset, calls);
	if (!r)
		r = write_all(worker_fd, &yes, sizeof(yes), mark);
	return r ? vgpu_error_trace(r) : 0;
}
