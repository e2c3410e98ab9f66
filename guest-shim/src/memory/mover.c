/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mover
 *
 * Towards the arena: the mapping is registered for missing pages, and its pages are moved
 * to another address with MREMAP_DONTUNMAP, which leaves it empty (mremap(2)): from then
 * on every access waits. Back: an empty mapping so registered is moved over the shared
 * one, and then filled from it with UFFDIO_COPY. That move has an event that somebody has
 * to read before mremap() returns; without the event a mapping that is moved is no longer
 * registered.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/bulk.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "memory/mapping.h"
#include "memory/mover.h"

#define MAPPINGS_FIRST 16u

/* One mapping, or the part of one within the memory. */
struct span {
	uint64_t start;
	uint64_t size;
};

struct spans {
	struct span *all;
	uint32_t n;
	uint32_t max;
};

static void spans_free(struct spans *spans)
{
	free(spans->all);
}

static int add_span(struct spans *spans, uint64_t start, uint64_t size)
{
	if (spans->n == spans->max) {
		uint32_t max = spans->max ? spans->max * 2 : MAPPINGS_FIRST;
		struct span *all = realloc(spans->all, max * sizeof(*all));

		if (!all)
			return vgpu_error_origin(-ENOMEM);
		spans->all = all;
		spans->max = max;
	}
	spans->all[spans->n++] = (struct span){ start, size };
	return 0;
}

/*
 * Of the memory, the part that a mapping has.
 *
 * Return: false for none.
 */
static bool intersect(const struct shim_moved *moved, const struct shim_mapping *mapping,
	struct span *span)
{
	uint64_t start =
		mapping->start > moved->address ? mapping->start : moved->address;
	uint64_t end = mapping->end < moved->address + moved->size
			       ? mapping->end
			       : moved->address + moved->size;

	if (start >= end)
		return false;
	*span = (struct span){ start, end - start };
	return true;
}

/*
 * The kernel's interface
 */

