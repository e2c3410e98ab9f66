/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image: the code of one load, in immutable memory
 *
 * The guest's bytes are copied before they are examined, and from then on nothing can
 * change the copy: the file is sealed, or the memory is read-only.
 */

#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/code/image.h"
#include "worker/code/store.h"

static_assert(CONTROL_DIGEST_SIZE == SHA256_DIGEST_SIZE, "one digest");

/* Returns an unmapped file that is not needed. */
static void drop_file(struct image *image)
{
	if (image->fd < 0)
		return;
	image->fd = vgpu_close(image->fd);
	store_drop(image->session, image->cookie);
}

static void compute_digest(const struct image *image, uint8_t digest[SHA256_DIGEST_SIZE])
{
	struct sha256_ctx context;

	sha256_init(&context);
	sha256_update(&context, image->size, image->bytes);
	sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

/* Into memory that is all zeros. */
static void copy_containers(uint8_t *to, const struct vgpu_load *load)
{
	for (uint32_t i = 0; i < load->n_images; i++) {
		const struct vgpu_load_image *container = vgpu_load_image(load, i);

		memcpy(to, (const void *)(uintptr_t)container->address, container->size);
		to += image_padded(container->size);
	}
}

/* Makes a read-only mapping the image's bytes. */
static bool adopt(struct image *image, const void *bytes, uint64_t size)
{
	uint32_t *n_users = malloc(sizeof(*n_users));

	if (!n_users)
		return false;
	*n_users = 1;
	image->bytes = bytes;
	image->size = size;
	image->n_users = n_users;
	return true;
}

static bool map(struct image *image, int fd, uint64_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		return false;
	if (adopt(image, bytes, size))
		return true;
	munmap(bytes, size);
	return false;
}

static bool copy_to_file(
	struct image *image, const struct vgpu_load *load, uint64_t size, int fd)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		return false;
	copy_containers(bytes, load);
	/* Sealing fails while a writable mapping exists. */
	munmap(bytes, size);
	return fcntl(fd, F_ADD_SEALS, seals) >= 0 && map(image, fd, size);
}

static bool copy_to_memory(
	struct image *image, const struct vgpu_load *load, uint64_t size)
{
	void *bytes = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		return false;
	copy_containers(bytes, load);
	if (!mprotect(bytes, size, PROT_READ) && adopt(image, bytes, size))
		return true;
	munmap(bytes, size);
	return false;
}

struct image image_dup(const struct image *image)
{
	struct image other = *image;

	/* Only the original can be new to vgpud. */
	other.is_new = false;
	other.fd = -1;
	__atomic_fetch_add(other.n_users, 1, __ATOMIC_RELAXED);
	return other;
}

CUresult image_copy(struct image *image, struct session *session,
	const struct vgpu_load *load, uint64_t size)
{
	bool is_copied;

	*image = (struct image){ .fd = -1, .session = session };
	if (store_ask_file(session, size, &image->fd, &image->cookie)) {
		is_copied = copy_to_memory(image, load, size);
	} else {
		is_copied = copy_to_file(image, load, size, image->fd);
		if (!is_copied)
			drop_file(image);
	}
	if (!is_copied)
		return CUDA_ERROR_OUT_OF_MEMORY;
	compute_digest(image, image->digest);
	image->is_new = true;
	return CUDA_SUCCESS;
}

static CUresult refuse(struct image *image, const struct session *session)
{
	static struct rate rate;

	if (rate_allows(&rate))
		vgpu_log_warning(
			"a stored image does not match its digest and is not used");
	image_release(image);
	return CUDA_ERROR_NOT_FOUND;
}

/* Maps the image that vgpud has for a digest, without checking it. */
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
	if (memcmp(image->digest, digest, CONTROL_DIGEST_SIZE))
		return refuse(image, session);
	if (session_is_recorded(session))
		recorder_image(session, digest, image->bytes, size);
	return CUDA_SUCCESS;
}

void image_share(struct image *image, struct session *session)
{
	struct image other;
	bool is_there;

	if (!image->is_new)
		return;
	image->is_new = false;
	is_there = map_kept(&other, session, image->digest, image->size) == CUDA_SUCCESS;
	/* Both images are mapped: a comparison is faster than a digest. */
	if (is_there && !memcmp(other.bytes, image->bytes, image->size)) {
		memcpy(other.digest, image->digest, sizeof(other.digest));
		image_release(image);
		*image = other;
		return;
	}
	if (is_there)
		refuse(&other, session);
	if (image->fd < 0)
		return;
	/* A wrong image is replaced by this one. */
	store_keep(session, image->digest, image->fd, image->size);
	image->fd = vgpu_close(image->fd);
}

void image_release(struct image *image)
{
	if (!image->bytes)
		return;
	/* Partner: the same decrement on another lane, which may have read the bytes
	 * last. */
	if (!__atomic_sub_fetch(image->n_users, 1, __ATOMIC_ACQ_REL)) {
		munmap((void *)image->bytes, image->size);
		free(image->n_users);
	}
	image->bytes = NULL;
	/* vgpud does not have the file, so there is no other mapping of it. */
	drop_file(image);
}
