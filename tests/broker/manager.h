/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A service manager that keeps descriptors for vgpud, as systemd does
 *
 * A thread of the test receives vgpud's notifications.
 */

#include <stdbool.h>

#include "pair.h"

#define MANAGER_FDS_MAX 256
#define MANAGER_OFFERS_MAX 4

struct manager_fd {
	int fd;
	char name[64];
};

/* Begins to listen, in the test's temporary directory. */
void manager_begin(void);

/* Ends that, and closes what is kept. */
void manager_end(void);

/* For struct pair_options: the process gets what is kept. */
void manager_give(void);

/* Waits until vgpud is ready for the n-th time. */
void manager_wait_ready(unsigned int n);

/* Waits until vgpud, which has ended, has been heard to the end. */
void manager_settle(void);

/* How many descriptors are kept. */
unsigned int manager_count(void);

/* What is kept; only while vgpud does not run. Changes are the next vgpud's. */
struct manager_fd *manager_kept(unsigned int *np);

/* Adds a descriptor, which it takes; removes one. */
void manager_add(const char *name, int fd);
void manager_remove(unsigned int i);

/* Closes all, as when the service is stopped. */
void manager_drop(void);

/* Each next vgpud gets a duplicate of this descriptor before what is kept, as from a
 * socket unit. At most MANAGER_OFFERS_MAX. */
void manager_offer(const char *name, int fd);

/* Offers nothing more. The descriptors stay the caller's. */
void manager_withdraw(void);

/* Takes no notifications for a while. */
void manager_pause(bool paused);
