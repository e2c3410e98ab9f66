/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rooms: what each worker may have on the device, of device-memory-total
 *
 * A worker can say at any time that the driver refuses memory to it. Requests for room
 * are bounded by the books: after a VM has had as much moved as it may have, there is
 * room for it. The books say nothing about what the driver lacks, so what others have
 * moved for a VM's lack is counted, until workers of others were granted as much again.
 * While that is as much as the VM may have its requests are refused. So a VM that lies
 * makes no more go than one that may have twice as much, and the last process is moved as
 * a whole in both cases.
 */

#include <stdlib.h>

#include "broker/channel.h"
#include "broker/host-memory.h"
#include "broker/quota-watch.h"
#include "broker/room-policy.h"
#include "broker/rooms.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/room.h"
#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"
#include "vgpud/container-of.h"

/* Between two looks while somebody waits. */
#define ROOMS_LOOK_MS 20u
#define ROOMS_SLACK (64ull << 20)
#define ROOMS_BACK_IDLE_MS 200u
#define ROOMS_BACK_WAIT_MS 5000u
/* Copying some GiB takes seconds. */
#define ROOMS_GOING_MS 15000u
/* One that could not go is not told so again before. */
#define ROOMS_BUSY_MS 1000u
#define ROOMS_WATCH_TIMES 2u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool has_room(const struct worker *worker)
{
	return worker->room.room && worker->channel;
}

/* What the workers of its VM may have besides this one's need. */
static bool is_over(
	const struct broker *broker, const struct worker *worker, uint64_t need)
{
	const struct account *account = worker->channel->vm->account;
	const struct worker *other;
	uint64_t sum = need;

	TAILQ_FOREACH(other, &broker->pool.workers, entry)
		if (other != worker && has_room(other) &&
			other->channel->vm->account == account &&
			!vgpu_add_u64(sum,
				least(other->room.granted,
					__atomic_load_n(&other->room.room->need,
						__ATOMIC_RELAXED)),
				&sum))
			return true;
	return sum > room_state_limit(worker->channel->vm->account);
}

/* Whether as much has gone for what its VM lacks as that may have. */
static bool has_lacked(const struct broker *broker, const struct worker *worker)
{
	const struct account *account = worker->channel->vm->account;

	return account->lacked >=
	       least(room_state_limit(account), broker->config->device_memory_total);
}

/* A worker has so much more: for what has gone before its time there is a use. */
static void settle_lack(const struct worker *worker, uint64_t size)
{
	const struct broker *broker = worker->broker;

	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		struct account *account = &broker->accounts[i];

		if (account != worker->channel->vm->account)
			account->lacked -= least(account->lacked, size);
	}
}

/* It has gone for another one's lack, all or in part. The grant goes with it, so that
 * its return is one that counts. */
static void note_gone(struct room_state *own, uint64_t need)
{
	struct account *account = own->for_lack_of;

	if (!vgpu_add_u64(account->lacked, own->held - need, &account->lacked))
		account->lacked = UINT64_MAX;
	if (own->granted > need)
		own->granted = room_trim(own->room, own->granted, need);
}

/* Notes what it has asked for and whether it has gone. */
static void follow(
	struct room_state *own, const struct room_reading *reading, int64_t now)
{
	if (reading->asked != own->request) {
		own->request = reading->asked;
		own->asked = now;
		own->has_told = false;
	}
	if (!own->is_going)
		return;
	if (reading->moved == own->move) {
		own->is_going = false;
		/* It had calls, work or no place. */
		if (reading->need >= own->held)
			own->busy_until = now + ROOMS_BUSY_MS;
		else if (own->for_lack_of)
			note_gone(own, reading->need);
	} else if (now > own->going + ROOMS_GOING_MS) {
		own->is_going = false;
		own->busy_until = now + ROOMS_GOING_MS;
	}
}

