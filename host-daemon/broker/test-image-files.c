/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory files of images
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/image-files.h"
#include "test.h"

#define SIZE 5000u
#define MEMORY 8192u
#define SEALED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct image_files files;

static int give(uint32_t cookie, uint64_t size, uint64_t size_max)
{
	int fd = -1;

	return image_files_give(&files, cookie, size, size_max, &fd) ? -1 : fd;
}

static off_t size_of(int fd)
{
	struct stat st;

	check_eq(fstat(fd, &st), 0);
	return st.st_size;
}

TEST(a_file_has_its_size_and_does_not_grow)
{
	int fd;

	image_files_init(&files);
	fd = give(1, SIZE, 1 << 20);
	check(fd >= 0);
	check_eq(size_of(fd), SIZE);
	check(ftruncate(fd, SIZE + 1) < 0);
	check(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20) < 0);
	check_eq(files.size, MEMORY);
	image_files_deinit(&files);
}

TEST(a_revoked_file_is_empty_for_its_holders)
{
	int fd, other;

	image_files_init(&files);
	fd = give(1, SIZE, 1 << 20);
	other = dup(fd);
	check_eq(pwrite(other, "x", 1, 0), 1);
	image_files_take_back(&files, 1);
	check_eq(size_of(other), 0);
	check(ftruncate(other, SIZE) < 0);
	check_eq(files.size, 0);
	/* Of another number there is none. */
	image_files_take_back(&files, 2);
	close(other);
	image_files_deinit(&files);
}

TEST(a_file_that_cannot_be_emptied_counts)
{
	int fd;

	image_files_init(&files);
	fd = give(1, SIZE, 1 << 20);
	check_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	image_files_take_back(&files, 1);
	check_eq(files.n_given, 0);
	check_eq(files.size, MEMORY);
	image_files_deinit(&files);
}

TEST(files_are_bounded_in_size_and_number)
{
	image_files_init(&files);
	check(give(1, 0, 1 << 20) < 0);
	check(give(1, UINT64_MAX, UINT64_MAX) < 0);
	check(give(1, CONTROL_IMAGE_SIZE_MAX + 1, UINT64_MAX) < 0);
	check(give(1, SIZE, MEMORY - 1) < 0);
	check(give(1, SIZE, MEMORY) >= 0);
	check(give(2, 1, MEMORY) < 0);
	for (uint32_t i = 2; i <= IMAGE_FILES_MAX; i++)
		check(give(i, 1, 1 << 20) >= 0);
	check(give(IMAGE_FILES_MAX + 1, 1, 1 << 20) < 0);
	image_files_deinit(&files);
}

TEST(images_in_the_store_count_there)
{
	struct image_store store;
	uint8_t digest[CONTROL_DIGEST_SIZE] = {};
	struct stored_image *image;
	uint64_t counted, none;
	int fd, own;

	image_store_init(&store);
	image_files_init(&files);
	fd = give(1, SIZE, 1 << 20);
	own = dup(fd);
	check(!image_store_accepts(own, SIZE));
	check(!image_store_has_file(&store, own));
	check_eq(fcntl(fd, F_ADD_SEALS, SEALED), 0);
	check(image_store_accepts(own, SIZE));
	check(image_files_claim(&files, own, &counted));
	check(!image_files_claim(&files, own, &none));
	check_eq(files.size, MEMORY);
	check_eq(image_store_add(&store, digest, SIZE, own), 0);
	image = TAILQ_FIRST(&store.images);
	check(!image_files_have_seen(&files, image));
	image_files_stored(&files, image, counted);
	check(image_files_have_seen(&files, image));
	check_eq(files.size, 0);
	check_eq(store.size, MEMORY);
	check(image_store_has_file(&store, own));
	/* Removed, but its holder still has it. */
	image_store_retire(&store, image);
	check_eq(store.size, 0);
	check_eq(store.gone_size, MEMORY);
	check(image_store_find(&store, digest) == NULL);
	image_store_forget(&store, image);
	check_eq(store.gone_size, 0);
	image_store_clear(&store);
	image_files_deinit(&files);
}

TEST(a_file_of_an_earlier_broker_is_accepted)
{
	uint64_t counted;
	int fd = memfd_create("image", MFD_CLOEXEC);

	check_eq(ftruncate(fd, SIZE), 0);
	image_files_init(&files);
	check(!image_files_claim(&files, fd, &counted));
	check_eq(files.size, 0);
	image_files_assume(&files);
	check(image_files_claim(&files, fd, &counted));
	check_eq(counted, 0);
	check_eq(files.size, 0);
	image_files_deinit(&files);
	close(fd);
}

TEST(no_two_images_have_a_number_in_common)
{
	struct image_store store;
	struct stored_image *first;
	uint8_t digest[CONTROL_DIGEST_SIZE] = {};

	image_store_init(&store);
	for (uint32_t i = 0; i < IMAGE_STORE_SLOTS; i++) {
		check_eq(image_store_add(&store, digest, 1, -1), 0);
		check_eq(TAILQ_LAST(&store.images, stored_images)->slot, i);
		image_store_retire(&store, TAILQ_LAST(&store.images, stored_images));
	}
	check(image_store_add(&store, digest, 1, -1) < 0);
	first = TAILQ_FIRST(&store.gone);
	image_store_forget(&store, first);
	check_eq(image_store_add(&store, digest, 1, -1), 0);
	check_eq(TAILQ_LAST(&store.images, stored_images)->slot, 0);
	image_store_clear(&store);
	check_eq(store.gone_size, 0);
}
