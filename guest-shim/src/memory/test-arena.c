/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: the heap of pinned memory, and how it grows
 *
 * The host is a thread that grants what the test has set.
 */

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/g-driver.pb-c.h"

#include "fake-host.h"
#include "memory/arena.h"
#include "memory/staging.h"
#include "process/call.h"
#include "process/shim.h"
#include "vgpu/checked.h"

#define MIB (1ull << 20)
#define N_EXTENTS 512u
#define SIZE (N_EXTENTS * VGPU_EXTENT_SIZE)
/* Extents of the first grant: staging blocks, and 64 MiB behind them. */
#define N_FIRST ((uint32_t)((SHIM_STAGING_SIZE + 64 * MIB) / VGPU_EXTENT_SIZE))

static struct {
	struct vgpu_ring_consumer consumer;
	/* Atomic. */
	uint32_t next;	 /* extent that is granted next */
	uint32_t n_left; /* extents */
	uint32_t n_requests;
	uint32_t asked_for; /* last */
} host;

static void answer_growth(const struct vgpu_frame *frame)
{
	struct vgpu_reply_slot *slot = shim_channel_slot(&shim_channel, frame->lane);
	Vgpu__VgpuArenaGrowReply reply = VGPU__VGPU_ARENA_GROW_REPLY__INIT;
	Vgpu__VgpuArenaGrowRequest *request = vgpu__vgpu_arena_grow_request__unpack(
		NULL, frame->size - sizeof(*frame), frame->body);

	check(request);
	host.n_requests++;
	host.asked_for = request->n_extents;
	if (request->n_extents > host.n_left) {
		reply.result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		reply.first_extent = host.next;
		reply.n_granted = request->n_extents;
		host.next += request->n_extents;
		host.n_left -= request->n_extents;
	}
	vgpu__vgpu_arena_grow_request__free_unpacked(request, NULL);
	slot->size = (uint32_t)protobuf_c_message_pack(&reply.base, slot->body);
	/* Partner: the acquire load of the caller. */
	__atomic_store_n(&slot->sequence, frame->sequence, __ATOMIC_RELEASE);
}

static void *host_main(void *argument)
{
	const struct vgpu_frame *frame;

	for (;;) {
		if (vgpu_ring_next(&host.consumer, &frame)) {
			sched_yield();
			continue;
		}
		check_eq(frame->call, VGPU_CALL_vgpuArenaGrow);
		answer_growth(frame);
		vgpu_ring_release(&host.consumer);
	}
	return argument;
}

