/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image files: what a program has loaded by its path
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "code/image-file.h"
#include "code/image.h"
#include "wire/reason.h"

/* No header of an image is longer. */
#define ZEROS_BEHIND 64u

static bool read_all(int fd, uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* Whether the file is unchanged since before it was read. */
static bool is_unchanged(int fd, const struct shim_backing *before)
{
	struct shim_backing after;
	struct stat info;

	if (fstat(fd, &info))
		return false;
	shim_backing_of(&info, &after);
	return !memcmp(&after, before, sizeof(after));
}

static CUresult refuse(const char *path, const char *why)
{
	shim_reason_tell(SHIM_REASON_FILE,
		"a load of code fails with CUDA_ERROR_FILE_NOT_FOUND (301): %.256s: %s",
		path, why);
	return CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult shim_image_file_read(const char *path, struct shim_image_file *file)
{
	_vgpu_cleanup_(vgpu_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_vgpu_cleanup_(vgpu_freep) uint8_t *data = NULL;
	struct stat info;

	*file = (struct shim_image_file){};
	if (fd < 0 || fstat(fd, &info))
		return refuse(path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return refuse(path, "it is no regular file");
	if ((uint64_t)info.st_size > SHIM_IMAGE_SIZE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	data = malloc((size_t)info.st_size + ZEROS_BEHIND);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!read_all(fd, data, (size_t)info.st_size))
		return refuse(path, "it cannot be read whole");
	memset(data + info.st_size, 0, ZEROS_BEHIND);
	shim_backing_of(&info, &file->backing);
	file->is_known = is_unchanged(fd, &file->backing);
	file->size = (uint64_t)info.st_size;
	file->data = data;
	data = NULL;
	return CUDA_SUCCESS;
}

void shim_image_file_deinit(struct shim_image_file *file)
{
	free(file->data);
	file->data = NULL;
}
