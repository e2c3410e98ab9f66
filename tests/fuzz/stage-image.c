/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage image: memory files of images, at workers and at the keeper
 *
 * A file is identified by its inode from when the broker gives it to a worker. Every file
 * that the broker stores with the keeper, or gives to another worker, has to be one of
 * those, sealed, and of the same section.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage.h"
#include "vgpu/cleanup.h"

static struct stage_image *find(struct stage *stage, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		abort();
	for (unsigned int i = 0; i < stage->n_images; i++)
		if (stage->images[i].inode == st.st_ino)
			return &stage->images[i];
	return NULL;
}

static void check_found(struct stage *stage, const struct stage_image *image,
	const struct stage_worker *worker, const struct control_image *answer, int fd)
{
	struct stat st;

	stage_check(!fstat(fd, &st) && (uint64_t)st.st_size == answer->size);
	stage_check((fcntl(fd, F_GET_SEALS) & STAGE_SEALS) == STAGE_SEALS);
	stage_check(stage->n_images == STAGE_IMAGES || image);
	stage_check(!image || image->section == worker->vm);
}

void stage_image_take(struct stage *stage, const struct stage_worker *worker,
	const struct control_image *answer, int fd)
{
	struct stage_image *image = find(stage, fd);
	struct stat st;

	/* A bad keeper may have put any number there. */
	if (!stage->honest || image || stage->n_images == STAGE_IMAGES) {
		if (stage->honest && image)
			check_found(stage, image, worker, answer, fd);
		close(fd);
		return;
	}
	/* It may have been taken back by then. */
	stage_check(
		!fstat(fd, &st) && (!st.st_size || (uint64_t)st.st_size == answer->size));
	stage_check(fcntl(fd, F_GET_SEALS) == F_SEAL_GROW);
	stage->images[stage->n_images++] = (struct stage_image){
		.inode = st.st_ino,
		.worker = worker->id,
		.section = worker->vm,
		.broker = stage->n_restarts,
		.cookie = answer->cookie,
		.own = fd,
		.kept = -1,
	};
}

/*
 * Messages of workers
 */

void stage_image_ask(struct stage *stage)
{
	static const uint64_t sizes[] = { 1, 4096, 4097, 12288, 32768, 65536, 65537, 0 };
	struct stage_worker *worker = stage_any_worker(stage);
	struct control_message message = { .type = CONTROL_FILE };
	uint8_t number = reader_u8(&stage->reader);

	if (!worker)
		return;
	message.image.size = sizes[number % 8];
	message.image.cookie = number / 8;
	control_send(worker->control, &message, NULL);
}

/* An image of a worker that can send a message. */
static struct stage_image *any_image(struct stage *stage, struct stage_worker **workerp)
{
	unsigned int first = reader_u8(&stage->reader);

	for (unsigned int i = 0; i < stage->n_images; i++) {
		struct stage_image *image = &stage->images[(first + i) % stage->n_images];

		*workerp = stage_find_worker(stage, image->worker);
		if (image->own >= 0 && *workerp && (*workerp)->control >= 0)
			return image;
	}
	return NULL;
}

/* Like an honest worker, unless by the input a seal or a byte is missing. */
void stage_image_keep(struct stage *stage)
{
	struct stage_worker *worker;
	struct stage_image *image = any_image(stage, &worker);
	struct control_message message = { .type = CONTROL_KEEP, .n_fds = 1 };
	uint8_t number = reader_u8(&stage->reader);
	int seals = STAGE_SEALS;
	struct stat st;

	if (!image || fstat(image->own, &st))
		return;
	if (number >= 192)
		seals &= ~(1 << number % 4);
	fcntl(image->own, F_ADD_SEALS, seals);
	message.image.digest[0] = number % 4;
	message.image.size = st.st_size + (number % 64 == 63);
	control_send(worker->control, &message, &image->own);
}

void stage_image_drop(struct stage *stage)
{
	struct stage_worker *worker;
	struct stage_image *image = any_image(stage, &worker);
	struct control_message message = { .type = CONTROL_DROP };

	if (!image)
		return;
	message.image.cookie = image->cookie;
	control_send(worker->control, &message, NULL);
}

void stage_image_forget(struct stage *stage, uint64_t worker)
{
	for (unsigned int i = 0; i < stage->n_images; i++)
		if (stage->images[i].worker == worker)
			stage->images[i].own = vgpu_close(stage->images[i].own);
}

/*
 * Images stored with the keeper
 */

static bool is_here(const struct stage *stage, uint64_t id)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		if (stage->vms[i].id == id)
			return !stage->vms[i].gone;
	return false;
}

/* Of that section and digest. */
static struct stage_image *find_kept(struct stage *stage, const struct link_image *link)
{
	for (unsigned int i = 0; i < stage->n_images; i++) {
		struct stage_image *image = &stage->images[i];

		if (image->kept >= 0 && image->link.config_index == link->config_index &&
			!memcmp(image->link.digest, link->digest, sizeof(link->digest)))
			return image;
	}
	return NULL;
}

/* A file that no broker gave: a worker of an earlier broker may pass one that it has. */
static struct stage_image *find_strange(
	struct stage *stage, const struct link_message *message, int fd)
{
	struct stat st;

	if (!stage->n_restarts || stage->n_images == STAGE_IMAGES || fstat(fd, &st))
		return NULL;
	stage->images[stage->n_images] = (struct stage_image){
		.inode = st.st_ino,
		.section = message->image.config_index,
		.own = -1,
		.kept = -1,
	};
	return &stage->images[stage->n_images++];
}

void stage_image_kept(struct stage *stage, const struct link_message *message, int fd)
{
	struct stage_image *image = find(stage, fd);

	if (stage->honest && !image)
		image = find_strange(stage, message, fd);
	if (stage->honest) {
		stage_check((fcntl(fd, F_GET_SEALS) & STAGE_SEALS) == STAGE_SEALS);
		stage_check(image || stage->n_images == STAGE_IMAGES);
		stage_check(!image ||
			    (uint32_t)image->section == message->image.config_index);
		stage_check(!image || image->kept < 0);
		stage_check(!find_kept(stage, &message->image));
	}
	if (image)
		image->was_kept = true;
	if (!image || image->kept >= 0 || (message->id && !is_here(stage, message->id))) {
		close(fd);
		return;
	}
	image->kept = fd;
	image->link = message->image;
	image->owner = message->id;
}

void stage_image_done(struct stage *stage, const struct link_message *message)
{
	struct stage_image *image = find_kept(stage, &message->image);

	if (image)
		image->kept = vgpu_close(image->kept);
}

void stage_image_tell_all(struct stage *stage)
{
	struct link_message message = { .type = LINK_IMAGE };

	for (unsigned int i = 0; i < stage->n_images; i++) {
		if (stage->images[i].kept < 0)
			continue;
		message.image = stage->images[i].link;
		link_send(stage->link, &message, &stage->images[i].kept, 1);
	}
}

/* They go with their VM, save where that is this machine. */
void stage_image_lose(struct stage *stage, uint64_t owner)
{
	for (unsigned int i = 0; i < stage->n_images; i++)
		if (stage->images[i].owner == owner)
			stage->images[i].kept = vgpu_close(stage->images[i].kept);
}

void stage_image_end(struct stage *stage)
{
	for (unsigned int i = 0; i < stage->n_images; i++) {
		vgpu_close(stage->images[i].own);
		vgpu_close(stage->images[i].kept);
	}
}
