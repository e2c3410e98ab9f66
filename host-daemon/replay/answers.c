/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: what a recording has of vgpud's answers to the worker, and of its images
 *
 * A request is answered like the one with the same type and cookie in the recording: a
 * worker that makes the same calls makes the same requests. Files to fill are refused;
 * the worker uses memory of its own then, which the guest does not see.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/answers.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

static struct answers_image *find_image(
	struct answers *answers, const uint8_t digest[CONTROL_DIGEST_SIZE])
{
	for (uint32_t i = 0; i < answers->n_images; i++)
		if (!memcmp(answers->images[i].digest, digest, CONTROL_DIGEST_SIZE))
			return &answers->images[i];
	return NULL;
}

/* Return: 0 or -errno. */
static int make_image(struct answers *answers, const struct recording_image *piece,
	struct answers_image **imagep)
{
	struct answers_image *image;
	int fd;

	if (answers->n_images == ANSWERS_IMAGES_MAX)
		return vgpu_error_origin(-E2BIG);
	fd = memfd_create("vgpu-replay-image", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)piece->size) < 0) {
		const int r = -errno;

		vgpu_close(fd);
		return vgpu_error_origin(r);
	}
	image = &answers->images[answers->n_images++];
	*image = (struct answers_image){ .size = piece->size, .fd = fd };
	memcpy(image->digest, piece->digest, sizeof(image->digest));
	*imagep = image;
	return 0;
}

/* Pieces come in their order. */
static int add_piece(struct answers *answers, const struct recording_item *item)
{
	const size_t size = item->size - sizeof(struct recording_image);
	struct recording_image piece;
	struct answers_image *image;
	int r;

	memcpy(&piece, item->payload, sizeof(piece));
	image = find_image(answers, piece.digest);
	if (!image) {
		r = make_image(answers, &piece, &image);
		if (r)
			return vgpu_error_trace(r);
	}
	if (image->size != piece.size || image->n_read != piece.offset)
		return 0;
	if (pwrite(image->fd, item->payload + sizeof(piece), size, (off_t)piece.offset) !=
		(ssize_t)size)
		return vgpu_error_origin(-EIO);
	image->n_read += size;
	return 0;
}

/* The worker relies on vgpud: of extents that there are not no grant is known. */
static int add_message(struct answers *answers, const struct recording_header *header,
	const struct recording_item *item)
{
	struct control_message message;

	if (answers->n_messages == ANSWERS_MAX)
		return vgpu_error_origin(-E2BIG);
	memcpy(&message, item->payload, sizeof(message));
	if (message.type != CONTROL_GRANT || message.grant.error ||
		recording_has_extents(
			header, message.grant.first_extent, message.grant.n_extents))
		answers->messages[answers->n_messages++] = message;
	return 0;
}

int answers_read(struct answers *answers, struct recording recording,
	const struct recording_header *header)
{
	struct recording_item item;
	int r = 0;

	*answers = (struct answers){
		.messages = calloc(ANSWERS_MAX, sizeof(*answers->messages)),
		.images = calloc(ANSWERS_IMAGES_MAX, sizeof(*answers->images)),
	};
	if (!answers->messages || !answers->images) {
		answers_deinit(answers);
		return vgpu_error_origin(-ENOMEM);
	}
	while (!r && !recording_next(&recording, header, &item)) {
		if (item.type == RECORDING_IMAGE)
			r = add_piece(answers, &item);
		else if (item.type == RECORDING_ANSWER)
			r = add_message(answers, header, &item);
	}
	if (r)
		answers_deinit(answers);
	return r ? vgpu_error_trace(r) : 0;
}

void answers_deinit(struct answers *answers)
{
	for (uint32_t i = 0; i < answers->n_images; i++)
		close(answers->images[i].fd);
	free(answers->images);
	free(answers->messages);
	*answers = (struct answers){};
}

static const struct control_message *find_grant(
	const struct answers *answers, const struct control_want *want)
{
	for (uint32_t i = 0; i < answers->n_messages; i++)
		if (answers->messages[i].type == CONTROL_GRANT &&
			answers->messages[i].grant.cookie == want->cookie)
			return &answers->messages[i];
	return NULL;
}

static int grant(
	const struct answers *answers, int control, const struct control_want *want)
{
	const struct control_message *known = find_grant(answers, want);
	struct control_message message = {
		.type = CONTROL_GRANT,
		.grant = { .cookie = want->cookie, .error = -ENOMEM },
	};

	if (known)
		message.grant = known->grant;
	return control_send(control, &message, NULL);
}

static int give_image(
	struct answers *answers, int control, const struct control_image *wanted)
{
	const struct answers_image *image = find_image(answers, wanted->digest);
	struct control_message message = { .type = CONTROL_IMAGE, .image = *wanted };

	message.image.size = 0;
	if (!image || image->n_read != image->size)
		return control_send(control, &message, NULL);
	message.image.size = image->size;
	message.n_fds = 1;
	return control_send(control, &message, &image->fd);
}

static int refuse_file(int control, const struct control_image *wanted)
{
	struct control_message message = { .type = CONTROL_IMAGE, .image = *wanted };

	return control_send(control, &message, NULL);
}

/* Memory of a size that is sealed, as vgpud makes it. */
static int make_memory(uint64_t size)
{
	const int fd = memfd_create("vgpu-replay-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)(size + CONTROL_LABEL_SIZE)) < 0)
		return vgpu_close(fd);
	return fd;
}

static int share(
	const struct answers *answers, int control, const struct control_message *request)
{
	struct control_message message = {
		.type = CONTROL_SHARED,
		.share.cookie = request->share.cookie,
	};
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	for (uint32_t i = 0; i < answers->n_messages; i++)
		if (answers->messages[i].type == CONTROL_SHARED &&
			answers->messages[i].share.cookie == request->share.cookie)
			message.share = answers->messages[i].share;
	/* Memory of another process is not in the recording. */
	if (request->type == CONTROL_TAKE || request->share.size > INT64_MAX / 2)
		message.share.size = 0;
	else if (message.share.size && !request->n_fds)
		fd = make_memory(request->share.size);
	message.n_fds = fd >= 0;
	if (message.share.size && !request->n_fds && fd < 0)
		message.share.size = 0;
	return control_send(control, &message, &fd);
}

int answers_reply(struct answers *answers, int control,
	const struct control_message *request, const int *fds)
{
	int r = 0;

	switch (request->type) {
	case CONTROL_WANT:
		r = grant(answers, control, &request->want);
		break;
	case CONTROL_FIND:
		r = give_image(answers, control, &request->image);
		break;
	case CONTROL_FILE:
		r = refuse_file(control, &request->image);
		break;
	case CONTROL_SHARE:
	case CONTROL_TAKE:
		r = share(answers, control, request);
		break;
	default:
		/* KEEP, DROP and LEAVE have no answer. */
		break;
	}
	for (uint32_t i = 0; i < request->n_fds; i++)
		vgpu_close(fds[i]);
	return r;
}
