/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl verbs: what a request of vgpuctl is answered with
 *
 * A reply is one packet, so lists come in parts: each request says behind which name or
 * number the next part begins, and nothing is kept between them.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/arbiter.h"
#include "broker/boot.h"
#include "broker/ctl-verbs.h"
#include "broker/entry.h"
#include "broker/flight.h"
#include "broker/group-limit.h"
#include "broker/queue.h"
#include "broker/session-line.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/use.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/ctl-message.h"
#include "control/flight-text.h"
#include "vgpu/checked.h"
#include "vgpu/g-calls.h"
#include "vgpu/status.h"
#include "vgpud/config-show.h"

/* Of a reply, without what its lists have. */
#define REPLY_ROOM 1024u

/* A reply with a reason has no result, not even half of one. */
static void fail(VgpuCtl__Reply *reply, VgpuCtl__Status status, const char *reason)
{
	ctl_verbs_free(reply);
	reply->result_case = VGPU_CTL__REPLY__RESULT__NOT_SET;
	reply->status = status;
	reply->reason = (char *)reason;
}

/* Memory of the reply, all of which ctl_verbs_free() frees. Return: NULL without. */
static void *take(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

/*
 * Virtual machines
 */

static const struct config_vm *find_vm(const struct broker *broker, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &broker->config->vms, entry)
		if (!strcmp(vm->name, name))
			return vm;
	return NULL;
}

static bool is_of(const struct worker *worker, const struct account *account)
{
	return worker->channel && worker->channel->vm->account == account;
}

static void count(
	const struct broker *broker, const struct account *account, VgpuCtl__Vm *message)
{
	const struct worker *worker;
	const struct vm *vm;

	message->greeting = VGPU_CTL__GREETING__SILENT;
	TAILQ_FOREACH(vm, &broker->vms, entry) {
		if (vm->account != account || vm->gone)
			continue;
		message->connections++;
		if (boot_has_greeted(vm))
			message->greeting = VGPU_CTL__GREETING__GREETED;
	}
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!is_of(worker, account))
			continue;
		message->sessions += worker->channel->record->phase == CHANNEL_OPEN;
		message->device_memory_evicted += room_state_evicted(&worker->room);
	}
}

/* Return: NULL without memory. */
static VgpuCtl__Share *share_new(const struct arbiter_use *use)
{
	VgpuCtl__Share *share = take(1, sizeof(*share));

	if (!share)
		return NULL;
	vgpu_ctl__share__init(share);
	share->used_ns = use->used_ns;
	share->held_ns = use->held_ns;
	share->is_held = use->is_held;
	if (!use->n_pending)
		return share;
	share->pending = take(1, sizeof(*share->pending));
	if (!share->pending) {
		free(share);
		return NULL;
	}
	vgpu_ctl__pending__init(share->pending);
	share->pending->launches = use->n_pending - 1;
	return share;
}

static void share_free(VgpuCtl__Share *share)
{
	if (share)
		free(share->pending);
	free(share);
}

/* Adds what its processes do now. */
static void add_now(const struct broker *broker, const struct account *account,
	struct arbiter_use *sum)
{
	const struct worker *worker;
	struct arbiter_use use;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!is_of(worker, account) || !worker->share)
			continue;
		arbiter_read_worker(worker->share, &use);
		sum->is_held |= use.is_held;
		if (!use.n_pending)
			continue;
		sum->n_pending += !sum->n_pending;
		if (!vgpu_add_u64(sum->n_pending, use.n_pending - 1, &sum->n_pending))
			sum->n_pending = UINT64_MAX;
	}
}

/* How it shares the device. Return: false without memory. */
static bool set_share(VgpuCtl__Vm *message, const struct broker *broker,
	const struct account *account, const struct totals *totals)
{
	const struct config_vm *config = account->config;
	struct arbiter_use use = {
		.used_ns = totals->device_ns,
		.held_ns = totals->held_ns,
	};
	const char *way;

	add_now(broker, account, &use);
	message->weight = config->weight;
	message->priority = (char *)config_priority_name(config->priority);
	message->paused = config->paused;
	message->cpu = config->cpu;
	way = group_limit_cpu_way(broker, account);
	if (way)
		message->cpu_by = (char *)way;
	if (!account->arbiter)
		return true;
	message->share = share_new(&use);
	return message->share;
}

