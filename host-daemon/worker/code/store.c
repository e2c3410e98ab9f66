/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: the images that vgpud keeps for all workers of a VM
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"
#include "worker/base/session.h"
#include "worker/code/store.h"

void store_init(struct store *store)
{
	*store = (struct store){ .fd = -1 };
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->answer_lock, NULL);
	pthread_cond_init(&store->answered, NULL);
}

void store_deinit(struct store *store)
{
	store->fd = vgpu_close(store->fd);
	pthread_cond_destroy(&store->answered);
	pthread_mutex_destroy(&store->answer_lock);
	pthread_mutex_destroy(&store->lock);
}

static int wait_locked(struct store *store)
{
	struct vgpu_nap nap = {};
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STORE_TIMEOUT_S;
	while (!store->has_arrived && !r)
		r = vgpu_nap_cond_until(
			&nap, &store->answered, &store->answer_lock, &until);
	return store->has_arrived ? 0 : r;
}

static int ask_locked(struct session *session, struct control_message *message)
{
	struct store *store = session->store;
	int r;

	message->image.cookie = ++store->cookie;
	store->has_arrived = false;
	store->is_awaited = true;
	r = control_send(session->control, message, NULL) ? vgpu_error_origin(-EPIPE)
							  : wait_locked(store);
	store->is_awaited = false;
	return r;
}

/* Asks for a descriptor. Returns: as store_find(). */
static int ask(struct session *session, struct control_message *message, int *fdp,
	uint64_t *sizep)
{
	struct store *store = session->store;
	int r;

	pthread_mutex_lock(&store->lock);
	pthread_mutex_lock(&store->answer_lock);
	r = ask_locked(session, message);
	*fdp = r ? -1 : store->fd;
	*sizep = store->size;
	if (!r)
		store->fd = -1;
	pthread_mutex_unlock(&store->answer_lock);
	pthread_mutex_unlock(&store->lock);
	if (r)
		return vgpu_error_trace(r);
	return *fdp < 0 ? STORE_E_ABSENT : 0;
}

int store_find(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	int *fdp, uint64_t *sizep)
{
	struct control_message message = { .type = CONTROL_FIND };

	memcpy(message.image.digest, digest, CONTROL_DIGEST_SIZE);
	return ask(session, &message, fdp, sizep);
}

int store_ask_file(struct session *session, uint64_t size, int *fdp, uint32_t *cookiep)
{
	struct control_message message = { .type = CONTROL_FILE, .image.size = size };
	uint64_t answered;
	int r;

	r = ask(session, &message, fdp, &answered);
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
	/* If vgpud is gone the worker ends soon, and needs no store. */
	control_send(session->control, &message, &fd);
}

void store_answered(struct session *session, const struct control_image *answer, int fd)
{
	struct store *store = session->store;

	pthread_mutex_lock(&store->answer_lock);
	if (store->is_awaited && !store->has_arrived && answer->cookie == store->cookie) {
		store->fd = fd;
		store->size = answer->size;
		store->has_arrived = true;
		fd = -1;
		vgpu_wake_all(&store->answered);
	}
	pthread_mutex_unlock(&store->answer_lock);
	vgpu_close(fd);
}
