/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage share: shared device memory, at workers and at the keeper
 *
 * The keeper's tables follow the broker's messages. An answer to a worker may only have
 * memory of the worker's own section.
 */

#include <string.h>
#include <unistd.h>

#include "stage.h"

void stage_share_begin(struct stage *stage)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		share_table_init(&stage->shares[i]);
}

void stage_share_end(struct stage *stage)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		share_table_clear(&stage->shares[i]);
}

/*
 * Workers
 */

void stage_share_choose(const struct stage *stage, uint8_t token[CONTROL_TOKEN_SIZE])
{
	unsigned int n = token[0];
	struct share *share;

	for (unsigned int i = 0; i < STAGE_VMS; i++)
		TAILQ_FOREACH(share, &stage->shares[i].shares, entry)
			if (!n--)
				memcpy(token, share->token, sizeof(share->token));
}

void stage_share_check(const struct stage *stage, const struct stage_worker *worker,
	const struct control_message *message)
{
	const struct control_share *answer = &message->share;

	stage_check(worker->vm >= 0);
	stage_check(message->n_fds <= 1 && (answer->size || !message->n_fds));
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		stage_check((int)i == worker->vm || !answer->size ||
			    !share_table_find(&stage->shares[i], answer->token));
}

void stage_share_forget(struct stage *stage, uint64_t worker)
{
	for (unsigned int i = 0; i < STAGE_VMS; i++)
		share_table_forget(&stage->shares[i], worker);
}

/*
 * The keeper
 */

void stage_share_hear(struct stage *stage, const struct link_message *message, int fd)
{
	const uint32_t index = message->share.config_index,
		       cookie = message->share.cookie;
	struct share template = { .size = message->share.size, .fd = fd };
	struct share *share;

	stage_check(message->id && index < STAGE_VMS);
	switch (message->type) {
	case LINK_SHARE:
		memcpy(template.token, message->share.token, sizeof(template.token));
		memcpy(template.device, message->share.device, sizeof(template.device));
		if (share_table_add(
			    &stage->shares[index], &template, message->id, cookie))
			close(fd);
		return;
	case LINK_SHARE_HELD:
		share = share_table_find(&stage->shares[index], message->share.token);
		if (share)
			share_table_hold(
				&stage->shares[index], share, message->id, cookie);
		return;
	}
	share_table_leave(&stage->shares[index], message->id, cookie);
}

static void tell(const struct stage *stage, uint32_t index, const struct share *share)
{
	struct link_message message = {
		.share = {
			.size = share->size,
			.config_index = index,
		},
	};

	memcpy(message.share.token, share->token, sizeof(share->token));
	memcpy(message.share.device, share->device, sizeof(share->device));
	for (uint32_t i = 0; i < share->n_holders; i++) {
		message.type = i ? LINK_SHARE_HELD : LINK_SHARE;
		message.id = share->holders[i].worker;
		message.share.cookie = share->holders[i].cookie;
		link_send(stage->link, &message, i ? NULL : &share->fd, !i);
	}
}

void stage_share_tell_all(const struct stage *stage)
{
	const struct share *share;

	for (unsigned int i = 0; i < STAGE_VMS; i++)
		TAILQ_FOREACH(share, &stage->shares[i].shares, entry)
			tell(stage, i, share);
}
