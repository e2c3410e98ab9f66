/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: what the service manager keeps for the next keeper
 *
 * Each object of the keeper is a bundle of its own: the part of the handover that
 * describes it, and the descriptors that this mentions. So a bundle is complete or is not
 * there, at whatever moment the keeper is killed. Nothing in it changes: an object that
 * has changed is stored again, and then the earlier bundle is removed.
 *
 * What has changed is found by comparison. The key of a bundle is a hash of everything
 * about the object that can change, and descriptors are in it by their inodes, because
 * their numbers are used again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "keeper/handover.h"
#include "keeper/share-key.h"
#include "keeper/store.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"
#include "vgpud/notify.h"

/* Pause after the service manager took nothing. */
#define RETRY_MS 20
/* Pause after any other failure. */
#define LATER_MS 1000
/* How long a keeper that leaves tries. */
#define FLUSH_MS 5000

/*
 * Keys: FNV-1a, 64 bits, of what no worker chooses; share-key.h of the rest
 */

static uint64_t hash(uint64_t key, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		key = (key ^ bytes[i]) * 0x100000001b3u;
	return key;
}

static uint64_t hash_number(uint64_t key, uint64_t number)
{
	return hash(key, &number, sizeof(number));
}

static uint64_t hash_text(uint64_t key, const char *text)
{
	return text ? hash(key, text, strlen(text) + 1) : hash_number(key, 0);
}

static uint64_t hash_file(uint64_t key, int fd)
{
	struct stat st;

	return hash_number(key, fd >= 0 && !fstat(fd, &st) ? st.st_ino : 0);
}

static uint64_t begin_key(enum handover_kind kind)
{
	return hash_number(0xcbf29ce484222325u, kind);
}

static uint64_t hash_listener(uint64_t key, const struct listener *listener)
{
	return hash_file(hash_text(key, listener->path), listener->fd);
}

static uint64_t key_of_base(const struct handover *handover)
{
	uint64_t key = begin_key(HANDOVER_BASE);

	key = hash_text(key, handover->program);
	key = hash_file(key, handover->sources);
	key = hash_listener(key, &handover->ctl->listener);
	key = hash_file(key, handover->ctl->client);
	return hash_number(key, handover->ctl->request);
}

static uint64_t key_of_section(const struct endpoint *endpoint)
{
	uint64_t key = begin_key(HANDOVER_SECTION);

	key = hash_text(key, endpoint->config->name);
	key = hash_listener(key, &endpoint->listener);
	return hash_file(key, endpoint->quota);
}

static uint64_t key_of_vm(const struct held_vm *vm, enum handover_kind kind)
{
	uint64_t key = begin_key(kind);

	key = hash_number(key, vm->id);
	key = hash_number(key, vm->gone);
	return hash_text(key, vm->config ? vm->config->name : NULL);
}

static uint64_t key_of_worker(const struct held_worker *worker)
{
	uint64_t key = begin_key(HANDOVER_WORKER);

	key = hash_number(key, worker->id);
	return hash_number(key, worker->exited);
}

/* The same for all bundles about one object. */
static uint64_t identity_of(const struct handover_part *part)
{
	/* A VM that leaves is the same VM. */
	const bool is_vm = part->kind == HANDOVER_LEAVING;
	uint64_t key = begin_key(is_vm ? HANDOVER_VM : part->kind);

	if (part->endpoint)
		key = hash_text(key, part->endpoint->config->name);
	if (part->vm)
		key = hash_number(key, part->vm->id);
	if (part->worker)
		key = hash_number(key, part->worker->id);
	return hash_number(key, part->first);
}

/*
 * What is stored
 */

static struct stored **bucket_of(struct store *store, uint64_t key)
{
	return &store->buckets[(key ^ key >> 32) % STORE_BUCKETS];
}

int store_add(struct store *store, uint32_t number, uint64_t key)
{
	struct stored **bucket = bucket_of(store, key), *stored;

	stored = malloc(sizeof(*stored));
	if (!stored)
		return vgpu_error_origin(-ENOMEM);
	*stored = (struct stored){
		.next = *bucket,
		.number = number,
		.key = key,
		.is_needed = true,
	};
	*bucket = stored;
	store->n++;
	if (number > store->last)
		store->last = number;
	return 0;
}