/* @features: UFFD_FEATURE_*. Return: a descriptor, or -errno. */
static int open_faults(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	/* Of the program's own accesses every process may handle faults. */
	if (fd < 0)
		fd = (int)syscall(
			SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* Since Linux 5.7. */
static bool can_leave_mapping(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *place = mmap(
		NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *moved = MAP_FAILED;

	if (place == MAP_FAILED)
		return false;
	moved = mremap(place, page, page, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (moved != MAP_FAILED)
		munmap(moved, page);
	munmap(place, page);
	return moved != MAP_FAILED;
}

bool shim_mover_is_possible(void)
{
	/* Atomic: 0 if it is not known yet, 1 for no, 2 for yes. */
	static int answer;
	int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);

	if (!known) {
		int fd = open_faults(UFFD_FEATURE_EVENT_REMAP);

		known = fd >= 0 && can_leave_mapping() ? 2 : 1;
		vgpu_close(fd);
		__atomic_store_n(&answer, known, __ATOMIC_RELAXED);
	}
	return known == 2;
}

/* Accesses to missing pages wait. */
static int watch(int faults, uint64_t start, uint64_t size)
{
	struct uffdio_register watched = {
		.range = { start, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(faults, UFFDIO_REGISTER, &watched) < 0 ? -errno : 0;
}

static void wake(int faults, const struct span *span)
{
	struct uffdio_range range = { span->start, span->size };

	ioctl(faults, UFFDIO_WAKE, &range);
}

/* A handler of a signal might access the memory, and then this thread would wait for
 * itself. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/*
 * Towards the arena
 */

static bool is_within(const struct shim_moved *moved, const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer - moved->address < moved->size;
}

/* The thread's stack, and its thread-local variables, cannot be moved by itself. */
static bool is_own(const struct shim_moved *moved)
{
	pthread_attr_t attributes;
	bool is_own = false;
	void *stack;
	size_t size;

	if (is_within(moved, &errno) || is_within(moved, &attributes))
		return true;
	if (pthread_getattr_np(pthread_self(), &attributes))
		return true;
	if (!pthread_attr_getstack(&attributes, &stack, &size))
		is_own = (uint64_t)(uintptr_t)stack < moved->address + moved->size &&
			 moved->address < (uint64_t)(uintptr_t)stack + size;
	pthread_attr_destroy(&attributes);
	return is_own;
}

static int check_kind(const struct shim_mapping *mapping)
{
	if (memcmp(mapping->permissions, "rw", 2))
		return -EINVAL;
	if (mapping->permissions[2] != '-' || mapping->permissions[3] != 'p' ||
		mapping->inode ||
		(*mapping->path && strcmp(mapping->path, "[heap]") &&
			strncmp(mapping->path, "[anon", strlen("[anon"))))
		return -EOPNOTSUPP;
	return 0;
}

/* Lists the mappings of the memory, all of which are private and anonymous. */
static int find_private(const struct shim_moved *moved, struct spans *spans)
{
	_vgpu_cleanup_(shim_mapping_closep) FILE *file = shim_mapping_open();
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	uint64_t at = moved->address;
	struct shim_mapping mapping;
	struct span span;
	size_t room = 0;
	int r;

	if (!file)
		return vgpu_error_origin(-EOPNOTSUPP);
	while (getline(&line, &room, file) > 0) {
		if (!shim_mapping_parse(line, &mapping) ||
			!intersect(moved, &mapping, &span))
			continue;
		if (span.start != at)
			return -EINVAL;
		r = check_kind(&mapping);
		if (!r)
			r = add_span(spans, span.start, span.size);
		if (r)
			return r;
		at += span.size;
	}
	return at == moved->address + moved->size ? 0 : -EINVAL;
}

/* Moves one mapping. Nothing here allocates, or takes a lock. */
static int take(int faults, const struct shim_moved *moved, const struct span *span)
{
	uint64_t offset = span->start - moved->address;
	void *place = (void *)(uintptr_t)span->start, *pages;
	int r = watch(faults, span->start, span->size);

	/* Somebody else handles the faults of this memory, or it is of a kind that the
	 * list does not show. */
	if (r)
		return r == -ENOMEM ? r : -EOPNOTSUPP;
	pages = mremap(
		place, span->size, span->size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (pages == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	vgpu_bulk_copy(moved->home + offset, pages, span->size);
	if (mmap(place, span->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    moved->fd, (off_t)(moved->offset + offset)) == MAP_FAILED) {
		r = -errno;
		mremap(pages, span->size, span->size, MREMAP_MAYMOVE | MREMAP_FIXED,
			place);
		wake(faults, span);
		return r;
	}
	madvise(place, span->size, MADV_DONTFORK);
	wake(faults, span);
	munmap(pages, span->size);
	return 0;
}

int shim_mover_take(const struct shim_moved *moved)
{
	_vgpu_cleanup_(spans_free) struct spans spans = {};
	_vgpu_cleanup_(vgpu_closep) int faults = -1;
	struct shim_moved done = *moved;
	sigset_t signals;
	bool is_free;
	int r;

	if (is_own(moved))
		return vgpu_error_origin(-EOPNOTSUPP);
	r = find_private(moved, &spans);
	if (r)
		return vgpu_error_trace(r);
	faults = open_faults(0);
	if (faults < 0)
		return vgpu_error_origin(-EOPNOTSUPP);
	done.size = 0;
	block_signals(&signals);
	for (uint32_t i = 0; i < spans.n && !r; i++) {
		/* A copy: the list may be on a page that is moved. */
		const struct span span = spans.all[i];

		r = take(faults, moved, &span);
		if (!r)
			done.size += span.size;
	}
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	if (r && done.size)
		shim_mover_return(&done, &is_free);
	return r ? vgpu_error_trace(r) : 0;
}

/*
 * And back
 */

struct reader {
	int faults;
	int stop;
};

/* Reads events until it is told to stop. A thread that waits for a page goes on when the
 * page is there; nothing has to be done for its event. */
static void *read_events(void *argument)
{
	const struct reader *reader = argument;
	struct pollfd polled[2] = {
		{ .fd = reader->faults, .events = POLLIN },
		{ .fd = reader->stop, .events = POLLIN },
	};
	struct uffd_msg event;

	while (!polled[1].revents) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			break;
		while (read(reader->faults, &event, sizeof(event)) > 0)
			;
	}
	return NULL;
}

/* Ends early only if the program has unmapped the memory meanwhile. */
static void fill(int faults, uint64_t to, const uint8_t *from, uint64_t size)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t done = 0;

	while (done < size) {
		struct uffdio_copy copy = {
			.dst = to + done,
			.src = (uint64_t)(uintptr_t)from + done,
			.len = size - done,
		};
		int r = ioctl(faults, UFFDIO_COPY, &copy);

		if (copy.copy > 0)
			done += (uint64_t)copy.copy;
		/* The bytes are nowhere else: they wait for memory. */
		if (r < 0 && errno == ENOMEM)
			nanosleep(&pause, NULL);
		else if (r < 0 && errno != EAGAIN)
			break;
	}
}

static int give(int faults, const struct shim_moved *moved, const struct span *span)
{
	struct uffdio_range range = { span->start, span->size };
	void *place = (void *)(uintptr_t)span->start, *empty;
	int r;

	empty = mmap(NULL, span->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (empty == MAP_FAILED)
		return -ENOMEM;
	r = watch(faults, (uint64_t)(uintptr_t)empty, span->size);
	if (!r && mremap(empty, span->size, span->size, MREMAP_MAYMOVE | MREMAP_FIXED,
			  place) == MAP_FAILED)
		r = -errno;
	if (r) {
		munmap(empty, span->size);
		return r;
	}
	fill(faults, span->start, moved->home + (span->start - moved->address),
		span->size);
	ioctl(faults, UFFDIO_UNREGISTER, &range);
	return 0;
}

static bool is_of_file(const struct shim_mapping *mapping, const struct stat *file)
{
	return mapping->inode == file->st_ino &&
	       makedev(mapping->major, mapping->minor) == file->st_dev;
}

/*
 * The offset of `home` as the list of mappings has it: for memory of a PCI device that is
 * the address on the bus, and not the offset in the file.
 *
 * Return: false if `home` is not mapped.
 */
static bool find_offset(const struct shim_moved *moved, uint64_t *offsetp)
{
	const uint64_t home = (uint64_t)(uintptr_t)moved->home;
	_vgpu_cleanup_(shim_mapping_closep) FILE *file = shim_mapping_open();
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	struct shim_mapping mapping;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		if (!shim_mapping_parse(line, &mapping) || home < mapping.start ||
			home >= mapping.end)
			continue;
		*offsetp = mapping.offset + (home - mapping.start);
		return true;
	}
	return false;
}

/* Lists the parts that still are as shim_mover_take() left them. *is_freep: false if the
 * program has moved others elsewhere. */
static int find_shared(
	const struct shim_moved *moved, struct spans *spans, bool *is_freep)
{
	const uint64_t home = (uint64_t)(uintptr_t)moved->home;
	_vgpu_cleanup_(shim_mapping_closep) FILE *file = shim_mapping_open();
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	struct shim_mapping mapping;
	struct stat shared;
	struct span span;
	uint64_t offset;
	size_t room = 0;
	int r = 0;

	*is_freep = true;
	if (!file || fstat(moved->fd, &shared) < 0 || !find_offset(moved, &offset))
		return vgpu_error_origin(-ENOMEM);
	while (!r && getline(&line, &room, file) > 0) {
		if (!shim_mapping_parse(line, &mapping) || !is_of_file(&mapping, &shared))
			continue;
		if (intersect(moved, &mapping, &span) &&
			mapping.offset + (span.start - mapping.start) ==
				offset + (span.start - moved->address))
			r = add_span(spans, span.start, span.size);
		else if (mapping.offset < offset + moved->size &&
			 offset < mapping.offset + (mapping.end - mapping.start) &&
			 mapping.start - mapping.offset != home - offset)
			*is_freep = false;
	}
	return r;
}

static int give_all(const struct shim_moved *moved, const struct spans *spans)
{
	_vgpu_cleanup_(vgpu_closep) int faults = open_faults(UFFD_FEATURE_EVENT_REMAP);
	_vgpu_cleanup_(vgpu_closep) int stop = eventfd(0, EFD_CLOEXEC);
	struct reader reader = { faults, stop };
	sigset_t signals;
	pthread_t thread;
	int r = 0;

	if (faults < 0 || stop < 0)
		return vgpu_error_origin(-ENOMEM);
	block_signals(&signals);
	if (pthread_create(&thread, NULL, read_events, &reader)) {
		pthread_sigmask(SIG_SETMASK, &signals, NULL);
		return vgpu_error_origin(-ENOMEM);
	}
	for (uint32_t i = 0; i < spans->n && !r; i++) {
		const struct span span = spans->all[i];

		r = give(faults, moved, &span);
	}
	eventfd_write(stop, 1);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	return r;
}

int shim_mover_return(const struct shim_moved *moved, bool *is_freep)
{
	_vgpu_cleanup_(spans_free) struct spans spans = {};
	int r = find_shared(moved, &spans, is_freep);

	if (!r && spans.n)
		r = give_all(moved, &spans);
	return r ? vgpu_error_trace(r) : 0;
}
