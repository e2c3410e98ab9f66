/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Client: vgpuctl's connection to vgpud
 *
 * Each change of the configuration replaces vgpud's broker, and ends all connections but
 * that of who made it. So a request whose answer is lost is sent again on another one: a
 * change says how things shall be, and may be made twice.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/ctl-message.h"
#include "ctl/ctl.h"

struct client {
	int fd;
	const char *path;
	VgpuCtl__Hello *hello; /* of vgpud */
	uint64_t last_id;
	bool is_lost; /* vgpud has ended the connection; nothing is printed yet */
	unsigned int timeout_s; /* of an answer */
	int descriptor;		/* of the last reply, -1: it came without one */
};

#define CLIENT_NULL                                                                      \
	(struct client)                                                                  \
	{                                                                                \
		.fd = -1, .descriptor = -1                                               \
	}

/* Connects and exchanges hellos; the reason of a failure is printed. The path is kept.
 * Return: CTL_OK or another status. */
enum ctl_status client_open(struct client *client, const char *path);

/* The same, with so many seconds for each answer of vgpud instead of 30. */
enum ctl_status client_open_within(
	struct client *client, const char *path, unsigned int timeout_s);
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

/* The same, and a reply with that status is not a refusal. */
enum ctl_status client_ask_permitting(struct client *client, VgpuCtl__Request *request,
	VgpuCtl__Status permitted, VgpuCtl__Reply **replyp);

/* Asks for a machine with its settings. *replyp is NULL if there is no such machine.
 * Return: CTL_OK or the status of a failure, which is printed. */
enum ctl_status client_find(
	struct client *client, const char *vm, VgpuCtl__Reply **replyp);

/* The same, with its sessions after that number. */
enum ctl_status client_find_after(
	struct client *client, const char *vm, uint64_t after, VgpuCtl__Reply **replyp);

/* Asks for the machines after that name. Return: CTL_OK or the status of a failure, which
 * is printed. */
enum ctl_status client_list(
	struct client *client, const char *after, VgpuCtl__Reply **replyp);

/* Returns: the descriptor that came with the last reply, now the caller's, or -1. */
int client_take_descriptor(struct client *client);
