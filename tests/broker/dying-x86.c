/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of this process after a number of further instructions: the processor's trap
 * flag raises SIGTRAP after each of them, also in called functions.
 */

#include <signal.h>
#include <stddef.h>
#include <sys/ucontext.h>

#include "dying.h"

#define TRAP_FLAG 0x100

static unsigned long n_left;

static void handle_trap(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;

	if (!n_left--)
		raise(SIGKILL);
	context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

void dying_after(unsigned long n_instructions)
{
	struct sigaction action = {
		.sa_sigaction = handle_trap,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};

	n_left = n_instructions;
	if (!n_left || sigaction(SIGTRAP, &action, NULL) < 0)
		raise(SIGKILL);
	raise(SIGTRAP);
}
