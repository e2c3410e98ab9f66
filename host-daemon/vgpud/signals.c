/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that vgpud ignores
 *
 * Their default action ends or stops the process, and with it the sessions of every VM:
 * too much for a signal that was sent by mistake, an inherited timer, or a log that has
 * reached a limit on the size of files.
 */

#include <signal.h>
#include <stddef.h>

#include "vgpud/signals.h"

static const int without_effect[] = { SIGUSR1, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
	SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGTTIN, SIGTTOU, SIGTSTP };

static void set_all(void (*handler)(int))
{
	for (size_t i = 0; i < sizeof(without_effect) / sizeof(*without_effect); i++)
		signal(without_effect[i], handler);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		signal(signo, handler);
}

/* Signals ignored by the parent, such as SIGHUP by nohup(1) and SIGQUIT by a shell in the
 * background, have the effects that the manual documents nevertheless. */
static void hear_inherited(void)
{
	struct sigaction action;

	for (int signo = 1; signo < SIGRTMIN; signo++)
		if (!sigaction(signo, NULL, &action) && action.sa_handler == SIG_IGN)
			signal(signo, SIG_DFL);
}

void signals_ignore(void)
{
	hear_inherited();
	signal(SIGPIPE, SIG_IGN);
	set_all(SIG_IGN);
}

void signals_restore(void)
{
	hear_inherited();
	signal(SIGPIPE, SIG_IGN);
	set_all(SIG_DFL);
}
