/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Endpoints: where VMs come in, and those that came
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
	struct account account;	   /* for lines that comings and goings cause */
	struct budget connections; /* connections taken */
	struct image_store images; /* of the VM, or of the processes that are one */
	int quota;		   /* memfd that their workers share, see quota.h */
	const char *complaint; /* logged last about the plain file: not to be repeated */
};

/* The VM is about to be freed: nothing of the endpoint leads to it any more. */
void endpoint_forget(struct endpoint *endpoint, const struct held_vm *vm);

struct endpoints {
	struct endpoint *endpoints;
	unsigned int n_endpoints;
	struct held_vms vms;
	struct held_vms leaving; /* nobody's any more: their memory is being emptied */
	struct wiper wiper;
	uint64_t last_id;
	uint16_t last_peer;
	int link;	 /* to whom comings and goings are told; -1: nobody */
	int link_result; /* of what was told last and failed, LINK_E_* or -errno */
};

/* Listens at every endpoint; the reason of a failure is logged. Returns: 0, LISTENER_E_*
 * or -errno; deinitialise in any case. */
int endpoints_init(struct endpoints *endpoints, const struct config *config);
void endpoints_deinit(struct endpoints *endpoints);

/*
 * Has the endpoints be those of another configuration. A endpoint whose socket or file is
 * the same stays as it is; what came in by a section that is no longer there, or by
 * another socket, file or transport, is lost. If a new socket cannot be had, nothing
 * changes.
 *
 * Return: as endpoints_init().
 */
int endpoints_reload(struct endpoints *endpoints, const struct config *config);

/* Nobody comes in any more. */
void endpoints_close(struct endpoints *endpoints);

/* Tells a new broker of all VMs. */
void endpoints_announce_all(struct endpoints *endpoints);

/* The broker is done with a VM that has gone. */
void endpoints_forget_vm(struct endpoints *endpoints, uint64_t id);

/* The broker has an image kept, whose descriptor becomes the keeper's; or one let go. */
void endpoints_keep_image(
	struct endpoints *endpoints, const struct link_message *message, int fd);
void endpoints_drop_image(
	struct endpoints *endpoints, const struct link_message *message);

/* What to poll, for how long at most (ms, -1: for ever), and what then came of it. */
unsigned int endpoints_count_polls(const struct endpoints *endpoints);
void endpoints_fill_polls(const struct endpoints *endpoints, struct pollfd *polls);
int endpoints_timeout(const struct endpoints *endpoints);
void endpoints_dispatch(struct endpoints *endpoints, const struct pollfd *polls);

/* Looks for files of transport plain that came or went. */
void endpoints_scan_plain(struct endpoints *endpoints);
