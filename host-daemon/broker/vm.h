/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * VM: the broker's view of one shared memory with its doorbells and channels
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/guard.h"
#include "broker/loop.h"
#include "vgpud/account.h"
#include "vgpud/config.h"
#include "vgpud/ledger.h"
#include "vgpud/link.h"
#include "vgpud/wiper.h"

struct broker;
struct worker;

/* One guest process, or the place of one; see channel.c. */
struct channel {
	TAILQ_ENTRY(channel) waiting; /* linked while the phase is WAITING */
	struct vm *vm;
	uint32_t index;
	struct ledger_channel *record; /* in the VM's ledger */
	struct worker *worker;	       /* NULL without one */
	bool is_counted;       /* while WAITING: admitted by its VM's process rate */
	int64_t claimed_since; /* ms, while its entry is claimed; else 0 */
	struct wipe wipe;      /* in progress while the phase is EMPTYING */
	bool is_area_next;     /* while emptying: all extents are empty */
	int64_t retry_at;      /* ms; not 0: emptying has failed */
};

struct vm {
	TAILQ_ENTRY(vm) entry;
	struct broker *broker;
	const struct config_vm *config;
	struct account *account; /* of its section, shared by all VMs of it */
	uint64_t id;		 /* identifies it to the keeper */
	uint32_t pid;		 /* of the process that connected, by SO_PEERCRED */
	bool gone;		 /* its memory must not be accessed any more */

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
	struct loop_timer rest;	    /* while doorbell 0 is ignored */

	uint32_t status_sequence; /* of the status published last */
	bool has_history;	  /* the page has the samples of before */
	uint32_t n_scans;	  /* by doorbell, since the last tick */
};

/*
 * Creates a VM that the keeper announced.
 *
 * @fds:	memory, ledger, doorbells, interrupts; takes ownership in any case
 *
 * Return: 0 or -errno.
 */
int vm_new(struct vm **vmp, struct broker *broker, const struct link_message *message,
	const int *fds, size_t n_fds);
struct vm *vm_free(struct vm *vm);

struct vgpu_shm_header *vm_header(const struct vm *vm);
struct vgpu_channel_entry *vm_entry(const struct vm *vm, uint32_t channel);

/* Whether the wiper has memory of the channel. */
static inline bool vm_is_emptying(const struct channel *channel)
{
	return channel->wipe.wiper != NULL;
}

/* Notifies the guest that an entry changed. */
void vm_interrupt(struct vm *vm);

/* Copies shared bytes once: both pointers and the size are multiples of 8. */
void vm_read_shared(void *destination, const void *source, size_t size);
