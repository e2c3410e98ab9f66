/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Client of the socket for vgpuctl
 *
 * Whatever is not as it should be fails the test.
 */

#include <stddef.h>
#include <stdint.h>

#include "control/ctl-message.h"

extern char ctl_path[104]; /* of the socket */

int ctl_connect(void);

/* Return: the bytes of the next packet, 0: the connection has ended. */
size_t ctl_receive(int fd);

/* Receives vgpud's hello. Return: what this process may do. */
VgpuCtl__Access ctl_meet(int fd);

/* Return: the next reply, to be freed; NULL: the connection has ended. */
VgpuCtl__Reply *ctl_hear(int fd);

/* Sends a request. Return: the reply, as ctl_hear(). */
VgpuCtl__Reply *ctl_ask(int fd, VgpuCtl__Request *request);
VgpuCtl__Reply *ctl_say_hello(int fd, uint32_t version);
VgpuCtl__Reply *ctl_ask_list(int fd);
VgpuCtl__Reply *ctl_ask_show(int fd, const char *vm);
VgpuCtl__Reply *ctl_ask_set(int fd, const char *vm, const char *key, const char *value);
VgpuCtl__Reply *ctl_ask_add(int fd, const char *vm, const char *text);
VgpuCtl__Reply *ctl_ask_remove(int fd, const char *vm);

/* Frees the reply. Return: its status. */
VgpuCtl__Status ctl_status_of(VgpuCtl__Reply *reply);

/* Return: a connection of this process on which requests may follow. */
int ctl_open(void);

/* Checks that the socket serves as it should. */
void ctl_check_served(void);
