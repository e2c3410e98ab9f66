/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the kernel takes back while the process uses it
 */

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#include "wire/removal.h"

#define PAGE 4096
#define SIZE (4 * PAGE)

static sigjmp_buf back;

/* Memory of a file that is then cut: the kernel answers as for a device that is gone. */
static uint8_t *map_and_cut(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *map;

	check_eq(ftruncate(fd, SIZE), 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED);
	memset(map, 0xa5, SIZE);
	check_eq(ftruncate(fd, 0), 0);
	close(fd);
	return map;
}

static void jump(int number)
{
	siglongjmp(back, number);
}

static bool is_fatal(volatile uint8_t *place)
{
	if (sigsetjmp(back, 1))
		return true;
	*place = 1;
	return false;
}

TEST(memory_that_is_gone_reads_as_zero_and_can_be_written)
{
	volatile uint8_t *map = map_and_cut();
	bool is_removed = false;

	shim_removal_watch((uintptr_t)map, SIZE, &is_removed);
	check_eq(map[PAGE + 8], 0);
	check(is_removed);
	map[3 * PAGE] = 7;
	check_eq(map[3 * PAGE], 7);
}

TEST(other_addresses_go_to_the_handler_of_the_program)
{
	uint8_t *map = map_and_cut();
	bool is_removed = false;

	signal(SIGBUS, jump);
	shim_removal_watch((uintptr_t)map, 2 * PAGE, &is_removed);
	check(is_fatal(map + 2 * PAGE));
	check(!is_removed);
	check(!is_fatal(map + PAGE));
	check(is_removed);
}

TEST(a_place_that_was_forgotten_is_not_filled)
{
	uint8_t *map = map_and_cut();
	bool is_removed = false;

	signal(SIGBUS, jump);
	shim_removal_watch((uintptr_t)map, SIZE, &is_removed);
	shim_removal_forget((uintptr_t)map);
	check(is_fatal(map));
	check(!is_removed);
}

TEST(places_are_used_again)
{
	bool is_removed = false;
	uint8_t *map;

	for (int i = 0; i < 20; i++) {
		map = map_and_cut();
		shim_removal_watch((uintptr_t)map, SIZE, &is_removed);
		is_removed = false;
		*(volatile uint8_t *)map = 1;
		check(is_removed);
		shim_removal_forget((uintptr_t)map);
		munmap(map, SIZE);
	}
}