static struct stored *find(struct store *store, uint64_t key)
{
	struct stored *stored = *bucket_of(store, key);

	while (stored && stored->key != key)
		stored = stored->next;
	return stored;
}

static void remove_first(struct store *store, struct stored **bucket)
{
	struct stored *stored = *bucket;

	*bucket = stored->next;
	free(stored);
	store->n--;
}

void store_deinit(struct store *store)
{
	for (unsigned int i = 0; i < STORE_BUCKETS; i++)
		while (store->buckets[i])
			remove_first(store, &store->buckets[i]);
}

static void complain(struct store *store, const char *why)
{
	if (!store->has_complained)
		vgpu_log_error(
			"not everything is stored for the next vgpud (%s): if this "
			"one is killed now, sessions end",
			why);
	store->has_complained = true;
}

static int send_bundle(struct store *store, const struct handover_state *state,
	struct bundle_label *label)
{
	_vgpu_cleanup_(vgpu_closep) int bundle = -1;
	int fds[BUNDLE_FDS_MAX];

	if (state->n_fds >= BUNDLE_FDS_MAX)
		return vgpu_error_origin(-E2BIG);
	label->number = store->last + 1;
	fds[0] = state->file;
	for (size_t i = 0; i < state->n_fds; i++)
		fds[i + 1] = state->fds[i];
	bundle = bundle_make(label, fds, state->n_fds + 1);
	return bundle < 0 ? bundle : notify_store(label->number, bundle);
}

static int save_and_send(
	struct store *store, const struct handover_part *part, struct bundle_label *label)
{
	struct handover_state state;
	int r;

	r = handover_save_part(&state, part);
	if (!r)
		r = send_bundle(store, &state, label);
	handover_state_deinit(&state);
	return r;
}

/* A child's pidfd is of use to the next keeper alone. */
static int store_part(
	struct store *store, const struct handover_part *part, struct bundle_label *label)
{
	_vgpu_cleanup_(vgpu_closep) int pidfd = -1;
	struct handover_part copy = *part;
	struct held_worker worker;

	if (part->worker && !part->worker->exited && part->worker->pidfd < 0) {
		pidfd = (int)syscall(SYS_pidfd_open, part->worker->pid, 0);
		if (pidfd < 0)
			return vgpu_error_origin(-errno);
		worker = *part->worker;
		worker.pidfd = pidfd;
		copy.worker = &worker;
	}
	return save_and_send(store, &copy, label);
}

/* Stores a part unless it is stored. */
static void need(struct store *store, const struct handover_part *part, uint64_t key)
{
	struct bundle_label label = { .identity = identity_of(part), .key = key };
	struct stored *stored = find(store, key);
	int r;

	if (stored) {
		stored->is_needed = true;
		return;
	}
	if (store->n >= store->n_max)
		store->is_full = true;
	if (store->is_full || store->is_blocked)
		return;
	r = store_part(store, part, &label);
	if (!r)
		r = store_add(store, label.number, key);
	if (!r)
		return;
	store->is_blocked = true;
	store->is_failing = r != -EAGAIN;
	if (store->is_failing)
		complain(store, strerror(-r));
}

static void need_section(struct store *store, const struct endpoint *endpoint)
{
	struct handover_part part = { .kind = HANDOVER_SECTION, .endpoint = endpoint };
	const struct stored_image *image;
	const struct share *share;
	struct share_key share_key;
	size_t i = 0;
	uint64_t key;

	need(store, &part, key_of_section(endpoint));
	part.kind = HANDOVER_IMAGES;
	key = hash_text(begin_key(part.kind), endpoint->config->name);
	TAILQ_FOREACH(image, &endpoint->images.images, entry) {
		key = hash_number(key, image->inode);
		part.first = i / HANDOVER_CHUNK * HANDOVER_CHUNK;
		if (++i % HANDOVER_CHUNK == 0 || !TAILQ_NEXT(image, entry))
			need(store, &part, hash_number(key, part.first));
	}
	part.kind = HANDOVER_SHARES;
	share_key_init(&share_key, endpoint->config->name);
	i = 0;
	TAILQ_FOREACH(share, &endpoint->shares.shares, entry) {
		share_key_add(&share_key, share);
		part.first = i / HANDOVER_CHUNK * HANDOVER_CHUNK;
		if (++i % HANDOVER_CHUNK == 0 || !TAILQ_NEXT(share, entry))
			need(store, &part, share_key_get(&share_key, part.first));
	}
}

