/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage books: the broker's accounts
 *
 * Each number is compared with the objects that it counts, and with its limit; and both
 * with what the stage itself has seen.
 */

#include <string.h>
#include <sys/stat.h>

#include "broker/device-set.h"
#include "control/quota.h"
#include "stage.h"

/*
 * Images
 */

static uint64_t check_list(const struct stored_images *images,
	uint64_t slots[IMAGE_STORE_SLOTS / 64], uint32_t *np)
{
	const struct stored_image *image;
	uint64_t size = 0, bit;

	*np = 0;
	TAILQ_FOREACH(image, images, entry) {
		bit = (uint64_t)1 << image->slot % 64;
		stage_check(image->slot < IMAGE_STORE_SLOTS);
		stage_check(!(slots[image->slot / 64] & bit));
		slots[image->slot / 64] |= bit;
		size += image_store_memory(image->size);
		++*np;
	}
	return size;
}

static uint32_t count_kept(const struct stage *stage, unsigned int section)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < stage->n_images; i++)
		n += stage->images[i].kept >= 0 &&
		     stage->images[i].link.config_index == section;
	return n;
}

static void check_store(struct stage *stage, const struct account *account)
{
	const struct image_store *store = &account->images;
	uint64_t slots[IMAGE_STORE_SLOTS / 64] = { 0 };
	uint32_t n, n_gone;

	stage_check(check_list(&store->images, slots, &n) == store->size);
	stage_check(check_list(&store->gone, slots, &n_gone) == store->gone_size);
	stage_check(!memcmp(slots, store->slots, sizeof(slots)));
	stage_check(n == store->n && n <= account->n_images_max);
	stage_check(store->size <= account->config->image_store);
	stage_check(store->gone_size <= account->config->image_store);
	/* Exactly these are passed to the next broker. */
	if (stage->n_images < STAGE_IMAGES)
		stage_check(n == count_kept(stage, account->config->index));
}

/* Broker and keeper have the same. */
static void check_shares(const struct stage *stage, const struct account *account)
{
	const struct share_table *kept = &stage->shares[account->config->index];
	const struct share_table *shares = &account->shares;

	stage_check(shares->n <= account->n_shares_max);
	stage_check(shares->n == kept->n && shares->n_holders == kept->n_holders &&
		    shares->unpaid == kept->unpaid);
}

/* Memory that this broker gave to a worker, which still has bytes and is not, nor was, in
 * a store. */
static uint64_t count_given(const struct stage *stage, uint64_t worker)
{
	uint64_t size = 0;
	struct stat st;

	for (unsigned int i = 0; i < stage->n_images; i++) {
		const struct stage_image *image = &stage->images[i];

		if (image->worker == worker && image->broker == stage->n_restarts &&
			!image->was_kept && image->own >= 0 && !fstat(image->own, &st))
			size += image_store_memory(st.st_size);
	}
	return size;
}

static void check_files(
	struct stage *stage, const struct worker *worker, const struct stage_worker *seen)
{
	const struct image_files *files = &worker->files;
	uint64_t size = 0;

	stage_check(files->n_given <= IMAGE_FILES_MAX);
	for (unsigned int i = 0; i < files->n_given; i++)
		size += image_store_memory(files->given[i].size);
	stage_check(size <= files->size);
	if (!worker->channel) {
		stage_check(!files->size);
		return;
	}
	stage_check(files->size <= worker->channel->vm->config->image_store);
	/* A worker that does not read has files that the stage has not seen. */
	if (worker->is_condemned || seen->control < 0 || seen->is_deaf ||
		stage->n_images == STAGE_IMAGES)
		return;
	/* A file of a worker that an earlier broker had counts twice if it is kept after
	 * this broker could not take it back. */
	if (files->is_partial)
		stage_check(count_given(stage, worker->id) <= files->size);
	else
		stage_check(count_given(stage, worker->id) == files->size);
}

/*
 * Channels
 */

static void check_channel(const struct channel *channel)
{
	const struct ledger_channel *record = channel->record;
	const struct vm *vm = channel->vm;

	stage_check(record->phase < _CHANNEL_PHASE_N);
	stage_check(!record->worker == !record->quota_slot);
	stage_check(!channel->worker == !record->worker);
	if (channel->worker) {
		stage_check(channel->worker->channel == channel);
		stage_check(channel->worker->id == record->worker);
		stage_check(channel->worker->state == WORKER_BUSY ||
			    channel->worker->state == WORKER_ENDING);
	}
	if (record->phase == CHANNEL_IDLE || record->phase == CHANNEL_WAITING) {
		stage_check(!record->worker);
		if (!vm->gone)
			stage_check(!extent_count(&vm->extents, channel->index));
	}
}

