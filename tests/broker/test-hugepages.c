/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory in huge pages, towards a QEMU that only speaks the protocol
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"
#include "vgpud/huge-file.h"

#define SIZE (128ull << 20)
#define N_PAGES (SIZE / HUGE_FILE_PAGE_SIZE)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static struct pair pair;
static struct guest guest;

static unsigned long read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long number = 0;

	if (file) {
		if (fscanf(file, "%lu", &number) != 1)
			number = 0;
		fclose(file);
	}
	return number;
}

/* Neither in use nor reserved. */
static unsigned long count_free(void)
{
	return read_number(POOL "free_hugepages") - read_number(POOL "resv_hugepages");
}

static void need_pages(void)
{
	if (count_free() < N_PAGES)
		test_skip(
			"needs %llu free huge pages of 2 MiB (vm.nr_hugepages), has %lu",
			N_PAGES, count_free());
}

static void start(const char *size, const char *hugepages)
{
	char sections[512];

	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = %s\nhugepages = %s\nsocket = %s/qemu\n"
		"max-processes = 2\n",
		size, hugepages, test_tmpdir());
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .sections = sections,
			  });
}

static const char *qemu_socket(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/qemu", pair.dir);
	return path;
}

/* Return: a file that has all pages which nobody has reserved. */
static int take_all(void)
{
	const unsigned long n = count_free();
	int fd = huge_file_make("all", (n + 1) * HUGE_FILE_PAGE_SIZE);

	check(fd >= 0);
	if (n)
		check_eq(huge_file_reserve(fd, 0, n * HUGE_FILE_PAGE_SIZE), 0);
	check(huge_file_reserve(fd, n * HUGE_FILE_PAGE_SIZE, HUGE_FILE_PAGE_SIZE) < 0);
	return fd;
}

static uint8_t *granted_memory(unsigned int channel, uint64_t *sizep)
{
	const struct vgpu_channel_entry *entry = guest_entry(&guest, channel);

	*sizep = (uint64_t)entry->n_extents * VGPU_EXTENT_SIZE;
	return guest.map + guest.header->extents_off +
	       (uint64_t)entry->first_extent * VGPU_EXTENT_SIZE;
}

TEST(a_vm_without_enough_pages_is_refused_and_the_log_says_why)
{
	char byte;
	int fd;

	start("256G", "hugetlb");
	fd = guest_try_connect(qemu_socket());
	check(fd >= 0);
	check_eq(read(fd, &byte, 1), 0);
	close(fd);
	pair_wait_log(&pair, "vm=qemu: no memory or descriptors for it", 1);
	check_eq(pair_count_log(&pair, "HugePages_Free"), 1);
	pair_stop(&pair);
}

TEST(pages_are_emptied_and_stay_reserved)
{
	uint8_t *memory;
	uint64_t size;
	int fd;

	need_pages();
	start("128M", "hugetlb");
	guest_connect_qemu(&guest, qemu_socket());
	check(huge_file_is(guest.shm));
	guest_open(&guest, 0, "app");
	memory = granted_memory(0, &size);
	memset(memory, 'x', size);
	guest_close(&guest, 0);
	fd = take_all();
	for (uint64_t i = 0; i < size; i += 512)
		check_eq(memory[i], 0);
	guest_open(&guest, 1, "app");
	guest_close(&guest, 1);
	close(fd);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

static int stolen; /* a file that has it */

/* Return: false if vgpud's heartbeat got the page back before it was taken. */
static bool steal_head(void)
{
	check_eq(madvise(guest.map, HUGE_FILE_PAGE_SIZE, MADV_REMOVE), 0);
	if (!count_free())
		return false;
	stolen = take_all();
	return true;
}

/* An access of vgpud finds no page: a SIGBUS, which must not end the broker. */
TEST(a_qemu_that_frees_the_pages_harms_only_its_vm)
{
	struct guest other;
	int fd;

	need_pages();
	start("128M", "hugetlb");
	guest_connect_qemu(&guest, qemu_socket());
	guest_open(&guest, 0, "app");
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "other");

	fd = take_all();
	guest_wait_for(steal_head());
	pair_wait_log(&pair, "vm=qemu: its memory was taken away", 1);
	pair_wait_log(&pair, "session ended vm=qemu", 1);
	check_eq(guest_entry(&other, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(pair_count_log(&pair, "the broker was ended"), 0);
	close(stolen);
	close(fd);
	guest_close(&other, 0);
	guest_disconnect(&other);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(transparent_huge_pages_need_none_that_are_reserved)
{
	start("128M", "transparent");
	guest_connect_qemu(&guest, qemu_socket());
	check(!huge_file_is(guest.shm));
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}