static uint8_t *begin(uint32_t n_left)
{
	static struct vgpu_shm_header header = { .n_extents = N_EXTENTS };
	static const uint32_t ready = SHIM_READY;
	int fd = memfd_create("arena", MFD_CLOEXEC);
	void *map = mmap(NULL, SIZE + VGPU_EXTENT_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t base = (uintptr_t)map;

	check(fd >= 0 && !ftruncate(fd, SIZE) && map != MAP_FAILED);
	/* As the shim's own window. */
	check(vgpu_align_u64(base, VGPU_EXTENT_SIZE, &base));
	fake_host_start(&ready, &host.consumer, host_main);
	shim_channel.transport.header = &header;
	shim_channel.transport.shm_fd = fd;
	shim_channel.window = (struct shim_window){ base, SIZE, SIZE };
	shim_channel.first_extent = 0;
	shim_channel.n_extents = N_FIRST;
	host.next = N_FIRST;
	host.n_left = n_left;
	check_eq(shim_arena_setup(), 0);
	return (uint8_t *)(uintptr_t)base + SHIM_STAGING_SIZE;
}

const bool test_keeps_descriptors = true;

TEST(memory_is_in_pages_and_does_not_overlap)
{
	uint8_t *first = begin(0), *pieces[64];

	for (uint64_t i = 0; i < 64; i++) {
		pieces[i] = shim_arena_alloc(1 + i * 1000);
		check(pieces[i] && (uintptr_t)pieces[i] % 4096 == 0);
		check(pieces[i] >= first);
		for (uint64_t k = 0; k < i; k++)
			check(pieces[i] >= pieces[k] + 1 + k * 1000 ||
				pieces[k] >= pieces[i] + 1 + i * 1000);
	}
	check_eq(host.n_requests, 0);
}

TEST(freed_neighbours_are_one_piece_again)
{
	void *pieces[4], *whole;

	begin(0);
	for (int i = 0; i < 4; i++) {
		pieces[i] = shim_arena_alloc(16 * MIB);
		check(pieces[i]);
	}
	check(!shim_arena_alloc(1));
	shim_arena_free(pieces[1]);
	shim_arena_free(pieces[2]);
	whole = shim_arena_alloc(32 * MIB);
	check(whole == pieces[1]);
	shim_arena_free(pieces[0]);
	shim_arena_free(whole);
	shim_arena_free(pieces[3]);
	check(shim_arena_alloc(64 * MIB) == pieces[0]);
}

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

TEST(memory_that_was_used_is_cleared_on_request)
{
	uint8_t *pieces[3], *last, *whole;

	begin(0);
	check_eq(shim_channel_map_extents(&shim_channel, 0, N_FIRST), 0);
	for (int i = 0; i < 3; i++) {
		pieces[i] = shim_arena_alloc(MIB);
		memset(pieces[i], 0x5a, MIB);
	}
	shim_arena_free(pieces[1]);
	/* Part of a piece, then the rest of it, whose size is not all there is. */
	check(shim_arena_alloc_zeroed(4096) == (void *)pieces[1]);
	check(is_zero(pieces[1], 4096));
	last = shim_arena_alloc_zeroed(MIB - 8192);
	check(last == pieces[1] + 4096 && is_zero(last, MIB - 8192));
	check_eq(last[MIB - 8192], 0x5a);
	memset(pieces[1], 0x5a, MIB);
	shim_arena_free(pieces[1]);
	shim_arena_free(last);
	shim_arena_free(pieces[0]);
	/* Pieces that were merged, the last with memory that was never used. */
	shim_arena_free(pieces[2]);
	whole = shim_arena_alloc_zeroed(64 * MIB);
	check(whole == pieces[0] && is_zero(whole, 64 * MIB));
}

TEST(memory_in_whole_extents_leaves_what_is_before_it)
{
	uint8_t *first = begin(0), *small, *extents, *others;

	check_eq((uintptr_t)first % VGPU_EXTENT_SIZE, 0);
	check_eq(shim_channel_map_extents(&shim_channel, 0, N_FIRST), 0);
	small = shim_arena_alloc(4096);
	memset(small, 0x5a, 4096);
	shim_arena_free(small);
	small = shim_arena_alloc(1024);
	extents = shim_arena_alloc_extents(4 * MIB);
	check(extents == first + VGPU_EXTENT_SIZE && is_zero(extents, 4 * MIB));
	others = shim_arena_alloc(2 * MIB - 4096);
	check(others == small + 4096);
	check(shim_arena_alloc(58 * MIB) == extents + 4 * MIB);
	check_eq(host.n_requests, 0);
	check(!shim_arena_alloc(1));
	shim_arena_free(small);
	shim_arena_free(others);
	shim_arena_free(extents);
	check(shim_arena_alloc_extents(6 * MIB) == (void *)first);
}

TEST(what_was_not_allocated_is_not_freed)
{
	uint8_t *piece;
	int other;

	begin(0);
	piece = shim_arena_alloc(64 * MIB);
	check(piece);
	shim_arena_free(piece + 4096);
	shim_arena_free(&other);
	shim_arena_free(NULL);
	check(!shim_arena_alloc(1));
	shim_arena_free(piece);
	shim_arena_free(piece);
	check(shim_arena_alloc(1) == (void *)piece);
}

TEST(sizes_that_cannot_be_are_refused_without_a_request)
{
	begin(N_EXTENTS - N_FIRST);
	check(!shim_arena_alloc(0));
	check(!shim_arena_alloc(UINT64_MAX));
	check(!shim_arena_alloc(SIZE + 1));
	check_eq(host.n_requests, 0);
}

TEST(a_full_heap_grows_by_more_than_it_needs)
{
	uint8_t *first, *second, *third;

	begin(N_EXTENTS - N_FIRST);
	first = shim_arena_alloc(64 * MIB);
	second = shim_arena_alloc(4096);
	check(first && second);
	check_eq(host.n_requests, 1);
	check_eq(host.asked_for, 32);
	/* It is memory. */
	memset(second, 0x5a, 4096);
	third = shim_arena_alloc(64 * MIB - 4096);
	check(third == second + 4096);
	check_eq(host.n_requests, 1);
	check(shim_arena_alloc(100 * MIB));
	check_eq(host.n_requests, 2);
	check_eq(host.asked_for, 50);
}

TEST(a_host_with_little_left_is_asked_for_just_enough)
{
	begin(3);
	check(shim_arena_alloc(64 * MIB));
	check(shim_arena_alloc(5 * MIB));
	check_eq(host.n_requests, 2);
	check_eq(host.asked_for, 3);
	check(!shim_arena_alloc(2 * MIB));
	check_eq(host.n_left, 0);
}

/* Runs that adjoin are registered with the driver one by one. */
TEST(no_memory_crosses_the_end_of_a_run)
{
	uint8_t *first, *second;

	begin(64);
	first = shim_arena_alloc(32 * MIB);
	second = shim_arena_alloc(48 * MIB);
	check(first && second);
	check_eq(host.n_requests, 1);
	/* 32 MiB are free before the second run, and 16 MiB after its piece. */
	check(second == first + 64 * MIB);
	shim_arena_free(first);
	shim_arena_free(second);
	check(shim_arena_alloc(65 * MIB) != (void *)first);
}
