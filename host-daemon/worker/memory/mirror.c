/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors
 *
 * The guest may write its copy at any time, so each byte of it is read once.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lookup.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"

/* Compared at once: long enough for memcmp() to be fast, within one page. */
#define CHUNK VGPU_MIRROR_PAGE

void mirror_init(struct session *session)
{
	pthread_mutex_init(&session->mirrors->lock, NULL);
}

static void forget(struct mirrors *mirrors, uint32_t i)
{
	mirrors->n_bytes -= mirrors->variables[i].size;
	free(mirrors->variables[i].last);
	mirrors->variables[i] = mirrors->variables[mirrors->n_variables - 1];
	__atomic_sub_fetch(&mirrors->n_variables, 1, __ATOMIC_RELAXED);
}

void mirror_deinit(struct session *session)
{
	while (session->mirrors->n_variables)
		forget(session->mirrors, session->mirrors->n_variables - 1);
	pthread_mutex_destroy(&session->mirrors->lock);
}

/*
 * Pages
 */

/* Returns: the piece that has the page, or NULL. */
static const struct vgpu_mirror_piece *find_piece(
	const struct mirrors *mirrors, uint64_t page)
{
	for (uint32_t i = 0; i < mirrors->n_pieces; i++)
		if (page - mirrors->pieces[i].address < mirrors->pieces[i].size)
			return &mirrors->pieces[i];
	return NULL;
}

/* The first page at or after `start` that has a piece already, or `end`. */
static uint64_t find_end(const struct mirrors *mirrors, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < mirrors->n_pieces; i++)
		if (mirrors->pieces[i].address >= start &&
			mirrors->pieces[i].address < end)
			end = mirrors->pieces[i].address;
	return end;
}

static const struct vgpu_mirror_piece *make_piece(
	struct session *session, uint64_t address, uint64_t size)
{
	struct mirrors *mirrors = session->mirrors;
	struct vgpu_mirror_piece *piece = &mirrors->pieces[mirrors->n_pieces];
	uint64_t home;

	if (mirrors->n_pieces == MIRROR_PIECES_MAX)
		return NULL;
	/* Never given back: the guest may keep it mapped. */
	home = (uintptr_t)managed_alloc(session, size + VGPU_MIRROR_PAGE);
	if (!home)
		return NULL;
	home = (home + VGPU_MIRROR_PAGE - 1) & ~(uint64_t)(VGPU_MIRROR_PAGE - 1);
	*piece = (struct vgpu_mirror_piece){
		.address = address,
		.size = size,
		.offset = home - session->window.base,
	};
	mirrors->n_pieces++;
	return piece;
}

static CUresult find_pieces(struct session *session, uint64_t address, uint64_t size,
	struct vgpu_mirror_piece *pieces, uint32_t *np)
{
	const uint64_t mask = VGPU_MIRROR_PAGE - 1;
	uint64_t page = address & ~mask, end = (address + size + mask) & ~mask;
	const struct vgpu_mirror_piece *piece;

	for (*np = 0; page < end; (*np)++) {
		if (*np == VGPU_MIRROR_PIECES_MAX)
			return CUDA_ERROR_NOT_SUPPORTED;
		piece = find_piece(session->mirrors, page);
		if (!piece)
			piece = make_piece(session, page,
				find_end(session->mirrors, page, end) - page);
		if (!piece)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pieces[*np] = *piece;
		page = piece->address + piece->size;
	}
	return CUDA_SUCCESS;
}

/* The guest's copy of a byte. */
static uint8_t *copy_of(struct session *session, uint64_t address)
{
	const struct vgpu_mirror_piece *piece = find_piece(session->mirrors, address);

	return (uint8_t *)(uintptr_t)(session->window.base + piece->offset +
				      (address - piece->address));
}

/*
 * Bytes
 */

/* Copies bytes that differ from what both had last. @from is read once. */
static void copy_changes(
	uint8_t *to, const volatile uint8_t *from, uint8_t *last, uint64_t size)
{
	if (!memcmp((const uint8_t *)from, last, size))
		return;
	for (uint64_t i = 0; i < size; i++) {
		uint8_t byte = from[i];

		if (byte != last[i])
			to[i] = last[i] = byte;
	}
}

enum direction { FIRST_TO_GUEST, TO_GUEST, FROM_GUEST };

static void exchange(struct session *session, const struct mirror_variable *variable,
	enum direction direction)
{
	uint64_t done = 0, n;

	for (; done < variable->size; done += n) {
		uint64_t address = variable->address + done;
		uint8_t *own = (uint8_t *)(uintptr_t)address;
		uint8_t *copy = copy_of(session, address);
		uint8_t *last = variable->last + done;

		/* The next page may be elsewhere in the arena. */
		n = CHUNK - address % CHUNK;
		if (n > variable->size - done)
			n = variable->size - done;
		if (direction == TO_GUEST)
			copy_changes(copy, own, last, n);
		else if (direction == FROM_GUEST)
			copy_changes(own, copy, last, n);
		else
			memcpy(copy, memcpy(last, own, n), n);
	}
}

static void exchange_all(struct session *session, enum direction direction)
{
	struct mirrors *mirrors = session->mirrors;

	pthread_mutex_lock(&mirrors->lock);
	for (uint32_t i = 0; i < mirrors->n_variables; i++)
		exchange(session, &mirrors->variables[i], direction);
	pthread_mutex_unlock(&mirrors->lock);
}

