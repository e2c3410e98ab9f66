/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signals that vgpud ignores
 *
 * Each signal has one of four effects: the keeper acts on it (SIGTERM, SIGINT, SIGHUP,
 * SIGUSR2, SIGCHLD), it is ignored (those here), its default action ends the process
 * because it reports a fault or requests a core dump (SIGSEGV, SIGQUIT and the like), or
 * it cannot be handled (SIGKILL, SIGSTOP).
 */

/* From now on they have no effect on this process. */
void signals_ignore(void);

/* In a child that is to execute a program which is not vgpud: as that program expects
 * them. SIGPIPE stays without effect: a closed log must not end a worker. */
void signals_restore(void);
