/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that are moved while threads of the program use them
 *
 * A memfd is the shared memory.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#include "memory/mover.h"

#define PAGE 4096u
#define N_PAGES 64u
#define SIZE (N_PAGES * PAGE)
#define N_MOVES 200u

static struct shim_moved moved;

const bool test_keeps_descriptors = true;

static uint8_t *anonymous(uint64_t size)
{
	uint8_t *bytes = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(bytes != MAP_FAILED);
	return bytes;
}

/* Shared memory of its own for the program's pages at an address. */
static void begin(void *address, uint64_t size)
{
	int fd = memfd_create("arena", MFD_CLOEXEC);

	if (!shim_mover_is_possible())
		test_skip("this process may not use userfaultfd(2)");
	check(fd >= 0 && !ftruncate(fd, 2 * SIZE));
	moved = (struct shim_moved){
		.address = (uint64_t)(uintptr_t)address,
		.size = size,
		.fd = fd,
		.offset = PAGE,
	};
	moved.home = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	check(moved.home != MAP_FAILED);
}

static void move_back(void)
{
	bool is_free = false;

	check_eq(shim_mover_return(&moved, &is_free), 0);
	check(is_free);
}

TEST(pages_are_shared_until_they_are_moved_back)
{
	uint8_t *bytes = anonymous(SIZE);

	memset(bytes, 7, SIZE / 2);
	begin(bytes, SIZE);
	check_eq(shim_mover_take(&moved), 0);
	check_eq(moved.home[0], 7);
	check_eq(moved.home[SIZE / 2 - 1], 7);
	/* Pages that nobody had touched yet. */
	check_eq(moved.home[SIZE - 1], 0);
	bytes[1] = 8;
	moved.home[SIZE - 1] = 9;
	check_eq(moved.home[1], 8);
	check_eq(bytes[SIZE - 1], 9);
	move_back();
	check_eq(bytes[0], 7);
	check_eq(bytes[1], 8);
	check_eq(bytes[SIZE - 1], 9);
	moved.home[1] = 1;
	check_eq(bytes[1], 8);
	bytes[2] = 3;
	check_eq(moved.home[2], 7);
	/* They are anonymous: without their content they are zero. */
	check_eq(madvise(bytes, SIZE, MADV_DONTNEED), 0);
	check_eq(bytes[0], 0);
}

static struct {
	uint32_t *words; /* one in each page, and thread */
	bool is_over;	 /* atomic */
} shared;

#define N_WRITERS 2u

struct writer {
	pthread_t thread;
	uint32_t number;
	uint32_t n_rounds;
};

static void *write_all_the_time(void *argument)
{
	struct writer *writer = argument;

	while (!__atomic_load_n(&shared.is_over, __ATOMIC_RELAXED)) {
		for (uint32_t i = 0; i < N_PAGES; i++) {
			volatile uint32_t *word =
				&shared.words[i * (PAGE / 4) + writer->number];

			*word = *word + 1;
		}
		writer->n_rounds++;
	}
	return NULL;
}

TEST(no_store_of_a_concurrent_writer_is_lost)
{
	struct writer writers[N_WRITERS];

	shared.words = (uint32_t *)anonymous(SIZE);
	begin(shared.words, SIZE);
	for (uint32_t i = 0; i < N_WRITERS; i++) {
		writers[i] = (struct writer){ .number = i };
		check(!pthread_create(
			&writers[i].thread, NULL, write_all_the_time, &writers[i]));
	}
	for (uint32_t i = 0; i < N_MOVES; i++) {
		check_eq(shim_mover_take(&moved), 0);
		move_back();
	}
	__atomic_store_n(&shared.is_over, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < N_WRITERS; i++) {
		check(!pthread_join(writers[i].thread, NULL));
		check(writers[i].n_rounds);
		for (uint32_t k = 0; k < N_PAGES; k++)
			check_eq(shared.words[k * (PAGE / 4) + i], writers[i].n_rounds);
	}
}

