/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory
 *
 * Two locks: `moving` for as long as pages are moved or the process forks, and `lock`,
 * for some instructions, for the list. Entries of the list are no memory of malloc(),
 * whose pages may be registered: a child of fork() reads them before it has those.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

#include "memory/arena.h"
#include "memory/mover.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "wire/channel.h"
#include "wire/lock.h"
#include "wire/reason.h"

struct registration {
	struct registration *next;
	uint64_t address;
	uint64_t size;
	const struct shim_context *context;
	struct shim_moved moved;
	void *snapshot; /* while the process forks, or NULL */
};

static struct {
	struct shim_lock moving;
	struct shim_lock lock;
	struct registration *all;
	/* Atomic: how many there are. */
	uint32_t n;
} registered;

static uint64_t device_of(const struct registration *registration)
{
	return (uint64_t)(uintptr_t)registration->moved.home +
	       (registration->address - registration->moved.address);
}

static bool is_any(void)
{
	return __atomic_load_n(&registered.n, __ATOMIC_RELAXED);
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* Whether other registrations have pages of this one. @is_of_pages: they have none of its
 * bytes. */
static bool is_taken(const struct registration *wanted, bool *is_of_pages)
{
	const struct shim_moved *moved = &wanted->moved;
	const struct registration *other;
	bool is_taken = false;
	SHIM_LOCKED(&registered.lock);

	*is_of_pages = true;
	for (other = registered.all; other; other = other->next)
		if (overlap(moved->address, moved->size, other->moved.address,
			    other->moved.size)) {
			is_taken = true;
			*is_of_pages &= !overlap(wanted->address, wanted->size,
				other->address, other->size);
		}
	return is_taken;
}

static CUresult refuse_taken(const struct registration *wanted, bool is_of_pages)
{
	if (is_of_pages)
		shim_reason_tell(SHIM_REASON_REGISTER_PAGE,
			"memory at %#llx cannot be registered, because other registered "
			"memory is in the same pages of %ld bytes: register both at "
			"once, or align them to pages",
			(unsigned long long)wanted->address, sysconf(_SC_PAGESIZE));
	return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

static struct registration *registration_new(void)
{
	void *pages = mmap(NULL, sizeof(struct registration), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void registration_free(struct registration *registration)
{
	munmap(registration, sizeof(*registration));
}

static void keep(struct registration *registration)
{
	SHIM_LOCKED(&registered.lock);
	registration->next = registered.all;
	registered.all = registration;
	__atomic_add_fetch(&registered.n, 1, __ATOMIC_RELAXED);
}

static void forget(struct registration *registration)
{
	struct registration **link = &registered.all;

	SHIM_LOCKED(&registered.lock);
	while (*link != registration)
		link = &(*link)->next;
	*link = registration->next;
	__atomic_sub_fetch(&registered.n, 1, __ATOMIC_RELAXED);
}

/* The whole pages that hold a range. */
static bool find_pages(uint64_t address, uint64_t size, struct shim_moved *moved)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end;

	if (!vgpu_add_u64(address, size, &end) || !vgpu_align_u64(end, page, &end))
		return false;
	*moved = (struct shim_moved){ .address = address & ~(page - 1) };
	moved->size = end - moved->address;
	return true;
}

static CUresult result_of(int r)
{
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case -EINVAL:
		return CUDA_ERROR_INVALID_VALUE;
	case -EOPNOTSUPP:
		shim_reason_tell(SHIM_REASON_REGISTER,
			"memory cannot be registered unless it is private and anonymous, "
			"as that of malloc, and not a stack; and the process has to be "
			"allowed userfaultfd(2)");
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

/* With `moving`. */
static CUresult add(struct registration *registration, const struct shim_range *range)
{
	const struct shim_moved moved = registration->moved;
	bool is_of_pages;
	CUresult result;

	if (is_taken(registration, &is_of_pages))
		return refuse_taken(registration, is_of_pages);
	if (!shim_range_add(range))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = result_of(shim_mover_take(&moved));
	if (result == CUDA_SUCCESS)
		keep(registration);
	return result;
}

CUresult shim_registered_add(
	uint64_t address, uint64_t size, unsigned int flags, struct shim_context *context)
{
	struct registration *registration = registration_new();
	struct shim_range range = {
		.size = size,
		.kind = SHIM_RANGE_REGISTERED,
		.context = context,
		.flags = flags,
	};
	struct shim_moved *moved;
	CUresult result;

	if (!registration)
		return CUDA_ERROR_OUT_OF_MEMORY;
	registration->address = address;
	registration->size = size;
	registration->context = context;
	moved = &registration->moved;
	if (!find_pages(address, size, moved)) {
		registration_free(registration);
		return CUDA_ERROR_INVALID_VALUE;
	}
	moved->home = shim_arena_alloc(moved->size);
	if (!moved->home) {
		registration_free(registration);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	moved->fd = shim_channel.transport.shm_fd;
	moved->offset = (uint64_t)(uintptr_t)moved->home - shim_channel.window.base;
	range.base = device_of(registration);
	shim_lock(&registered.moving);
	result = add(registration, &range);
	shim_unlock(&registered.moving);
	if (result == CUDA_SUCCESS)
		return result;
	shim_range_remove(range.base, SHIM_RANGE_REGISTERED, &range);
	shim_arena_free(moved->home);
	registration_free(registration);
	return result;
}

/* With the lock. Return: the first registration that contains a range, of the program's
 * addresses or the device's, or NULL. */
static const struct registration *find_range(
	uint64_t address, uint64_t size, bool is_of_device)
{
	const struct registration *p;

	for (p = registered.all; p; p = p->next)
		if (vgpu_range_within(address, size,
			    is_of_device ? device_of(p) : p->address, p->size))
			return p;
	return NULL;
}

static bool translate(uint64_t address, uint64_t size, bool is_of_device, uint64_t *top)
{
	const struct registration *found;

	SHIM_LOCKED(&registered.lock);
	found = find_range(address, size, is_of_device);
	if (!found)
		return false;
	*top = is_of_device ? found->address + (address - device_of(found))
			    : device_of(found) + (address - found->address);
	return true;
}

bool shim_registered_find(uint64_t address, uint64_t size, uint64_t *devicep)
{
	return is_any() && translate(address, size, false, devicep);
}

uint64_t shim_registered_reach(uint64_t address, uint64_t size)
{
	uint64_t device;

	return shim_registered_find(address, size, &device) ? device : address;
}

uint64_t shim_registered_on_host(uint64_t device)
{
	uint64_t address;

	return is_any() && translate(device, 1, true, &address) ? address : device;
}

/*
 * The end of registrations
 */

typedef bool (*is_meant_fn)(const struct registration *registration, const void *data);

static struct registration *find(is_meant_fn is_meant, const void *data)
{
	struct registration *registration;

	SHIM_LOCKED(&registered.lock);
	for (registration = registered.all; registration;
		registration = registration->next)
		if (is_meant(registration, data))
			return registration;
	return NULL;
}

/* With `moving`. */
static CUresult give_back(struct registration *registration, void **homep)
{
	const struct shim_moved moved = registration->moved;
	struct shim_range range;
	bool is_free;

	if (shim_mover_return(&moved, &is_free))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!is_free)
		vgpu_log_warning("registered memory was moved with mremap(2), and is "
				 "lost to others until the process ends");
	*homep = is_free ? moved.home : NULL;
	shim_range_remove(device_of(registration), SHIM_RANGE_REGISTERED, &range);
	forget(registration);
	registration_free(registration);
	return CUDA_SUCCESS;
}

static bool begins_at(const struct registration *registration, const void *data)
{
	return registration->address == *(const uint64_t *)data;
}

CUresult shim_registered_remove(uint64_t address, void **homep)
{
	struct registration *registration;
	SHIM_LOCKED(&registered.moving);

	registration = find(begins_at, &address);
	return registration ? give_back(registration, homep)
			    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static void drop(is_meant_fn is_meant, const void *data)
{
	struct registration *registration;
	SHIM_LOCKED(&registered.moving);

	while ((registration = find(is_meant, data))) {
		void *home = NULL;

		/* Without memory it stays as it is, with what the arena has for it. */
		if (give_back(registration, &home) != CUDA_SUCCESS)
			return;
		if (home)
			shim_arena_free(home);
	}
}

static bool is_of_context(const struct registration *registration, const void *data)
{
	return registration->context == data;
}

static bool is_one(const struct registration *registration, const void *data)
{
	(void)data;
	return registration;
}

void shim_registered_drop_context(const struct shim_context *context)
{
	if (is_any())
		drop(is_of_context, context);
}

void shim_registered_drop(void)
{
	if (is_any())
		drop(is_one, NULL);
}

/*
 * Forks: the child does not inherit the shared pages, and gets what they held
 */

static void before_fork(void)
{
	shim_lock(&registered.moving);
	for (struct registration *p = registered.all; p; p = p->next) {
		p->snapshot = mmap(NULL, p->moved.size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->snapshot == MAP_FAILED) {
			p->snapshot = NULL;
			vgpu_log_warning("no memory for what a forked process has of "
					 "registered memory");
			continue;
		}
		memcpy(p->snapshot, p->moved.home, p->moved.size);
	}
}

static void after_fork_in_parent(void)
{
	for (struct registration *p = registered.all; p; p = p->next) {
		if (p->snapshot)
			munmap(p->snapshot, p->moved.size);
		p->snapshot = NULL;
	}
	shim_unlock(&registered.moving);
}

static void after_fork_in_child(void)
{
	for (struct registration *p = registered.all; p; p = p->next)
		if (p->snapshot)
			mremap(p->snapshot, p->moved.size, p->moved.size,
				MREMAP_MAYMOVE | MREMAP_FIXED,
				(void *)(uintptr_t)p->moved.address);
	registered.all = NULL;
	registered.n = 0;
	registered.moving = (struct shim_lock)SHIM_LOCK_INIT;
	registered.lock = (struct shim_lock)SHIM_LOCK_INIT;
}

int shim_registered_setup(void)
{
	int r = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

	return r ? vgpu_error_origin(-r) : 0;
}
