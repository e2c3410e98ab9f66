/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl server: serves vgpuctl
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/ctl-peer.h"
#include "broker/loop.h"
#include "vgpud/budget.h"

struct broker;

/* Connections at a time, and those of them that monitors may have, one user, and all
 * users but root, who is let in whatever they do. */
#define CTL_CLIENTS_MAX 32u
#define CTL_MONITORS_MAX 16u
#define CTL_USER_MAX 8u
#define CTL_USERS_MAX 24u

struct ctl_client {
	TAILQ_ENTRY(ctl_client) entry;
	struct broker *broker;
	int fd;
	struct ctl_peer peer;
	bool is_greeted; /* its own hello was accepted */
	struct loop_source source;
	struct loop_timer deadline; /* of its next request */
	struct budget requests;
	struct loop_timer rest; /* set: it exceeded the budget, and is ignored */
};

struct ctl_server {
	struct broker *broker;
	int fd; /* listens; -1: none */
	struct loop_source source;
	struct ctl_groups groups;
	TAILQ_HEAD(, ctl_client) clients;
	unsigned int n_clients;
	unsigned int n_monitors;
	unsigned int n_users; /* all but root's */
	struct budget connections;
	struct budget log;	/* lines about refused clients */
	struct loop_timer rest; /* set: no connection is accepted */
};

/* Return: 0 or -ENOMEM. */
int ctl_server_new(struct broker *broker);
void ctl_server_free(struct ctl_server *server);

/* Takes the listening socket, which the keeper has opened. */
void ctl_server_take(struct broker *broker, int fd);

/* Serves from now on; all VMs must be known. Return: 0 or -errno. */
int ctl_server_listen(struct broker *broker);

/* The keeper returns a client whose request has made another configuration, and its
 * error. Takes the descriptor. */
void ctl_server_handle_configured(
	struct broker *broker, uint64_t request, int error, int fd);
