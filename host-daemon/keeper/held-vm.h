/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held VM: the descriptors of one shared memory, as the keeper keeps them
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

	/* Which file it is, with transport plain. */
	dev_t dev;
	ino_t ino;
	uint64_t size;

	struct wipe wipe; /* used once the memory is to be emptied */
};

TAILQ_HEAD(held_vms, held_vm);

/*
 * Makes memory and doorbells for a new connection, which becomes its own in any case.
 * Return: 0 or -errno.
 */
int held_vm_new(struct held_vm **vmp, const struct config_vm *config, uint64_t id,
	int connection);

enum {
	_HELD_VM_E_SUCCESS,
	HELD_VM_E_ABSENT,   /* there is no such file yet */
	HELD_VM_E_UNUSABLE, /* it is no file, is another user's, has a wrong size, or is
			       in use; reason says which */
};

/* Opens the existing file of transport plain. Returns: 0, HELD_VM_E_* or -errno. */
int held_vm_new_plain(struct held_vm **vmp, const struct config_vm *config, uint64_t id,
	const char **reasonp);

/* Closes all descriptors; the kernel frees the memory with the last mapping. */
struct held_vm *held_vm_free(struct held_vm *vm);

/* Closes all but the memory. */
void held_vm_strip(struct held_vm *vm);

/* Whether so much is left in the memory that to free it takes long. */
bool held_vm_is_large(const struct held_vm *vm);

/* Return: how many descriptors a VM of that section may need in a process of vgpud,
 * including those of the workers of its guest processes. */
unsigned int held_vm_n_fds(const struct config_vm *config);

/* Greets the process at the other end. Returns: 0, PACKET_E_* or -errno. */
int held_vm_greet(const struct held_vm *vm, uint16_t peer);

/* Whether the file of transport plain is no longer the one that was opened. */
bool held_vm_is_replaced(const struct held_vm *vm);

/* Announces the VM to the broker. Returns: 0, LINK_E_* or -errno. */
int held_vm_tell(const struct held_vm *vm, int link);
