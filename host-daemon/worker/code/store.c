/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: the images that vgpud keeps for all workers of a VM
 */

#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "worker/base/session.h"
#include "worker/code/store.h"

void store_init(struct store *store)
{
	*store = (struct store){ .fd = -1 };
	ask_init(&store->ask);
}

void store_deinit(struct store *store)
{
	store->fd = vgpu_close(store->fd);
	ask_deinit(&store->ask);
}

/* Requests a descriptor. Return: as store_find(). */
static int get_fd(struct session *session, struct control_message *message, int *fdp,
	uint64_t *sizep)
{
	struct store *store = session->store;
	int r;

	pthread_mutex_lock(&store->ask.turn);
	pthread_mutex_lock(&store->ask.lock);
	message->image.cookie = ++store->ask.cookie;
	r = ask_locked(session, &store->ask, message, NULL);
	*fdp = r ? -1 : store->fd;
	*sizep = store->size;
	if (!r)
		store->fd = -1;
	pthread_mutex_unlock(&store->ask.lock);
	pthread_mutex_unlock(&store->ask.turn);
	if (r)
		return vgpu_error_trace(r);
	return *fdp < 0 ? STORE_E_ABSENT : 0;
}

int store_find(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int *fdp, uint64_t *sizep)
{
	struct control_message message = { .type = CONTROL_FIND };

	memcpy(message.image.digest, digest, CONTROL_DIGEST_SIZE);
	return get_fd(session, &message, fdp, sizep);
}

int store_ask_file(struct session *session, uint64_t size, int *fdp, uint32_t *cookiep)
{
	struct control_message message = { .type = CONTROL_FILE, .image.size = size };
	uint64_t answered;
	int r;

	r = get_fd(session, &message, fdp, &answered);
	*cookiep = message.image.cookie;
	if (r || answered == size)
		return r;
	*fdp = vgpu_close(*fdp);
	return STORE_E_ABSENT;
}

void store_drop(struct session *session, uint32_t cookie)
{
	const struct control_message message = {
		.type = CONTROL_DROP,
		.image.cookie = cookie,
	};

	control_send(session->control, &message, NULL);
}

void store_keep(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int fd, uint64_t size)
{
	struct control_message message = {
		.type = CONTROL_KEEP,
		.n_fds = 1,
		.image.size = size,
	};

	memcpy(message.image.digest, digest, CONTROL_DIGEST_SIZE);
	/* A failure does not matter: if vgpud is gone the worker exits soon. */
	control_send(session->control, &message, &fd);
}

void store_answered(struct session *session, const struct control_image *answer, int fd)
{
	struct store *store = session->store;

	pthread_mutex_lock(&store->ask.lock);
	if (ask_answer(&store->ask, answer->cookie)) {
		store->fd = fd;
		store->size = answer->size;
		fd = -1;
	}
	pthread_mutex_unlock(&store->ask.lock);
	vgpu_close(fd);
}
