/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link check: whether a message of the link is valid
 */

#include "vgpud/layout.h"
#include "vgpud/link.h"

static bool vm_is_sane(const struct link_vm *vm, size_t n_fds)
{
	return vm->size >= VGPU_SHM_SIZE_MIN && vm->size <= LAYOUT_SIZE_MAX &&
	       !(vm->size & (vm->size - 1)) && vm->n_channels_max &&
	       vm->n_channels_max <= VGPU_CHANNELS_MAX &&
	       vm->n_doorbells <= VGPU_IVSHMEM_VECTORS &&
	       vm->n_interrupts <= VGPU_IVSHMEM_VECTORS &&
	       n_fds == 2u + vm->n_doorbells + vm->n_interrupts;
}

static bool image_is_sane(const struct link_image *image)
{
	return image->size && image->size <= CONTROL_IMAGE_SIZE_MAX;
}

bool link_is_sane(const struct link_message *message, size_t n_fds)
{
	if (!message->type || message->type >= _LINK_N)
		return false;
	switch (message->type) {
	case LINK_VM:
		return vm_is_sane(&message->vm, n_fds);
	case LINK_WORKER:
		return n_fds == 3;
	case LINK_QUOTA:
	case LINK_SENSORS:
	case LINK_CTL:
	case LINK_CONFIGURED:
	case LINK_JOIN:
		return n_fds == 1;
	case LINK_CONFIGURE:
		return n_fds == 2;
	case LINK_SHARE:
		return n_fds == 1 && message->share.size;
	case LINK_IMAGE:
		return n_fds == 1 && image_is_sane(&message->image);
	}
	return !n_fds;
}
