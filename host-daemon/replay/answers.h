/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers: what a recording has of vgpud's answers to the worker, and of its images
 */

#include <stdint.h>

#include "control/recording.h"

/* More than a session can ask for: extents come in runs, images are kept by digest. Fewer
 * for the fuzzer. */
#ifndef ANSWERS_MAX
#define ANSWERS_MAX 65536u
#endif
#ifndef ANSWERS_IMAGES_MAX
#define ANSWERS_IMAGES_MAX 4096u
#endif

struct answers_image {
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	uint64_t n_read; /* bytes so far; an image that lacks some is not used */
	int fd;
};

struct answers {
	struct control_message *messages;
	uint32_t n_messages;
	struct answers_image *images;
	uint32_t n_images;
};

/*
 * Reads all of them. Damage later in the file is not looked for.
 *
 * Return: 0 or -errno.
 */
int answers_read(struct answers *answers, struct recording recording,
	const struct recording_header *header);
void answers_deinit(struct answers *answers);

/* Sends the answer to a request of the worker, if it has one. Takes the descriptors.
 * Return: as control_send(). */
int answers_reply(struct answers *answers, int control,
	const struct control_message *request, const int *fds);
