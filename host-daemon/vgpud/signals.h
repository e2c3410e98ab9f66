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

/* Makes these signals have no effect on this process. */
void signals_ignore(void);

/* Restores the default actions in a child, before it executes another program. SIGPIPE
 * remains ignored: a closed log must not end a worker. */
void signals_restore(void);
