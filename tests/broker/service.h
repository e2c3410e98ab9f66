/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vgpud as a service with two sessions, for tests of its restart
 *
 * One session is that of a process of [vm test], the other is in the VM [vm qemu]. The
 * service manager is the test, see manager.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"
#include "pair.h"

extern struct pair pair;
extern struct guest guest, qemu;
extern uint32_t worker, in_qemu;    /* their workers */
extern char sections[512];	    /* more of the configuration: [vm qemu] */
extern struct pair_options options; /* of the next vgpud */
extern const char *service_lines;   /* of [vgpud], to be set before vgpud starts */

/* Return: the path in the folder of the test, until the next call. */
const char *service_path(const char *name);

/* Starts vgpud, and opens both sessions.
 * @argument:	of vgpud
 * @before_fn:	see struct pair_options */
void service_start_with(const char *argument, void (*before_fn)(void));
void service_start(void);

/* Ends vgpud by SIGKILL; everything that it said before has been heard then. */
void service_kill(void);

/* Ends it in order to start it again. */
void service_step_aside(void);

/* Starts the next one, which has to continue. */
void service_continue(void);

/* Reaps orphans, which come to the test, as a service manager would. */
void service_reap(void);
bool service_is_alive(uint32_t pid);

/* vgpud has ended: waits until its last worker has as well, and ends the service manager.
 * A warm worker, which no session shows, takes a moment. */
void service_end(void);

/* Both sessions are as they were. */
void service_check(void);

/* Opens and closes one more session of a process. */
void service_serve_another(const char *path);

/* Checks both sessions, and ends them and vgpud as any others: nothing is left. */
void service_stop(void);
