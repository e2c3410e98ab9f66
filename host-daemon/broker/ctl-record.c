/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl record: gives a guest process that begins to whoever waits to record it
 *
 * The broker makes a pair of sockets for each client that waits, of which the worker gets
 * one end: so a worker never has a descriptor of a client's choice. The bytes of the
 * recording do not pass through here. Those that wait are lost with the broker, and their
 * clients see that.
 */

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "broker/channel.h"
#include "broker/ctl-record.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"

/* A worker whose reader reads nothing for so long ends the recording. */
#define STALL_S 5
/* So that a reader may be late without the worker having to wait; the kernel may give
 * less. */
#define BUFFER_SIZE (4 << 20)

static bool is_vm(const struct broker *broker, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &broker->config->vms, entry)
		if (!strcmp(vm->name, name))
			return true;
	return false;
}

/* Whether that process has a session already. */
static bool runs(const struct broker *broker, const char *vm, uint32_t pid)
{
	const struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (worker->channel && worker->channel->record->pid == pid &&
			!strcmp(worker->channel->vm->config->name, vm))
			return true;
	return false;
}

/* Return: NULL, or why there is no recording. */
static const char *judge(
	struct broker *broker, const VgpuCtl__Record *record, VgpuCtl__Status *statusp)
{
	*statusp = VGPU_CTL__STATUS__UNKNOWN;
	if (!is_vm(broker, record->vm))
		return "there is no such virtual machine";
	*statusp = VGPU_CTL__STATUS__INVALID;
	if (strlen(record->command) >= sizeof(((struct recording_wish *)0)->command))
		return "the name of a command has 15 characters at most";
	if (record->pid && runs(broker, record->vm, record->pid))
		return "this process uses the device already, and a process can be "
		       "recorded from its first call only";
	*statusp = VGPU_CTL__STATUS__FAILED;
	recordings_sweep(&broker->recordings);
	if (recordings_has(&broker->recordings, record->vm))
		return "another vgpuctl waits to record a process of this virtual "
		       "machine";
	if (broker->recordings.n >= RECORDINGS_MAX)
		return "too many recordings wait for a process";
	return NULL;
}

/* The worker's end is the first. */
static bool make_sockets(int pair[2])
{
	const struct timeval stall = { .tv_sec = STALL_S };
	const int size = BUFFER_SIZE;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	/* Smaller is only slower. */
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (!setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof(stall)) &&
		!shutdown(pair[0], SHUT_RD))
		return true;
	close(pair[0]);
	close(pair[1]);
	return false;
}

void ctl_record_reply(struct broker *broker, const VgpuCtl__Record *record,
	VgpuCtl__Reply *reply, int *fdp)
{
	struct recording_wish wish = { .pid = record->pid };
	int pair[2];

	*fdp = -1;
	reply->reason = (char *)judge(broker, record, &reply->status);
	if (reply->reason)
		return;
	reply->status = VGPU_CTL__STATUS__FAILED;
	reply->reason = (char *)"vgpud has no memory or descriptors for a recording";
	if (!make_sockets(pair))
		return;
	strcpy(wish.vm, record->vm);
	strcpy(wish.command, record->command);
	wish.fd = pair[0];
	if (recordings_add(&broker->recordings, &wish)) {
		close(pair[0]);
		close(pair[1]);
		return;
	}
	*fdp = pair[1];
	reply->status = VGPU_CTL__STATUS__OK;
	reply->reason = (char *)"";
}