static char *place_of(const struct config_vm *vm)
{
	char *place;

	return asprintf(&place, "%s:%d", vm->place.file, vm->place.line) < 0 ? NULL
									     : place;
}

/* Return: the message, to be freed, or NULL without memory. */
static VgpuCtl__Counters *counters_new(const struct worker_stats *stats)
{
	VgpuCtl__Counters *counters = take(1, sizeof(*counters));

	if (!counters)
		return NULL;
	vgpu_ctl__counters__init(counters);
	counters->calls = stats->calls;
	counters->launches = stats->launches;
	counters->copies = stats->copies_h2d + stats->copies_d2h + stats->copies_d2d;
	counters->bytes_to_device = stats->bytes_h2d;
	counters->bytes_from_device = stats->bytes_d2h;
	counters->memsets = stats->memsets;
	counters->slow_calls = stats->slow_calls;
	counters->copies_to_device = stats->copies_h2d;
	counters->copies_from_device = stats->copies_d2h;
	counters->copies_on_device = stats->copies_d2d;
	counters->refused_async = stats->refused_async;
	counters->images_sent = stats->images_sent;
	counters->images_found = stats->images_found;
	counters->image_bytes = stats->image_bytes;
	return counters;
}

/* Fills in those reasons that there were. Return: false without memory. */
static bool fill_endings(VgpuCtl__Ending ***listp, size_t *np,
	const uint64_t counts[static TOTALS_REASONS_MAX])
{
	*listp = take(_VGPU_REASON_N, sizeof(**listp));
	for (uint32_t i = 0; *listp && i < _VGPU_REASON_N; i++) {
		VgpuCtl__Ending *ending;

		if (!counts[i])
			continue;
		ending = take(1, sizeof(*ending));
		if (!ending)
			return false;
		vgpu_ctl__ending__init(ending);
		ending->reason = (char *)session_line_reason(i);
		ending->n = counts[i];
		(*listp)[(*np)++] = ending;
	}
	return *listp;
}

static void free_endings(VgpuCtl__Ending **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static void totals_free(VgpuCtl__Totals *message)
{
	if (!message)
		return;
	free_endings(message->ended, message->n_ended);
	free_endings(message->refused, message->n_refused);
	free(message->counters);
	free(message);
}

/* Sets the totals. Return: false without memory. */
static bool set_totals(VgpuCtl__Vm *vm, const struct totals *totals)
{
	VgpuCtl__Totals *message = vm->totals = take(1, sizeof(*message));

	if (!message)
		return false;
	vgpu_ctl__totals__init(message);
	message->sessions = totals->sessions;
	message->faults = totals->faults;
	message->counters = counters_new(&totals->stats);
	vm->evictions = totals->stats.evictions;
	vm->returns = totals->stats.returns;
	vm->evicted_bytes = totals->stats.evicted_bytes;
	vm->returned_bytes = totals->stats.returned_bytes;
	vm->oom_kills = totals->oom_kills;
	return message->counters &&
	       fill_endings(&message->ended, &message->n_ended, totals->ended) &&
	       fill_endings(&message->refused, &message->n_refused, totals->refused);
}

/* Reads the ring of a session. Return: false if it has none now. */
static bool read_ring(const struct channel *channel, uint32_t *bytesp)
{
	return channel->record->phase == CHANNEL_OPEN && queue_read(channel, bytesp);
}

/* Return: the message, or NULL without memory. */
static VgpuCtl__Queue *queue_new(uint32_t bytes)
{
	VgpuCtl__Queue *queue = take(1, sizeof(*queue));

	if (!queue)
		return NULL;
	vgpu_ctl__queue__init(queue);
	queue->bytes = bytes;
	queue->size = VGPU_RING_SIZE;
	return queue;
}

/* Sets the fullest ring of its sessions. Return: false without memory. */
static bool set_fullest(
	VgpuCtl__Vm *vm, const struct broker *broker, const struct account *account)
{
	const struct worker *worker;
	uint32_t bytes, most = 0;
	bool has_any = false;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!worker->channel || worker->channel->vm->account != account ||
			!read_ring(worker->channel, &bytes))
			continue;
		has_any = true;
		most = bytes > most ? bytes : most;
	}
	vm->queue = has_any ? queue_new(most) : NULL;
	return vm->queue || !has_any;
}

