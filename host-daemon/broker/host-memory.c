/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory: the memory that the workers of each VM use
 *
 * A worker cannot limit itself, because it may be compromised; and the kernel's limits
 * for one process count reserved addresses, which for a GPU driver are most of the
 * address space. So the broker checks, now and then, the memory in use: pages that belong
 * neither to a file nor to shared memory that is bounded already. The latter is the
 * worker's part of the VM's shared memory, bounded by size =, and code for other
 * processes, bounded by image-store =. Memory files need no inspection: all that can have
 * content are created by vgpud, and each is counted once, mapped or not: images
 * (image-files.h, image-store.h), memory of softgpu that processes share
 * (share-table.h), and the worker's own file with the rest of that memory.
 * Between two checks a worker may use more than its VM has; a limit of the kernel's is
 * for that case, of a control group of the VM where vgpud may make one (group-limit.h).
 *
 * Threads are counted as well: without separate user ids the kernel cannot limit the
 * threads of one process.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/channel.h"
#include "broker/group-limit.h"
#include "broker/host-memory.h"
#include "broker/images.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"

#define HOST_MEMORY_CHECK_MS 200

struct usage {
	uint64_t private;
	uint64_t shared; /* including files */
};

/* Reads a file of a process as text. Return: false if it is empty or absent. */
static bool read_process(pid_t pid, const char *name, char *text, size_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Zeros if the process has exited. */
static struct usage read_usage(pid_t pid)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	unsigned long long resident, shared;
	char text[128];

	if (!read_process(pid, "statm", text, sizeof(text)) ||
		sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 ||
		resident < shared)
		return (struct usage){};
	return (struct usage){ (resident - shared) * page, shared * page };
}

/* Shared memory without files (proc_pid_status(5)). */
static uint64_t read_shared_memory(pid_t pid)
{
	unsigned long long kib = 0;
	const char *line;
	char text[4096];

	if (!read_process(pid, "status", text, sizeof(text)))
		return 0;
	line = strstr(text, "\nRssShmem:");
	return line && sscanf(line, "\nRssShmem: %llu", &kib) == 1 ? kib << 10 : 0;
}

/* The maximum that a worker can have mapped of its VM's shared memory. */
static uint64_t vm_memory_of(const struct channel *channel)
{
	const uint64_t granted =
		VGPU_AREA_SIZE +
		(uint64_t)extent_count(&channel->vm->extents, channel->index) *
			VGPU_EXTENT_SIZE;
	struct stat st;
	uint64_t used;

	if (fstat(channel->vm->shm, &st) < 0)
		return granted;
	used = (uint64_t)st.st_blocks * S_BLKSIZE;
	return used < granted ? used : granted;
}

/* Memory of softgpu in the worker's file. */
static uint64_t read_file(const struct worker *worker)
{
	struct stat st;

	return fstat(worker->stats, &st) < 0 ? 0 : (uint64_t)st.st_blocks * S_BLKSIZE;
}

/* Return: bytes of private memory of the worker, 0 if it has exited. */
static uint64_t read_own(const struct worker *worker)
{
	const struct usage usage = read_usage(worker->pid);
	const struct channel *channel = worker->channel;
	const uint64_t files = worker->files.size + read_file(worker);
	const struct image_store *store = &channel->vm->account->images;
	uint64_t bounded = sizeof(struct quota_page) + store->size + store->gone_size +
			   files + channel->vm->account->shared_memory;
	uint64_t shared;

	bounded += vm_memory_of(channel);
	/* Most workers have less of all kinds, so the longer file is seldom read. */
	if (usage.shared <= bounded)
		return usage.private + files;
	shared = read_shared_memory(worker->pid);
	return usage.private + files + (shared > bounded ? shared - bounded : 0);
}

/* /proc/PID/task has a folder for each thread, and its link count includes them. */
static bool has_too_many_threads(const struct worker *worker)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)worker->pid);
	return !stat(path, &st) && st.st_nlink > CONTROL_THREADS_MAX + 2;
}

static struct account *account_of(const struct worker *worker)
{
	return worker->channel ? worker->channel->vm->account : NULL;
}

/* Including images that are charged to the VM as a whole. */
static uint64_t weight_of(const struct worker *worker)
{
	return worker->host_memory + images_gone_size(worker);
}

static struct worker *find_largest(struct broker *broker, const struct account *account)
{
	struct worker *worker, *largest = NULL;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (account_of(worker) == account && !worker->is_condemned &&
			(!largest || weight_of(worker) > weight_of(largest)))
			largest = worker;
	return largest;
}

void host_memory_condemn(struct worker *worker, uint32_t reason)
{
	worker->is_condemned = true;
	images_forget_worker(worker);
	channel_kill_worker(worker->channel, reason);
}

static void end_largest(struct broker *broker, struct account *account)
{
	struct worker *worker = find_largest(broker, account);

	if (!worker)
		return;
	if (account_take_log_line(account))
		vgpu_log_warning(
			"vm=%s: its workers hold %llu MiB of this host's memory, more "
			"than host-memory = %llu MiB: the largest, worker %d, is ended",
			account->config->name,
			(unsigned long long)account->host_memory >> 20,
			(unsigned long long)account_host_memory(account) >> 20,
			(int)worker->pid);
	host_memory_condemn(worker, VGPU_REASON_HOST_MEMORY);
}

static void end_for_threads(struct worker *worker)
{
	if (account_take_log_line(account_of(worker)))
		vgpu_log_warning(
			"vm=%s worker=%d: it has more than %u threads and is ended",
			account_of(worker)->config->name, (int)worker->pid,
			CONTROL_THREADS_MAX);
	host_memory_condemn(worker, VGPU_REASON_HOST);
}

void host_memory_check(struct broker *broker)
{
	struct account *account;
	struct worker *worker;

	if (clock_now() < broker->memory_checked + HOST_MEMORY_CHECK_MS)
		return;
	broker->memory_checked = clock_now();
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		account = &broker->accounts[i];
		account->shared_memory = share_table_host_memory(&account->shares);
		account->host_memory = account->images.gone_size + account->shared_memory;
	}
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		account = account_of(worker);
		if (!account || worker->hung_up || worker->is_condemned)
			continue;
		if (has_too_many_threads(worker)) {
			end_for_threads(worker);
			continue;
		}
		worker->host_memory = read_own(worker);
		account->host_memory += worker->host_memory;
	}
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		account = &broker->accounts[i];
		if (account->host_memory > account_host_memory(account))
			end_largest(broker, account);
	}
	group_limits_renew(broker);
}
