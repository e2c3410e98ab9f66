/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handover: what a keeper leaves to its successor
 *
 * The message refers to texts and digests of the keeper's parts, and only its own arrays
 * are allocated.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper/handover.h"
#include "vgpu-keeper.pb-c.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/link.h"

/* Descriptors for which the list grows at a time. */
#define FDS_STEP 256

struct block {
	struct block *next;
	max_align_t data[];
};

/* A message under construction. */
struct saver {
	struct handover_state *state;
	struct block *blocks; /* all memory of the message */
	size_t n_fds_max;
	bool failed;   /* memory ran out */
	bool by_place; /* numbers are places in the list */
};

/* Return: zeroed memory of n elements, or NULL: the saver has failed. */
static void *take(struct saver *saver, size_t n, size_t size)
{
	struct block *block = calloc(1, sizeof(*block) + n * size);

	if (!block) {
		saver->failed = true;
		return NULL;
	}
	block->next = saver->blocks;
	saver->blocks = block;
	return block->data;
}

static void saver_deinit(struct saver *saver)
{
	struct block *next;

	for (; saver->blocks; saver->blocks = next) {
		next = saver->blocks->next;
		free(saver->blocks);
	}
}

/* Notes a descriptor that the successor inherits. */
static int leave(struct saver *saver, int fd)
{
	struct handover_state *state = saver->state;

	if (fd < 0)
		return -1;
	if (state->n_fds == saver->n_fds_max) {
		const size_t n = saver->n_fds_max + FDS_STEP;
		int *fds = reallocarray(state->fds, n, sizeof(*fds));

		if (!fds) {
			saver->failed = true;
			return -1;
		}
		state->fds = fds;
		saver->n_fds_max = n;
	}
	state->fds[state->n_fds++] = fd;
	return saver->by_place ? (int)state->n_fds - 1 : fd;
}

static int32_t *leave_all(struct saver *saver, const int *fds, uint32_t n)
{
	int32_t *numbers = take(saver, n, sizeof(*numbers));

	for (uint32_t i = 0; numbers && i < n; i++)
		numbers[i] = leave(saver, fds[i]);
	return numbers;
}

static VgpuKeeper__Listener *save_listener(
	struct saver *saver, const struct listener *listener)
{
	VgpuKeeper__Listener *out = NULL;

	if (listener->path)
		out = take(saver, 1, sizeof(*out));
	if (!out)
		return NULL;
	vgpu_keeper__listener__init(out);
	out->path = listener->path;
	out->socket = leave(saver, listener->fd);
	out->lock = leave(saver, listener->lock);
	return out;
}

static VgpuKeeper__Image *save_image(
	struct saver *saver, const struct stored_image *image)
{
	VgpuKeeper__Image *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__image__init(out);
	out->digest.data = (uint8_t *)image->digest;
	out->digest.len = sizeof(image->digest);
	out->size = image->size;
	out->memory = leave(saver, image->fd);
	return out;
}

static VgpuKeeper__Holder *save_holder(
	struct saver *saver, const struct share_holder *holder)
{
	VgpuKeeper__Holder *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__holder__init(out);
	out->worker = holder->worker;
	out->cookie = holder->cookie;
	return out;
}

static VgpuKeeper__Share *save_share(struct saver *saver, const struct share *share)
{
	VgpuKeeper__Share *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__share__init(out);
	out->token.data = (uint8_t *)share->token;
	out->token.len = sizeof(share->token);
	out->size = share->size;
	out->device.data = (uint8_t *)share->device;
	out->device.len = sizeof(share->device);
	out->memory = leave(saver, share->fd);
	out->holders = take(saver, share->n_holders, sizeof(*out->holders));
	for (uint32_t i = 0; out->holders && i < share->n_holders; i++)
		out->holders[out->n_holders++] = save_holder(saver, &share->holders[i]);
	return out;
}

static VgpuKeeper__Section *begin_section(
	struct saver *saver, const struct endpoint *endpoint)
{
	VgpuKeeper__Section *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__section__init(out);
	out->name = (char *)endpoint->config->name;
	out->quota = -1;
	return out;
}

static void save_place(
	struct saver *saver, const struct endpoint *endpoint, VgpuKeeper__Section *out)
{
	out->listener = save_listener(saver, &endpoint->listener);
	out->quota = leave(saver, endpoint->quota);
}

/* At most n, from that one on. */
static void save_images(struct saver *saver, const struct endpoint *endpoint,
	size_t first, size_t n, VgpuKeeper__Section *out)
{
	const struct stored_image *image;
	size_t i = 0;

	out->images = take(saver, endpoint->images.n, sizeof(*out->images));
	TAILQ_FOREACH(image, &endpoint->images.images, entry) {
		if (out->images && i >= first && i - first < n)
			out->images[out->n_images++] = save_image(saver, image);
		i++;
	}
}

