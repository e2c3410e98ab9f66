/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Link: the messages between keeper and broker
 *
 * The broker gets all information over this socket, and a new broker receives the same
 * messages about existing VMs and workers as the first did when they were created. So the
 * code has one path for both cases.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/ring-layout.h"

#define LINK_STRING_OF(_value) #_value
#define LINK_STRING(_macro) LINK_STRING_OF(_macro)

/* Change it with anything in this file or in ledger.h. It includes the version of the
 * control protocol, because workers keep running: a broker of another build refuses to
 * run instead of misreading data. */
#define LINK_VERSION "10." LINK_STRING(CONTROL_VERSION)

/* The status of a worker whose exit was not reported to the keeper: neither an exit nor a
 * signal. */
#define LINK_STATUS_UNKNOWN (-1)

enum link_type {
	_LINK_NONE,
	/* keeper to broker */
	LINK_VM,	/* id, vm; fds: memory, ledger, doorbells, interrupts */
	LINK_VM_GONE,	/* id: its connection ended; answer LINK_VM_DONE */
	LINK_WORKER,	/* id, worker; fds: control, stats, log */
	LINK_NO_WORKER, /* error: a LINK_SPAWN with this id failed */
	LINK_EXITED,	/* id, exited: the worker was reaped; answer LINK_WORKER_DONE */
	LINK_SYNC,	/* everything that exists was announced */
	LINK_DRAIN,	/* end all workers, then exit with 0 */
	LINK_QUOTA,	/* section; fd: its quota page. Before all VMs */
	LINK_PING,	/* id: a count; answer LINK_PONG */
	LINK_SENSORS,	/* fd: their page. Before all VMs, or never */
	/* either way */
	LINK_IMAGE, /* id, image; fd: code to be kept for the VM's next process */
	LINK_SHARE, /* id: its worker, or 0: gone; share; fd: memory that it shares */
	LINK_SHARE_HELD, /* id: a worker; share: it uses the memory with this token */
	/* broker to keeper */
	LINK_READY,	  /* the event loop runs */
	LINK_SPAWN,	  /* id: 0, or one more than the index of the section whose
			   * devices it has. Start a worker: one LINK_WORKER or
			   * LINK_NO_WORKER follows */
	LINK_KILL,	  /* id: SIGKILL to that worker */
	LINK_JOIN,	  /* id: a worker; fd: cgroup.procs of the control group to which
			   * it is moved. By its parent: its pid is not another's then */
	LINK_VM_DONE,	  /* id: the broker has released everything of it */
	LINK_WORKER_DONE, /* id: its exit is recorded */
	LINK_IMAGE_DONE,  /* image: the broker has dropped it */
	LINK_SHARE_LEFT,  /* id: a worker; share: it released what has this cookie */
	LINK_PONG,	  /* id: of the ping */
	/* for vgpuctl: keeper to broker, keeper to broker, broker to keeper */
	LINK_CTL,	 /* fd: its listening socket. Before SYNC, or never */
	LINK_CONFIGURED, /* id, configured: of LINK_CONFIGURE; fd: its client */
	LINK_CONFIGURE,	 /* id: of a request; fds: the sources of another configuration,
			  * and the client, which returns with LINK_CONFIGURED: to the
			  * next broker if the configuration is in force */
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

struct link_share {
	uint8_t token[CONTROL_TOKEN_SIZE];
	uint64_t size;
	uint32_t cookie;       /* the worker's */
	uint32_t config_index; /* which [vm NAME] */
	uint8_t device[16];    /* its UUID; zeros: unknown */
};

struct link_message {
	uint32_t type; /* enum link_type */
	uint32_t reserved;
	uint64_t id;
	union {
		struct link_vm vm;
		/* The id is that of the VM; 0 for a section with transport socket, whose
		 * images outlive each connection. */
		struct link_image image;
		struct link_share share;
		struct {
			uint32_t config_index; /* which [vm NAME] */
		} section;
		struct {
			uint32_t pid;
			uint32_t request; /* the id of its LINK_SPAWN; 0: long ago */
		} worker;
		struct {
			int32_t status; /* as of waitpid() */
		} exited;
		struct {
			int32_t error; /* -errno */
		} no_worker;
		struct {
			int32_t error; /* 0, or: nothing has changed; the log says why */
		} configured;
	};
};

/* Maximum of descriptors in a message: memory, ledger and all eventfds of an ivshmem
 * VM. */
#define LINK_FDS_MAX (2 + 2 * VGPU_IVSHMEM_VECTORS)

enum {
	_LINK_E_SUCCESS,
	LINK_E_EOF,   /* the other process is gone */
	LINK_E_AGAIN, /* no message, or the socket was full for too long */
};

/* Returns: 0, LINK_E_EOF, LINK_E_AGAIN or -errno. */
int link_send(int fd, const struct link_message *message, const int *fds, size_t n_fds);
int link_send_id(int fd, enum link_type type, uint64_t id);

/* Whether type, numbers and descriptors are valid. */
bool link_is_sane(const struct link_message *message, size_t n_fds);

/* The caller owns the descriptors of a valid message. Return: 0, LINK_E_EOF, LINK_E_AGAIN
 * or -errno: -EMFILE if not all of them could be received, -EPROTO for an invalid
 * message; received descriptors are closed then. */
int link_receive(
	int fd, struct link_message *message, int fds[LINK_FDS_MAX], size_t *n_fdsp);

/* Closes the descriptors of a message that is not for its receiver. */
void link_discard(const int *fds, size_t n_fds);
