/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image: the code of one load, in memory that nobody can change
 *
 * The guest's bytes go into a memory file by write(2), which reads each of them once,
 * and the seals come before the first look at them.
 */

#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/image.h"
#include "worker/session.h"
#include "worker/store.h"

static_assert(CONTROL_DIGEST_SIZE == SHA256_DIGEST_SIZE, "one digest");

static void compute_digest(const struct image *image, uint8_t digest[SHA256_DIGEST_SIZE])
{
	struct sha256_ctx context;

	sha256_init(&context);
	sha256_update(&context, image->size, image->bytes);
	sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

static bool write_all(int fd, const uint8_t *bytes, uint64_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n <= 0)
			return false;
		bytes += n;
		size -= (uint64_t)n;
	}
	return true;
}

static bool write_container(int fd, const struct vgpu_load_image *container)
{
	static const uint8_t zeros[IMAGE_TRAILER + IMAGE_ALIGNMENT];

	return write_all(fd, (const uint8_t *)(uintptr_t)container->address,
		       container->size) &&
	       write_all(fd, zeros, image_padded(container->size) - container->size);
}

static bool map(struct image *image, int fd, uint64_t size)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *n_users = malloc(sizeof(*n_users));
	void *bytes;

	if (!n_users)
		return false;
	bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	*n_users = 1;
	image->bytes = bytes;
	image->size = size;
	image->n_users = n_users;
	n_users = NULL;
	return true;
}

struct image image_dup(const struct image *image)
{
	struct image other = *image;

	/* Only one of them has what vgpud may not have yet. */
	other.fd = -1;
	__atomic_fetch_add(other.n_users, 1, __ATOMIC_RELAXED);
	return other;
}

CUresult image_copy(struct image *image, const struct vgpu_load *load, uint64_t size)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	*image = (struct image){ .fd = -1 };
	fd = memfd_create("vgpu-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < load->n_images; i++)
		if (!write_container(fd, &load->images[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0 || !map(image, fd, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	compute_digest(image, image->digest);
	image->fd = fd;
	fd = -1;
	return CUDA_SUCCESS;
}

static CUresult refuse(struct image *image, const struct session *session)
{
	static struct rate rate;

	if (rate_allows(&rate))
		vgpu_log_warning("VM %s: an image that was kept for it is not what its "
				 "digest says, and is not used.",
			session->vm);
	image_release(image);
	return CUDA_ERROR_NOT_FOUND;
}

/* Maps what is kept under a digest, whatever that is. */
static CUresult map_kept(struct image *image, struct session *session,
	const uint8_t digest[CONTROL_DIGEST_SIZE], uint64_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	uint64_t found_size;

	*image = (struct image){ .fd = -1 };
	if (store_find(session, digest, &fd, &found_size) || found_size != size)
		return CUDA_ERROR_NOT_FOUND;
	return map(image, fd, size) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult image_find(struct image *image, struct session *session,
	const uint8_t digest[CONTROL_DIGEST_SIZE], uint64_t size)
{
	CUresult result = map_kept(image, session, digest, size);

	if (result != CUDA_SUCCESS)
		return result;
	compute_digest(image, image->digest);
	return memcmp(image->digest, digest, CONTROL_DIGEST_SIZE)
		       ? refuse(image, session)
		       : CUDA_SUCCESS;
}

void image_share(struct image *image, struct session *session)
{
	struct image other;
	bool is_there;

	if (image->fd < 0)
		return;
	is_there = map_kept(&other, session, image->digest, image->size) == CUDA_SUCCESS;
	/* The bytes themselves are at hand: a digest would only take longer. */
	if (is_there && !memcmp(other.bytes, image->bytes, image->size)) {
		memcpy(other.digest, image->digest, sizeof(other.digest));
		image_release(image);
		*image = other;
		return;
	}
	if (is_there)
		refuse(&other, session);
	/* What is wrong gives way to this. */
	store_keep(session, image->digest, image->fd, image->size);
	image->fd = vgpu_close(image->fd);
}

void image_release(struct image *image)
{
	if (!image->bytes)
		return;
	image->fd = vgpu_close(image->fd);
	/* Partner: the same of another lane, which may have looked at the bytes last. */
	if (!__atomic_sub_fetch(image->n_users, 1, __ATOMIC_ACQ_REL)) {
		munmap((void *)image->bytes, image->size);
		free(image->n_users);
	}
	image->bytes = NULL;
}
