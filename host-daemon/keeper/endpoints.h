/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Endpoints: the sockets and files by which VMs connect, and the connected VMs
 */

#include <poll.h>
#include <stdint.h>

#include "keeper/held-vm.h"
#include "keeper/listener.h"
#include "vgpud/account.h"
#include "vgpud/budget.h"
#include "vgpud/config.h"
#include "vgpud/image-store.h"
#include "vgpud/link.h"
#include "vgpud/wiper.h"

/* One [vm NAME]. */
struct endpoint {
	const struct config_vm *config;
	struct listener listener;
	struct held_vm *plain;
	int64_t paused_until;	   /* ms */
	struct account account;	   /* of log lines about connections */
	struct budget connections; /* of accepted connections */
	struct image_store images; /* of the VM, or of all processes of the socket */
	struct share_table shares; /* memory that workers share */
	int quota;		   /* memfd shared by the workers, see quota.h */
	const char *complaint;	   /* the last log line about the plain file, to avoid
				      repetition */
};

/* Drops the endpoint's pointer to a VM that is about to be freed. */
void endpoint_forget(struct endpoint *endpoint, const struct held_vm *vm);

struct endpoints {
	struct endpoint *endpoints;
	unsigned int n_endpoints;
	struct held_vms vms;
	struct held_vms leaving; /* released by the broker: their memory is being emptied
				  */
	struct wiper wiper;
	uint64_t last_id;
	uint16_t last_peer;
	/* Called when a VM was greeted, before anything else; or NULL. */
	void (*greeted_fn)(struct endpoints *endpoints, const struct held_vm *vm);
	int link;	 /* to the broker; -1: none */
	int link_result; /* of the last message that could not be sent, LINK_E_* or -errno
			  */
};

enum {
	_ENDPOINTS_E_SUCCESS,

	ENDPOINTS_E_UNUSABLE, /* a path is in use or not a socket */
};

/* Makes it empty; the reason of a failure is logged. Return: 0 or -errno; deinitialise in
 * any case. */
int endpoints_prepare(struct endpoints *endpoints);

/* Adds a VM that an earlier keeper had.
 * @leaving:	the broker has released it */
void endpoints_adopt(struct endpoints *endpoints, struct held_vm *vm, bool leaving);

/* The same as endpoints_prepare(), and listens at every endpoint; the reason of a failure
 * is logged. Return: 0, ENDPOINTS_E_UNUSABLE or -errno; deinitialise in any case. */
int endpoints_init(struct endpoints *endpoints, const struct config *config);
void endpoints_deinit(struct endpoints *endpoints);

/*
 * Applies another configuration. An endpoint whose socket or file is the same stays open,
 * and its socket is made again if somebody has removed it; VMs of a section that was
 * removed, or that has another socket, file or transport, are dropped. If a new socket
 * cannot be opened, nothing changes.
 *
 * Return: as endpoints_init().
 */
int endpoints_reload(struct endpoints *endpoints, const struct config *config);

/* Stops accepting connections. */
void endpoints_close(struct endpoints *endpoints);

/* Announces all VMs to a new broker. */
void endpoints_announce_all(struct endpoints *endpoints);

/* The broker has released a removed VM. */
void endpoints_forget_vm(struct endpoints *endpoints, uint64_t id);

/* The broker has added an image, of which the keeper takes the descriptor, or dropped
 * one. */
void endpoints_keep_image(
	struct endpoints *endpoints, const struct link_message *message, int fd);
void endpoints_drop_image(
	struct endpoints *endpoints, const struct link_message *message);

/* Memory that workers share: the broker has added it, of which the keeper takes the
 * descriptor, or one of its holders, or removed one. */
void endpoints_keep_share(
	struct endpoints *endpoints, const struct link_message *message, int fd);
void endpoints_hold_share(
	struct endpoints *endpoints, const struct link_message *message);
void endpoints_leave_share(
	struct endpoints *endpoints, const struct link_message *message);

/* A worker is forgotten, and what it shared. */
void endpoints_forget_worker(struct endpoints *endpoints, uint64_t worker);

/* The descriptors to poll, the timeout (ms, -1: none), and the handler of the results. */
unsigned int endpoints_count_polls(const struct endpoints *endpoints);
void endpoints_fill_polls(const struct endpoints *endpoints, struct pollfd *polls);
int endpoints_timeout(const struct endpoints *endpoints);
void endpoints_dispatch(struct endpoints *endpoints, const struct pollfd *polls);

/* Checks for new, replaced and removed files of transport plain. */
void endpoints_scan_plain(struct endpoints *endpoints);
