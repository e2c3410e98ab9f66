/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool: the warm workers, and the channels that wait for one
 *
 * Channels of one section are served in order of arrival; sections take turns, so that
 * the number of processes that one VM starts does not delay another VM. A section with
 * several waiting channels leaves the warm workers to sections with one.
 *
 * A worker has the devices of a set of VMs (device-set.h), and serves these only.
 */

#include <stddef.h>
#include <string.h>

#include "broker/channel.h"
#include "broker/device-set.h"
#include "broker/pool.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/container-of.h"
#include "vgpud/shortage.h"

/* Pause after a worker that failed to start, doubled each time. */
#define POOL_PAUSE_MIN_MS 250
#define POOL_PAUSE_MAX_MS 30000
/* A guest process that has just got a worker starts up on the same processors, and has
 * precedence. */
#define POOL_REST_MS 20
/* Workers that start at the same time. */
#define POOL_STARTING_MAX 8

/* Pause after the host lacked resources for a worker. */
#define POOL_SHORTAGE_MS 250

/* Budget of log lines of all workers without a guest: a burst, then one line per
 * interval. */
#define POOL_LOG_LINES 500
#define POOL_LOG_MS 100

void pool_init(struct worker_pool *pool)
{
	TAILQ_INIT(&pool->workers);
	budget_init(&pool->log, POOL_LOG_LINES, POOL_LOG_MS, clock_now());
}

/* A worker that has exited may have left READY in its socket. */
static bool is_warm(const struct worker *worker)
{
	return worker->state == WORKER_WARM && !worker->hung_up && !worker->has_exited;
}

static struct worker *find_warm(const struct device_set *set)
{
	struct worker *worker;

	TAILQ_FOREACH(worker, &set->broker->pool.workers, entry)
		if (worker->devices == set && is_warm(worker))
			return worker;
	return NULL;
}

/* All workers together. */
struct worker_count {
	unsigned int n_live;
	unsigned int n_starting;
};

static void count_worker(const struct worker *worker, struct worker_count *count)
{
	struct device_set *set = worker->devices;

	if (worker->hung_up || worker->has_exited)
		return;
	count->n_live += worker->state != WORKER_ENDING;
	count->n_starting += worker->state == WORKER_STARTING;
	if (!set)
		return;
	set->n_warm += worker->state == WORKER_WARM;
	set->n_idle += worker->state == WORKER_STARTING || worker->state == WORKER_WARM;
}

static struct worker_count count_workers(struct broker *broker)
{
	struct worker_count count = { 0 };
	const struct worker *worker;

	for (unsigned int i = 0; i < broker->n_sets; i++) {
		struct device_set *set = &broker->sets[i];

		set->n_warm = 0;
		set->n_idle = set->n_spawning;
		count.n_live += set->n_spawning;
		count.n_starting += set->n_spawning;
	}
	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		count_worker(worker, &count);
	return count;
}

bool pool_is_starting(const struct broker *broker)
{
	for (unsigned int i = 0; i < broker->n_sets; i++)
		if (broker->sets[i].n_spawning)
			return true;
	return false;
}

/* Requests a worker from the keeper. Return: false if that cannot be sent. */
static bool spawn_worker(struct device_set *set)
{
	if (link_send_id(set->broker->link, LINK_SPAWN, set->request))
		return false;
	set->n_spawning++;
	set->n_idle++;
	return true;
}

/* Ends warm workers that were started for guests which gave up waiting. */
static void dismiss_workers(struct device_set *set, unsigned int n)
{
	struct worker *worker;

	while (n-- && (worker = find_warm(set)))
		worker_end(worker, CONTROL_STOP_MS);
}

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int rest(unsigned int limit, unsigned int used)
{
	return used < limit ? limit - used : 0;
}

static int handle_turn(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct broker, pool.turn));
	return 0;
}

/* Admits channels as the process rates of their VMs allow; the others keep waiting. A
 * channel that closes after its admission has used its share nevertheless: its worker is
 * being started. */
