/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel: one guest process, from its hello to the release of its last extent
 *
 * A channel has two records. The entry in shared memory is the interface between guest
 * and host; the guest can write anything into it at any time. The record in the ledger is
 * private to the host, and decisions use it alone: the entry's state word is read once
 * and judged together with the phase, and the rest of the entry is copied when a hello is
 * accepted. entry.c writes the entry.
 *
 * Extents and area are released only after the worker was reaped: until then its driver
 * may still write to them.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "broker/channel.h"
#include "broker/boot.h"
#include "broker/device-time.h"
#include "broker/entry.h"
#include "broker/flight.h"
#include "broker/group-limit.h"
#include "broker/owners.h"
#include "broker/pool.h"
#include "broker/session-line.h"
#include "broker/slots.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/hello.h"
#include "vgpud/clock.h"
#include "vgpud/container-of.h"

/* Claim and hello are a few instructions apart. A process that was stopped between the
 * two for longer has lost its claim, and claims again. */
#define CHANNEL_CLAIM_MS 3000
/* Interval of attempts to empty memory. */
#define CHANNEL_RETRY_MS 1000

enum channel_action channel_judge(enum channel_phase phase, uint32_t state)
{
	if (phase == CHANNEL_EMPTYING)
		return CHANNEL_NOTHING;
	if (state == VGPU_CHANNEL_CLOSING)
		return phase == CHANNEL_IDLE ? CHANNEL_CLEAR : CHANNEL_CLOSE;
	switch (phase) {
	case CHANNEL_IDLE:
		if (state == VGPU_CHANNEL_OPENING)
			return CHANNEL_BEGIN;
		return state == VGPU_CHANNEL_FREE || state == VGPU_CHANNEL_CLAIMED ||
				       state == VGPU_CHANNEL_REFUSED
			       ? CHANNEL_NOTHING
			       : CHANNEL_CLEAR;
	case CHANNEL_WAITING:
	case CHANNEL_ASSIGNED:
		return state == VGPU_CHANNEL_OPENING ? CHANNEL_NOTHING : CHANNEL_BREACH;
	case CHANNEL_HELD:
		if (state == VGPU_CHANNEL_OPENING)
			return CHANNEL_REWINDOW;
		return state == VGPU_CHANNEL_REFUSED ? CHANNEL_NOTHING : CHANNEL_BREACH;
	case CHANNEL_OPEN:
		return state == VGPU_CHANNEL_OPEN ? CHANNEL_NOTHING : CHANNEL_BREACH;
	case CHANNEL_DEAD:
		return state == VGPU_CHANNEL_DEAD ? CHANNEL_NOTHING : CHANNEL_CLOSE;
	case CHANNEL_ENDING:
	default:
		return CHANNEL_NOTHING;
	}
}

/* A grant that the previous broker recorded belongs to the channel before any other
 * channel is granted a part of it; the worker's request is still in its socket. */
static void finish_grant(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	if (record->grant_n &&
		(record->phase != CHANNEL_OPEN ||
			owners_own(channel, record->grant_first, record->grant_n)))
		record->grant_n = 0;
}

void channel_init(struct channel *channel, struct vm *vm, uint32_t index,
	struct ledger_channel *record)
{
	channel->vm = vm;
	channel->index = index;
	channel->record = record;
	channel->worker = NULL;
	channel->claimed_since = 0;
	finish_grant(channel);
	channel->wipe.wiper = NULL;
	channel->retry_at = 0;
}

static struct broker *broker_of(const struct channel *channel)
{
	return channel->vm->broker;
}

bool channel_is_active(const struct channel *channel)
{
	switch (channel->record->phase) {
	case CHANNEL_WAITING:
	case CHANNEL_ASSIGNED:
	case CHANNEL_HELD:
	case CHANNEL_OPEN:
		return true;
	}
	return false;
}

/*
 * Emptying
 */

static struct channel *of_wipe(struct wipe *wipe)
{
	return container_of(wipe, struct channel, wipe);
}

/* Resumes those that wait for free arena: some is free, or will not be soon. */
static void announce_free_arena(struct vm *vm)
{
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		if (vm->channels[i].worker)
			worker_go_on(vm->channels[i].worker);
	pool_update(vm->broker);
}