/* The owner of a VM's memory in the stage is also the owner in the ledger. */
static void check_extents(struct stage *stage, const struct vm *vm)
{
	const struct stage_vm *seen = &stage->vms[vm->config->index];
	const struct stage_worker *worker;

	for (uint32_t i = 0; i < seen->layout.n_extents; i++) {
		if (!seen->owners[i])
			continue;
		worker = stage_find_worker(stage, seen->owners[i]);
		stage_check(worker && vm->ledger->owners[i] == 1 + worker->channel);
	}
}

static void check_slots(struct stage *stage, const struct account *account)
{
	bool are_used[STAGE_VMS * VGPU_CHANNELS_MAX + 1] = { false };
	unsigned int n_active = 0;
	const struct vm *vm;
	uint32_t slot;

	TAILQ_FOREACH(vm, &stage->broker.vms, entry) {
		if (vm->account != account)
			continue;
		for (uint32_t i = 0; i < vm->layout.n_channels; i++) {
			slot = vm->channels[i].record->quota_slot;
			n_active += channel_is_active(&vm->channels[i]);
			if (!slot)
				continue;
			/* The lowest that are free are taken. */
			stage_check(slot < sizeof(are_used) && !are_used[slot]);
			are_used[slot] = true;
		}
	}
	stage_check(n_active <= account->config->max_processes);
}

/*
 * All of it
 */

static void check_queue(struct stage *stage)
{
	const struct channel *channel;
	unsigned int n_queued = 0, n_waiting = 0;
	const struct vm *vm;

	TAILQ_FOREACH(channel, &stage->broker.waiting, waiting) {
		stage_check(channel->record->phase == CHANNEL_WAITING);
		n_queued++;
	}
	TAILQ_FOREACH(vm, &stage->broker.vms, entry)
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			n_waiting += vm->channels[i].record->phase == CHANNEL_WAITING;
	stage_check(n_queued == n_waiting);
}

static void check_workers(struct stage *stage)
{
	unsigned int n_live = stage->n_spawns, n_spawning = 0;
	const struct worker *worker;

	for (unsigned int i = 0; i < stage->broker.n_sets; i++)
		n_spawning += stage->broker.sets[i].n_spawning;
	stage_check(n_spawning == stage->n_spawns);
	TAILQ_FOREACH(worker, &stage->broker.pool.workers, entry) {
		const struct stage_worker *seen = stage_find_worker(stage, worker->id);

		stage_check(worker->id && seen && !seen->exited);
		n_live += worker->state != WORKER_ENDING && !worker->hung_up;
		check_files(stage, worker, seen);
	}
	stage_check(n_live <= stage->broker.config->max_workers);
}

void stage_books_check(struct stage *stage)
{
	const struct vm *vm;

	if (!stage->broker.synced)
		return;
	check_workers(stage);
	check_queue(stage);
	TAILQ_FOREACH(vm, &stage->broker.vms, entry) {
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			check_channel(&vm->channels[i]);
		check_extents(stage, vm);
	}
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		check_slots(stage, &stage->broker.accounts[i]);
		check_store(stage, &stage->broker.accounts[i]);
		check_shares(stage, &stage->broker.accounts[i]);
	}
}

void stage_books_check_empty(struct stage *stage)
{
	static const struct quota_page no_quota;
	const struct broker *broker = &stage->broker;

	stage_check(TAILQ_EMPTY(&broker->vms));
	stage_check(TAILQ_EMPTY(&broker->pool.workers));
	stage_check(TAILQ_EMPTY(&broker->waiting));
	stage_check(TAILQ_EMPTY(&broker->wiper.wipes));
	for (unsigned int i = 0; i < STAGE_VMS; i++) {
		const struct account *account = &broker->accounts[i];

		stage_check(!stage->vms[i].id);
		stage_check(TAILQ_EMPTY(&account->images.gone));
		/* Processes of this machine find the code of those before them. */
		if (account->config->transport != CONFIG_SOCKET)
			stage_check(!account->images.n);
		stage_check(!memcmp(
			account->quota->used, no_quota.used, sizeof(no_quota.used)));
	}
}
