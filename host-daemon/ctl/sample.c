/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sample: what all virtual machines and their processes use at one time
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/sample.h"
#include "vgpud/clock.h"

static const char *const key_names[_SAMPLE_KEY_N] = {
	[SAMPLE_BUSY] = "busy",
	[SAMPLE_LAUNCHES] = "launches",
	[SAMPLE_COPIES] = "copies",
	[SAMPLE_MEMORY] = "memory",
	[SAMPLE_HOST] = "host",
	[SAMPLE_NAME] = "name",
};

enum sample_key sample_find_key(const char *word)
{
	enum sample_key key = 0;

	while (key < _SAMPLE_KEY_N && strcmp(word, key_names[key]) != 0)
		key++;
	return key;
}

const char *sample_key_name(enum sample_key key)
{
	return key_names[key];
}

/*
 * Taking one
 */

/* Appends a zeroed element to an array. Return: it, or NULL. */
static void *append(void *arrayp, size_t *np, size_t size)
{
	char *array, **place = arrayp;

	array = realloc(*place, (*np + 1) * size);
	if (!array)
		return NULL;
	*place = array;
	return memset(array + (*np)++ * size, 0, size);
}

static enum ctl_status add_vm(struct sample *sample, const VgpuCtl__Vm *message)
{
	struct sample_vm *vm = append(&sample->vms, &sample->n_vms, sizeof(*vm));

	if (vm)
		vm->use.name = strdup(message->name);
	if (!vm || !vm->use.name)
		return ctl_fail(CTL_FAILED, "there is no memory");
	vm->use.busy = vm->use.queued = -1;
	vm->use.device_memory = message->device_memory;
	vm->use.host_memory = message->host_memory;
	vm->n_sessions = message->sessions;
	vm->use.device_memory_evicted = message->device_memory_evicted;
	vm->device_memory_limit = message->device_memory_limit;
	vm->host_memory_limit = message->host_memory_limit;
	return CTL_OK;
}

/* An older vgpud has no counters, and no share. */
static struct sample_counts counts_of(
	const VgpuCtl__Counters *message, const VgpuCtl__Share *share)
{
	struct sample_counts counts = { 0 };

	if (message) {
		counts.calls = message->calls;
		counts.launches = message->launches;
		counts.copies = message->copies;
		counts.bytes = message->bytes_to_device + message->bytes_from_device;
	}
	if (share) {
		counts.used_ns = share->used_ns;
		counts.held_ns = share->held_ns;
	}
	return counts;
}

int sample_queued(const VgpuCtl__Queue *queue)
{
	if (!queue || !queue->size)
		return -1;
	return queue->bytes < queue->size
		       ? (int)(UINT64_C(100) * queue->bytes / queue->size)
		       : 100;
}

static enum ctl_status add_session(
	struct sample *sample, const char *vm, const VgpuCtl__Session *message)
{
	struct sample_session *session =
		append(&sample->sessions, &sample->n_sessions, sizeof(*session));

	char text[OUTPUT_ERROR_MAX];

	if (session) {
		session->use.name = strdup(message->name);
		session->vm = strdup(vm);
	}
	if (!session || !session->use.name || !session->vm)
		return ctl_fail(CTL_FAILED, "there is no memory");
	session->use.busy = message->busy ? (int)message->busy->percent : -1;
	session->use.queued = sample_queued(message->queue);
	session->use.has_pending = message->share && message->share->pending;
	if (session->use.has_pending)
		session->use.pending = message->share->pending->launches;
	session->use.device_memory = message->device_memory;
	session->use.device_memory_evicted = message->device_memory_evicted;
	session->use.host_memory = message->host_memory;
	session->number = message->number;
	session->pid = message->pid;
	session->counts = counts_of(message->counters, message->share);
	session->error = output_last_error(message->last_error);
	snprintf(session->error_text, sizeof(session->error_text), "%s",
		output_error_text(message->last_error, text));
	return CTL_OK;
}

enum ctl_status sample_add(struct sample *sample, const VgpuCtl__Details *details)
{
	const char *vm = details->vm->name;
	enum ctl_status status = CTL_OK;

	if (!sample->n_vms || strcmp(sample->vms[sample->n_vms - 1].use.name, vm) != 0)
		status = add_vm(sample, details->vm);
	for (size_t i = 0; !status && i < details->n_sessions; i++)
		status = add_session(sample, vm, details->sessions[i]);
	return status;
}

/* *is_foundp: whether there is such a machine. */
static enum ctl_status take_vm(
	struct sample *sample, struct client *client, const char *vm, bool *is_foundp)
{
	enum ctl_status status = CTL_OK;
	VgpuCtl__Reply *reply;
	uint64_t after = 0;
	bool more = true;

	*is_foundp = false;
	while (!status && more) {
		status = client_find_after(client, vm, after, &reply);
		if (status || !reply)
			break;
		*is_foundp = true;
		status = sample_add(sample, reply->show);
		more = reply->show->more && reply->show->n_sessions;
		if (more)
			after = reply->show->sessions[reply->show->n_sessions - 1]
					->number;
		ctl_reply_freep(&reply);
	}
	return status;
}

static enum ctl_status take_one(
	struct sample *sample, struct client *client, const char *vm)
{
	bool is_found;
	enum ctl_status status = take_vm(sample, client, vm, &is_found);

	if (!status && !is_found)
		return ctl_fail(CTL_NO_VM, "there is no such virtual machine");
	return status;
}

/* One that is gone since it was listed is left out. */
static enum ctl_status take_listed(
	struct sample *sample, struct client *client, const VgpuCtl__Vms *list)
{
	enum ctl_status status = CTL_OK;
	bool is_found;

