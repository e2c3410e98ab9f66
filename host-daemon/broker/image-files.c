/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image files: the memory files of images that one worker may have
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/image-files.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"

/* Freed in less time than a turn of the loop may take: half a second for a GiB. */
#define EMPTY_AT_ONCE_MAX (64ull << 20)

void image_files_init(struct image_files *files)
{
	memset(files, 0, sizeof(*files));
}

void image_files_deinit(struct image_files *files)
{
	while (files->n_given)
		closer_close(files->given[--files->n_given].fd);
}

void image_files_assume(struct image_files *files)
{
	memset(files->seen, 0xff, sizeof(files->seen));
	files->is_partial = true;
}

bool image_files_have_room(
	const struct image_files *files, uint64_t size, uint64_t size_max)
{
	return size && size <= CONTROL_IMAGE_SIZE_MAX && files->size <= size_max &&
	       image_store_memory(size) <= size_max - files->size;
}

static void remove_at(struct image_files *files, unsigned int i)
{
	closer_close(files->given[i].fd);
	files->given[i] = files->given[--files->n_given];
}

static int make(uint64_t size, int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Not against being cut short, which is how it is taken back. */
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

int image_files_give(struct image_files *files, uint32_t cookie, uint64_t size,
	uint64_t size_max, int *fdp)
{
	int r;

	image_files_take_back(files, cookie);
	if (files->n_given == IMAGE_FILES_MAX ||
		!image_files_have_room(files, size, size_max))
		return IMAGE_FILES_E_REFUSED;
	r = make(size, fdp);
	if (r)
		return vgpu_error_trace(r);
	files->given[files->n_given++] = (struct image_file){ cookie, size, *fdp };
	files->size += image_store_memory(size);
	return 0;
}

void image_files_take_back(struct image_files *files, uint32_t cookie)
{
	for (unsigned int i = 0; i < files->n_given; i++) {
		struct image_file *file = &files->given[i];

		if (file->cookie != cookie)
			continue;
		/* A worker that still maps it reads zeroes. Emptying a large one would
		 * block the loop, so that one counts until the worker ends. */
		if (file->size <= EMPTY_AT_ONCE_MAX && !ftruncate(file->fd, 0))
			files->size -= image_store_memory(file->size);
		remove_at(files, i);
		return;
	}
}

bool image_files_claim(struct image_files *files, int fd, uint64_t *countedp)
{
	struct stat st, other;

	if (fstat(fd, &st) < 0)
		return false;
	for (unsigned int i = 0; i < files->n_given; i++) {
		if (fstat(files->given[i].fd, &other) < 0 || other.st_dev != st.st_dev ||
			other.st_ino != st.st_ino)
			continue;
		*countedp = image_store_memory(files->given[i].size);
		remove_at(files, i);
		return true;
	}
	*countedp = 0;
	return files->is_partial;
}

static uint64_t bit_of(const struct stored_image *image)
{
	return (uint64_t)1 << image->slot % 64;
}

void image_files_see(struct image_files *files, const struct stored_image *image)
{
	files->seen[image->slot / 64] |= bit_of(image);
}

void image_files_stored(
	struct image_files *files, const struct stored_image *image, uint64_t counted)
{
	files->size -= counted;
	image_files_see(files, image);
}

bool image_files_have_seen(
	const struct image_files *files, const struct stored_image *image)
{
	return files->seen[image->slot / 64] & bit_of(image);
}
