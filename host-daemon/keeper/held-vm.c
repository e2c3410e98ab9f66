/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held VM: the descriptors of one shared memory, owned by the keeper
 *
 * A memfd has a sealed size, so that no process can truncate it and end vgpud by SIGBUS.
 * A file of transport plain cannot be sealed: users of the host that can write to it,
 * never the guest, can truncate it. Its creator acts as that VM, and vgpud writes to it:
 * so it has to belong to root, to vgpud's user or to memory-owner.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "keeper/greeting.h"
#include "keeper/held-vm.h"
#include "keeper/held-worker.h"
#include "vgpu/error.h"
#include "vgpud/closer.h"
#include "vgpud/huge-file.h"
#include "vgpud/layout.h"
#include "vgpud/ledger.h"
#include "vgpud/link.h"
#include "vgpud/trust.h"

static void held_vm_freep(struct held_vm **vmp)
{
	held_vm_free(*vmp);
}

static int seal(int fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? vgpu_error_origin(-errno) : 0;
}

static int make_memory(const char *name, uint64_t size, int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, size) < 0)
		return vgpu_error_origin(-errno);
	r = seal(fd);
	if (r)
		return vgpu_error_trace(r);
	*fdp = fd;
	fd = -1;
	return 0;
}

/* Its pages are reserved here, so that this fails instead of a guest's access. */
static int make_shared_memory(struct held_vm *vm)
{
	int r;

	if (vm->config->hugepages != CONFIG_HUGEPAGES_HUGETLB)
		return make_memory("vgpu-shm", vm->size, &vm->shm);
	r = huge_file_make("vgpu-shm", vm->size);
	if (r < 0)
		return vgpu_error_trace(r);
	vm->shm = r;
	r = seal(vm->shm);
	if (!r)
		r = huge_file_reserve(vm->shm, 0, vm->size);
	return r ? vgpu_error_trace(r) : 0;
}

static int make_eventfds(int *fds, uint32_t n, uint32_t *n_madep)
{
	for (uint32_t i = 0; i < n; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fds[i] < 0)
			return vgpu_error_origin(-errno);
		*n_madep = i + 1;
	}
	return 0;
}

/* The generation is a time, so that it increases even in a file that outlives vgpud. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
}

static int format(struct held_vm *vm)
{
	struct layout layout;
	int r;

	layout_init(&layout, vm->size, vm->n_channels_max);
	r = make_memory("vgpu-ledger", ledger_size(&layout), &vm->ledger);
	if (!r)
		r = layout_format(&layout, vm->shm, now_ns());
	return r ? vgpu_error_trace(r) : 0;
}

static struct held_vm *held_vm_alloc(const struct config_vm *config, uint64_t id)
{
	struct held_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->id = id;
	vm->config = config;
	vm->connection = -1;
	vm->shm = -1;
	vm->ledger = -1;
	vm->size = config->size;
	vm->n_channels_max = VGPU_CHANNELS_MAX;
	return vm;
}

int held_vm_new(
	struct held_vm **vmp, const struct config_vm *config, uint64_t id, int connection)
{
	_vgpu_cleanup_(held_vm_freep) struct held_vm *vm = held_vm_alloc(config, id);
	struct ucred cred = { 0 };
	socklen_t size = sizeof(cred);
	int r;

	if (!vm) {
		vgpu_close(connection);
		return vgpu_error_origin(-ENOMEM);
	}
	vm->connection = connection;
	if (!getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &cred, &size))
		vm->pid = cred.pid;
	if (config->transport == CONFIG_SOCKET)
		vm->n_channels_max = 1;
	r = make_shared_memory(vm);
	if (!r)
		r = make_eventfds(vm->doorbells,
			config->transport == CONFIG_SOCKET ? VGPU_SOCKET_FDS - 1
							   : VGPU_IVSHMEM_VECTORS,
			&vm->n_doorbells);
	if (!r && config->transport == CONFIG_IVSHMEM)
		r = make_eventfds(
			vm->interrupts, VGPU_IVSHMEM_VECTORS, &vm->n_interrupts);
	if (!r)
		r = format(vm);
	if (r)
		return vgpu_error_trace(r);
	*vmp = vm;
	vm = NULL;
	return 0;
}

/* Return: the reason why the file cannot be used as shared memory, or NULL. */
static const char *unusable_reason(
	int fd, const struct stat *st, const struct config_vm *config)
{
	const struct trust trust = { config->memory_owner, config->memory_group };
	const char *reason;

	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	reason = trust_reason(st, trust);
	if (reason)
		return reason;
	if (st->st_size < VGPU_SHM_SIZE_MIN || (uint64_t)st->st_size > LAYOUT_SIZE_MAX ||
		(st->st_size & (st->st_size - 1)))
		return "its size is not a power of two from 64M to 256G";
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return "another process has locked it";
	return NULL;
}

