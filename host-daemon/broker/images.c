/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: what workers ask of the store of their VM, and put into it
 *
 * The broker decides what is kept, and the keeper has the same descriptors for the next
 * broker. If this one dies between two messages the two differ by an image, which costs
 * a process some time at its start, or a descriptor until the VM ends, and no more.
 */

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/images.h"
#include "vgpu/error.h"

/* Of all descriptors that a process of vgpud may have, those that may be images. */
#define IMAGES_FD_SHARE 4

uint32_t images_n_max(unsigned int n_vms)
{
	struct rlimit limit;
	rlim_t n;

	if (!n_vms || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	n = limit.rlim_cur / IMAGES_FD_SHARE / n_vms;
	return n < IMAGE_STORE_N_MAX ? n : IMAGE_STORE_N_MAX;
}

static struct vm *vm_of(const struct worker *worker)
{
	return worker->channel && !worker->channel->vm->gone ? worker->channel->vm : NULL;
}

void images_handle_find(struct worker *worker, const struct control_image *wanted)
{
	struct control_message message = { .type = CONTROL_IMAGE, .image = *wanted };
	struct stored_image *image = NULL;
	struct vm *vm = vm_of(worker);

	if (vm)
		image = image_store_find(&vm->account->images, wanted->digest);
	message.image.size = image ? image->size : 0;
	message.n_fds = image ? 1 : 0;
	worker_send(worker, &message, image ? &image->fd : NULL);
}

/* Processes that connect one by one are a VM that does not end with one of them. */
static uint64_t owner_of(const struct vm *vm)
{
	return vm->config->transport == CONFIG_SOCKET ? 0 : vm->id;
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

static void let_go(struct vm *vm, struct stored_image *image)
{
	tell_keeper(vm, LINK_IMAGE_DONE, image, NULL);
	image_store_remove(&vm->account->images, image);
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
	if (image)
		let_go(vm, image);
	while ((image = image_store_excess(store, given->size, size_max, n_max)))
		let_go(vm, image);
	return true;
}

static void keep(struct vm *vm, const struct control_image *given, int *fdp)
{
	struct image_store *store = &vm->account->images;

	if (!make_room(vm, given) ||
		image_store_add(store, given->digest, given->size, *fdp))
		return;
	*fdp = -1;
	tell_keeper(vm, LINK_IMAGE, TAILQ_LAST(&store->images, stored_images),
		&TAILQ_LAST(&store->images, stored_images)->fd);
}

bool images_handle_keep(struct worker *worker, const struct control_image *given, int fd)
{
	_vgpu_cleanup_(vgpu_closep) int own = fd;
	struct vm *vm = vm_of(worker);

	if (!worker->channel || !image_store_accepts(own, given->size))
		return false;
	if (vm)
		keep(vm, given, &own);
	return true;
}

void images_restore(struct broker *broker, const struct link_message *message, int fd)
{
	const struct link_image *image = &message->image;
	struct account *account;

	if (image->config_index >= broker->config->n_vms) {
		close(fd);
		return;
	}
	account = &broker->accounts[image->config_index];
	if (image_store_find(&account->images, image->digest) ||
		image_store_add(&account->images, image->digest, image->size, fd))
		close(fd);
}
