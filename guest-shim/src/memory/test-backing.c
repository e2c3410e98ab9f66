/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file memory comes from
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "memory/backing.h"

#define PAGE 4096

static char path[256];
static struct shim_backing backing;

static int make_file(void)
{
	static char bytes[4 * PAGE];
	int fd;

	memset(bytes, 'f', sizeof(bytes));
	snprintf(path, sizeof(path), "%s/file", test_tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0);
	check_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	return fd;
}

static uint8_t *map(int fd, int protection, int flags)
{
	uint8_t *bytes = mmap(NULL, 3 * PAGE, protection, flags, fd, PAGE);

	check(bytes != MAP_FAILED);
	close(fd);
	return bytes;
}

TEST(a_private_mapping_names_its_file_and_place)
{
	uint8_t *bytes = map(make_file(), PROT_READ, MAP_PRIVATE);
	struct stat st;

	check(shim_backing_find(bytes + 10, 2 * PAGE, &backing));
	check_eq(stat(path, &st), 0);
	check_eq(backing.inode, st.st_ino);
	check_eq(backing.device, st.st_dev);
	check_eq(backing.size, 4 * PAGE);
	check_eq(backing.modified_s, st.st_mtim.tv_sec);
	check_eq(backing.changed_ns, st.st_ctim.tv_nsec);
	check_eq(backing.offset, PAGE + 10);
	/* A file that was just written may be written to again in the same tick. */
	backing.changed_s = time(NULL);
	check(!shim_backing_is_settled(&backing));
	backing.changed_s -= 3;
	check(shim_backing_is_settled(&backing));
	backing.changed_s += 1000;
	check(!shim_backing_is_settled(&backing));
}

TEST(constants_of_a_program_are_in_its_file)
{
	static const char text[] = "text";

	check(shim_backing_find(text, sizeof(text), &backing));
}

TEST(memory_that_is_no_files_has_none)
{
	static char data[16] = "data";
	char stack[16] = "";

	check(!shim_backing_find(stack, sizeof(stack), &backing));
	check(!shim_backing_find(data, sizeof(data), &backing));
	check(!shim_backing_find((void *)PAGE, 16, &backing));
	check(!shim_backing_find(data, 0, &backing));
}

TEST(more_than_one_mapping_is_not_looked_at)
{
	uint8_t *bytes = map(make_file(), PROT_READ, MAP_PRIVATE);

	check(shim_backing_find(bytes, 3 * PAGE, &backing));
	check(!shim_backing_find(bytes, 3 * PAGE + 1, &backing));
	check(!shim_backing_find(bytes, UINT64_MAX, &backing));
	check_eq(mprotect(bytes + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	check(!shim_backing_find(bytes, 2 * PAGE, &backing));
}

TEST(writable_and_shared_mappings_are_not_taken_for_the_file)
{
	check(!shim_backing_find(
		map(make_file(), PROT_READ | PROT_WRITE, MAP_PRIVATE), 16, &backing));
	check(!shim_backing_find(map(make_file(), PROT_READ, MAP_SHARED), 16, &backing));
	check(!shim_backing_find(
		map(make_file(), PROT_READ | PROT_WRITE, MAP_SHARED), 16, &backing));
}

TEST(pages_that_were_changed_before_are_noticed)
{
	uint8_t *bytes = map(make_file(), PROT_READ | PROT_WRITE, MAP_PRIVATE);

	bytes[PAGE] = 'x';
	check_eq(mprotect(bytes, 3 * PAGE, PROT_READ), 0);
	check(!shim_backing_find(bytes, 3 * PAGE, &backing));
	check(!shim_backing_find(bytes + PAGE, 1, &backing));
	check(shim_backing_find(bytes, PAGE, &backing));
	check(shim_backing_find(bytes + 2 * PAGE, PAGE, &backing));
}

TEST(a_file_that_is_no_longer_at_its_path_is_none)
{
	uint8_t *bytes = map(make_file(), PROT_READ, MAP_PRIVATE);

	check_eq(unlink(path), 0);
	check(!shim_backing_find(bytes, 16, &backing));
	/* Another takes its place. */
	close(make_file());
	check(!shim_backing_find(bytes, 16, &backing));
}
