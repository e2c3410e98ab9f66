/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notify: reports progress to the service manager
 *
 * The protocol of systemd's services (sd_notify(3)), which scripts can use as well:
 * datagrams of NAME=VALUE lines to the socket in the variable NOTIFY_SOCKET.
 */

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
