/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * VM: one shared memory with its doorbells and channels, as the broker sees it
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/channel.h"
#include "broker/guard.h"
#include "broker/loop.h"
#include "vgpud/account.h"
#include "vgpud/config.h"
#include "vgpud/ledger.h"
#include "vgpud/link.h"

struct broker;

struct vm {
	TAILQ_ENTRY(vm) entry;
	struct broker *broker;
	const struct config_vm *config;
	struct account *account; /* of its section, shared with its like */
	uint64_t id;		 /* the keeper's number of it */
	uint32_t pid;		 /* of the process that connected, as the kernel told */
	bool gone;		 /* its memory must not be touched any more */

	int shm;
	struct layout layout;
	uint8_t *map;	    /* of the shared memory up to the arena */
	struct guard guard; /* over the map of a file of transport plain */
	int ledger_fd;
	struct ledger *ledger;
	struct extent_table extents;
	struct channel channels[VGPU_CHANNELS_MAX];

	uint32_t n_doorbells;
	uint32_t n_interrupts;
	int doorbells[VGPU_IVSHMEM_VECTORS];
	int interrupts[VGPU_IVSHMEM_VECTORS];
	struct loop_source control; /* doorbell 0 */
	struct loop_bell interrupt; /* of vector 0 */
	struct loop_timer rest;	    /* while doorbell 0 is not listened to */

	uint32_t n_scans; /* by doorbell, since the last tick */
};

/*
 * Takes up a VM that the keeper told of.
 *
 * @fds:	memory, ledger, doorbells, interrupts; its own in any case
 *
 * Return: 0 or -errno.
 */
int vm_new(struct vm **vmp, struct broker *broker, const struct link_message *message,
	const int *fds, size_t n_fds);
struct vm *vm_free(struct vm *vm);

/* Starts to listen to the doorbell. Returns: 0 or -errno. */
int vm_listen(struct vm *vm);

/* Looks through the channel table. Returns: whether there was something to do. */
bool vm_scan(struct vm *vm);

/* Lives on: moves the heartbeat, and scans if the guest asked without a doorbell. */
void vm_tick(struct vm *vm);

/* Its connection ended: all of it goes. */
void vm_handle_gone(struct vm *vm);

/* Whether a VM that is gone has nothing left; then it is to be freed. */
bool vm_is_done(const struct vm *vm);

struct vgpu_shm_header *vm_header(const struct vm *vm);
struct vgpu_channel_entry *vm_entry(const struct vm *vm, uint32_t channel);

/*
 * Notes what a process of the guest said its kernel is. A kernel that was not seen before
 * ends the channels of the last one.
 */
void vm_note_boot(struct vm *vm, const uint8_t boot_id[16]);

/* The same for what the header says now. */
void vm_note_header(struct vm *vm);

/* Whether the header names the guest's kernel, which then speaks for all processes. */
bool vm_has_boot_id(const struct vm *vm);

/* Tells the guest that an entry changed. */
void vm_interrupt(struct vm *vm);

/* Arena that was one channel's is free for others. */
void vm_handle_emptied(struct vm *vm);

/* Copies shared bytes once: both pointers and the size are multiples of 8. */
void vm_read_shared(void *destination, const void *source, size_t size);