static void save_shares(struct saver *saver, const struct endpoint *endpoint,
	size_t first, size_t n, VgpuKeeper__Section *out)
{
	const struct share *share;
	size_t i = 0;

	out->shares = take(saver, endpoint->shares.n, sizeof(*out->shares));
	TAILQ_FOREACH(share, &endpoint->shares.shares, entry) {
		if (out->shares && i >= first && i - first < n)
			out->shares[out->n_shares++] = save_share(saver, share);
		i++;
	}
}

static VgpuKeeper__Section *save_section(
	struct saver *saver, const struct endpoint *endpoint)
{
	VgpuKeeper__Section *out = begin_section(saver, endpoint);

	if (!out)
		return NULL;
	save_place(saver, endpoint, out);
	save_images(saver, endpoint, 0, SIZE_MAX, out);
	save_shares(saver, endpoint, 0, SIZE_MAX, out);
	return out;
}

static VgpuKeeper__Vm *save_vm(
	struct saver *saver, const struct held_vm *vm, bool leaving)
{
	VgpuKeeper__Vm *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__vm__init(out);
	if (vm->config)
		out->section = (char *)vm->config->name;
	out->id = vm->id;
	out->pid = vm->pid;
	out->gone = vm->gone;
	out->leaving = leaving;
	out->connection = leave(saver, vm->connection);
	out->memory = leave(saver, vm->shm);
	out->ledger = leave(saver, vm->ledger);
	out->n_channels_max = vm->n_channels_max;
	out->doorbells = leave_all(saver, vm->doorbells, vm->n_doorbells);
	out->n_doorbells = vm->n_doorbells;
	out->interrupts = leave_all(saver, vm->interrupts, vm->n_interrupts);
	out->n_interrupts = vm->n_interrupts;
	out->size = vm->size;
	out->device = vm->dev;
	out->inode = vm->ino;
	return out;
}

static VgpuKeeper__Worker *save_worker(
	struct saver *saver, const struct held_worker *worker)
{
	VgpuKeeper__Worker *out = take(saver, 1, sizeof(*out));

	if (!out)
		return NULL;
	vgpu_keeper__worker__init(out);
	out->id = worker->id;
	out->pid = worker->pid;
	out->control = leave(saver, worker->control);
	out->stats = leave(saver, worker->stats);
	out->log = leave(saver, worker->log);
	out->uid = worker->uid;
	out->exited = worker->exited;
	out->status = worker->status;
	if (worker->pidfd >= 0)
		out->pidfd = (uint32_t)leave(saver, worker->pidfd) + 1;
	return out;
}

static void save_endpoints(
	struct saver *saver, const struct endpoints *endpoints, VgpuKeeper__State *out)
{
	const struct held_vm *vm;
	size_t n = 0;

	out->sections = take(saver, endpoints->n_endpoints, sizeof(*out->sections));
	for (unsigned int i = 0; out->sections && i < endpoints->n_endpoints; i++)
		out->sections[out->n_sections++] =
			save_section(saver, &endpoints->endpoints[i]);
	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		n++;
	TAILQ_FOREACH(vm, &endpoints->leaving, entry)
		n++;
	out->vms = take(saver, n, sizeof(*out->vms));
	if (!out->vms)
		return;
	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		out->vms[out->n_vms++] = save_vm(saver, vm, false);
	TAILQ_FOREACH(vm, &endpoints->leaving, entry)
		out->vms[out->n_vms++] = save_vm(saver, vm, true);
}

static void save_workers(
	struct saver *saver, const struct held_workers *workers, VgpuKeeper__State *out)
{
	const struct held_worker *worker;
	size_t n = 0;

	TAILQ_FOREACH(worker, workers, entry)
		n++;
	out->workers = take(saver, n, sizeof(*out->workers));
	TAILQ_FOREACH(worker, workers, entry)
		if (out->workers)
			out->workers[out->n_workers++] = save_worker(saver, worker);
}

static void save_stored(
	struct saver *saver, const struct store *store, VgpuKeeper__State *out)
{
	const struct stored *stored;

	out->store = store->n_max;
	out->stored = take(saver, store->n, sizeof(*out->stored));
	for (unsigned int i = 0; out->stored && i < STORE_BUCKETS; i++)
		for (stored = store->buckets[i]; stored; stored = stored->next) {
			VgpuKeeper__Stored *one = take(saver, 1, sizeof(*one));

			if (!one)
				return;
			vgpu_keeper__stored__init(one);
			one->number = stored->number;
			one->key = stored->key;
			out->stored[out->n_stored++] = one;
		}
}

