/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VM: one shared memory with its doorbells and channels, as the broker sees it
 *
 * Every word of the map may change at any time, by the guest's hand: words are read
 * once, by vm_read_shared() or an atomic load, and what is to be remembered stands in
 * the ledger. Once the keeper says that the VM is gone its map is not touched any
 * more. A file of transport plain may be cut short at any time: see guard.c.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/doorbell.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"

/* Rings between two heartbeats that are answered at once, if they were for something. */
#define VM_SCANS_MAX 100
/* How long a doorbell that rang for nothing, or too often, is not listened to. */
#define VM_REST_MS 5
/* A process whose connection ended waits for nobody. */
#define VM_GONE_GRACE_MS 500

static void vm_freep(struct vm **vmp)
{
	vm_free(*vmp);
}

/* Hands the descriptors over, so that vm_free() closes them. */
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
	if (vm->config->transport == CONFIG_PLAIN)
		guard_begin(&vm->guard, vm->map, vm->layout.extents_off);
	vm->extents = (struct extent_table){ vm->ledger->owners, vm->layout.n_extents };
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_init(&vm->channels[i], vm, i, &vm->ledger->channels[i]);
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
	/* QEMU holds it too, and may be the guest's by now. */
	if (vm->n_interrupts)
		loop_ring(&vm->broker->loop, &vm->interrupt,
			vm->interrupts[VGPU_DOORBELL_CONTROL]);
}

void vm_handle_emptied(struct vm *vm)
{
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		if (vm->channels[i].worker)
			worker_go_on(vm->channels[i].worker);
	pool_update(vm->broker);
}

static struct vm *of_control(struct loop_source *source)
{
	return (struct vm *)((char *)source - offsetof(struct vm, control));
}

static int handle_rested(struct loop_timer *timer)
{
	return vm_listen((struct vm *)((char *)timer - offsetof(struct vm, rest)));
}

/* A guest that only rings, or rings all the time, does not get our processor. */
static int handle_doorbell(struct loop_source *source)
{
	struct vm *vm = of_control(source);
	int r;

	r = doorbell_take(source->fd);
	if (r)
		return vgpu_error_trace(r);
	if (vm_scan(vm) && ++vm->n_scans <= VM_SCANS_MAX)
		return 0;
	loop_remove(&vm->control);
	loop_set_timer(&vm->broker->loop, &vm->rest, VM_REST_MS, handle_rested);
	return 0;
}

int vm_listen(struct vm *vm)
{
	if (vm->gone || !vm->n_doorbells)
		return 0;
	return loop_add(&vm->broker->loop, &vm->control,
		vm->doorbells[VGPU_DOORBELL_CONTROL], handle_doorbell);
}

static bool is_boot_id(const uint8_t boot_id[16])
{
	static const uint8_t none[16];

	return memcmp(boot_id, none, sizeof(none)) != 0;
}

/* Processes of a kernel that is no more went without a word, and so do their channels. */
void vm_note_boot(struct vm *vm, const uint8_t boot_id[16])
{
	struct ledger *ledger = vm->ledger;

	if (!is_boot_id(boot_id) || !memcmp(boot_id, ledger->boot_id, 16))
		return;
	if (is_boot_id(ledger->boot_id) && account_may_log(vm->account))
		vgpu_log_info("vm=%s was reset: channels of the last boot are closed",
			vm->config->name);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_reboot(&vm->channels[i], boot_id);
	/* Last: a broker that dies before leaves all of it to the next one. */
	memcpy(ledger->boot_id, boot_id, 16);
}

static void read_header_boot_id(const struct vm *vm, uint8_t boot_id[16])
{
	vm_read_shared(boot_id, vm_header(vm)->boot_id, 16);
}

bool vm_has_boot_id(const struct vm *vm)
{
	uint8_t boot_id[16] __attribute__((__aligned__(8)));

	read_header_boot_id(vm, boot_id);
	return is_boot_id(boot_id);
}

void vm_note_header(struct vm *vm)
{
	uint8_t boot_id[16] __attribute__((__aligned__(8)));

	read_header_boot_id(vm, boot_id);
	vm_note_boot(vm, boot_id);
}

bool vm_scan(struct vm *vm)
{
	bool found = false;

	if (vm->gone || !vm->broker->synced)
		return true;
	vm_note_header(vm);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		found |= channel_look(&vm->channels[i]);
	return found;
}

void vm_tick(struct vm *vm)
{
	struct vgpu_shm_header *header = vm_header(vm);

	if (vm->gone)
		return;
	if (vm->guard.is_broken) {
		vgpu_log_warning("vm=%s: its file was cut short: its sessions end",
			vm->config->name);
		vm_handle_gone(vm);
		return;
	}
	vm->n_scans = 0;
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_tick(&vm->channels[i]);
	__atomic_add_fetch(&header->heartbeat, 1, __ATOMIC_RELAXED);
	/* A doorbell that did not come, or that there is none to ring. */
	vm_scan(vm);
}

void vm_handle_gone(struct vm *vm)
{
	vm->gone = true;
	loop_remove(&vm->control);
	loop_clear_timer(&vm->rest);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_end(&vm->channels[i], CHANNEL_AFTER_FREE, VGPU_REASON_NONE,
			VM_GONE_GRACE_MS);
}

bool vm_is_done(const struct vm *vm)
{
	if (!vm->gone)
		return false;
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		if (vm->channels[i].record->worker ||
			channel_is_being_emptied(&vm->channels[i]))
			return false;
	return true;
}
