/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Client: vgpuctl's connection to vgpud
 */

#include "control/ctl-message.h"
#include "ctl/ctl.h"

struct client {
	int fd;
	VgpuCtl__Hello *hello; /* of vgpud */
	uint64_t last_id;
};

#define CLIENT_NULL                                                                      \
	(struct client)                                                                  \
	{                                                                                \
		.fd = -1                                                                 \
	}

/* Connects and exchanges hellos; the reason of a failure is printed. Return: CTL_OK or
 * another status. */
enum ctl_status client_open(struct client *client, const char *path);
void client_close(struct client *client);

/*
 * Sends a request and receives its reply. A refusal is printed.
 *
 * @replyp:	owned by the caller, NULL on failure
 *
 * Return: CTL_OK or the status of the failure.
 */
enum ctl_status client_ask(
	struct client *client, VgpuCtl__Request *request, VgpuCtl__Reply **replyp);

/* Asks for a machine with its settings. *replyp is NULL if there is no such machine.
 * Return: CTL_OK or the status of a failure, which is printed. */
enum ctl_status client_find(
	struct client *client, const char *vm, VgpuCtl__Reply **replyp);
