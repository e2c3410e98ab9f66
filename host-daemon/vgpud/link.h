/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Link: what keeper and broker say to each other
 *
 * The broker knows of the world only what comes over this socket, and a new broker is
 * told the same things, by the same messages, as the first was when they happened.
 * So there is one way to learn of a VM or a worker, not two.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/ring-layout.h"

#define LINK_STRING_OF(_value) #_value
#define LINK_STRING(_macro) LINK_STRING_OF(_macro)

/* Changes with anything in this file or in ledger.h, and with the version that workers
 * speak which run on: a broker that was replaced on disk says so, and does not take up
 * what it would misread. */
#define LINK_VERSION "4." LINK_STRING(CONTROL_VERSION)

enum link_type {
	_LINK_NONE,
	/* keeper to broker */
	LINK_VM,	/* id, vm; fds: memory, ledger, doorbells, interrupts */
	LINK_VM_GONE,	/* id: its connection ended; answer LINK_VM_DONE */
	LINK_WORKER,	/* id, worker; fds: control, stats, log */
	LINK_NO_WORKER, /* error: a LINK_SPAWN failed */
	LINK_EXITED,	/* id, exited: the worker was reaped; answer LINK_WORKER_DONE */
	LINK_SYNC,	/* all that the last broker knew was told */
	LINK_DRAIN,	/* end all workers, then exit with 0 */
	LINK_QUOTA,	/* section; fd: its quota page. Before all VMs */
	LINK_PING,	/* id: a count; answer LINK_PONG */
	/* either way */
	LINK_IMAGE, /* id, image; fd: code to be kept for the VM's next process */
	/* broker to keeper */
	LINK_READY,	  /* the event loop runs */
	LINK_SPAWN,	  /* start a worker: one LINK_WORKER or LINK_NO_WORKER follows */
	LINK_KILL,	  /* id: SIGKILL to that worker */
	LINK_VM_DONE,	  /* id: nothing of it is in use any more */
	LINK_WORKER_DONE, /* id: its end is written down */
	LINK_IMAGE_DONE,  /* image: it had to make room */
	LINK_PONG,	  /* id: that of the ping */
	_LINK_N,
};

struct link_vm {
	uint32_t config_index; /* which [vm NAME] */
	uint32_t n_doorbells;  /* 0: the memory is to be polled */
	uint32_t n_interrupts;
	uint32_t n_channels_max;
	uint64_t size;
	uint32_t pid; /* of the process that connected, for the log */
	uint32_t reserved;
};

struct link_image {
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	uint32_t config_index; /* which [vm NAME] */
	uint32_t reserved;
};

struct link_message {
	uint32_t type; /* enum link_type */
	uint32_t reserved;
	uint64_t id;
	union {
		struct link_vm vm;
		/* The id is that of the VM, 0 where processes of this machine are one:
		 * then it does not end with any connection. */
		struct link_image image;
		struct {
			uint32_t config_index; /* which [vm NAME] */
		} section;
		struct {
			uint32_t pid;
		} worker;
		struct {
			int32_t status; /* as waitpid() gives it */
		} exited;
		struct {
			int32_t error; /* -errno */
		} no_worker;
	};
};

/* Most descriptors in a message: memory, ledger and all eventfds of an ivshmem VM. */
#define LINK_FDS_MAX (2 + 2 * VGPU_IVSHMEM_VECTORS)

enum {
	_LINK_E_SUCCESS,
	LINK_E_EOF,   /* the other process is gone */
	LINK_E_AGAIN, /* nothing there; or no room, for longer than is sane */
};

/* Returns: 0, LINK_E_EOF, LINK_E_AGAIN or -errno. */
int link_send(int fd, const struct link_message *message, const int *fds, size_t n_fds);
int link_send_id(int fd, enum link_type type, uint64_t id);

/* Whether type, numbers and descriptors are such as either side sends. */
bool link_is_sane(const struct link_message *message, size_t n_fds);

/* Of a message that is sane the descriptors are the caller's. Returns: 0, LINK_E_EOF,
 * LINK_E_AGAIN or -errno: -EMFILE where not all of them could be had, -EPROTO for a
 * message that is not sane; then those that came are closed. */
int link_receive(
	int fd, struct link_message *message, int fds[LINK_FDS_MAX], size_t *n_fdsp);