void mirror_push(struct session *session)
{
	exchange_all(session, FROM_GUEST);
}

void mirror_pull(struct session *session)
{
	exchange_all(session, TO_GUEST);
}

/*
 * Variables
 */

static bool has_concurrent_access(const struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	int has = 0;

	for (int i = 0; i < session->n_devices; i++)
		if (driver->cuDeviceGetAttribute(&has,
			    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
			    i) != CUDA_SUCCESS ||
			!has)
			return false;
	return has;
}

/* Returns: a variable that has a byte of [address, address + size), or NULL. */
static const struct mirror_variable *find(
	const struct mirrors *mirrors, uint64_t address, uint64_t size)
{
	for (uint32_t i = 0; i < mirrors->n_variables; i++) {
		const struct mirror_variable *variable = &mirrors->variables[i];

		if (address < variable->address + variable->size &&
			variable->address < address + size)
			return variable;
	}
	return NULL;
}

static CUresult add(struct call *call, const struct lookup *lookup, uint64_t address,
	uint64_t size, struct vgpu_mirror_piece *pieces, uint32_t *np)
{
	struct session *session = call->session;
	struct mirrors *mirrors = session->mirrors;
	struct mirror_variable variable = {
		.address = address,
		.size = size,
		.parent = lookup->parent,
		.owner = lookup->owner,
	};
	const struct mirror_variable *known = find(mirrors, address, size);
	CUresult result;

	if (known && (known->address != address || known->size != size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!known && (mirrors->n_variables == MIRROR_VARIABLES_MAX ||
			      size > MIRROR_BYTES_MAX - mirrors->n_bytes)) {
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the managed variables of a process can have %llu MiB together, "
			"and there can be %u of them",
			MIRROR_BYTES_MAX >> 20, MIRROR_VARIABLES_MAX);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = find_pieces(session, address, size, pieces, np);
	if (result != CUDA_SUCCESS || known)
		return result;
	variable.last = malloc(size);
	if (!variable.last)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exchange(session, &variable, FIRST_TO_GUEST);
	mirrors->n_bytes += size;
	mirrors->variables[mirrors->n_variables] = variable;
	__atomic_add_fetch(&mirrors->n_variables, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult mirror_add(struct call *call, const struct lookup *lookup, uint64_t address,
	uint64_t size, struct vgpu_mirror_piece *pieces, uint32_t *np)
{
	struct session *session = call->session;
	uint64_t end;
	CUresult result;

	*np = 0;
	if (!size || !vgpu_add_u64(address, size, &end) || end > INT64_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!has_concurrent_access(session)) {
		reason_say(VGPU_REPLY_REASON_LOAD,
			"the host's driver has no concurrent access to managed memory, "
			"without which this program's managed variables cannot be used");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&session->mirrors->lock);
	result = add(call, lookup, address, size, pieces, np);
	pthread_mutex_unlock(&session->mirrors->lock);
	/* The pieces may be in extents that the driver does not know yet. */
	return result == CUDA_SUCCESS ? managed_register(call) : result;
}

bool mirror_covers(struct session *session, uint64_t address, uint64_t size)
{
	const struct mirror_variable *variable;
	bool result;

	if (!mirror_is_any(session))
		return false;
	pthread_mutex_lock(&session->mirrors->lock);
	variable = find(session->mirrors, address, 1);
	result = variable &&
		 vgpu_range_within(address, size, variable->address, variable->size);
	pthread_mutex_unlock(&session->mirrors->lock);
	return result;
}

void mirror_forget(struct session *session, const void *parent)
{
	struct mirrors *mirrors = session->mirrors;

	if (!mirror_is_any(session))
		return;
	pthread_mutex_lock(&mirrors->lock);
	for (uint32_t i = mirrors->n_variables; i-- > 0;)
		if (mirrors->variables[i].parent == parent)
			forget(mirrors, i);
	pthread_mutex_unlock(&mirrors->lock);
}

bool mirror_before_context(struct session *session, const struct context *context)
{
	struct mirrors *mirrors = session->mirrors;

	if (!mirror_is_any(session))
		return false;
	pthread_mutex_lock(&mirrors->lock);
	for (uint32_t i = mirrors->n_variables; i-- > 0;)
		if (mirrors->variables[i].owner == context)
			forget(mirrors, i);
	return true;
}

/* With the lock. Asks with the arena's context, as the caller's may be gone. */
static void forget_freed(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	struct mirrors *mirrors = session->mirrors;
	unsigned int is_managed;

	for (uint32_t i = mirrors->n_variables; i-- > 0;)
		if (driver->cuPointerGetAttribute(&is_managed,
			    CU_POINTER_ATTRIBUTE_IS_MANAGED,
			    mirrors->variables[i].address) != CUDA_SUCCESS ||
			!is_managed)
			forget(mirrors, i);
}

void mirror_after_context(struct session *session, bool is_held)
{
	const struct vgpu_driver *driver = &session->driver->table;
	struct context *home = __atomic_load_n(&session->home, __ATOMIC_ACQUIRE);
	CUcontext before = NULL;

	if (!is_held)
		return;
	driver->cuCtxGetCurrent(&before);
	driver->cuCtxSetCurrent(home ? home->object.driver : NULL);
	forget_freed(session);
	driver->cuCtxSetCurrent(before);
	pthread_mutex_unlock(&session->mirrors->lock);
}
