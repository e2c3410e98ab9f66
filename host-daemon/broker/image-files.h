/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Image files: the memory files of images that one worker may map
 *
 * A worker cannot create files with contents: the broker gives it files of the size it
 * requests. So their memory is known without reading /proc: a file counts in full for the
 * worker that received it, until it moves to the store of its VM and counts there, or
 * until it was returned, which empties it. The images of the store that a worker has
 * received are recorded: one that the store drops may still be mapped there, which no
 * other process can see.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpud/image-store.h"

/* Files that a worker may be filling: one for each load that is under way. */
#define IMAGE_FILES_MAX 8u

struct image_file {
	uint32_t cookie;
	uint64_t size;
	int fd;
};

struct image_files {
	struct image_file given[IMAGE_FILES_MAX];
	unsigned int n_given;
	bool is_partial; /* it may have more than these */
	uint64_t size;	 /* memory of all that are not in the store */
	uint64_t seen[IMAGE_STORE_SLOTS / 64]; /* bits: images of the store it may have */
};

void image_files_init(struct image_files *files);
void image_files_deinit(struct image_files *files);

/* For a worker of an earlier broker: it may have received every image of the store, and
 * files that this broker did not make. */
void image_files_assume(struct image_files *files);

/* Whether it may have more of that size. */
bool image_files_have_room(
	const struct image_files *files, uint64_t size, uint64_t size_max);

/*
 * Makes a file. An older one with the same cookie is taken back.
 *
 * @fdp:	still the list's
 *
 * Return: 0, IMAGE_FILES_E_REFUSED or -errno.
 */
enum {
	_IMAGE_FILES_E_SUCCESS,
	IMAGE_FILES_E_REFUSED,
};
int image_files_give(struct image_files *files, uint32_t cookie, uint64_t size,
	uint64_t size_max, int *fdp);

/* Takes one back: its memory is free, unless the worker has sealed it, which counts. */
void image_files_take_back(struct image_files *files, uint32_t cookie);

/*
 * Takes a file that the worker has sealed off the list. It counts until
 * image_files_stored().
 *
 * @countedp:	memory for which it counts, in bytes; 0: an earlier broker gave it
 *
 * Return: false for a file that no broker can have given to this worker.
 */
bool image_files_claim(struct image_files *files, int fd, uint64_t *countedp);

/* It is in the store now. */
void image_files_stored(
	struct image_files *files, const struct stored_image *image, uint64_t counted);

/* The worker was given what is in the store. */
void image_files_see(struct image_files *files, const struct stored_image *image);

bool image_files_have_seen(
	const struct image_files *files, const struct stored_image *image);
