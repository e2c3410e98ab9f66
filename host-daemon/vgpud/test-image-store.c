/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is kept for a VM
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/image-store.h"

#define SEALED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct image_store store;

static int make_file(off_t size, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	check_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static const uint8_t *digest(uint8_t number)
{
	static uint8_t bytes[CONTROL_DIGEST_SIZE];

	memset(bytes, number, sizeof(bytes));
	return bytes;
}

static void add(uint8_t number, uint64_t size)
{
	check_eq(image_store_add(
			 &store, digest(number), size, make_file((off_t)size, SEALED)),
		0);
}

static bool accepts(off_t size, unsigned int seals, uint64_t claimed)
{
	int fd = make_file(size, seals);
	bool accepted = image_store_accepts(fd, claimed);

	close(fd);
	return accepted;
}

TEST(only_a_memory_file_that_cannot_change_is_accepted)
{
	int fds[2];

	check(accepts(4096, SEALED, 4096));
	check(accepts(4095, SEALED | F_SEAL_FUTURE_WRITE, 4095));
	for (unsigned int seal = F_SEAL_SEAL; seal <= F_SEAL_WRITE; seal <<= 1)
		check(!accepts(4096, SEALED & ~seal, 4096));
	check(!accepts(4096,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, 4096));
	check_eq(pipe2(fds, O_CLOEXEC), 0);
	check(!image_store_accepts(fds[0], 4096));
	check(!image_store_accepts(-1, 4096));
	close(fds[0]);
	close(fds[1]);
}

TEST(a_memory_file_of_huge_pages_is_not_accepted)
{
	const off_t size = 1 << 21;
	int fd = memfd_create(
		"huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);

	if (fd < 0 && (errno == EINVAL || errno == ENODEV || errno == ENOENT))
		test_skip("this kernel has no huge pages of 2 MiB");
	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	check_eq(fcntl(fd, F_ADD_SEALS, SEALED), 0);
	check(!image_store_accepts(fd, (uint64_t)size));
	close(fd);
}

TEST(the_size_has_to_match_the_message)
{
	check(!accepts(4096, SEALED, 4095));
	check(!accepts(4096, SEALED, 4097));
	check(!accepts(0, SEALED, 0));
	check(accepts(CONTROL_IMAGE_SIZE_MAX, SEALED, CONTROL_IMAGE_SIZE_MAX));
	check(!accepts(CONTROL_IMAGE_SIZE_MAX + 1, SEALED, CONTROL_IMAGE_SIZE_MAX + 1));
}

TEST(added_images_are_found_until_removed)
{
	struct stored_image *image;

	image_store_init(&store);
	add(1, 100);
	add(2, 5000);
	check_eq(store.n, 2);
	check_eq(store.size, 4096 + 8192);
	image = image_store_find(&store, digest(2));
	check(image);
	check_eq(image->size, 5000);
	check(!image_store_find(&store, digest(3)));
	image_store_remove(&store, image);
	check(!image_store_find(&store, digest(2)));
	check_eq(store.size, 4096);
	image_store_clear(&store);
	check_eq(store.n, 0);
	check_eq(store.size, 0);
}

TEST(the_one_used_longest_ago_makes_room)
{
	struct stored_image *image;

	image_store_init(&store);
	add(1, 4096);
	add(2, 4096);
	add(3, 4096);
	check(image_store_find(&store, digest(1)));
	check(!image_store_excess(&store, 4096, 4 * 4096, 4));
	image = image_store_excess(&store, 4097, 4 * 4096, 4);
	check(image && image == image_store_find(&store, digest(2)));
	image = image_store_excess(&store, 1, 1 << 20, 3);
	check(image && image == image_store_find(&store, digest(3)));
	image_store_clear(&store);
	check(!image_store_excess(&store, 4096, 4096, 1));
}

TEST(a_store_moves_whole)
{
	struct image_store other;

	image_store_init(&store);
	image_store_init(&other);
	add(1, 4096);
	add(2, 4096);
	image_store_move(&other, &store);
	check_eq(store.n, 0);
	check_eq(store.size, 0);
	check(!image_store_find(&store, digest(1)));
	check(image_store_find(&other, digest(1)));
	check_eq(other.size, 8192);
	image_store_clear(&other);
}
