/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held VM: the descriptors of one shared memory, owned by the keeper
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vgpu/ring-layout.h"
#include "vgpud/config.h"
#include "vgpud/wiper.h"

struct held_vm {
	TAILQ_ENTRY(held_vm) entry;
	uint64_t id; /* never used twice in a keeper's life */
	const struct config_vm *config;
	pid_t pid; /* of the process that connected, 0 with transport plain */
	bool gone;

	int connection; /* -1 with transport plain, and once it is gone */
	int shm;
	int ledger;
	uint32_t n_channels_max;
	uint32_t n_doorbells;
	uint32_t n_interrupts;
	int doorbells[VGPU_IVSHMEM_VECTORS];
	int interrupts[VGPU_IVSHMEM_VECTORS];

	/* The identity of the file, with transport plain. */
	dev_t dev;
	ino_t ino;
	uint64_t size;

	struct wipe wipe; /* used to empty the memory */
};

TAILQ_HEAD(held_vms, held_vm);

/*
 * Creates memory and doorbells for a new connection, and takes ownership of it in any
 * case. Return: 0 or -errno.
 */
int held_vm_new(struct held_vm **vmp, const struct config_vm *config, uint64_t id,
	int connection);

enum {
	_HELD_VM_E_SUCCESS,
	HELD_VM_E_ABSENT,   /* there is no such file yet */
	HELD_VM_E_UNUSABLE, /* *reasonp says why it cannot be used */
};

/* Opens the existing file of transport plain. Returns: 0, HELD_VM_E_* or -errno. */
int held_vm_new_plain(struct held_vm **vmp, const struct config_vm *config, uint64_t id,
	const char **reasonp);

/* Closes all descriptors; the kernel frees the memory with the last mapping. */
struct held_vm *held_vm_free(struct held_vm *vm);

/* Closes all descriptors except the memory. */
void held_vm_strip(struct held_vm *vm);

/* Whether the memory still has so many pages that closing it takes long. */
bool held_vm_is_large(const struct held_vm *vm);

/* Return: the maximum of descriptors for a VM of that section in a process of vgpud,
 * including those of its workers. */
unsigned int held_vm_n_fds(const struct config_vm *config);

/* Greets the process at the other end. Return: 0, PACKET_E_* or -errno. */
int held_vm_greet(const struct held_vm *vm, uint16_t peer);

/* Whether the file of transport plain is no longer the one that was opened. */
bool held_vm_is_replaced(const struct held_vm *vm);

/* Announces the VM to the broker. Return: 0, LINK_E_* or -errno. */
int held_vm_tell(const struct held_vm *vm, int link);
