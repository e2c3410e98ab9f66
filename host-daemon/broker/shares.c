/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares: device memory that guest processes of a VM share
 *
 * As with images, the keeper has the same descriptors for the next broker and is told
 * before the worker is answered: if this broker dies in between, the next one gets the
 * worker's message again, and finds it done under the cookie of the message.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/shares.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"

/* The largest file: more than any device's memory. */
#define FILE_SIZE_MAX (1ull << 40)

static struct account *account_of(const struct worker *worker)
{
	return worker->channel ? worker->channel->vm->account : NULL;
}

static int make_file(uint64_t size, int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* A file that shrinks would end the other processes that map it. */
	if (fd < 0 || ftruncate(fd, (off_t)(size + CONTROL_LABEL_SIZE)) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

static void tell_keeper(const struct worker *worker, enum link_type type,
	const struct share *share, uint32_t cookie)
{
	struct link_message message = {
		.type = type,
		.id = worker->id,
		.share = {
			.cookie = cookie,
			.config_index = account_of(worker)->config->index,
		},
	};

	if (share) {
		memcpy(message.share.token, share->token, sizeof(share->token));
		memcpy(message.share.device, share->device, sizeof(share->device));
		message.share.size = share->size;
	}
	link_send(worker->broker->link, &message, share ? &share->fd : NULL,
		type == LINK_SHARE);
}

/* @share: NULL: refused */
static void answer(
	struct worker *worker, const struct share *share, uint32_t cookie, bool with_fd)
{
	struct control_message message = {
		.type = CONTROL_SHARED,
		.n_fds = share && with_fd,
		.share.cookie = cookie,
	};

	if (share) {
		memcpy(message.share.token, share->token, sizeof(share->token));
		message.share.size = share->size;
	}
	worker_send(worker, &message, share ? &share->fd : NULL);
}

/* Notes which device a worker means by its number; a compromised one lies about its own
 * VM. Of one that says nothing it remains unknown. */
static void note_device(const struct worker *worker, uint32_t device, struct share *share)
{
	struct vgpu_device_info info;
	const size_t off = WORKER_DEVICES_OFF + offsetof(struct worker_devices, infos);

	if (device && pread(worker->stats, &info, sizeof(info),
			      (off_t)(off + (device - 1) * sizeof(info))) ==
			      (ssize_t)sizeof(info))
		memcpy(share->device, info.uuid, sizeof(share->device));
}

/* Return: the new entry, or NULL. Takes ownership of the descriptor in any case. */
static struct share *add(
	struct worker *worker, const struct control_share *shared, int fd)
{
	struct share template = { .size = shared->size, .fd = fd };
	struct account *account = account_of(worker);

	note_device(worker, shared->device, &template);
	if (account->shares.n >= account->n_shares_max ||
		getrandom(template.token, sizeof(template.token), 0) !=
			sizeof(template.token) ||
		(fd < 0 && make_file(shared->size, &template.fd)))
		goto fail;
	if (share_table_add(&account->shares, &template, worker->id, shared->cookie))
		goto fail;
	return share_table_find(&account->shares, template.token);

fail:
	closer_close(template.fd);
	return NULL;
}

bool shares_handle_share(
	struct worker *worker, const struct control_share *shared, int fd)
{
	const bool with_fd = fd < 0;
	struct account *account = account_of(worker);
	struct share *share;

	if (!account || !shared->size || shared->size > FILE_SIZE_MAX ||
		shared->device > VGPU_DEVICES_MAX) {
		closer_close(fd);
		return false;
	}
	share = share_table_find_held(&account->shares, worker->id, shared->cookie);
	if (share) {
		closer_close(fd);
	} else {
		share = add(worker, shared, fd);
		if (share)
			tell_keeper(worker, LINK_SHARE, share, shared->cookie);
	}
	answer(worker, share, shared->cookie, with_fd);
	return true;
}

void shares_handle_take(struct worker *worker, const struct control_share *wanted)
{
	struct account *account = account_of(worker);
	struct share *share;

	share = account ? share_table_find(&account->shares, wanted->token) : NULL;
	if (share &&
		share_table_hold(&account->shares, share, worker->id, wanted->cookie))
		share = NULL;
	if (share)
		tell_keeper(worker, LINK_SHARE_HELD, share, wanted->cookie);
	answer(worker, share, wanted->cookie, true);
}

void shares_handle_leave(struct worker *worker, const struct control_share *released)
{
	struct account *account = account_of(worker);

	if (!account)
		return;
	tell_keeper(worker, LINK_SHARE_LEFT, NULL, released->cookie);
	share_table_leave(&account->shares, worker->id, released->cookie);
	account_limit_memory(account);
}

void shares_forget_worker(struct worker *worker)
{
	struct broker *broker = worker->broker;

	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		share_table_forget(&broker->accounts[i].shares, worker->id);
		account_limit_memory(&broker->accounts[i]);
	}
}

static struct account *named_account(
	struct broker *broker, const struct link_message *message)
{
	const uint32_t index = message->share.config_index;

	return index < broker->config->n_vms ? &broker->accounts[index] : NULL;
}

void shares_restore(struct broker *broker, const struct link_message *message, int fd)
{
	struct share template = {
		.size = message->share.size,
		.fd = fd,
	};
	struct account *account = named_account(broker, message);

	memcpy(template.token, message->share.token, sizeof(template.token));
	memcpy(template.device, message->share.device, sizeof(template.device));
	if (!account || share_table_add(&account->shares, &template, message->id,
				message->share.cookie))
		closer_close(fd);
}

void shares_restore_holder(struct broker *broker, const struct link_message *message)
{
	struct account *account = named_account(broker, message);
	struct share *share;

	if (!account)
		return;
	TAILQ_FOREACH(share, &account->shares.shares, entry)
		if (!memcmp(share->token, message->share.token, sizeof(share->token)))
			share_table_hold(&account->shares, share, message->id,
				message->share.cookie);
}
