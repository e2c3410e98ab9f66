/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors
 *
 * Pieces stay mapped until the process ends: the worker uses them again for variables
 * that take their place.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "vgpu/mirror.h"

#include "memory/mirror.h"
#include "process/environment.h"
#include "wire/channel.h"
#include "wire/lock.h"

/* The worker makes no more. */
#define PIECES_MAX 256u

static struct {
	struct shim_lock lock;
	struct vgpu_mirror_piece pieces[PIECES_MAX];
	uint32_t n;
} mapped;

static bool is_known(const struct vgpu_mirror_piece *piece)
{
	for (uint32_t i = 0; i < mapped.n; i++)
		if (!memcmp(&mapped.pieces[i], piece, sizeof(*piece)))
			return true;
	return false;
}

static bool is_sane(const struct vgpu_mirror_piece *piece)
{
	uint64_t end;

	return piece->address && piece->size &&
	       (piece->address | piece->size | piece->offset) % VGPU_MIRROR_PAGE == 0 &&
	       vgpu_add_u64(piece->address, piece->size, &end) &&
	       vgpu_range_within(
		       piece->offset, piece->size, 0, shim_channel.window.shm_size);
}

/* Addresses of the window's device part are reserved for this. */
static int map(const struct vgpu_mirror_piece *piece)
{
	bool is_ours = shim_window_is_device(&shim_channel.window, piece->address) &&
		       shim_window_is_device(
			       &shim_channel.window, piece->address + piece->size - 1);
	void *place = (void *)(uintptr_t)piece->address, *memory;

	memory = mmap(place, piece->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | (is_ours ? MAP_FIXED : MAP_FIXED_NOREPLACE),
		shim_channel.transport.shm_fd, (off_t)piece->offset);
	if (memory == MAP_FAILED)
		return -errno;
	if (memory != place) {
		/* A kernel that does not know MAP_FIXED_NOREPLACE. */
		munmap(memory, piece->size);
		return -EEXIST;
	}
	madvise(place, piece->size, MADV_DONTFORK);
	madvise(place, piece->size, MADV_DONTDUMP);
	return 0;
}

static CUresult map_one(const struct vgpu_mirror_piece *piece)
{
	int r;

	if (!is_sane(piece)) {
		vgpu_log_error("the host has an impossible place for a managed variable");
		return CUDA_ERROR_UNKNOWN;
	}
	if (is_known(piece))
		return CUDA_SUCCESS;
	if (mapped.n == PIECES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = map(piece);
	if (r == -EEXIST) {
		vgpu_log_error("managed variables cannot be at %#llx, where the host's "
			       "driver has them: the program uses that address",
			(unsigned long long)piece->address);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapped.pieces[mapped.n++] = *piece;
	return CUDA_SUCCESS;
}

CUresult shim_mirror_map(const void *pieces, size_t size)
{
	struct vgpu_mirror_piece piece;
	CUresult result = CUDA_SUCCESS;
	SHIM_LOCKED(&mapped.lock);

	if (size % sizeof(piece))
		return CUDA_ERROR_UNKNOWN;
	for (size_t at = 0; at < size && result == CUDA_SUCCESS; at += sizeof(piece)) {
		memcpy(&piece, (const uint8_t *)pieces + at, sizeof(piece));
		result = map_one(&piece);
	}
	if (result == CUDA_SUCCESS)
		shim_environment.is_synchronous = true;
	return result;
}