static void save_base(
	struct saver *saver, const struct handover *handover, VgpuKeeper__State *out)
{
	out->version = LINK_VERSION;
	out->program = handover->program;
	out->sources = leave(saver, handover->sources);
	out->previous = leave(saver, handover->previous);
	/* The service manager gives its socket to another process itself. */
	if (!saver->by_place)
		out->given = (uint32_t)(leave(saver, handover->ctl->given) + 1);
	if (!held_ctl_is_given(handover->ctl))
		out->ctl = save_listener(saver, &handover->ctl->listener);
	out->client = leave(saver, handover->ctl->client);
	out->request = handover->ctl->request;
	out->last_worker = handover->last_worker;
	out->last_uid = handover->last_uid;
	out->last_vm = handover->endpoints->last_id;
	out->last_peer = handover->endpoints->last_peer;
}

static void save_all(
	struct saver *saver, const struct handover *handover, VgpuKeeper__State *out)
{
	vgpu_keeper__state__init(out);
	save_base(saver, handover, out);
	save_stored(saver, handover->store, out);
	save_endpoints(saver, handover->endpoints, out);
	save_workers(saver, handover->workers, out);
}

static int write_file(const VgpuKeeper__State *message, int *filep)
{
	const size_t size = vgpu_keeper__state__get_packed_size(message);
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = malloc(size);
	ssize_t n;

	if (!bytes)
		return vgpu_error_origin(-ENOMEM);
	vgpu_keeper__state__pack(message, bytes);
	*filep = memfd_create("vgpu-handover", MFD_CLOEXEC);
	if (*filep < 0)
		return vgpu_error_origin(-errno);
	n = pwrite(*filep, bytes, size, 0);
	if (n < 0)
		return vgpu_error_origin(-errno);
	return (size_t)n == size ? 0 : vgpu_error_origin(-ENOSPC);
}

int handover_save(struct handover_state *state, const struct handover *handover)
{
	struct saver saver = { .state = state };
	VgpuKeeper__State message;
	int r;

	*state = (struct handover_state)HANDOVER_STATE_NULL;
	save_all(&saver, handover, &message);
	r = saver.failed ? vgpu_error_origin(-ENOMEM)
			 : write_file(&message, &state->file);
	saver_deinit(&saver);
	return r;
}

static VgpuKeeper__Section *save_section_part(
	struct saver *saver, const struct handover_part *part)
{
	const struct endpoint *endpoint = part->endpoint;
	VgpuKeeper__Section *out = begin_section(saver, endpoint);

	if (!out)
		return NULL;
	if (part->kind == HANDOVER_SECTION)
		save_place(saver, endpoint, out);
	else if (part->kind == HANDOVER_IMAGES)
		save_images(saver, endpoint, part->first, HANDOVER_CHUNK, out);
	else
		save_shares(saver, endpoint, part->first, HANDOVER_CHUNK, out);
	return out;
}

int handover_save_part(struct handover_state *state, const struct handover_part *part)
{
	struct saver saver = { .state = state, .by_place = true };
	VgpuKeeper__Section *section;
	VgpuKeeper__Worker *worker;
	VgpuKeeper__State message;
	VgpuKeeper__Vm *vm;
	int r;

	*state = (struct handover_state)HANDOVER_STATE_NULL;
	vgpu_keeper__state__init(&message);
	switch (part->kind) {
	case HANDOVER_BASE:
		save_base(&saver, part->handover, &message);
		break;
	case HANDOVER_SECTION:
	case HANDOVER_IMAGES:
	case HANDOVER_SHARES:
		section = save_section_part(&saver, part);
		message.sections = &section;
		message.n_sections = 1;
		break;
	case HANDOVER_VM:
	case HANDOVER_LEAVING:
		vm = save_vm(&saver, part->vm, part->kind == HANDOVER_LEAVING);
		message.vms = &vm;
		message.n_vms = 1;
		break;
	case HANDOVER_WORKER:
		worker = save_worker(&saver, part->worker);
		message.workers = &worker;
		message.n_workers = 1;
		break;
	}
	r = saver.failed ? vgpu_error_origin(-ENOMEM)
			 : write_file(&message, &state->file);
	saver_deinit(&saver);
	return r;
}

void handover_state_deinit(struct handover_state *state)
{
	free(state->fds);
	vgpu_close(state->file);
	*state = (struct handover_state)HANDOVER_STATE_NULL;
}

static void set_inherited(const struct handover_state *state, bool inherited)
{
	const int flags = inherited ? 0 : FD_CLOEXEC;

	for (size_t i = 0; i < state->n_fds; i++)
		fcntl(state->fds[i], F_SETFD, flags);
	fcntl(state->file, F_SETFD, flags);
}

int handover_execute(const struct handover_state *state, const char *program,
	int previous, const char *config)
{
	char file[16], by_number[32];
	char *argv[] = { "vgpud", HANDOVER_SUCCESSOR, file, (char *)config, NULL };
	int r;

	snprintf(file, sizeof(file), "%d", state->file);
	snprintf(by_number, sizeof(by_number), "/proc/self/fd/%d", previous);
	set_inherited(state, true);
	execv(program ? program : by_number, argv);
	r = -errno;
	set_inherited(state, false);
	return vgpu_error_origin(r);
}