static uint64_t idle_ms(
	const struct room_state *own, const struct room_reading *reading, int64_t now)
{
	const int64_t since = (int64_t)(reading->idle_since / 1000000);

	if (!reading->idle_since || now < own->busy_until || since > now)
		return 0;
	return (uint64_t)(now - since);
}

/* Whether it waits for an answer that it has not got. */
static bool is_asking(const struct room_state *own, const struct room_reading *reading)
{
	if (!reading->is_waiting || own->refused == reading->asked)
		return false;
	return reading->lacking ? own->granted && own->met != reading->asked
				: reading->need > own->granted;
}

static void describe(const struct broker *broker, struct worker *worker,
	struct room_member *member, int64_t now)
{
	struct room_state *own = &worker->room;
	struct room_reading reading;

	room_read(own->room, &reading);
	follow(own, &reading, now);
	*member = (struct room_member){
		.granted = own->granted,
		.need = reading.need,
		.idle_ms = idle_ms(own, &reading, now),
		.waited_ms = (uint64_t)(now - own->asked),
		.is_evictable = worker->channel->vm->config->evictable &&
				worker->state == WORKER_BUSY && !worker->has_exited,
		.is_asking = is_asking(own, &reading),
		.is_back = reading.is_back,
		.is_going = own->is_going,
		/* The driver has refused some of what it was granted. */
		.lacking = least(reading.lacking, own->granted),
		/* Of a request for room its VM's limit is looked at each time. */
		.has_told = reading.lacking && own->has_told,
	};
	if (member->is_asking && !member->has_told)
		member->is_over = reading.lacking ? has_lacked(broker, worker)
						  : is_over(broker, worker, reading.need);
}

/* Tells it to go. */
static void send_away(struct worker *worker, const struct room_member *member,
	struct account *for_lack_of, int64_t now)
{
	const struct control_message message = { .type = CONTROL_MOVE };
	struct room_state *own = &worker->room;

	own->is_going = true;
	own->going = now;
	own->held = least(own->granted, member->need);
	/* A VM need not pay for its own. */
	own->for_lack_of =
		for_lack_of != worker->channel->vm->account ? for_lack_of : NULL;
	if (!++own->move)
		own->move = 1;
	room_wish_move(own->room, own->move);
	worker_send(worker, &message, NULL);
}

static void refuse(struct worker *worker, const struct room_member *member)
{
	const bool is_logged = account_take_log_line(worker->channel->vm->account);

	if (is_logged && member->lacking)
		vgpu_log_info("vm=%s channel=%u: the driver has no %llu MiB for it, and "
			      "no memory of others makes room",
			worker->channel->vm->config->name, worker->channel->index,
			(unsigned long long)member->lacking >> 20);
	else if (is_logged)
		vgpu_log_info("vm=%s channel=%u: the device has no room for %llu MiB%s",
			worker->channel->vm->config->name, worker->channel->index,
			(unsigned long long)(member->need - member->granted) >> 20,
			member->is_back ? " that were there before" : " more");
	worker->room.refused = worker->room.request;
	room_refuse(worker->room.room, worker->room.request);
}

static void meet(struct worker *worker)
{
	worker->room.met = worker->room.request;
	room_meet(worker->room.room, worker->room.request);
}

static void grant(struct worker *worker, const struct room_member *member)
{
	struct room_state *own = &worker->room;

	if (member->need > own->granted)
		settle_lack(worker, member->need - own->granted);
	own->granted = member->granted;
	room_grant(own->room, own->granted);
}

/* Applies what was decided about the member with that index. */
static void apply(struct worker *const *workers, const struct room_member *members,
	size_t i, int64_t now)
{
	const struct room_member *member = &members[i], *lacking = member->for_lack_of;
	struct worker *worker = workers[i];
	struct room_state *own = &worker->room;

	own->has_told = member->has_told;
	switch (member->verdict) {
	case ROOM_GRANT:
		grant(worker, member);
		break;
	case ROOM_TRIM:
		own->granted = room_trim(own->room, own->granted, member->granted);
		break;
	case ROOM_MOVE:
		send_away(worker, member,
			lacking ? workers[lacking - members]->channel->vm->account : NULL,
			now);
		break;
	case ROOM_REFUSE:
		refuse(worker, member);
		break;
	case ROOM_MEET:
		meet(worker);
		break;
	default:
		break;
	}
}