static void count_in(struct broker *broker)
{
	uint32_t wait, shortest = 0;
	struct channel *channel;

	TAILQ_FOREACH(channel, &broker->waiting, waiting) {
		struct budget *processes = &channel->vm->account->processes;

		if (channel->is_counted)
			continue;
		wait = budget_wait(processes, clock_now());
		if (!wait)
			channel->is_counted = budget_take(processes, clock_now());
		else if (!shortest || wait < shortest)
			shortest = wait;
	}
	if (shortest)
		loop_set_timer(&broker->loop, &broker->pool.turn, shortest, handle_turn);
}

/* Counts for each section the channels that only lack a worker. */
static void count_waiting(struct broker *broker)
{
	struct channel *channel;

	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		broker->accounts[i].n_waiting = 0;
	TAILQ_FOREACH(channel, &broker->waiting, waiting)
		channel->vm->account->n_waiting +=
			channel->is_counted && channel_can_begin(channel);
}

/* Warm workers that a section with several waiting channels may not take, as long as
 * others can be started for it. */
static unsigned int count_reserved(const struct device_set *set, unsigned int n_live)
{
	const struct broker *broker = set->broker;

	if (broker->config->n_vms == 1 || set->pause.loop || broker->pool.shortage.loop ||
		n_live >= broker->config->max_workers)
		return 0;
	return broker->config->warm_workers;
}

/* The first channel of the section that has waited longest for its turn, and has a worker
 * of its devices. */
static struct channel *choose_channel(struct broker *broker)
{
	const struct worker_count count = count_workers(broker);
	struct channel *channel, *chosen = NULL;
	const struct account *account;
	bool is_scarce;

	count_waiting(broker);
	TAILQ_FOREACH(channel, &broker->waiting, waiting) {
		account = channel->vm->account;
		is_scarce = account->devices->n_warm <=
			    count_reserved(account->devices, count.n_live);
		if (!account->devices->n_warm || !channel->is_counted ||
			!channel_can_begin(channel) ||
			(is_scarce && account->n_waiting > 1))
			continue;
		if (!chosen || account->turn < chosen->vm->account->turn)
			chosen = channel;
	}
	return chosen;
}

static int handle_rest_over(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct broker, pool.rest));
	return 0;
}

static void give_workers(struct broker *broker)
{
	struct worker_pool *pool = &broker->pool;
	struct channel *channel;
	struct worker *worker;

	while ((channel = choose_channel(broker)) &&
		(worker = find_warm(channel->vm->account->devices))) {
		channel->vm->account->turn = ++pool->n_turns;
		channel_assign(channel, worker);
		if (!pool->rest.loop)
			loop_set_timer(&broker->loop, &pool->rest, POOL_REST_MS,
				handle_rest_over);
	}
}

static void count_demand(struct broker *broker)
{
	const struct channel *channel;
	const struct vm *vm;

	for (unsigned int i = 0; i < broker->n_sets; i++) {
		broker->sets[i].n_vms = broker->sets[i].n_waiting = 0;
		broker->sets[i].turn = UINT64_MAX;
	}
	TAILQ_FOREACH(vm, &broker->vms, entry)
		vm->account->devices->n_vms += !vm->gone;
	TAILQ_FOREACH(channel, &broker->waiting, waiting) {
		const struct account *account = channel->vm->account;

		account->devices->n_waiting += channel->is_counted;
		if (channel->is_counted && account->turn < account->devices->turn)
			account->devices->turn = account->turn;
	}
}

/* Workers that wait for processes which may come: for the set of all devices always, for
 * others while there is a VM. */
static unsigned int count_spare(const struct device_set *set)
{
	const struct broker *broker = set->broker;
	unsigned int n = broker->config->warm_workers;
	const bool is_used =
		set->n_vms || (!set->list && (set->n_sections || broker->n_sets == 1));

	if (set->pause.loop || !is_used)
		return 0;
	if (broker->pool.rest.loop)
		return min(n, rest(set->n_idle, set->n_waiting));
	if (!n && !set->n_waiting && set->n_vms && !set->status)
		return 1; /* which finds the devices */
	return n;
}

static unsigned int count_wanted(const struct device_set *set)
{
	return set->n_waiting + count_spare(set);
}

