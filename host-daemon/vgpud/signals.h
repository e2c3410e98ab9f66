/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signals that mean nothing to vgpud
 *
 * Each signal has one of four effects: the keeper acts on it (SIGTERM, SIGINT, SIGHUP,
 * SIGUSR2, SIGCHLD), it has no effect (those here), it ends the process with the kernel's
 * own action because it reports a fault or asks for a core (SIGSEGV, SIGQUIT and the
 * like), or nobody can do anything about it (SIGKILL, SIGSTOP).
 */

/* From now on they have no effect on this process. */
void signals_ignore(void);

/* In a child that is to execute a program which is not vgpud: as that program expects
 * them. SIGPIPE stays without effect: a closed log must not end a worker. */
void signals_restore(void);
