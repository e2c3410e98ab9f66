/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/huge-file.h"

#define PAGE HUGE_FILE_PAGE_SIZE

/* Return: a file of two pages, which are reserved. */
static int make(void)
{
	int fd = huge_file_make("test", 2 * PAGE);

	check(fd >= 0);
	if (huge_file_reserve(fd, 0, 2 * PAGE))
		test_skip("needs two free huge pages of 2 MiB (vm.nr_hugepages)");
	return fd;
}

static uint64_t count_bytes(int fd)
{
	struct stat st;

	check_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

TEST(only_files_of_huge_pages_are_huge_files)
{
	int huge = huge_file_make("test", PAGE),
	    small = memfd_create("test", MFD_CLOEXEC);

	check(huge_file_is(huge));
	check(!huge_file_is(small));
	check(!huge_file_is(-1));
	close(huge);
	close(small);
}

TEST(more_pages_than_there_can_be_are_not_reserved)
{
	const uint64_t size = 64ull << 40;
	int fd = huge_file_make("test", size);

	check(fd >= 0);
	check_eq(huge_file_reserve(fd, 0, size), -ENOMEM);
	close(fd);
}

TEST(writes_go_to_their_place)
{
	int fd = make();
	uint8_t *map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);

	check(map != MAP_FAILED);
	check_eq(huge_file_write(fd, "abc", 3, PAGE + 4097), 0);
	check_eq(map[PAGE + 4096], 0);
	check(!memcmp(map + PAGE + 4097, "abc", 3));
	check_eq(map[PAGE + 4100], 0);
	munmap(map, 2 * PAGE);
	close(fd);
}

TEST(emptied_pages_are_zero_and_the_others_are_left)
{
	int fd = make();
	uint8_t *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(map != MAP_FAILED);
	memset(map, 'x', 2 * PAGE);
	check_eq(count_bytes(fd), 2 * PAGE);
	check_eq(huge_file_empty(fd, PAGE, PAGE), 0);
	check_eq(count_bytes(fd), PAGE);
	check_eq(map[PAGE - 1], 'x');
	for (uint64_t i = PAGE; i < 2 * PAGE; i++)
		check_eq(map[i], 0);
	munmap(map, 2 * PAGE);
	close(fd);
}
