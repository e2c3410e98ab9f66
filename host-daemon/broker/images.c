/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: what workers ask of the store of their VM, and put into it
 *
 * The broker decides what is kept, and the keeper has the same descriptors for the next
 * broker. If this one dies between two messages, the next one gets the worker's message
 * again, and no image is lost.
 */

#include <string.h>

#include "broker/images.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"

/* Processes that connect one by one are a VM that does not end with one of them. */
static bool outlives_connection(const struct vm *vm)
{
	return vm->config->transport == CONFIG_SOCKET;
}

static uint64_t owner_of(const struct vm *vm)
{
	return outlives_connection(vm) ? 0 : vm->id;
}

/* Return: the VM whose store the worker uses, or NULL once it is gone. */
static struct vm *vm_of(const struct worker *worker)
{
	struct vm *vm = worker->channel ? worker->channel->vm : NULL;

	return vm && (!vm->gone || outlives_connection(vm)) ? vm : NULL;
}

void images_handle_find(struct worker *worker, const struct control_image *wanted)
{
	struct control_message message = { .type = CONTROL_IMAGE, .image = *wanted };
	struct stored_image *image = NULL;
	struct vm *vm = vm_of(worker);

	if (vm)
		image = image_store_find(&vm->account->images, wanted->digest);
	if (image)
		image_files_see(&worker->files, image);
	message.image.size = image ? image->size : 0;
	message.n_fds = image ? 1 : 0;
	worker_send(worker, &message, image ? &image->fd : NULL);
}

void images_handle_file(struct worker *worker, const struct control_image *wanted)
{
	struct control_message message = { .type = CONTROL_IMAGE, .image = *wanted };
	struct vm *vm = vm_of(worker);
	int fd = -1;

	if (!vm || !vm->account->n_images_max ||
		image_files_give(&worker->files, wanted->cookie, wanted->size,
			vm->config->image_store, &fd))
		fd = -1;
	message.n_fds = fd >= 0;
	worker_send(worker, &message, &fd);
}

void images_handle_drop(struct worker *worker, const struct control_image *given)
{
	image_files_take_back(&worker->files, given->cookie);
}

static void tell_keeper(const struct vm *vm, enum link_type type,
	const struct stored_image *image, const int *fd)
{
	struct link_message message = {
		.type = type,
		.id = owner_of(vm),
		.image = { .size = image->size, .config_index = vm->config->index },
	};

	memcpy(message.image.digest, image->digest, sizeof(message.image.digest));
	link_send(vm->broker->link, &message, fd, fd ? 1 : 0);
}

static bool is_of(const struct worker *worker, const struct account *account)
{
	return worker->channel && worker->channel->vm->account == account;
}

/* Whether a worker may still map it. */
static bool is_had(const struct broker *broker, const struct account *account,
	const struct stored_image *image)
{
	const struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (is_of(worker, account) &&
			image_files_have_seen(&worker->files, image))
			return true;
	return false;
}

/* Return: false if there would be more code that is gone and perhaps mapped than the
 * store itself may hold. */
static bool let_go(struct vm *vm, struct stored_image *image)
{
	struct image_store *store = &vm->account->images;
	const bool had = is_had(vm->broker, vm->account, image);

	if (had && store->gone_size + image_store_memory(image->size) >
			   vm->config->image_store)
		return false;
	tell_keeper(vm, LINK_IMAGE_DONE, image, NULL);
	if (had)
		image_store_retire(store, image);
	else
		image_store_remove(store, image);
	return true;
}

/* Return: whether it fits, now that others made room. An honest worker asks before it
 * gives: what is there under the same digest is wrong, or as good. */
static bool make_room(struct vm *vm, const struct control_image *given)
{
	struct image_store *store = &vm->account->images;
	const uint32_t n_max = vm->account->n_images_max;
	const uint64_t size_max = vm->config->image_store;
	struct stored_image *image;

	if (!n_max || given->size > size_max)
		return false;
	image = image_store_find(store, given->digest);
	if (image && !let_go(vm, image))
		return false;
	while ((image = image_store_excess(store, given->size, size_max, n_max)))
		if (!let_go(vm, image))
			return false;
	return true;
}

uint64_t images_gone_size(const struct worker *worker)
{
	const struct stored_image *image;
	uint64_t size = 0;

	if (!worker->channel)
		return 0;
	TAILQ_FOREACH(image, &worker->channel->vm->account->images.gone, entry)
		if (image_files_have_seen(&worker->files, image))
			size += image_store_memory(image->size);
	return size;
}

void images_forget_worker(struct worker *worker)
{
	struct stored_image *image, *next;
	struct account *account;

	if (!worker->channel)
		return;
	account = worker->channel->vm->account;
	image_files_deinit(&worker->files);
	image_files_init(&worker->files);
	for (image = TAILQ_FIRST(&account->images.gone); image; image = next) {
		next = TAILQ_NEXT(image, entry);
		if (!is_had(worker->broker, account, image))
			image_store_forget(&account->images, image);
	}
}

/* @counted:	of the file, for the worker */
static void keep(struct vm *vm, struct worker *worker, const struct control_image *given,
	uint64_t counted, int *fdp)
{
	struct image_store *store = &vm->account->images;
	struct stored_image *image;

	if (!make_room(vm, given) ||
		image_store_add(store, given->digest, given->size, *fdp))
		return;
	*fdp = -1;
	image = TAILQ_LAST(&store->images, stored_images);
	image_files_stored(&worker->files, image, counted);
	tell_keeper(vm, LINK_IMAGE, image, &image->fd);
}

bool images_handle_keep(struct worker *worker, const struct control_image *given, int fd)
{
	struct vm *vm = vm_of(worker);
	uint64_t counted;
	bool is_sane;

	is_sane = worker->channel && image_store_accepts(fd, given->size);
	/* A file that is there already: the broker before this one stored it, and died.
	 */
	if (is_sane && vm && !image_store_has_file(&vm->account->images, fd) &&
		image_files_claim(&worker->files, fd, &counted))
		keep(vm, worker, given, counted, &fd);
	closer_close(fd);
	return is_sane;
}

void images_restore(struct broker *broker, const struct link_message *message, int fd)
{
	const struct link_image *image = &message->image;
	struct account *account;

	if (image->config_index >= broker->config->n_vms) {
		closer_close(fd);
		return;
	}
	account = &broker->accounts[image->config_index];
	if (image_store_find(&account->images, image->digest) ||
		image_store_add(&account->images, image->digest, image->size, fd))
		closer_close(fd);
}
