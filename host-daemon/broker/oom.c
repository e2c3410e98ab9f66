/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oom: workers that the kernel has ended because their control group was out of memory
 */

#include <signal.h>
#include <sys/wait.h>

#include "broker/channel.h"
#include "broker/group-limit.h"
#include "broker/oom.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/log.h"
#include "vgpud/link.h"

static void note(const struct worker *worker)
{
	struct account *account = worker->channel->vm->account;

	if (worker->channel->record->reason != VGPU_REASON_NONE)
		return;
	channel_note_reason(worker->channel, VGPU_REASON_HOST_MEMORY);
	if (account_take_log_line(account))
		vgpu_log_warning(
			"vm=%s worker=%d: the kernel has ended it: its control group "
			"has reached memory.max = %llu MiB, which is for host-memory = "
			"%llu MiB and all that the workers share",
			account->config->name, (int)worker->pid,
			(unsigned long long)group_limit_memory(account) >> 20,
			(unsigned long long)account_host_memory(account) >> 20);
}

void oom_note_exit(const struct worker *worker, int status)
{
	const struct account *account = worker->group_account;
	const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (!account || !worker->channel)
		return;
	if ((was_killed || status == LINK_STATUS_UNKNOWN) &&
		totals_take_oom_kill(account, group_limit_oom_kills(worker)))
		note(worker);
	/* The group goes with its last worker. */
	if (account->n_in_group == 1)
		totals_forget_group(account);
}