static void vm_message_free(VgpuCtl__Vm *message)
{
	if (!message)
		return;
	free(message->queue);
	share_free(message->share);
	totals_free(message->totals);
	free(message->place);
	free(message);
}

/* Return: the message, to be freed by vm_message_free(), or NULL without memory. */
static VgpuCtl__Vm *vm_message_new(
	const struct broker *broker, const struct config_vm *config)
{
	const struct account *account = &broker->accounts[config->index];
	const struct totals totals = totals_of(broker, account);
	VgpuCtl__Vm *message = take(1, sizeof(*message));

	if (!message)
		return NULL;
	vgpu_ctl__vm__init(message);
	message->name = (char *)config->name;
	message->transport = (char *)config_transport_name(config->transport);
	message->place = place_of(config);
	message->max_processes = config->max_processes;
	message->device_memory_limit = config->device_memory;
	message->host_memory = account->host_memory;
	message->host_memory_limit = account_host_memory(account);
	message->host_memory_by = (char *)group_limit_memory_way(broker, account);
	if (account->quota)
		message->device_memory = quota_of_others(account->quota, 0);
	count(broker, account, message);
	if (set_share(message, broker, account, &totals) &&
		set_totals(message, &totals) && set_fullest(message, broker, account) &&
		message->place && strlen(message->place) <= CTL_TEXT_MAX)
		return message;
	vm_message_free(message);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct config_vm *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Return: the machines behind that name in order, to be freed, or NULL without memory. */
static const struct config_vm **sort(
	const struct broker *broker, const char *after, size_t *np)
{
	const struct config_vm **list = take(broker->config->n_vms, sizeof(*list));
	const struct config_vm *vm;
	size_t n = 0;

	if (!list)
		return NULL;
	TAILQ_FOREACH(vm, &broker->config->vms, entry)
		if (strcmp(vm->name, after) > 0)
			list[n++] = vm;
	qsort(list, n, sizeof(*list), compare);
	*np = n;
	return list;
}

/* Return: false without memory. */
static bool fill_vms(
	struct broker *broker, const struct config_vm **list, size_t n, VgpuCtl__Vms *vms)
{
	size_t used = REPLY_ROOM;

	for (size_t i = 0; i < n; i++) {
		VgpuCtl__Vm *message = vm_message_new(broker, list[i]);

		if (!message)
			return false;
		used += vgpu_ctl__vm__get_packed_size(message) + 8;
		vms->more = vms->n_vms == CTL_VMS_MAX || used > CTL_REPLY_MAX;
		if (vms->more) {
			vm_message_free(message);
			return true;
		}
		vms->vms[vms->n_vms++] = message;
	}
	return true;
}

void ctl_verbs_list(
	struct broker *broker, const VgpuCtl__List *list, VgpuCtl__Reply *reply)
{
	const struct config_vm **vms;
	size_t n = 0;

	vms = sort(broker, list->after, &n);
	reply->list = take(1, sizeof(*reply->list));
	if (reply->list) {
		vgpu_ctl__vms__init(reply->list);
		reply->result_case = VGPU_CTL__REPLY__RESULT_LIST;
		reply->list->vms = take(CTL_VMS_MAX, sizeof(*reply->list->vms));
	}
	if (!vms || !reply->list || !reply->list->vms ||
		!fill_vms(broker, vms, n, reply->list))
		fail(reply, VGPU_CTL__STATUS__FAILED,
			"vgpud has no memory for the reply");
	free(vms);
}

/*
 * One of them
 */

static bool fill_settings(const struct config_vm *vm, VgpuCtl__Details *details)
{
	struct config_setting *list = take(CONFIG_SHOW_MAX, sizeof(*list));
	const size_t n = list ? config_show(vm, list) : 0;
	bool is_full = list != NULL;

	details->settings = take(n, sizeof(*details->settings));
	for (size_t i = 0; i < n && is_full && details->settings; i++) {
		VgpuCtl__Setting *message = take(1, sizeof(*message));

		is_full = message;
		if (!message)
			break;
		vgpu_ctl__setting__init(message);
		message->key = (char *)list[i].key;
		message->value = strdup(list[i].value);
		message->live = list[i].is_live;
		details->settings[details->n_settings++] = message;
		is_full = message->value;
	}
	free(list);
	return is_full && details->settings;
}

/* A guest has chosen the name, and may have chosen any bytes. */
static char *clean_name(const struct ledger_channel *record)
{
	char *name = strndup(record->comm, sizeof(record->comm));

	for (char *c = name; c && *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return name;
}

static const char *phase_name(uint32_t phase)
{
	static const char *const names[_CHANNEL_PHASE_N] = {
		[CHANNEL_IDLE] = "idle",
		[CHANNEL_WAITING] = "waiting",
		[CHANNEL_ASSIGNED] = "opening",
		[CHANNEL_HELD] = "opening",
		[CHANNEL_OPEN] = "open",
		[CHANNEL_ENDING] = "ending",
		[CHANNEL_DEAD] = "dead",
		[CHANNEL_EMPTYING] = "emptying",
	};

	return phase < _CHANNEL_PHASE_N ? names[phase] : "unknown";
}

static uint64_t device_memory_of(const struct channel *channel)
{
	const struct quota_page *page = channel->vm->account->quota;
	const uint32_t slot = channel->record->quota_slot;

	return slot && page ? __atomic_load_n(&page->used[slot - 1], __ATOMIC_RELAXED)
			    : 0;
}

/* Sets the texts. The guest can write both numbers: they are for people alone. */
static bool set_protocols(VgpuCtl__Session *session, const struct channel *channel)
{
	struct vgpu_channel_entry entry = {};

	if (!channel->vm->gone)
		entry_read(channel, &entry);
	if (asprintf(&session->guest_protocol, "%u.%u", entry.protocol_version,
		    entry.protocol_minor) < 0)
		session->guest_protocol = NULL;
	if (asprintf(&session->host_protocol, "%u.%u", entry.host_protocol_version,
		    entry.host_protocol_minor) < 0)
		session->host_protocol = NULL;
	return session->guest_protocol && session->host_protocol;
}

/* Sets what the worker says of itself. Return: false without memory. */
static bool set_counters(VgpuCtl__Session *session, const struct worker *worker)
{
	struct worker_stats stats;

	session_line_read_stats(worker->stats, &stats);
	session->counters = counters_new(&stats);
	return session->counters;
}

/* Return: false without memory. */
static bool set_busy(VgpuCtl__Session *session, const struct broker *broker,
	const struct worker *worker)
{
	const uint32_t percent = use_utilisation(broker, worker);

	if (percent == VGPU_STATUS_UNKNOWN)
		return true;
	session->busy = take(1, sizeof(*session->busy));
	if (!session->busy)
		return false;
	vgpu_ctl__busy__init(session->busy);
	session->busy->percent = percent;
	return true;
}

/* Return: false without memory. */
static bool set_session_share(VgpuCtl__Session *session, const struct worker *worker)
{
	struct arbiter_use use;

	if (!worker->share)
		return true;
	arbiter_read_worker(worker->share, &use);
	session->share = share_new(&use);
	return session->share;
}

/* Return: false without memory. */
static bool set_queue(VgpuCtl__Session *session, const struct channel *channel)
{
	uint32_t bytes;

	if (!read_ring(channel, &bytes))
		return true;
	session->queue = queue_new(bytes);
	return session->queue;
}

/* Return: false without memory. */
static bool set_last_error(VgpuCtl__Session *session, const struct worker *worker)
{
	struct flight_error error;
	char text[32];

	flight_last_error(worker, &error);
	if (!error.result)
		return true;
	session->last_error = take(1, sizeof(*session->last_error));
	if (!session->last_error)
		return false;
	vgpu_ctl__last_error__init(session->last_error);
	session->last_error->result = error.result;
	session->last_error->name = strdup(flight_result(error.result, text));
	session->last_error->call = (char *)vgpu_call_name(error.call);
	session->last_error->age_ms = error.age_ms;
	return session->last_error->name;
}

static void session_free(VgpuCtl__Session *session)
{
	share_free(session->share);
	if (session->last_error)
		free(session->last_error->name);
	free(session->last_error);
	free(session->busy);
	free(session->queue);
	free(session->counters);
	free(session->name);
	free(session->guest_protocol);
	free(session->host_protocol);
	free(session);
}

static VgpuCtl__Session *session_new(
	const struct broker *broker, const struct worker *worker)
{
	const struct ledger_channel *record = worker->channel->record;
	VgpuCtl__Session *session = take(1, sizeof(*session));

	if (!session)
		return NULL;
	vgpu_ctl__session__init(session);
	session->number = worker->id;
	session->channel = worker->channel->index;
	session->pid = record->pid;
	session->name = clean_name(record);
	session->worker = (uint32_t)worker->pid;
	session->phase = (char *)phase_name(record->phase);
	session->device_memory = device_memory_of(worker->channel);
	session->host_memory = worker->host_memory;
	session->device_memory_seen = worker->memory_seen;
	session->device_memory_evicted = room_state_evicted(&worker->room);
	if (session->name && set_protocols(session, worker->channel) &&
		set_counters(session, worker) && set_busy(session, broker, worker) &&
		set_session_share(session, worker) && set_last_error(session, worker) &&
		set_queue(session, worker->channel))
		return session;
	session_free(session);
	return NULL;
}

/* Workers are in the order of their numbers: those of the last broker came in it, too. */
static bool fill_sessions(const struct broker *broker, const struct account *account,
	uint64_t after, VgpuCtl__Details *details)
{
	size_t used = REPLY_ROOM + vgpu_ctl__details__get_packed_size(details);
	const struct worker *worker;

	details->sessions = take(CTL_SESSIONS_MAX, sizeof(*details->sessions));
	if (!details->sessions)
		return false;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		VgpuCtl__Session *session;

		if (!is_of(worker, account) || worker->id <= after)
			continue;
		session = session_new(broker, worker);
		if (!session)
			return false;
		used += vgpu_ctl__session__get_packed_size(session) + 8;
		details->more =
			details->n_sessions == CTL_SESSIONS_MAX || used > CTL_REPLY_MAX;
		if (details->more) {
			session_free(session);
			return true;
		}
		details->sessions[details->n_sessions++] = session;
	}
	return true;
}

void ctl_verbs_show(
	struct broker *broker, const VgpuCtl__Show *show, VgpuCtl__Reply *reply)
{
	const struct config_vm *vm = find_vm(broker, show->vm);
	VgpuCtl__Details *details;

	if (!vm) {
		fail(reply, VGPU_CTL__STATUS__UNKNOWN,
			"there is no such virtual machine");
		return;
	}
	details = reply->show = take(1, sizeof(*details));
	if (details) {
		vgpu_ctl__details__init(details);
		reply->result_case = VGPU_CTL__REPLY__RESULT_SHOW;
		details->vm = vm_message_new(broker, vm);
	}
	if (!details || !details->vm || !fill_settings(vm, details) ||
		!fill_sessions(
			broker, &broker->accounts[vm->index], show->after, details))
		fail(reply, VGPU_CTL__STATUS__FAILED,
			"vgpud has no memory for the reply");
}

static void free_list(VgpuCtl__Vms *list)
{
	for (size_t i = 0; i < list->n_vms; i++)
		vm_message_free(list->vms[i]);
	free(list->vms);
	free(list);
}

static void free_details(VgpuCtl__Details *details)
{
	vm_message_free(details->vm);
	for (size_t i = 0; i < details->n_settings; i++) {
		free(details->settings[i]->value);
		free(details->settings[i]);
	}
	free(details->settings);
	for (size_t i = 0; i < details->n_sessions; i++)
		session_free(details->sessions[i]);
	free(details->sessions);
	free(details);
}

void ctl_verbs_free(VgpuCtl__Reply *reply)
{
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_LIST)
		free_list(reply->list);
	else if (reply->result_case == VGPU_CTL__REPLY__RESULT_SHOW)
		free_details(reply->show);
}
