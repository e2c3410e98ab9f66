/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notify: reports progress to the service manager
 *
 * The protocol of systemd's services (sd_notify(3)), which scripts can use as well:
 * datagrams of NAME=VALUE lines to the socket in the variable NOTIFY_SOCKET.
 */

#include <stdint.h>

/* Removes NOTIFY_SOCKET and WATCHDOG_USEC from the environment, so that no child sends
 * notifications. */
void notify_init(void);

/* Sets the variables again, for another program that this process executes. */
void notify_restore(void);

/* vgpud serves, or serves again after notify_reloading(). */
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);

/* Time in ms within which notify_alive() has to be called again, twice as often as the
 * service manager demands; 0: it does not. */
unsigned int notify_interval_ms(void);
void notify_alive(void);

/*
 * Descriptors that the service manager keeps for the next process of this service.
 *
 * @number:	their names are NOTIFY_STORED and this in hexadecimal
 *
 * Return: 0, -EAGAIN: it takes nothing at the moment, or -errno.
 */
int notify_store(uint32_t number, int fd);
int notify_unstore(uint32_t number);

/* The same for a descriptor with any other name. */
int notify_unstore_name(const char *name);

#define NOTIFY_STORED "vgpud-"
