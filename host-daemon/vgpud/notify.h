/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notify: reports progress to the service manager
 *
 * The protocol of systemd's services (sd_notify(3)), which scripts can use as well: a
 * datagram of NAME=VALUE lines to the socket that the variable NOTIFY_SOCKET names.
 */

/* Takes NOTIFY_SOCKET out of the environment, so that no child speaks in our name. */
void notify_init(void);

/* It serves, or serves again after notify_reloading(). */
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