TEST(only_private_anonymous_memory_is_moved)
{
	uint8_t *bytes = anonymous(4 * PAGE), *other;
	int fd;

	begin(bytes, 4 * PAGE);
	fd = memfd_create("file", MFD_CLOEXEC);
	check(fd >= 0 && !ftruncate(fd, PAGE));
	bytes[0] = bytes[3 * PAGE] = 5;
	other = bytes + 2 * PAGE;

	check(mmap(other, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		other);
	check_eq(shim_mover_take(&moved), -EOPNOTSUPP);
	check(mmap(other, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		other);
	check_eq(shim_mover_take(&moved), -EOPNOTSUPP);
	check(mmap(other, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == other);
	check_eq(shim_mover_take(&moved), -EOPNOTSUPP);
	check(mmap(other, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == other);
	check_eq(shim_mover_take(&moved), -EINVAL);
	check(!munmap(other, PAGE));
	check_eq(shim_mover_take(&moved), -EINVAL);
	/* Nothing was moved. */
	moved.home[0] = 6;
	check_eq(bytes[0], 5);
	check_eq(bytes[3 * PAGE], 5);
}

TEST(the_stack_of_the_caller_is_not_moved)
{
	uint8_t bytes[3 * PAGE] = {};

	begin((void *)(((uintptr_t)bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1)), PAGE);
	check_eq(shim_mover_take(&moved), -EOPNOTSUPP);
}

/* malloc() has its books and other memory in the same pages. */
TEST(pages_of_the_heap_are_moved)
{
	enum { N = 1000 };
	uint8_t *blocks[N];
	uint64_t first;

	for (uint32_t i = 0; i < N; i++) {
		blocks[i] = malloc(600);
		check(blocks[i]);
		memset(blocks[i], (int)i, 600);
	}
	first = (uint64_t)(uintptr_t)blocks[N / 2] & ~(uint64_t)(PAGE - 1);
	begin((void *)(uintptr_t)first, 16 * PAGE);
	check_eq(shim_mover_take(&moved), 0);
	for (uint32_t i = 0; i < N; i += 2)
		free(blocks[i]);
	for (uint32_t i = 0; i < N; i += 2) {
		blocks[i] = malloc(600);
		check(blocks[i]);
		memset(blocks[i], (int)i, 600);
	}
	move_back();
	for (uint32_t i = 0; i < N; i++) {
		check_eq(blocks[i][0], (uint8_t)i);
		check_eq(blocks[i][599], (uint8_t)i);
		free(blocks[i]);
	}
}

/* The program has freed the memory, and mapped something else there, before it says that
 * it is no longer registered. */
TEST(what_is_mapped_there_meanwhile_stays)
{
	uint8_t *bytes = anonymous(4 * PAGE);
	bool is_free = false;

	memset(bytes, 1, 4 * PAGE);
	begin(bytes, 4 * PAGE);
	check_eq(shim_mover_take(&moved), 0);
	check(mmap(bytes + PAGE, PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == bytes + PAGE);
	bytes[PAGE] = 2;
	check(!munmap(bytes + 2 * PAGE, PAGE));
	check_eq(shim_mover_return(&moved, &is_free), 0);
	check(is_free);
	check_eq(bytes[0], 1);
	check_eq(bytes[PAGE], 2);
	check_eq(bytes[3 * PAGE], 1);
}

TEST(pages_that_the_program_has_moved_elsewhere_keep_their_memory)
{
	uint8_t *bytes = anonymous(2 * PAGE), *place = anonymous(PAGE);
	bool is_free = true;

	memset(bytes, 1, 2 * PAGE);
	begin(bytes, 2 * PAGE);
	check_eq(shim_mover_take(&moved), 0);
	check(mremap(bytes + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
		place);
	check_eq(shim_mover_return(&moved, &is_free), 0);
	check(!is_free);
	check_eq(place[0], 1);
	moved.home[PAGE] = 3;
	check_eq(place[0], 3);
}

/* Several mappings side by side, which differ in what the kernel does with them. */
TEST(memory_of_several_mappings_is_moved)
{
	uint8_t *bytes = anonymous(4 * PAGE);

	check_eq(madvise(bytes + PAGE, PAGE, MADV_DONTFORK), 0);
	check_eq(madvise(bytes + 3 * PAGE, PAGE, MADV_DONTDUMP), 0);
	for (uint32_t i = 0; i < 4; i++)
		bytes[i * PAGE] = (uint8_t)(i + 1);
	begin(bytes, 4 * PAGE);
	check_eq(shim_mover_take(&moved), 0);
	for (uint32_t i = 0; i < 4; i++)
		check_eq(moved.home[i * PAGE], i + 1);
	move_back();
	for (uint32_t i = 0; i < 4; i++)
		check_eq(bytes[i * PAGE], i + 1);
}
