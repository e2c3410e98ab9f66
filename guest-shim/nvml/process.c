/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process: reading the list, and pids of other namespaces
 */

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>

#include "nvml/device.h"
#include "nvml/page.h"
#include "nvml/process.h"
#include "wire/proc.h"

/* Gives the caller's pid to those of the processes that `pid` may be. */
static void match(struct nvml_processes *processes, uint32_t *pids, uint64_t own,
	uint32_t pid, uint32_t inner)
{
	struct shim_proc_stat stat = {};

	for (uint32_t i = 0; i < processes->n; i++) {
		const struct vgpu_status_process *process = &processes->all[i];

		if (pids[i] || process->pid_namespace == own || process->pid != inner)
			continue;
		if (!stat.start_time && !shim_proc_read_stat(pid, &stat))
			return;
		if (stat.start_time == process->start_time)
			pids[i] = pid;
	}
}

static void look_through_proc(
	struct nvml_processes *processes, uint32_t *pids, uint64_t own)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);
		uint32_t inner;

		if (*end || end == entry->d_name || !pid || pid > INT32_MAX)
			continue;
		inner = shim_proc_inner_pid((uint32_t)pid);
		if (inner)
			match(processes, pids, own, (uint32_t)pid, inner);
	}
	if (proc)
		closedir(proc);
}

/* Keeps those that the caller sees, with its pids for them. */
static void translate(struct nvml_processes *processes)
{
	uint32_t pids[VGPU_STATUS_PROCESSES_MAX] = {}, n = 0;
	const uint64_t own = shim_proc_pid_namespace();
	bool has_others = false;

	for (uint32_t i = 0; i < processes->n; i++)
		if (processes->all[i].pid_namespace == own)
			pids[i] = processes->all[i].pid;
		else
			has_others = true;
	if (has_others)
		look_through_proc(processes, pids, own);
	for (uint32_t i = 0; i < processes->n; i++) {
		if (!pids[i])
			continue;
		processes->all[n] = processes->all[i];
		processes->all[n++].pid = pids[i];
	}
	processes->n = n;
}

/* Keeps those that use the device, with what they use of it. */
static void select_users(
	struct nvml_processes *processes, const struct vgpu_status_use *uses)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < processes->n; i++) {
		struct vgpu_status_process *process = &processes->all[n];

		if (uses[i].memory_used == UINT64_MAX)
			continue;
		*process = processes->all[i];
		process->memory_used = uses[i].memory_used;
		process->utilisation = uses[i].utilisation;
		process->memory_utilisation = uses[i].memory_utilisation;
		n++;
	}
	processes->n = n;
}

nvmlReturn_t nvml_processes_read(struct nvml_processes *processes, nvmlDevice_t device)
{
	struct vgpu_status_use uses[VGPU_STATUS_PROCESSES_MAX];
	struct nvml_page_head head;
	const struct nvml_piece pieces[] = {
		{ .to = &head, .size = NVML_PAGE_HEAD },
		{
			.to = processes->all,
			.off = offsetof(struct vgpu_status, processes),
			.size = sizeof(processes->all),
		},
		{
			.to = uses,
			.off = offsetof(struct vgpu_status, uses) +
			       nvml_device_index(device) * sizeof(uses),
			.size = sizeof(uses),
		},
	};
	nvmlReturn_t result = nvml_page_read(pieces, 3);

	if (result != NVML_SUCCESS)
		return result;
	nvml_page_bound(&head);
	processes->n = head.n_processes;
	processes->updated_us = head.updated_us;
	if (head.flags & VGPU_STATUS_WHOLE)
		select_users(processes, uses);
	translate(processes);
	return NVML_SUCCESS;
}
