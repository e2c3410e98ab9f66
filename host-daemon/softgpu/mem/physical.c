/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory: memory without an address
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

#include "mem/memory.h"
#include "softgpu.h"

/*
 * The label of shared memory, in a page after it: whoever imports the file learns from it
 * what it is. Another process may have written it, so it is checked.
 */
struct label {
	char magic[8];
	uint64_t size; /* of the memory, without this page */
	uint32_t device;
	uint32_t is_host;
};

static const char label_magic[8] = "SOFTGPU1";

static int file_new(uint64_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int taken;

	fd = memfd_create("softgpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return vgpu_error_origin(-errno);
	taken = fd;
	fd = -1;
	return taken;
}

static struct label *label_map(int fd, uint64_t size)
{
	void *at = mmap(NULL, SOFTGPU_LABEL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		(off_t)size);

	return at == MAP_FAILED ? NULL : at;
}

/* Makes the file of shared memory. Without the lock: it may take a while. */
static int shared_new(const struct physicals *physicals, struct physical *physical)
{
	struct label *label;
	int r;

	if (physicals->make_file) {
		r = physicals->make_file(physicals->make_file_data, physical->size);
		if (r < 0)
			return MEMORY_E_FULL;
	} else {
		r = file_new(physical->size + SOFTGPU_LABEL_SIZE);
	}
	if (r < 0)
		return vgpu_error_trace(r);
	label = label_map(r, physical->size);
	if (!label) {
		close(r);
		return vgpu_error_origin(-ENOMEM);
	}
	*label = (struct label){
		.size = physical->size,
		.device = physical->device,
		.is_host = physical->is_host,
	};
	memcpy(label->magic, label_magic, sizeof(label->magic));
	munmap(label, SOFTGPU_LABEL_SIZE);
	physical->fd = r;
	return 0;
}

/* Makes the file that most memory is in: as large as the addresses that it can be mapped
 * at, of which only what is used takes memory. */
static int common_new(struct memory *memory)
{
	struct physicals *physicals = &memory->physicals;
	uint64_t size = memory_shared(memory)->window.size;
	int r;

	r = file_new(size);
	if (r < 0)
		return vgpu_error_trace(r);
	physicals->fd = r;
	physicals->size = size;
	physicals->is_own = true;
	return 0;
}

/* The file, and which of it is free. */
static int common_ready(struct memory *memory)
{
	struct physicals *physicals = &memory->physicals;
	int r = 0;

	if (!physicals->size)
		r = common_new(memory);
	if (!r && !physicals->has_spans) {
		r = spans_init(&physicals->spans, physicals->size >> SOFTGPU_PAGE_SHIFT);
		physicals->has_spans = !r;
	}
	return r ? vgpu_error_trace(r) : 0;
}

void physicals_deinit(struct physicals *physicals)
{
	if (physicals->is_own)
		close(physicals->fd);
	if (physicals->has_spans)
		spans_deinit(&physicals->spans);
	*physicals = (struct physicals){ 0 };
}

static int place(struct memory *memory, struct physical *physical)
{
	struct physicals *physicals = &memory->physicals;
	uint64_t first;
	int r;

	if (physical->is_shared)
		return 0;
	r = common_ready(memory);
	if (r)
		return vgpu_error_trace(r);
	r = spans_take(&physicals->spans, physical->size >> SOFTGPU_PAGE_SHIFT, &first);
	if (r)
		return vgpu_error_trace(r);
	physical->fd = physicals->fd;
	physical->offset = physicals->offset + (first << SOFTGPU_PAGE_SHIFT);
	return 0;
}

/* What counts against the limit of the device. */
static uint64_t cost(const struct physical *physical)
{
	return physical->is_host || physical->is_import ? 0 : physical->size;
}

static int create(struct memory *memory, struct physical *physical)
{
	struct part *part = &memory->parts[physical->device];
	int r;

	if (cost(physical) > memory->limit - part->used)
		return MEMORY_E_FULL;
	r = place(memory, physical);
	if (r)
		return vgpu_error_trace(r);
	part->used += cost(physical);
	return 0;
}

int physical_new(struct memory *memory, const struct physical *template,
	struct physical **physicalp)
{
	_vgpu_cleanup_(vgpu_freep) struct physical *physical = NULL;
	int r;

	physical = malloc(sizeof(*physical));
	if (!physical)
		return vgpu_error_origin(-ENOMEM);
	*physical = (struct physical){
		.size = template->size,
		.device = template->device,
		.is_host = template->is_host,
		.is_shared = template->is_shared,
		.is_import = template->is_import,
		.n_refs = 1,
	};
	if (physical->is_shared) {
		r = shared_new(&memory->physicals, physical);
		if (r)
			return r;
	}
	pthread_mutex_lock(&memory->lock);
	r = create(memory, physical);
	pthread_mutex_unlock(&memory->lock);
	if (r && physical->is_shared)
		close(physical->fd);
	if (r)
		return r;
	*physicalp = physical;
	physical = NULL;
	return 0;
}

int physical_export(const struct physical *physical)
{
	int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? vgpu_error_origin(-errno) : fd;
}

/* Return: 0, -ENOMEM, or MEMORY_E_UNKNOWN if the file is none that was exported. */
static int read_label(const struct memory *memory, int fd, struct physical *physical)
{
	struct label *mapped, label;
	off_t size;
	int seals;

	/* Only memory files have seals. One that could shrink would end whoever maps it.
	 */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return MEMORY_E_UNKNOWN;
	size = lseek(fd, 0, SEEK_END);
	if (size <= SOFTGPU_LABEL_SIZE)
		return MEMORY_E_UNKNOWN;
	physical->size = (uint64_t)size - SOFTGPU_LABEL_SIZE;
	if (physical->size % SOFTGPU_PAGE_SIZE)
		return MEMORY_E_UNKNOWN;
	mapped = label_map(fd, physical->size);
	if (!mapped)
		return vgpu_error_origin(-ENOMEM);
	label = *mapped;
	munmap(mapped, SOFTGPU_LABEL_SIZE);
	if (memcmp(label.magic, label_magic, sizeof(label.magic)) ||
		label.size != physical->size || label.device >= memory->n_devices ||
		label.is_host > 1)
		return MEMORY_E_UNKNOWN;
	physical->device = label.device;
	physical->is_host = label.is_host;
	return 0;
}

int physical_import(struct memory *memory, int fd, struct physical **physicalp)
{
	_vgpu_cleanup_(vgpu_freep) struct physical *physical = NULL;
	int r;

	physical = malloc(sizeof(*physical));
	if (!physical)
		return vgpu_error_origin(-ENOMEM);
	*physical = (struct physical){
		.is_shared = true,
		.is_import = true,
		.n_refs = 1,
	};
	r = read_label(memory, fd, physical);
	if (r)
		return r;
	physical->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (physical->fd < 0)
		return vgpu_error_origin(-errno);
	*physicalp = physical;
	physical = NULL;
	return 0;
}

void physical_ref_locked(struct physical *physical)
{
	physical->n_refs++;
}

void physical_ref(struct memory *memory, struct physical *physical)
{
	pthread_mutex_lock(&memory->lock);
	physical_ref_locked(physical);
	pthread_mutex_unlock(&memory->lock);
}

/* Empties pages of the common file; they read as zeros afterwards. Return: 0 or -errno.
 */
static int empty(const struct physical *physical)
{
	void *at = mmap(NULL, physical->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		physical->fd, (off_t)physical->offset);
	int r = 0;

	if (at == MAP_FAILED)
		return vgpu_error_origin(-errno);
	if (madvise(at, physical->size, MADV_REMOVE) < 0)
		r = vgpu_error_origin(-errno);
	munmap(at, physical->size);
	return r;
}

void physical_unref_locked(struct memory *memory, struct physical *physical)
{
	if (--physical->n_refs)
		return;
	memory->parts[physical->device].used -= cost(physical);
	if (physical->is_shared)
		close(physical->fd);
	else if (empty(physical))
		vgpu_log_error("%llu bytes of memory cannot be emptied and are lost",
			(unsigned long long)physical->size);
	else
		spans_give(&memory->physicals.spans,
			(physical->offset - memory->physicals.offset) >>
				SOFTGPU_PAGE_SHIFT,
			physical->size >> SOFTGPU_PAGE_SHIFT);
	if (physical->freed)
		physical->freed(physical->data);
	free(physical);
}

void physical_unref(struct memory *memory, struct physical *physical)
{
	pthread_mutex_lock(&memory->lock);
	physical_unref_locked(memory, physical);
	pthread_mutex_unlock(&memory->lock);
}