	for (size_t i = 0; !status && i < list->n_vms; i++)
		status = take_vm(sample, client, list->vms[i]->name, &is_found);
	return status;
}

static enum ctl_status take_all(struct sample *sample, struct client *client)
{
	enum ctl_status status = CTL_OK;
	char after[CTL_VALUE_MAX + 1] = "";
	bool more = true;

	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = client_list(client, after, &reply);
		if (status)
			break;
		status = take_listed(sample, client, reply->list);
		more = reply->list->more && reply->list->n_vms;
		if (more)
			snprintf(after, sizeof(after), "%s",
				reply->list->vms[reply->list->n_vms - 1]->name);
		ctl_reply_freep(&reply);
	}
	return status;
}

enum ctl_status sample_take(struct sample *sample, struct client *client, const char *vm)
{
	enum ctl_status status;

	*sample = (struct sample){ .at_ms = clock_now() };
	status = vm ? take_one(sample, client, vm) : take_all(sample, client);
	if (status)
		sample_deinit(sample);
	return status;
}

void sample_deinit(struct sample *sample)
{
	for (size_t i = 0; i < sample->n_vms; i++)
		free(sample->vms[i].use.name);
	for (size_t i = 0; i < sample->n_sessions; i++) {
		free(sample->sessions[i].use.name);
		free(sample->sessions[i].vm);
		json_decref(sample->sessions[i].error);
	}
	free(sample->vms);
	free(sample->sessions);
	*sample = (struct sample){ 0 };
}

/*
 * Rates
 */

static const struct sample_session *find_session(
	const struct sample *sample, const struct sample_session *session)
{
	for (size_t i = 0; i < sample->n_sessions; i++)
		if (sample->sessions[i].number == session->number &&
			!strcmp(sample->sessions[i].vm, session->vm))
			return &sample->sessions[i];
	return NULL;
}

/* A counter that a worker has set back did nothing. */
static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static struct sample_rates rates(const struct sample_counts *now,
	const struct sample_counts *before, double seconds)
{
	return (struct sample_rates){
		.calls = rate(now->calls, before->calls, seconds),
		.launches = rate(now->launches, before->launches, seconds),
		.copies = rate(now->copies, before->copies, seconds),
		.bytes = rate(now->bytes, before->bytes, seconds),
		.used = rate(now->used_ns, before->used_ns, seconds) / 1e9,
		.held = rate(now->held_ns, before->held_ns, seconds) / 1e9,
	};
}

static struct sample_vm *find_vm(struct sample *sample, const char *name)
{
	for (size_t i = 0; i < sample->n_vms; i++)
		if (!strcmp(sample->vms[i].use.name, name))
			return &sample->vms[i];
	return NULL;
}

/* Processes of one machine that keep several devices busy can come to more than all. */
static void add_use(struct sample_use *sum, const struct sample_use *use)
{
	sum->rates.calls += use->rates.calls;
	sum->rates.launches += use->rates.launches;
	sum->rates.copies += use->rates.copies;
	sum->rates.bytes += use->rates.bytes;
	sum->rates.used += use->rates.used;
	sum->rates.held += use->rates.held;
	if (use->queued > sum->queued)
		sum->queued = use->queued;
	sum->has_pending |= use->has_pending;
	sum->pending += use->pending;
	if (use->busy < 0)
		return;
	sum->busy = sum->busy < 0 ? use->busy : sum->busy + use->busy;
	sum->busy = sum->busy < 100 ? sum->busy : 100;
}

void sample_compare(struct sample *sample, const struct sample *before)
{
	static const struct sample_counts none;
	const double seconds = (double)(sample->at_ms - before->at_ms) / 1000;

	for (size_t i = 0; i < sample->n_sessions; i++) {
		struct sample_session *session = &sample->sessions[i];
		const struct sample_session *old = find_session(before, session);
		struct sample_vm *vm = find_vm(sample, session->vm);

		session->use.rates =
			rates(&session->counts, old ? &old->counts : &none, seconds);
		if (vm)
			add_use(&vm->use, &session->use);
	}
}

/*
 * Order
 */

static double weight(const struct sample_use *use, enum sample_key key)
{
	switch (key) {
	case SAMPLE_BUSY:
		return use->busy;
	case SAMPLE_LAUNCHES:
		return use->rates.launches;
	case SAMPLE_COPIES:
		return use->rates.bytes;
	case SAMPLE_MEMORY:
		return (double)use->device_memory;
	case SAMPLE_HOST:
		return (double)use->host_memory;
	default:
		return 0;
	}
}

/* Equal ones are in the order of their names, so that lines do not jump. */
static int compare(const void *left, const void *right, void *keyp)
{
	const enum sample_key key = *(const enum sample_key *)keyp;
	const struct sample_use *a = left, *b = right;
	const double difference = weight(b, key) - weight(a, key);

	return difference > 0 ? 1 : difference < 0 ? -1 : strcmp(a->name, b->name);
}

static void sort(void *array, size_t n, size_t size, enum sample_key key)
{
	if (n)
		qsort_r(array, n, size, compare, &key);
}

void sample_sort(struct sample *sample, enum sample_key key)
{
	/* The use is their first member. */
	static_assert(offsetof(struct sample_vm, use) == 0 &&
			      offsetof(struct sample_session, use) == 0,
		"it is");

	sort(sample->vms, sample->n_vms, sizeof(*sample->vms), key);
	sort(sample->sessions, sample->n_sessions, sizeof(*sample->sessions), key);
}
