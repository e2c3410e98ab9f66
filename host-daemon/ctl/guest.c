/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest: doctor --guest, of a machine as its host sees it, or of this machine
 *
 * The host does not look into its guests: it sees connections, processes and their use.
 * The rest vgpu-doctor sees inside.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/guest.h"
#include "ctl/output.h"

#define INSIDE "run vgpu-doctor in the guest, which says what programs there lack"

/* A limit that is nearly reached, by parts of 100. */
#define NEARLY 95u

/* Being silent is no fault: without the kernel's driver a guest greets with its first
 * process. An older vgpud does not tell. */
static const char *describe_greeting(const VgpuCtl__Vm *vm)
{
	switch (vm->greeting) {
	case VGPU_CTL__GREETING__GREETED:
		return ", the guest has greeted";
	case VGPU_CTL__GREETING__SILENT:
		return ", the guest has not greeted yet";
	default:
		return "";
	}
}

static void look_at_connections(struct vgpu_findings *found, const VgpuCtl__Vm *vm)
{
	if (vm->connections)
		vgpu_findings_add(found, VGPU_FINDING_OK, "device", NULL,
			"%s, %u connection%s%s", vm->transport, vm->connections,
			vm->connections == 1 ? "" : "s", describe_greeting(vm));
	else if (!strcmp(vm->transport, "ivshmem"))
		vgpu_findings_add(found, VGPU_FINDING_FAIL, "device",
			"start the virtual machine with the device: vgpuctl attach "
			"DOMAIN, "
			"or QEMU's -device ivshmem-doorbell at socket = of the machine",
			"no QEMU is connected: no virtual machine with the device runs");
	else
		vgpu_findings_add(found, VGPU_FINDING_WARN, "device", INSIDE,
			"%s, nobody is connected", vm->transport);
}

static void look_at_sessions(struct vgpu_findings *found, const VgpuCtl__Details *details)
{
	const VgpuCtl__Vm *vm = details->vm;
	const VgpuCtl__Session *first = details->n_sessions ? details->sessions[0] : NULL;

	if (!vm->sessions)
		vgpu_findings_add(found, VGPU_FINDING_WARN, "processes", INSIDE,
			"no process of the guest uses the device now");
	else if (vm->max_processes && vm->sessions >= vm->max_processes)
		vgpu_findings_add(found, VGPU_FINDING_WARN, "processes",
			"end processes, or raise max-processes",
			"all of %u permitted processes run: further ones are refused",
			vm->max_processes);
	else
		vgpu_findings_add(found, VGPU_FINDING_OK, "processes", NULL,
			"%u of %u permitted, the first is %s (pid %u in the guest)",
			vm->sessions, vm->max_processes, first ? first->name : "unknown",
			first ? first->pid : 0);
}

static void look_at_use(struct vgpu_findings *found, const char *subject, const char *key,
	uint64_t used, uint64_t limit)
{
	char advice[64], text[64];

	output_use(used, limit, text);
	snprintf(advice, sizeof(advice), "end processes, or raise %s", key);
	if (limit && used >= limit / 100 * NEARLY)
		vgpu_findings_add(found, VGPU_FINDING_WARN, subject, advice,
			"%s are in use: the limit is nearly reached", text);
	else
		vgpu_findings_add(
			found, VGPU_FINDING_OK, subject, NULL, "%s are in use", text);
}

void guest_look(struct vgpu_findings *found, const VgpuCtl__Details *details)
{
	const VgpuCtl__Vm *vm = details->vm;

	look_at_connections(found, vm);
	look_at_sessions(found, details);
	look_at_use(found, "device-memory", "device-memory", vm->device_memory,
		vm->device_memory_limit);
	look_at_use(found, "host-memory", "host-memory", vm->host_memory,
		vm->host_memory_limit);
	if (vm->oom_kills)
		vgpu_findings_add(found, VGPU_FINDING_WARN, "out-of-memory",
			"raise host-memory, or look for the process in vgpud's log",
			"the kernel has ended workers of the machine for lack of memory "
			"in its control group, %" PRIu64 " so far",
			vm->oom_kills);
}

/* Return: only if the program cannot be executed. */
static enum ctl_status run_doctor(const struct ctl_options *options)
{
	execlp("vgpu-doctor", "vgpu-doctor", options->is_json ? "--json" : NULL, NULL);
	return ctl_fail(CTL_FAILED,
		"vgpu-doctor cannot be run here: %s; it is in the guest package and in "
		"vgpu-tools; of a machine of this host: doctor --guest VM",
		strerror(errno));
}

enum ctl_status guest_doctor(const struct ctl_options *options, const char *vm)
{
	struct vgpu_findings found = { 0 };
	VgpuCtl__Reply *reply = NULL;
	struct client client;
	enum ctl_status status;

	if (!vm)
		return run_doctor(options);
	status = client_open(&client, options->socket);
	if (!status)
		status = client_find(&client, vm, &reply);
	if (!status && !reply)
		status = ctl_fail(CTL_NO_VM, "there is no virtual machine %s", vm);
	if (!status && reply->show->vm) {
		guest_look(&found, reply->show);
		status = output_findings(&found, options->is_json);
	} else if (!status) {
		status = ctl_fail(CTL_FAILED, "vgpud's reply does not show a machine");
	}
	ctl_reply_freep(&reply);
	vgpu_findings_deinit(&found);
	client_close(&client);
	return status;
}
