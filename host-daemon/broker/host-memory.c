/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory: what the workers of each VM take of this host's
 *
 * A worker's own limits are not believed, because it may be taken over; and limits that
 * the kernel has for one process count what is reserved, which for a GPU driver is
 * most of the address space. So the broker looks, now and then, at what is really in
 * use: pages that are neither a file's nor shared memory's. What a VM shares with its
 * workers is bounded by its size = already. Between two looks a worker may take more
 * than its VM has; the host's own limits (a cgroup around vgpud) are for that.
 */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/host-memory.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#define HOST_MEMORY_CHECK_MS 200

/* Returns: bytes that the process has for itself, 0 if it is gone. */
static uint64_t read_private(pid_t pid)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	unsigned long long resident, shared;
	char path[64], text[128];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared)
		return 0;
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static uint64_t limit_of(const struct account *account)
{
	if (account->config->host_memory)
		return account->config->host_memory;
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
}

static struct account *account_of(const struct worker *worker)
{
	return worker->channel ? worker->channel->vm->account : NULL;
}

static struct worker *find_largest(struct broker *broker, const struct account *account)
{
	struct worker *worker, *largest = NULL;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (account_of(worker) == account && !worker->is_condemned &&
			(!largest || worker->host_memory > largest->host_memory))
			largest = worker;
	return largest;
}

static void end_largest(struct broker *broker, struct account *account)
{
	struct worker *worker = find_largest(broker, account);

	if (!worker)
		return;
	if (account_may_log(account))
		vgpu_log_warning(
			"vm=%s: its workers hold %llu MiB of this host's memory, more "
			"than host-memory = %llu MiB: the largest, worker %d, is ended",
			account->config->name,
			(unsigned long long)account->host_memory >> 20,
			(unsigned long long)limit_of(account) >> 20, (int)worker->pid);
	worker->last_words = VGPU_REASON_LIMIT;
	worker->is_condemned = true;
	worker_kill(worker);
}

void host_memory_check(struct broker *broker)
{
	struct account *account;
	struct worker *worker;

	if (loop_now() < broker->memory_checked + HOST_MEMORY_CHECK_MS)
		return;
	broker->memory_checked = loop_now();
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		broker->accounts[i].host_memory = 0;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		account = account_of(worker);
		if (!account || worker->hung_up || worker->is_condemned)
			continue;
		worker->host_memory = read_private(worker->pid);
		account->host_memory += worker->host_memory;
	}
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		if (broker->accounts[i].host_memory > limit_of(&broker->accounts[i]))
			end_largest(broker, &broker->accounts[i]);
}