static void need_vms(
	struct store *store, const struct held_vms *vms, enum handover_kind kind)
{
	const struct held_vm *vm;

	TAILQ_FOREACH(vm, vms, entry) {
		const struct handover_part part = { .kind = kind, .vm = vm };

		need(store, &part, key_of_vm(vm, kind));
	}
}

/* The configuration first: what depends on an earlier one is recognised. */
static void need_all(struct store *store, const struct handover *handover)
{
	const struct endpoints *endpoints = handover->endpoints;
	const struct handover_part base = {
		.kind = HANDOVER_BASE,
		.handover = handover,
	};
	const struct held_worker *worker;

	need(store, &base, key_of_base(handover));
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		need_section(store, &endpoints->endpoints[i]);
	need_vms(store, &endpoints->vms, HANDOVER_VM);
	need_vms(store, &endpoints->leaving, HANDOVER_LEAVING);
	TAILQ_FOREACH(worker, handover->workers, entry) {
		const struct handover_part part = {
			.kind = HANDOVER_WORKER,
			.worker = worker,
		};

		need(store, &part, key_of_worker(worker));
	}
}

static void remove_others(struct store *store)
{
	for (unsigned int i = 0; i < STORE_BUCKETS; i++) {
		struct stored **bucket = &store->buckets[i];

		while (*bucket) {
			if ((*bucket)->is_needed) {
				bucket = &(*bucket)->next;
				continue;
			}
			if (notify_unstore((*bucket)->number)) {
				store->is_blocked = true;
				return;
			}
			remove_first(store, bucket);
		}
	}
}

void store_sync(struct store *store, const struct handover *handover)
{
	if (!store->n_max)
		return;
	store->is_full = store->is_blocked = store->is_failing = false;
	for (unsigned int i = 0; i < STORE_BUCKETS; i++)
		for (struct stored *s = store->buckets[i]; s; s = s->next)
			s->is_needed = false;
	need_all(store, handover);
	/* An object is never out of the store while it is replaced, unless there is no
	 * other room. */
	if (!store->is_blocked)
		remove_others(store);
	if (store->is_full)
		complain(store, "the service manager keeps too few descriptors for that");
	store->retry_at = 0;
	if (store->is_full || store->is_failing)
		store->retry_at = clock_now() + LATER_MS;
	else if (store->is_blocked)
		store->retry_at = clock_now() + RETRY_MS;
	else
		store->has_complained = false;
}

void store_vm(struct store *store, const struct held_vm *vm)
{
	const struct handover_part part = { .kind = HANDOVER_VM, .vm = vm };

	if (!store->n_max)
		return;
	store->is_full = store->is_blocked = false;
	need(store, &part, key_of_vm(vm, part.kind));
}

bool store_flush(struct store *store, const struct handover *handover)
{
	const int64_t end = clock_now() + FLUSH_MS;

	do
		store_sync(store, handover);
	while (store->retry_at && clock_now() < end && !usleep(RETRY_MS * 1000));
	return !store->retry_at;
}

void store_end(struct store *store)
{
	const int64_t end = clock_now() + FLUSH_MS;

	if (!store->n_max)
		return;
	store->n_max = 0;
	for (unsigned int i = 0; i < STORE_BUCKETS; i++)
		for (struct stored *s = store->buckets[i]; s; s = s->next)
			s->is_needed = false;
	do {
		store->is_blocked = false;
		remove_others(store);
	} while (store->is_blocked && clock_now() < end && !usleep(RETRY_MS * 1000));
	store->retry_at = 0;
}
