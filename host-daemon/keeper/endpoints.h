/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doors: where VMs come in, and those that came
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
struct door {
	const struct config_vm *config;
	struct listener listener;
	struct held_vm *plain;
	int64_t deaf_until;    /* ms */
	struct account account; /* for lines that comings and goings cause */
	struct budget visits;	/* connections taken */
	struct image_store images; /* of the VM, or of the processes that are one */
	int quota;		   /* memfd that their workers share, see quota.h */
	const char *complaint; /* logged last about the plain file: not to be repeated */
};

/* The VM is about to be freed: nothing of the door leads to it any more. */
void door_forget(struct door *door, const struct held_vm *vm);

struct doors {
	struct door *doors;
	unsigned int n_doors;
	struct held_vms vms;
	struct held_vms leaving; /* nobody's any more: their memory is being emptied */
	struct wiper wiper;
	uint64_t last_id;
	uint16_t last_peer;
	int link;	 /* to whom comings and goings are told; -1: nobody */
	int link_result; /* of what was told last and failed, LINK_E_* or -errno */
};

/* Listens at every door; the reason of a failure is logged. Returns: 0, LISTENER_E_* or
 * -errno; deinitialise in any case. */
int doors_init(struct doors *doors, const struct config *config);
void doors_deinit(struct doors *doors);

/*
 * Has the doors be those of another configuration. A door whose socket or file is the
 * same stays as it is; what came in by a section that is no longer there, or by another
 * socket, file or transport, is lost. If a new socket cannot be had, nothing changes.
 *
 * Return: as doors_init().
 */
int doors_reload(struct doors *doors, const struct config *config);

/* Nobody comes in any more. */
void doors_close(struct doors *doors);

/* Tells a new broker of all VMs. */
void doors_tell_all(struct doors *doors);

/* The broker is done with a VM that has gone. */
void doors_forget_vm(struct doors *doors, uint64_t id);

/* The broker has an image kept, whose descriptor becomes the keeper's; or one let go. */
void doors_keep_image(struct doors *doors, const struct link_message *message, int fd);
void doors_drop_image(struct doors *doors, const struct link_message *message);

/* What to poll, for how long at most (ms, -1: for ever), and what then came of it. */
unsigned int doors_count_polls(const struct doors *doors);
void doors_fill_polls(const struct doors *doors, struct pollfd *polls);
int doors_timeout(const struct doors *doors);
void doors_dispatch(struct doors *doors, const struct pollfd *polls);

/* Looks for files of transport plain that came or went. */
void doors_visit_plains(struct doors *doors);