/* Memory of the channel is free: other channels of its VM may use it. */
static void finish_emptying(struct channel *channel)
{
	struct ledger_channel *record = channel->record;
	struct broker *broker = broker_of(channel);

	record->first_extent = 0;
	record->n_extents = 0;
	/* Before another guest can claim the entry: if the broker dies in between, the
	 * next one clears the entry. */
	record->phase = CHANNEL_IDLE;
	if (record->after == CHANNEL_AFTER_FREE)
		entry_free(channel);
	else if (broker->synced)
		channel_look(channel);
	announce_free_arena(channel->vm);
}

static void handle_wiped(struct wiper *wiper, struct wipe *wipe, int error);

/* Each piece is freed once it is empty. If the broker dies in between, the next one
 * empties it again. */
static void handle_piece(struct wipe *wipe, uint64_t offset, uint64_t size)
{
	struct channel *channel = of_wipe(wipe);
	struct vm *vm = channel->vm;

	if (!channel->is_area_next)
		owners_give(channel, (offset - vm->layout.extents_off) / VGPU_EXTENT_SIZE,
			size / VGPU_EXTENT_SIZE);
}

/* Empties the channel's runs of extents one by one, then its area. */
static void empty_next(struct channel *channel)
{
	struct vm *vm = channel->vm;
	uint32_t first, n;

	channel->retry_at = 0;
	channel->wipe = (struct wipe){
		.section = vm->config->index,
		.fd = vm->shm,
		.piece_fn = handle_piece,
		.done_fn = handle_wiped,
	};
	if (vm->gone) {
		finish_emptying(channel);
		return;
	}
	channel->is_area_next = !extent_find(&vm->extents, channel->index, 0, &first, &n);
	if (channel->is_area_next) {
		channel->wipe.offset = layout_area_off(&vm->layout, channel->index);
		channel->wipe.end = channel->wipe.offset + VGPU_AREA_SIZE;
	} else {
		channel->wipe.offset = layout_extent_off(&vm->layout, first);
		channel->wipe.end = channel->wipe.offset + (uint64_t)n * VGPU_EXTENT_SIZE;
	}
	wiper_add(&vm->broker->wiper, &channel->wipe);
}

/* Memory is not reused until it has been emptied. */
static void handle_failed_wipe(struct channel *channel, int error)
{
	if (account_take_log_line(channel->vm->account))
		vgpu_log_error(
			"vm=%s channel=%u: its memory cannot be emptied (%s): it is not "
			"used again before it can",
			channel->vm->config->name, channel->index, strerror(-error));
	channel->retry_at = clock_now() + CHANNEL_RETRY_MS;
	announce_free_arena(channel->vm);
}

static void handle_wiped(struct wiper *wiper, struct wipe *wipe, int error)
{
	struct channel *channel = of_wipe(wipe);

	(void)wiper;
	if (error && !channel->vm->gone)
		handle_failed_wipe(channel, error);
	else if (channel->is_area_next)
		finish_emptying(channel);
	else
		empty_next(channel);
}

/*
 * Releases all memory of the channel, then shows the guest the state `after`. There is no
 * worker any more.
 */
static void empty(struct channel *channel, enum channel_after after)
{
	struct ledger_channel *record = channel->record;

	record->after = after;
	__atomic_store_n(&record->grant_n, 0, __ATOMIC_RELEASE);
	/* Partner: the next broker, if this one dies between these stores. */
	__atomic_store_n(&record->phase, CHANNEL_EMPTYING, __ATOMIC_RELEASE);
	__atomic_store_n(&record->worker, 0, __ATOMIC_RELEASE);
	empty_next(channel);
}

/* Releases all memory and frees the entry. */
static void clear(struct channel *channel)
{
	empty(channel, CHANNEL_AFTER_FREE);
}

/* It was killed and does not exit: nobody waits for its memory any more. */
static void handle_worker_stuck(struct worker *worker)
{
	slots_note_ending(worker->channel, false);
	announce_free_arena(worker->channel->vm);
}