/* Return: whether there were any. */
static bool dismiss_surplus(struct broker *broker)
{
	bool is_any = false;

	for (unsigned int i = 0; i < broker->n_sets; i++) {
		struct device_set *set = &broker->sets[i];
		const unsigned int n = rest(set->n_idle, count_wanted(set));

		if (!n || set->pause.loop)
			continue;
		is_any |= set->n_warm != 0;
		dismiss_workers(set, n);
	}
	return is_any;
}

/* The set that lacks workers, and whose turn is first: those with waiting channels, then
 * those without. */
static struct device_set *choose_set(struct broker *broker)
{
	struct device_set *chosen = NULL;

	for (unsigned int i = 0; i < broker->n_sets; i++) {
		struct device_set *set = &broker->sets[i];

		if (set->n_idle < count_wanted(set) &&
			(!chosen || set->turn < chosen->turn))
			chosen = set;
	}
	return chosen;
}

/* A worker that only waits makes room for one of other devices, whose VM waits. */
static void make_room(struct broker *broker, const struct device_set *needy)
{
	if (needy->n_idle >= needy->n_waiting)
		return;
	for (unsigned int i = 0; i < broker->n_sets; i++) {
		struct device_set *set = &broker->sets[i];

		if (set != needy && set->n_idle > set->n_waiting && find_warm(set)) {
			dismiss_workers(set, 1);
			return;
		}
	}
}

void pool_update(struct broker *broker)
{
	struct worker_pool *pool = &broker->pool;
	struct worker_count count;
	struct device_set *set;
	unsigned int n;

	if (!broker->synced || broker->draining)
		return;
	count_in(broker);
	give_workers(broker);
	count = count_workers(broker);
	count_demand(broker);
	if (dismiss_surplus(broker) || pool->shortage.loop)
		return;
	/* Many at once would delay each other and the broker. */
	n = min(rest(broker->config->max_workers, count.n_live),
		rest(POOL_STARTING_MAX, count.n_starting));
	if (count.n_live >= broker->config->max_workers && broker->n_sets > 1 &&
		(set = choose_set(broker)))
		make_room(broker, set);
	while (n-- && (set = choose_set(broker)) && spawn_worker(set))
		if (set->turn != UINT64_MAX)
			set->turn = pool->n_turns + set->n_idle;
}

static int handle_pause_over(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct device_set, pause)->broker);
	return 0;
}

static void refuse_waiting(const struct device_set *set, uint32_t reason)
{
	struct channel *channel;

	do {
		TAILQ_FOREACH(channel, &set->broker->waiting, waiting)
			if (channel->vm->account->devices == set)
				break;
		if (channel)
			channel_refuse(channel, reason);
	} while (channel);
}

void pool_handle_failure(struct device_set *set, uint32_t reason)
{
	unsigned int ms = POOL_PAUSE_MIN_MS;

	for (unsigned int i = 0; i < set->n_failures && ms < POOL_PAUSE_MAX_MS; i++)
		ms *= 2;
	set->n_failures++;
	loop_set_timer(&set->broker->loop, &set->pause,
		ms < POOL_PAUSE_MAX_MS ? ms : POOL_PAUSE_MAX_MS, handle_pause_over);
	refuse_waiting(set, reason);
}

static int handle_shortage_over(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct broker, pool.shortage));
	return 0;
}

void pool_handle_no_worker(struct device_set *set, int error)
{
	struct broker *broker = set->broker;
	struct worker_pool *pool = &broker->pool;

	if (set->n_spawning)
		set->n_spawning--;
	if (!shortage_is(error)) {
		vgpu_log_error("a worker cannot be started: %s", strerror(-error));
		pool_handle_failure(set, VGPU_REASON_HOST);
		return;
	}
	if (budget_take(&pool->log, clock_now()))
		vgpu_log_warning(
			"a worker cannot be started now: %s; guests keep waiting for one",
			strerror(-error));
	loop_set_timer(
		&broker->loop, &pool->shortage, POOL_SHORTAGE_MS, handle_shortage_over);
}
