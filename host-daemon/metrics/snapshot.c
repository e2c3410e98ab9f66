/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot: what vgpud tells of all its virtual machines at one time
 *
 * A connection for each: one that waits for the next scrape would be ended by vgpud for
 * its silence, and each has a budget of requests that is full at first. A change of the
 * configuration ends the connection in between; the client connects again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metrics/snapshot.h"

/* vgpud answers at once; a scraper waits for ten seconds. */
#define ANSWER_S 3

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum ctl_status tell_no_memory(void)
{
	return ctl_fail(CTL_FAILED, "there is no memory");
}

/* Keeps a reply until the end of the snapshot. Takes it in any case. Return: false
 * without memory. */
static bool keep(struct snapshot *snapshot, VgpuCtl__Reply *reply)
{
	VgpuCtl__Reply **replies = realloc(snapshot->replies,
		(snapshot->n_replies + 1) * sizeof(*snapshot->replies));

	if (!replies) {
		ctl_reply_freep(&reply);
		return false;
	}
	replies[snapshot->n_replies++] = reply;
	snapshot->replies = replies;
	return true;
}

static bool add_vms(struct snapshot *snapshot, const VgpuCtl__Vms *list)
{
	struct snapshot_vm *vms = realloc(
		snapshot->vms, (snapshot->n_vms + list->n_vms + 1) * sizeof(*vms));

	if (!vms)
		return false;
	snapshot->vms = vms;
	for (size_t i = 0; i < list->n_vms; i++)
		vms[snapshot->n_vms++] = (struct snapshot_vm){ .vm = list->vms[i] };
	return true;
}

static enum ctl_status take_vms(struct snapshot *snapshot, struct client *client)
{
	char after[CTL_VALUE_MAX + 1] = "";
	enum ctl_status status = CTL_OK;
	bool more = true;

	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = client_list(client, after, &reply);
		if (status)
			break;
		if (!keep(snapshot, reply) || !add_vms(snapshot, reply->list))
			return tell_no_memory();
		more = reply->list->more && reply->list->n_vms;
		if (more)
			snprintf(after, sizeof(after), "%s",
				reply->list->vms[reply->list->n_vms - 1]->name);
	}
	return status;
}

static bool add_sessions(struct snapshot_vm *vm, const VgpuCtl__Details *details)
{
	VgpuCtl__Session **sessions = realloc(vm->sessions,
		(vm->n_sessions + details->n_sessions + 1) * sizeof(*sessions));

	if (!sessions)
		return false;
	vm->sessions = sessions;
	for (size_t i = 0; i < details->n_sessions; i++)
		sessions[vm->n_sessions++] = details->sessions[i];
	return true;
}

static enum ctl_status take_sessions(
	struct snapshot *snapshot, struct client *client, struct snapshot_vm *vm)
{
	enum ctl_status status = CTL_OK;
	uint64_t after = 0;
	bool more = true;

	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = client_find_after(client, vm->vm->name, after, &reply);
		/* A machine that was removed meanwhile has none. */
		if (status || !reply)
			break;
		if (!keep(snapshot, reply) || !add_sessions(vm, reply->show))
			return tell_no_memory();
		more = reply->show->more && reply->show->n_sessions;
		if (more)
			after = vm->sessions[vm->n_sessions - 1]->number;
	}
	return status;
}

/* A vgpud without totals and times has none of those metrics. */
static enum ctl_status take_all(
	struct snapshot *snapshot, struct client *client, bool with_processes)
{
	const bool has_times = client->hello->features & CTL_FEATURE_STATS;
	enum ctl_status status = take_vms(snapshot, client);

	for (size_t i = 0; !status && i < snapshot->n_vms; i++) {
		struct snapshot_vm *vm = &snapshot->vms[i];

		if (has_times)
			status = times_take(&vm->times, client, vm->vm->name, 0);
		/* Removed since it was listed: what was told of it is still right. */
		if (status == CTL_NO_VM)
			status = CTL_OK;
		if (!status && with_processes)
			status = take_sessions(snapshot, client, vm);
	}
	return status;
}

void snapshot_take(
	struct snapshot *snapshot, const char *socket, bool with_processes, bool is_quiet)
{
	const uint64_t began = clock_ns();
	enum ctl_status status;
	struct client client;

	*snapshot = (struct snapshot){ 0 };
	ctl_set_quiet(is_quiet);
	status = client_open_within(&client, socket, ANSWER_S);
	if (!status) {
		snprintf(snapshot->release, sizeof(snapshot->release), "%s",
			client.hello->release);
		status = take_all(snapshot, &client, with_processes);
		client_close(&client);
	}
	ctl_set_quiet(false);
	if (status)
		snapshot_deinit(snapshot);
	snapshot->is_up = !status;
	snapshot->taken_ns = clock_ns() - began;
}

void snapshot_deinit(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_vms; i++) {
		times_deinit(&snapshot->vms[i].times);
		free(snapshot->vms[i].sessions);
	}
	for (size_t i = 0; i < snapshot->n_replies; i++)
		ctl_reply_freep(&snapshot->replies[i]);
	free(snapshot->vms);
	free(snapshot->replies);
	*snapshot = (struct snapshot){ 0 };
}
