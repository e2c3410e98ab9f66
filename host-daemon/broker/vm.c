/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VM: the broker's view of one shared memory with its doorbells and channels
 *
 * The guest may change every word of the mapping at any time: words are read once, by
 * vm_read_shared() or an atomic load, and trusted state is in the ledger. Once the keeper
 * announces that the VM is gone, the mapping is not accessed any more. A file of
 * transport plain may be truncated, and one in huge pages may lose pages that the kernel
 * then cannot replace, at any time: see guard.c.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/state.h"
#include "broker/vm.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"
#include "vgpud/huge-file.h"

static void vm_freep(struct vm **vmp)
{
	vm_free(*vmp);
}

/* Moves the descriptors to the VM, so that vm_free() closes them. */
static void take_fds(struct vm *vm, const struct link_message *message, const int *fds)
{
	vm->shm = fds[0];
	vm->ledger_fd = fds[1];
	vm->n_doorbells = message->vm.n_doorbells;
	vm->n_interrupts = message->vm.n_interrupts;
	memcpy(vm->doorbells, fds + 2, vm->n_doorbells * sizeof(int));
	memcpy(vm->interrupts, fds + 2 + vm->n_doorbells, vm->n_interrupts * sizeof(int));
}

static int map_fd(int fd, uint64_t size, void **mapp)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*mapp = map;
	return 0;
}

int vm_new(struct vm **vmp, struct broker *broker, const struct link_message *message,
	const int *fds, size_t n_fds)
{
	_vgpu_cleanup_(vm_freep) struct vm *vm = calloc(1, sizeof(*vm));
	int r;

	if (!vm) {
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
		return vgpu_error_origin(-ENOMEM);
	}
	vm->broker = broker;
	vm->id = message->id;
	vm->pid = message->vm.pid;
	take_fds(vm, message, fds);
	vm->config = config_vm_at(broker->config, message->vm.config_index);
	if (!vm->config)
		return vgpu_error_origin(-EPROTO);
	vm->account = &broker->accounts[vm->config->index];
	layout_init(&vm->layout, message->vm.size, message->vm.n_channels_max);
	r = map_fd(vm->shm, vm->layout.extents_off, (void **)&vm->map);
	if (!r)
		r = map_fd(vm->ledger_fd, ledger_size(&vm->layout), (void **)&vm->ledger);
	if (r)
		return vgpu_error_trace(r);
	if (vm->config->hugepages == CONFIG_HUGEPAGES_TRANSPARENT)
		madvise(vm->map, vm->layout.extents_off, MADV_HUGEPAGE);
	if (vm->config->transport == CONFIG_PLAIN || huge_file_is(vm->shm))
		guard_begin(&vm->guard, vm->map, vm->layout.extents_off);
	vm->extents = (struct extent_table){ vm->ledger->owners, vm->layout.n_extents };
	*vmp = vm;
	vm = NULL;
	return 0;
}

struct vm *vm_free(struct vm *vm)
{
	if (!vm)
		return NULL;
	loop_remove(&vm->control);
	loop_remove(&vm->interrupt.source);
	loop_clear_timer(&vm->rest);
	guard_end(&vm->guard);
	if (vm->map)
		munmap(vm->map, vm->layout.extents_off);
	if (vm->ledger)
		munmap(vm->ledger, ledger_size(&vm->layout));
	for (uint32_t i = 0; i < vm->n_doorbells; i++)
		close(vm->doorbells[i]);
	for (uint32_t i = 0; i < vm->n_interrupts; i++)
		close(vm->interrupts[i]);
	closer_close(vm->shm);
	vgpu_close(vm->ledger_fd);
	free(vm);
	return NULL;
}

struct vgpu_shm_header *vm_header(const struct vm *vm)
{
	return (struct vgpu_shm_header *)vm->map;
}

struct vgpu_channel_entry *vm_entry(const struct vm *vm, uint32_t channel)
{
	return (struct vgpu_channel_entry *)(vm->map + layout_channel_off(channel));
}

typedef uint64_t __attribute__((__may_alias__)) shared_word;

void vm_read_shared(void *destination, const void *source, size_t size)
{
	const volatile shared_word *from = source;
	shared_word *to = destination;

	for (size_t i = 0; i < size / sizeof(*to); i++)
		to[i] = from[i];
}

void vm_interrupt(struct vm *vm)
{
	/* Under TCG, QEMU 7.2 crashes at an interrupt for a device that is gone. */
	if (!vm->n_interrupts ||
		__atomic_load_n(&vm_header(vm)->is_leaving, __ATOMIC_RELAXED))
		return;
	/* QEMU shares it, and may be compromised. */
	loop_ring(
		&vm->broker->loop, &vm->interrupt, vm->interrupts[VGPU_DOORBELL_CONTROL]);
}
