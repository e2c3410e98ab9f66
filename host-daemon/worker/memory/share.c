/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Share: memory that processes of the VM share, by way of vgpud
 */

#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/memory/share.h"

void shares_init(struct session *session)
{
	session->shares->fd = -1;
	ask_init(&session->shares->ask);
}

void shares_deinit(struct session *session)
{
	session->shares->fd = vgpu_close(session->shares->fd);
	ask_deinit(&session->shares->ask);
}

static void leave(struct session *session, uint32_t cookie)
{
	const struct control_message message = {
		.type = CONTROL_LEAVE,
		.share.cookie = cookie,
	};

	control_send(session->control, &message, NULL);
}

/*
 * Sends a request and waits for its answer.
 *
 * @fd:		goes with the request, or NULL
 * @share:	its cookie is set, its token if the answer has one
 * @fdp:	that of the answer, or -1
 *
 * Return: 0, SHARE_E_REFUSED or -errno.
 */
static int ask(struct session *session, struct control_message *message, const int *fd,
	struct share *share, int *fdp)
{
	struct shares *shares = session->shares;
	int r;

	*fdp = -1;
	if (__atomic_fetch_add(&shares->n, 1, __ATOMIC_RELAXED) >= SHARES_MAX) {
		__atomic_fetch_sub(&shares->n, 1, __ATOMIC_RELAXED);
		return SHARE_E_REFUSED;
	}
	pthread_mutex_lock(&shares->ask.turn);
	pthread_mutex_lock(&shares->ask.lock);
	message->share.cookie = ++shares->ask.cookie;
	r = ask_locked(session, &shares->ask, message, fd);
	if (!r && !shares->answer.size)
		r = SHARE_E_REFUSED;
	*fdp = r ? -1 : shares->fd;
	if (!r) {
		memcpy(share->token, shares->answer.token, sizeof(share->token));
		shares->fd = -1;
	}
	pthread_mutex_unlock(&shares->ask.lock);
	pthread_mutex_unlock(&shares->ask.turn);
	share->cookie = message->share.cookie;
	/* It may have been done, and the answer is late. */
	if (r)
		share_leave(session, share);
	return r < 0 ? vgpu_error_trace(r) : r;
}

static void say_refused(void)
{
	reason_say(VGPU_REPLY_REASON_LIMIT,
		"the processes of this VM share as many pieces of memory with each other "
		"as the host allows");
}

int share_give(struct session *session, CUdevice device, int fd, uint64_t size,
	struct share *share)
{
	struct control_message message = {
		.type = CONTROL_SHARE,
		.n_fds = 1,
		.share.size = size,
		.share.device = (uint32_t)device + 1,
	};
	int none, r;

	r = ask(session, &message, &fd, share, &none);
	if (r == SHARE_E_REFUSED)
		say_refused();
	return r;
}

int share_take(struct session *session, struct share *share, int *fdp)
{
	struct control_message message = { .type = CONTROL_TAKE };
	int r;

	memcpy(message.share.token, share->token, sizeof(share->token));
	r = ask(session, &message, NULL, share, fdp);
	if (r || *fdp >= 0)
		return r;
	share_leave(session, share);
	return SHARE_E_REFUSED;
}

void share_leave(struct session *session, struct share *share)
{
	if (!share->cookie)
		return;
	leave(session, share->cookie);
	__atomic_fetch_sub(&session->shares->n, 1, __ATOMIC_RELAXED);
	share->cookie = 0;
}

int share_make_file(void *data, uint64_t size)
{
	struct session *session = data;
	struct control_message message = {
		.type = CONTROL_SHARE,
		.share.size = size,
		.share.device = (uint32_t)session->shares->device + 1,
	};
	int fd, r;

	r = ask(session, &message, NULL, &session->shares->made, &fd);
	if (r == SHARE_E_REFUSED)
		say_refused();
	return r ? -1 : fd;
}

void share_answered(struct session *session, const struct control_share *answer, int fd)
{
	struct shares *shares = session->shares;

	pthread_mutex_lock(&shares->ask.lock);
	if (ask_answer(&shares->ask, answer->cookie)) {
		vgpu_close(shares->fd);
		shares->answer = *answer;
		shares->fd = fd;
		fd = -1;
	}
	pthread_mutex_unlock(&shares->ask.lock);
	vgpu_close(fd);
}
