/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool: the warm workers, and the channels that wait for one
 *
 * Channels of one section are served in order of arrival; sections take turns, so that
 * the number of processes that one VM starts does not delay another VM. A section with
 * several waiting channels leaves the warm workers to sections with one.
 */

#include <stddef.h>
#include <string.h>

#include "broker/channel.h"
#include "broker/pool.h"
#include "broker/state.h"
#include "broker/status.h"
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

static struct worker *find_warm(struct broker *broker)
{
	struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (is_warm(worker))
			return worker;
	return NULL;
}

static unsigned int count_warm(const struct broker *broker)
{
	const struct worker *worker;
	unsigned int n = 0;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		n += is_warm(worker);
	return n;
}

/* Counts live workers, those without a channel, and those still starting. */
static void count_workers(const struct broker *broker, unsigned int *n_livep,
	unsigned int *n_idlep, unsigned int *n_startingp)
{
	const struct worker *worker;

	*n_livep = *n_idlep = *n_startingp = broker->pool.n_spawning;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (worker->hung_up || worker->has_exited)
			continue;
		*n_livep += worker->state != WORKER_ENDING;
		*n_startingp += worker->state == WORKER_STARTING;
		*n_idlep +=
			worker->state == WORKER_STARTING || worker->state == WORKER_WARM;
	}
}

/* Requests workers from the keeper. */
static void spawn_workers(struct broker *broker, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (link_send_id(broker->link, LINK_SPAWN, 0))
			return;
		broker->pool.n_spawning++;
	}
}

/* Ends warm workers that were started for guests which gave up waiting. */
static void dismiss_workers(struct broker *broker, unsigned int n)
{
	struct worker *worker;

	while (n-- && (worker = find_warm(broker)))
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
static unsigned int count_reserved(const struct broker *broker)
{
	const struct worker_pool *pool = &broker->pool;
	unsigned int n_live, n_idle, n_starting;

	count_workers(broker, &n_live, &n_idle, &n_starting);
	if (broker->config->n_vms == 1 || pool->pause.loop || pool->shortage.loop ||
		n_live >= broker->config->max_workers)
		return 0;
	return broker->config->warm_workers;
}

/* The first channel of the section that has waited longest for its turn. */
static struct channel *choose_channel(struct broker *broker)
{
	struct channel *channel, *chosen = NULL;
	const struct account *account;
	bool is_scarce;

	count_waiting(broker);
	is_scarce = count_warm(broker) <= count_reserved(broker);
	TAILQ_FOREACH(channel, &broker->waiting, waiting) {
		account = channel->vm->account;
		if (!channel->is_counted || !channel_can_begin(channel) ||
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

	while ((worker = find_warm(broker)) && (channel = choose_channel(broker))) {
		channel->vm->account->turn = ++pool->n_turns;
		channel_assign(channel, worker);
		if (!pool->rest.loop)
			loop_set_timer(&broker->loop, &pool->rest, POOL_REST_MS,
				handle_rest_over);
	}
}

/* Return: the target number of idle workers; n_idle is the present one. */
static unsigned int count_wanted(const struct broker *broker, unsigned int n_idle)
{
	unsigned int n_waiting = 0, n_spare = broker->config->warm_workers;
	const struct channel *channel;

	TAILQ_FOREACH(channel, &broker->waiting, waiting)
		n_waiting += channel->is_counted;
	if (broker->pool.pause.loop)
		n_spare = 0;
	else if (broker->pool.rest.loop)
		n_spare = min(n_spare, rest(n_idle, n_waiting));
	else if (!n_spare && !n_waiting && !TAILQ_EMPTY(&broker->vms) &&
		 !status_is_known(broker))
		n_spare = 1; /* which finds the devices */
	return n_waiting + n_spare;
}

void pool_update(struct broker *broker)
{
	struct worker_pool *pool = &broker->pool;
	unsigned int n_live, n_idle, n_starting, n_wanted, n;

	if (!broker->synced || broker->draining)
		return;
	count_in(broker);
	give_workers(broker);
	count_workers(broker, &n_live, &n_idle, &n_starting);
	n_wanted = count_wanted(broker, n_idle);
	if (n_idle > n_wanted && !pool->pause.loop) {
		dismiss_workers(broker, n_idle - n_wanted);
		return;
	}
	if (pool->shortage.loop)
		return;
	/* Many at once would delay each other and the broker. */
	n = n_idle < n_wanted ? n_wanted - n_idle : 0;
	n = min(n, rest(broker->config->max_workers, n_live));
	spawn_workers(broker, min(n, rest(POOL_STARTING_MAX, n_starting)));
}

static int handle_pause_over(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct broker, pool.pause));
	return 0;
}

void pool_handle_failure(struct broker *broker, uint32_t reason)
{
	struct worker_pool *pool = &broker->pool;
	unsigned int ms = POOL_PAUSE_MIN_MS;
	struct channel *channel;

	for (unsigned int i = 0; i < pool->n_failures && ms < POOL_PAUSE_MAX_MS; i++)
		ms *= 2;
	pool->n_failures++;
	loop_set_timer(&broker->loop, &pool->pause,
		ms < POOL_PAUSE_MAX_MS ? ms : POOL_PAUSE_MAX_MS, handle_pause_over);
	while ((channel = TAILQ_FIRST(&broker->waiting)))
		channel_refuse(channel, reason);
}

static int handle_shortage_over(struct loop_timer *timer)
{
	pool_update(container_of(timer, struct broker, pool.shortage));
	return 0;
}

void pool_handle_no_worker(struct broker *broker, int error)
{
	struct worker_pool *pool = &broker->pool;

	if (pool->n_spawning)
		pool->n_spawning--;
	if (!shortage_is(error)) {
		vgpu_log_error("a worker cannot be started: %s", strerror(-error));
		pool_handle_failure(broker, VGPU_REASON_HOST);
		return;
	}
	if (budget_take(&pool->log, clock_now()))
		vgpu_log_warning(
			"a worker cannot be started now: %s; guests keep waiting for one",
			strerror(-error));
	loop_set_timer(
		&broker->loop, &pool->shortage, POOL_SHORTAGE_MS, handle_shortage_over);
}
