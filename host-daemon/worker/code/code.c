/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code: the images that a driver uses
 *
 * They are found by the driver's handle, not in the library's entry: a guest that guesses
 * handles can make the entry be freed and reused at any time.
 */

#include <stdlib.h>
#include <string.h>

#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/code/code.h"
#include "worker/code/image.h"

#define WRAPPER_MAGIC 0x466243b1u
#define WRAPPER_PRELINKED 2u

void codes_init(struct codes *codes)
{
	pthread_mutex_init(&codes->lock, NULL);
	LIST_INIT(&codes->kept);
}

void codes_deinit(struct session *session)
{
	struct codes *codes = session->codes;
	struct code *code;

	while ((code = LIST_FIRST(&codes->kept))) {
		LIST_REMOVE(code, entry);
		code_free(session, code);
	}
	pthread_mutex_destroy(&codes->lock);
}

struct code *code_new(void)
{
	return calloc(1, sizeof(struct code));
}

struct code *code_free(struct session *session, struct code *code)
{
	if (!code)
		return NULL;
	image_release(&code->image);
	object_totals_refund(&session->totals, code->held);
	free(code);
	return NULL;
}

void code_place(struct code *code, const struct vgpu_load *load)
{
	const uint8_t *bytes = code->image.bytes;

	for (uint32_t i = 0; i < load->n_images; i++) {
		code->containers[i] = bytes;
		bytes += image_padded(vgpu_load_image(load, i)->size);
	}
	code->start = code->containers[0];
	if (load->n_images == 1)
		return;

	/* The first is the linked result, the others are its inputs; the array ends with
	 * NULL. */
	code->wrapper = (struct code_wrapper){
		.magic = WRAPPER_MAGIC,
		.version = WRAPPER_PRELINKED,
		.data = code->containers[0],
		.prelinked = &code->containers[1],
	};
	code->start = &code->wrapper;
}

void code_keep(struct session *session, struct code *code, CUlibrary library)
{
	struct codes *codes = session->codes;

	code->library = library;
	pthread_mutex_lock(&codes->lock);
	LIST_INSERT_HEAD(&codes->kept, code, entry);
	pthread_mutex_unlock(&codes->lock);
}

bool code_find_image(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	uint64_t size, struct image *image)
{
	struct codes *codes = session->codes;
	struct code *code;

	pthread_mutex_lock(&codes->lock);
	LIST_FOREACH(code, &codes->kept, entry)
		if (code->image.size == size &&
			!memcmp(code->image.digest, digest, CONTROL_DIGEST_SIZE))
			break;
	if (code)
		*image = image_dup(&code->image);
	pthread_mutex_unlock(&codes->lock);
	return code;
}

struct code *code_take(struct session *session, CUlibrary library)
{
	struct codes *codes = session->codes;
	struct code *code;

	pthread_mutex_lock(&codes->lock);
	LIST_FOREACH(code, &codes->kept, entry)
		if (code->library == library)
			break;
	if (code)
		LIST_REMOVE(code, entry);
	pthread_mutex_unlock(&codes->lock);
	return code;
}