int held_vm_new_plain(struct held_vm **vmp, const struct config_vm *config, uint64_t id,
	const char **reasonp)
{
	_vgpu_cleanup_(held_vm_freep) struct held_vm *vm = held_vm_alloc(config, id);
	struct stat st;
	int r;

	if (!vm)
		return vgpu_error_origin(-ENOMEM);
	r = trust_open(config->memory, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (r == -ENOENT)
		return HELD_VM_E_ABSENT;
	vm->shm = r < 0 ? -1 : r;
	if (r >= 0 && fstat(vm->shm, &st) < 0)
		r = -errno;
	if (r < 0) {
		*reasonp = r == -ELOOP ? "there is a symbolic link in its path"
				       : strerror(-r);
		return HELD_VM_E_UNUSABLE;
	}
	*reasonp = unusable_reason(vm->shm, &st, config);
	if (*reasonp)
		return HELD_VM_E_UNUSABLE;
	vm->dev = st.st_dev;
	vm->ino = st.st_ino;
	vm->size = st.st_size;
	r = format(vm);
	if (r)
		return vgpu_error_trace(r);
	*vmp = vm;
	vm = NULL;
	return 0;
}

void held_vm_strip(struct held_vm *vm)
{
	for (uint32_t i = 0; i < vm->n_doorbells; i++)
		close(vm->doorbells[i]);
	for (uint32_t i = 0; i < vm->n_interrupts; i++)
		close(vm->interrupts[i]);
	vm->n_doorbells = vm->n_interrupts = 0;
	vm->connection = vgpu_close(vm->connection);
	vm->ledger = vgpu_close(vm->ledger);
}

struct held_vm *held_vm_free(struct held_vm *vm)
{
	if (!vm)
		return NULL;
	held_vm_strip(vm);
	closer_close(vm->shm);
	free(vm);
	return NULL;
}

bool held_vm_is_large(const struct held_vm *vm)
{
	struct stat st;

	return !fstat(vm->shm, &st) &&
	       (uint64_t)st.st_blocks * S_BLKSIZE > WIPER_PIECE_SIZE;
}

unsigned int held_vm_n_fds(const struct config_vm *config)
{
	unsigned int n_channels = VGPU_CHANNELS_MAX, n = 2;

	if (config->transport == CONFIG_SOCKET) {
		n_channels = 1;
		n += 1 + VGPU_SOCKET_FDS - 1;
	} else if (config->transport == CONFIG_IVSHMEM) {
		n += 1 + 2 * VGPU_IVSHMEM_VECTORS;
	}
	if (n_channels > config->max_processes)
		n_channels = config->max_processes;
	return n + n_channels * HELD_WORKER_FDS;
}

int held_vm_greet(const struct held_vm *vm, uint16_t peer)
{
	if (vm->config->transport == CONFIG_SOCKET)
		return greeting_send_socket(vm->connection, vm->shm, vm->doorbells);
	return greeting_send_ivshmem(
		vm->connection, peer, vm->shm, vm->doorbells, vm->interrupts);
}

bool held_vm_is_replaced(const struct held_vm *vm)
{
	struct stat st;

	return lstat(vm->config->memory, &st) < 0 || st.st_dev != vm->dev ||
	       st.st_ino != vm->ino || (uint64_t)st.st_size != vm->size;
}

int held_vm_tell(const struct held_vm *vm, int link)
{
	const struct link_message message = {
		.type = LINK_VM,
		.id = vm->id,
		.vm = {
			.config_index = vm->config->index,
			.n_doorbells = vm->n_doorbells,
			.n_interrupts = vm->n_interrupts,
			.n_channels_max = vm->n_channels_max,
			.size = vm->size,
			.pid = vm->pid,
		},
	};
	int fds[LINK_FDS_MAX];
	size_t n_fds = 0;

	fds[n_fds++] = vm->shm;
	fds[n_fds++] = vm->ledger;
	for (uint32_t i = 0; i < vm->n_doorbells; i++)
		fds[n_fds++] = vm->doorbells[i];
	for (uint32_t i = 0; i < vm->n_interrupts; i++)
		fds[n_fds++] = vm->interrupts[i];
	return link_send(link, &message, fds, n_fds);
}
