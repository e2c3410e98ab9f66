/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors: where the guest maps the pieces
 *
 * A memfd is the shared memory.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/mirror.h"

#include "memory/mirror.h"
#include "process/environment.h"
#include "wire/channel.h"

#define PAGE VGPU_MIRROR_PAGE
#define SIZE (16 * PAGE)

const bool test_keeps_descriptors = true;

static uint8_t *arena, *place;

static void begin(void)
{
	int fd = memfd_create("arena", MFD_CLOEXEC);

	check(fd >= 0 && !ftruncate(fd, SIZE));
	arena = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	place = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(arena != MAP_FAILED && place != MAP_FAILED);
	shim_channel.transport.shm_fd = fd;
	shim_channel.window.base = (uintptr_t)arena;
	shim_channel.window.shm_size = shim_channel.window.size = SIZE;
}

static struct vgpu_mirror_piece piece_at(uint64_t page, uint64_t n, uint64_t offset)
{
	return (struct vgpu_mirror_piece){
		(uintptr_t)place + page * PAGE,
		n * PAGE,
		offset * PAGE,
	};
}

TEST(pieces_are_shared_memory_where_the_variable_is)
{
	struct vgpu_mirror_piece pieces[2];

	begin();
	check(!munmap(place, SIZE));
	pieces[0] = piece_at(1, 1, 7);
	pieces[1] = piece_at(2, 3, 10);
	check(!shim_environment.is_synchronous);
	check_eq(shim_mirror_map(pieces, sizeof(pieces)), CUDA_SUCCESS);
	/* Waits have to be calls from now on. */
	check(shim_environment.is_synchronous);
	arena[7 * PAGE + 5] = 55;
	check_eq(place[PAGE + 5], 55);
	place[4 * PAGE] = 44;
	check_eq(arena[12 * PAGE], 44);
	/* Mapped already. */
	check_eq(shim_mirror_map(pieces + 1, sizeof(*pieces)), CUDA_SUCCESS);
	check_eq(place[4 * PAGE], 44);
}

TEST(addresses_of_the_program_are_not_taken)
{
	struct vgpu_mirror_piece piece;

	begin();
	piece = piece_at(1, 1, 7);
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_NOT_SUPPORTED);
	check(!shim_environment.is_synchronous);
	check(!mprotect(place, SIZE, PROT_READ | PROT_WRITE));
	arena[7 * PAGE] = 1;
	check_eq(place[PAGE], 0);
}

TEST(addresses_that_the_window_has_reserved_are)
{
	struct vgpu_mirror_piece piece;

	begin();
	shim_channel.window.base = (uintptr_t)place - SIZE;
	shim_channel.window.size = 2 * SIZE;
	piece = piece_at(0, 16, 0);
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_SUCCESS);
	arena[7 * PAGE] = 1;
	check_eq(place[7 * PAGE], 1);
}

TEST(impossible_pieces_are_refused)
{
	struct vgpu_mirror_piece piece;

	begin();
	check(!munmap(place, SIZE));
	piece = piece_at(0, 1, 16);
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_UNKNOWN);
	piece = piece_at(0, 17, 0);
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_UNKNOWN);
	piece = piece_at(0, 0, 0);
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_UNKNOWN);
	piece = piece_at(0, 1, 0);
	piece.address += 8;
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_UNKNOWN);
	piece = piece_at(0, 1, 0);
	piece.address = UINT64_MAX - PAGE + 1;
	check_eq(shim_mirror_map(&piece, sizeof(piece)), CUDA_ERROR_UNKNOWN);
	check_eq(shim_mirror_map(&piece, sizeof(piece) - 1), CUDA_ERROR_UNKNOWN);
	check(!shim_environment.is_synchronous);
}