/* Without memory for it the worker has as much memory on the device as it can get. */
static void share_room(const struct channel *channel, struct worker *worker)
{
	int r = room_state_open(&worker->room, worker->stats, channel->vm->account,
		worker->broker->config->device_memory_total);

	if (r)
		vgpu_log_warning(
			"vm=%s worker=%d: device-memory-total does not limit it: "
			"%s",
			channel->vm->config->name, (int)worker->pid, strerror(-r));
}

static void take_worker(struct channel *channel, struct worker *worker)
{
	device_time_share(channel, worker);
	group_limit_join(channel->vm->account, worker);
	channel->worker = worker;
	worker->channel = channel;
	worker->stuck_fn = handle_worker_stuck;
	worker->state = WORKER_BUSY;
	share_room(channel, worker);
}

/* Whether its extents and its device memory will be free soon. */
static bool is_leaving(const struct channel *channel)
{
	switch (channel->record->phase) {
	case CHANNEL_EMPTYING:
		return !channel->retry_at;
	case CHANNEL_ENDING:
		return channel->worker && !channel->worker->is_stuck;
	case CHANNEL_OPEN:
		/* Not looked at yet. */
		return !channel->vm->gone && entry_state(channel) == VGPU_CHANNEL_CLOSING;
	default:
		return false;
	}
}

/* Finds the channels whose extents will be free soon. Return: false if there are none. */
static bool find_leaving(const struct vm *vm, bool leaving[VGPU_CHANNELS_MAX])
{
	bool found = false;

	for (uint32_t i = 0; i < vm->layout.n_channels; i++) {
		leaving[i] = is_leaving(&vm->channels[i]);
		found |= leaving[i];
	}
	return found;
}

/* Whether that many consecutive extents are not free now, but will be soon. */
static bool will_fit(const struct vm *vm, uint32_t n_extents)
{
	bool leaving[VGPU_CHANNELS_MAX] = { false };

	return !extent_fits(&vm->extents, n_extents, NULL) && find_leaving(vm, leaving) &&
	       extent_fits(&vm->extents, n_extents, leaving);
}

/*
 * Opening
 */

/* Counts the processes of each section. Return: their sum. */
static unsigned int count_active(const struct broker *broker)
{
	unsigned int n = 0;
	struct vm *vm;

	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		broker->accounts[i].n_active = 0;
	TAILQ_FOREACH(vm, &broker->vms, entry) {
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			vm->account->n_active += channel_is_active(&vm->channels[i]);
	}
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		n += broker->accounts[i].n_active;
	return n;
}

/*
 * Checks the limits of workers for one more process. A section with processes leaves one
 * worker for each section without, so that no VM can take the last one from another; if
 * there are too few workers for that, half of them are available to any section.
 *
 * Return: VGPU_REASON_NONE, or the reason of the refusal.
 */
static uint32_t check_limits(const struct channel *channel)
{
	const struct broker *broker = broker_of(channel);
	const struct account *account = channel->vm->account;
	const unsigned int n_max = broker->config->max_workers;
	const unsigned int n_active = count_active(broker);
	unsigned int n_reserved = 0;

	if (account->n_active >= account->config->max_processes)
		return VGPU_REASON_PROCESSES;
	if (n_active >= n_max)
		return VGPU_REASON_WORKERS;
	if (!account->n_active)
		return VGPU_REASON_NONE;
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		n_reserved += !broker->accounts[i].n_active;
	if (n_reserved > n_max / 2)
		n_reserved = n_max / 2;
	return n_max - n_active > n_reserved ? VGPU_REASON_NONE : VGPU_REASON_WORKERS;
}

/* Return: VGPU_REASON_NONE, or the reason to refuse this hello. */
static uint32_t check_hello(
	struct channel *channel, const struct vgpu_channel_entry *hello)
{
	const struct broker *broker = broker_of(channel);

	if (hello->protocol_version != VGPU_PROTOCOL_VERSION)
		return VGPU_REASON_VERSION;
	if (memcmp(hello->boot_id, channel->vm->ledger->boot_id, 16) &&
		boot_is_known(channel->vm))
		return VGPU_REASON_PROTOCOL;
	if (!vgpu_window_is_sane(
		    hello->window_base, hello->window_size, channel->vm->layout.size))
		return VGPU_REASON_WINDOW;
	if (broker->draining)
		return VGPU_REASON_SHUTDOWN;
	return check_limits(channel);
}