static int handle_look(struct loop_timer *timer)
{
	rooms_look(container_of(timer, struct broker, rooms));
	return 0;
}

/* Fills in a member for each worker. Return: how many. */
static size_t describe_all(
	struct broker *broker, struct worker **workers, struct room_member *members)
{
	const int64_t now = clock_now();
	struct worker *worker;
	size_t n = 0;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!has_room(worker))
			continue;
		workers[n] = worker;
		describe(broker, worker, &members[n++], now);
	}
	return n;
}

/* Applies what was decided, grants last: what was trimmed may be needed after all.
 * Return: whether that is so, and the next look decides anew. */
static bool apply_all(
	struct worker *const *workers, const struct room_member *members, size_t n)
{
	const int64_t now = clock_now();
	bool is_short = false;

	for (size_t i = 0; i < n; i++) {
		if (members[i].verdict == ROOM_GRANT)
			continue;
		apply(workers, members, i, now);
		is_short |= members[i].verdict == ROOM_TRIM &&
			    workers[i]->room.granted != members[i].granted;
	}
	for (size_t i = 0; i < n && !is_short; i++)
		if (members[i].verdict == ROOM_GRANT)
			apply(workers, members, i, now);
	return is_short;
}

static bool is_waiting(const struct room_member *members, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (members[i].is_asking && members[i].verdict != ROOM_REFUSE)
			return true;
	return false;
}

static size_t count_rooms(const struct broker *broker)
{
	const struct worker *worker;
	size_t n = 0;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		n += has_room(worker);
	return n;
}

void rooms_look(struct broker *broker)
{
	const struct config *config = broker->config;
	const struct room_policy policy = {
		.total = config->device_memory_total,
		.slack = ROOMS_SLACK,
		.idle_ms = config->evict_idle * UINT64_C(1000),
		.back_idle_ms = ROOMS_BACK_IDLE_MS,
		.back_wait_ms = ROOMS_BACK_WAIT_MS,
	};
	const size_t n_rooms = count_rooms(broker);
	struct room_member *members;
	struct worker **workers;
	bool looks_again = true;
	size_t n;

	if (!policy.total || !n_rooms)
		return;
	members = calloc(n_rooms, sizeof(*members));
	workers = calloc(n_rooms, sizeof(*workers));
	if (members && workers) {
		n = describe_all(broker, workers, members);
		room_decide(&policy, members, n);
		looks_again = apply_all(workers, members, n) || is_waiting(members, n);
	}
	free(members);
	free(workers);
	if (looks_again)
		loop_set_timer(&broker->loop, &broker->rooms, ROOMS_LOOK_MS, handle_look);
}

void rooms_watch(struct broker *broker)
{
	struct worker *worker;

	if (!broker->config->device_memory_total)
		return;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		struct room_state *own = &worker->room;

		if (!has_room(worker) || worker->hung_up || worker->is_condemned)
			continue;
		own->n_over = worker->memory_seen > own->granted + QUOTA_WATCH_SLACK
				      ? own->n_over + 1
				      : 0;
		if (own->n_over < ROOMS_WATCH_TIMES)
			continue;
		vgpu_log_warning("vm=%s worker=%d: it has %llu MiB on the device, and "
				 "may have %llu MiB: it is ended",
			worker->channel->vm->config->name, (int)worker->pid,
			(unsigned long long)worker->memory_seen >> 20,
			(unsigned long long)own->granted >> 20);
		host_memory_condemn(worker, VGPU_REASON_HOST);
	}
}