/* Copies a hello to the ledger; makes the name printable. */
static void copy_hello(struct channel *channel, const struct vgpu_channel_entry *hello)
{
	struct ledger_channel *record = channel->record;

	record->pid = hello->pid;
	/* A local process may be in a pid namespace; the log has the host's pid. */
	if (channel->vm->config->transport == CONFIG_SOCKET && channel->vm->pid)
		record->pid = channel->vm->pid;
	record->api_version = hello->api_version;
	record->window_base = hello->window_base;
	record->window_size = hello->window_size;
	memcpy(record->boot_id, hello->boot_id, sizeof(record->boot_id));
	memcpy(record->comm, hello->comm, sizeof(record->comm));
	record->comm[sizeof(record->comm) - 1] = '\0';
	for (char *c = record->comm; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.+:@/", *c))
			*c = '?';
	record->served = 0;
	record->reason = VGPU_REASON_NONE;
	record->grant_n = 0;
	record->signal = 0;
}

static void begin(struct channel *channel)
{
	struct vgpu_channel_entry hello;
	uint32_t reason;

	entry_read(channel, &hello);
	/* The guest may have been reset since this scan began. */
	boot_note_header(channel->vm);
	copy_hello(channel, &hello);
	reason = check_hello(channel, &hello);
	if (reason == VGPU_REASON_VERSION && account_take_log_line(channel->vm->account))
		vgpu_log_info("vm=%s channel=%u pid=%u: it speaks protocol version "
			      "%u.%u, this host %u.%u",
			channel->vm->config->name, channel->index, channel->record->pid,
			hello.protocol_version, hello.protocol_minor,
			VGPU_PROTOCOL_VERSION, vgpu_version.minor);
	if (reason) {
		entry_refuse(channel, reason);
		return;
	}
	boot_note(channel->vm, hello.boot_id);
	channel->record->phase = CHANNEL_WAITING;
	channel->is_counted = false;
	TAILQ_INSERT_TAIL(&broker_of(channel)->waiting, channel, waiting);
	pool_update(broker_of(channel));
}

static void rewindow(struct channel *channel)
{
	struct control_message message = { .type = CONTROL_WINDOW };
	struct vgpu_channel_entry hello;

	entry_read(channel, &hello);
	if (!vgpu_window_is_sane(
		    hello.window_base, hello.window_size, channel->vm->layout.size)) {
		entry_refuse(channel, VGPU_REASON_WINDOW);
		return;
	}
	channel->record->window_base = message.window.base = hello.window_base;
	channel->record->window_size = message.window.size = hello.window_size;
	channel->record->phase = CHANNEL_ASSIGNED;
	worker_send(channel->worker, &message, NULL);
}

static void leave_queue(struct channel *channel)
{
	TAILQ_REMOVE(&broker_of(channel)->waiting, channel, waiting);
	channel->record->phase = CHANNEL_IDLE;
}

void channel_refuse(struct channel *channel, uint32_t reason)
{
	leave_queue(channel);
	entry_refuse(channel, reason);
}

static int take_first_grant(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	for (uint32_t n = LAYOUT_GRANT_EXTENTS; n >= LAYOUT_GRANT_EXTENTS_MIN; n /= 2) {
		if (!owners_take(channel, n, &record->first_extent)) {
			record->n_extents = n;
			return 0;
		}
	}
	return EXTENT_E_FULL;
}

static uint32_t assign_flags(const struct vm *vm)
{
	uint32_t flags = vm->n_doorbells ? 0 : CONTROL_ASSIGN_POLL;

	if (vm->config->hugepages == CONFIG_HUGEPAGES_TRANSPARENT)
		flags |= CONTROL_ASSIGN_HUGEPAGES;
	return flags;
}

static void send_assign(struct channel *channel)
{
	const struct vm *vm = channel->vm;
	const struct ledger_channel *record = channel->record;
	const uint32_t doorbell = VGPU_DOORBELL_CHANNEL(channel->index);
	struct control_message message = {
		.type = CONTROL_ASSIGN,
		.assign = {
			.channel = channel->index,
			.flags = assign_flags(vm),
			.shm_size = vm->layout.size,
			.area_off = layout_area_off(&vm->layout, channel->index),
			.extents_off = vm->layout.extents_off,
			.first_extent = record->first_extent,
			.n_extents = record->n_extents,
			.window_base = record->window_base,
			.window_size = record->window_size,
			.image_memory = vm->config->image_memory,
			.handles = vm->config->handles,
			.quota_slot = record->quota_slot,
			.guest_pid = record->pid,
			.guest_api_version = record->api_version,
			.launch_timeout = vm->config->softgpu_launch_timeout,
		},
	};
	int fds[CONTROL_FDS_MAX];

	message.greeting.version = CONTROL_VERSION;
	memcpy(message.assign.vm, vm->config->name, sizeof(message.assign.vm));
	memcpy(message.assign.guest_comm, record->comm,
		sizeof(message.assign.guest_comm));
	fds[message.n_fds++] = vm->shm;
	fds[message.n_fds++] = vm->account->quota_fd;
	if (doorbell < vm->n_doorbells)
		fds[message.n_fds++] = vm->doorbells[doorbell];
	if (doorbell < vm->n_interrupts)
		fds[message.n_fds++] = vm->interrupts[doorbell];
	worker_send(channel->worker, &message, fds);
}

/* Sends the worker the socket of who waits to record this process, if anyone does. */
static void offer_recording(const struct channel *channel)
{
	static const struct control_message message = {
		.type = CONTROL_RECORD,
		.n_fds = 1,
	};
	const struct ledger_channel *record = channel->record;
	const char *vm = channel->vm->config->name;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	/* A broker without a server has none. */
	if (broker_of(channel)->ctl)
		fd = recordings_take(
			&broker_of(channel)->recordings, vm, record->pid, record->comm);
	if (fd < 0)
		return;
	vgpu_log_info("vm=%s channel=%u pid=%u: %s is recorded by a vgpuctl", vm,
		channel->index, record->pid, record->comm);
	worker_send(channel->worker, &message, &fd);
}

bool channel_can_begin(const struct channel *channel)
{
	return !will_fit(channel->vm, LAYOUT_GRANT_EXTENTS_MIN);
}

bool channel_assign(struct channel *channel, struct worker *worker)
{
	struct ledger_channel *record = channel->record;

	if (take_first_grant(channel)) {
		channel_refuse(channel, VGPU_REASON_LIMIT);
		return false;
	}
	leave_queue(channel);
	slots_take(channel);
	record->worker = worker->id;
	record->served = 1;
	record->driver_version = worker->driver_version;
	record->phase = CHANNEL_ASSIGNED;
	take_worker(channel, worker);
	slots_note_all(channel->vm, is_leaving);
	vgpu_log_debug("vm=%s channel=%u pid=%u: %s is assigned worker %d",
		channel->vm->config->name, channel->index, record->pid, record->comm,
		(int)worker->pid);
	offer_recording(channel);
	send_assign(channel);
	return true;
}

/*
 * Messages from the worker
 */

static void open_channel(struct channel *channel)
{
	struct ledger_channel *record = channel->record;
	struct vgpu_channel_entry hello;

	entry_read(channel, &hello);
	vgpu_log_info("session opened vm=%s channel=%u pid=%u comm=%s worker=%d "
		      "guest_protocol=%u.%u host_protocol=%u.%u",
		channel->vm->config->name, channel->index, record->pid, record->comm,
		(int)channel->worker->pid, hello.protocol_version, hello.protocol_minor,
		VGPU_PROTOCOL_VERSION, entry_host_version(channel).minor);
	record->phase = CHANNEL_OPEN;
	totals_note_open(channel->vm->account);
	entry_answer(channel, VGPU_REASON_NONE);
	if (!entry_step(channel, VGPU_CHANNEL_OPENING, VGPU_CHANNEL_OPEN))
		channel_look(channel);
}

bool channel_handle_opened(struct channel *channel, uint32_t reason)
{
	struct ledger_channel *record = channel->record;

	if (record->phase == CHANNEL_ENDING)
		return true;
	/* The last broker opened it and died before it removed the message. */
	if (record->phase == CHANNEL_OPEN && reason == VGPU_REASON_NONE)
		return true;
	if (record->phase != CHANNEL_ASSIGNED || reason >= _VGPU_REASON_N)
		return false;
	if (reason == VGPU_REASON_NONE) {
		open_channel(channel);
		return true;
	}
	if (reason == VGPU_REASON_WINDOW) {
		record->phase = CHANNEL_HELD;
		entry_refuse(channel, reason);
		channel_look(channel);
		return true;
	}
	entry_refuse(channel, reason);
	channel_end(channel, CHANNEL_AFTER_REFUSED, reason, CONTROL_STOP_MS);
	return true;
}

static void log_no_arena(const struct channel *channel, uint32_t n_extents)
{
	const char *name = channel->vm->config->name;

	vgpu_log_warning("vm=%s channel=%u pid=%u: no %u consecutive extents of arena "
			 "are left; a larger size = in [vm %s] provides more",
		name, channel->index, channel->record->pid, n_extents, name);
}

/*
 * Grants extents. The grant is recorded before the extents are taken: if the broker dies
 * in between, the next one takes the same extents, see finish_grant().
 *
 * Return: 0 or EXTENT_E_FULL.
 */
static int grant(
	struct channel *channel, const struct control_want *want, uint32_t *firstp)
{
	struct ledger_channel *record = channel->record;

	if (record->grant_n == want->n_extents && record->grant_cookie == want->cookie &&
		record->grant_n) {
		*firstp = record->grant_first;
		return owners_own(channel, *firstp, record->grant_n);
	}
	if (extent_find_free(&channel->vm->extents, want->n_extents, firstp))
		return EXTENT_E_FULL;
	/* Partner: the next broker, which finds a prefix of these stores if this one is
	 * killed. */
	__atomic_store_n(&record->grant_n, 0, __ATOMIC_RELEASE);
	record->grant_first = *firstp;
	record->grant_cookie = want->cookie;
	__atomic_store_n(&record->grant_n, want->n_extents, __ATOMIC_RELEASE);
	return owners_own(channel, *firstp, want->n_extents);
}

bool channel_must_wait(const struct channel *channel, const struct control_want *want)
{
	const struct ledger_channel *record = channel->record;
	const bool is_granted = record->grant_n == want->n_extents &&
				record->grant_cookie == want->cookie;

	return record->phase == CHANNEL_OPEN && !is_granted &&
	       will_fit(channel->vm, want->n_extents);
}

bool channel_handle_want(struct channel *channel, const struct control_want *want)
{
	struct control_message message = {
		.type = CONTROL_GRANT,
		.grant = { .n_extents = want->n_extents, .cookie = want->cookie },
	};

	if (channel->record->phase == CHANNEL_ENDING)
		return true;
	if (channel->record->phase != CHANNEL_OPEN)
		return false;
	if (grant(channel, want, &message.grant.first_extent)) {
		if (account_take_log_line(channel->vm->account))
			log_no_arena(channel, want->n_extents);
		message.grant.n_extents = 0;
		message.grant.error = -ENOMEM;
	}
	worker_send(channel->worker, &message, NULL);
	return true;
}

/*
 * Scanning
 */

static void handle_breach(struct channel *channel, uint32_t state)
{
	if (account_take_log_line(channel->vm->account))
		vgpu_log_warning("vm=%s channel=%u pid=%u: the guest wrote the invalid "
				 "state %u into its entry: its session is ended",
			channel->vm->config->name, channel->index, channel->record->pid,
			state);
	channel_end(channel, CHANNEL_AFTER_DEAD, VGPU_REASON_PROTOCOL, 0);
}

bool channel_look(struct channel *channel)
{
	uint32_t state;

	if (channel->vm->gone)
		return false;
	state = entry_state(channel);
	switch (channel_judge(channel->record->phase, state)) {
	case CHANNEL_BEGIN:
		begin(channel);
		return true;
	case CHANNEL_REWINDOW:
		rewindow(channel);
		return true;
	case CHANNEL_CLOSE:
		if (channel->record->phase == CHANNEL_ENDING &&
			channel->record->after == CHANNEL_AFTER_FREE)
			return false;
		channel_end(
			channel, CHANNEL_AFTER_FREE, VGPU_REASON_NONE, CONTROL_STOP_MS);
		return true;
	case CHANNEL_CLEAR:
		clear(channel);
		return true;
	case CHANNEL_BREACH:
		handle_breach(channel, state);
		return true;
	default:
		return false;
	}
}

void channel_tick(struct channel *channel)
{
	int64_t now;

	if (channel->retry_at && clock_now() >= channel->retry_at)
		empty_next(channel);
	if (channel->record->phase != CHANNEL_IDLE ||
		entry_state(channel) != VGPU_CHANNEL_CLAIMED) {
		channel->claimed_since = 0;
		return;
	}
	now = clock_now();
	if (!channel->claimed_since)
		channel->claimed_since = now;
	if (now - channel->claimed_since < CHANNEL_CLAIM_MS)
		return;
	channel->claimed_since = 0;
	if (entry_step(channel, VGPU_CHANNEL_CLAIMED, VGPU_CHANNEL_CLOSING)) {
		if (account_take_log_line(channel->vm->account))
			vgpu_log_info(
				"vm=%s channel=%u: claimed, but no session was requested",
				channel->vm->config->name, channel->index);
		channel_look(channel);
	}
}

void channel_reboot(struct channel *channel, const uint8_t boot_id[16])
{
	static const uint8_t none[16];
	struct vgpu_channel_entry hello;

	if (channel->record->phase != CHANNEL_IDLE) {
		if (memcmp(channel->record->boot_id, boot_id, 16))
			channel_end(channel, CHANNEL_AFTER_FREE, VGPU_REASON_NONE,
				CONTROL_STOP_MS);
		return;
	}
	/* The entry was refused in the last boot. A claimed entry has no boot id yet. */
	entry_read(channel, &hello);
	if (memcmp(hello.boot_id, none, 16) && memcmp(hello.boot_id, boot_id, 16))
		clear(channel);
}

/*
 * Ending
 */

static bool is_opening(const struct channel *channel)
{
	return channel->record->phase == CHANNEL_WAITING ||
	       channel->record->phase == CHANNEL_ASSIGNED ||
	       channel->record->phase == CHANNEL_HELD;
}

/* Extents of a removed VM are not granted again, so the rest need not be emptied. */
static void hasten(struct channel *channel, enum channel_after after)
{
	if (after == CHANNEL_AFTER_FREE)
		channel->record->after = after;
	if (channel->vm->gone && wiper_cut(&channel->wipe))
		finish_emptying(channel);
}

void channel_end(struct channel *channel, enum channel_after after, uint32_t reason,
	unsigned int grace_ms)
{
	struct ledger_channel *record = channel->record;

	if (after == CHANNEL_AFTER_DEAD && is_opening(channel)) {
		/* It was never open: the guest waits for a refusal. */
		entry_refuse(channel, reason);
		after = CHANNEL_AFTER_REFUSED;
	}
	if (record->phase == CHANNEL_WAITING)
		leave_queue(channel);
	if (channel->worker) {
		/* Nothing is reported if the guest has closed the channel, or its VM is
		 * gone. */
		if (record->phase != CHANNEL_ENDING || after == CHANNEL_AFTER_FREE) {
			record->after = after;
			record->reason = reason;
		}
		record->phase = CHANNEL_ENDING;
		slots_note_ending(channel, !channel->worker->is_stuck);
		worker_end(channel->worker, grace_ms);
		return;
	}
	if (record->phase == CHANNEL_ENDING)
		return;
	if (record->phase == CHANNEL_EMPTYING)
		hasten(channel, after);
	else if (after == CHANNEL_AFTER_FREE)
		clear(channel);
	else if (after == CHANNEL_AFTER_DEAD && !entry_die(channel, reason))
		clear(channel);
}

static void log_end(struct channel *channel, uint32_t reason)
{
	struct session_line session = {
		.vm = channel->vm->config->name,
		.channel = channel->index,
		.guest_pid = channel->record->pid,
		.worker = channel->worker->pid,
		.reason = session_line_reason(reason),
	};
	char line[1024];

	session_line_read_stats(channel->worker->stats, &session.stats);
	session_line_format(&session, line, sizeof(line));
	vgpu_log_info("%s", line);
}

/* The line comes last: the next broker writes another one if this one dies before it has
 * recorded the end. */
static void note_end(struct channel *channel, uint32_t reason)
{
	totals_note_end(channel->vm->account, channel->worker, reason);
	flight_report_end(channel->worker, reason);
	log_end(channel, reason);
}

void channel_note_reason(struct channel *channel, uint32_t reason)
{
	struct ledger_channel *record = channel->record;

	if (record->phase == CHANNEL_ASSIGNED || record->phase == CHANNEL_HELD ||
		record->phase == CHANNEL_OPEN)
		record->reason = reason;
}

void channel_kill_worker(struct channel *channel, uint32_t reason)
{
	channel_note_reason(channel, reason);
	worker_kill(channel->worker);
}

/* The reason for the end of a session that this broker did not end. */
static void guess_reason(struct ledger_channel *record)
{
	if (record->reason == VGPU_REASON_NONE)
		record->reason = VGPU_REASON_WORKER_DIED;
}

/* Decides from the phase what follows the exit of a channel's worker. */
static enum channel_after settle(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	switch (record->phase) {
	case CHANNEL_ENDING:
		return record->after;
	case CHANNEL_ASSIGNED:
		guess_reason(record);
		entry_refuse(channel, VGPU_REASON_HOST);
		return CHANNEL_AFTER_REFUSED;
	case CHANNEL_HELD:
		guess_reason(record);
		return CHANNEL_AFTER_REFUSED;
	case CHANNEL_OPEN:
		guess_reason(record);
		return CHANNEL_AFTER_DEAD;
	default:
		/* The last broker died before it assigned the worker, or after it
		 * released the channel. */
		return CHANNEL_AFTER_REFUSED;
	}
}

void channel_handle_worker_gone(struct channel *channel)
{
	struct ledger_channel *record = channel->record;
	enum channel_after after = settle(channel);

	slots_give(channel);
	if (channel->worker && record->served)
		note_end(channel, record->reason);
	channel->worker = NULL;
	if (after == CHANNEL_AFTER_DEAD) {
		record->phase = CHANNEL_DEAD;
		record->worker = 0;
		if (!entry_die(channel, record->reason))
			clear(channel);
		return;
	}
	empty(channel, after);
}

/*
 * A new broker
 */

static void restore_open(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	/* The guest may not have been notified yet. */
	if (!channel->vm->gone && entry_state(channel) == VGPU_CHANNEL_OPENING) {
		entry_answer(channel, VGPU_REASON_NONE);
		entry_step(channel, VGPU_CHANNEL_OPENING, VGPU_CHANNEL_OPEN);
	}
	/* The worker was about to exit or to be killed. */
	if (record->reason != VGPU_REASON_NONE)
		worker_kill(channel->worker);
}

void channel_restore_worker(struct channel *channel, struct worker *worker)
{
	struct ledger_channel *record = channel->record;

	take_worker(channel, worker);
	image_files_assume(&worker->files);
	switch (record->phase) {
	case CHANNEL_OPEN:
		restore_open(channel);
		return;
	case CHANNEL_ENDING:
	case CHANNEL_EMPTYING:
		break;
	case CHANNEL_DEAD:
		record->after = CHANNEL_AFTER_DEAD;
		break;
	default:
		/* The worker's answer is unknown. The guest's entry still requests a
		 * session, and gets another worker. */
		record->after = CHANNEL_AFTER_REFUSED;
		record->reason = VGPU_REASON_HOST;
	}
	record->phase = CHANNEL_ENDING;
	slots_note_ending(channel, true);
	worker_end(worker, 0);
}

void channel_restore(struct channel *channel)
{
	struct ledger_channel *record = channel->record;

	entry_announce(channel);
	if (channel->worker || vm_is_emptying(channel))
		return;
	if (record->phase == CHANNEL_EMPTYING) {
		empty(channel, record->after);
		return;
	}
	if (record->worker) {
		channel_handle_worker_gone(channel);
		return;
	}
	if (record->phase == CHANNEL_DEAD) {
		if (!entry_die(channel, record->reason))
			clear(channel);
		return;
	}
	/* It may have extents that were taken for a worker before the assignment. */
	slots_give(channel);
	if (extent_count(&channel->vm->extents, channel->index))
		empty(channel, CHANNEL_AFTER_REFUSED);
	else
		record->phase = CHANNEL_IDLE;
}
