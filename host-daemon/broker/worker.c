/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker: the broker's view of a worker process
 *
 * A worker is STARTING, then WARM, then BUSY with one channel, then ENDING. It is never
 * reused, because its guest may have compromised it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/arbiter.h"
#include "broker/group-limit.h"
#include "broker/state.h"
#include "broker/worker.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/container-of.h"

/* A killed worker exits in this time, however busy the machine, unless it is stuck. */
#define WORKER_EXIT_MS 5000
/* Budget of messages of a worker: a burst, then one per interval. A worker normally
 * requests arena a few times in its life, and sends one or two messages about each
 * image. */
#define WORKER_MESSAGES 1024
#define WORKER_MESSAGE_MS 2

int worker_new(struct worker **workerp, struct broker *broker,
	const struct link_message *message, const int fds[3], loop_source_fn receive_fn)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int r;

	if (!worker) {
		for (int i = 0; i < 3; i++)
			close(fds[i]);
		return vgpu_error_origin(-ENOMEM);
	}
	worker->broker = broker;
	worker->id = message->id;
	worker->pid = message->worker.pid;
	worker->control = fds[0];
	worker->stats = fds[1];
	worker->receive_fn = receive_fn;
	/* Of one that the broker before this one had: what it noted is no news. */
	if (pread(fds[1], &worker->use, sizeof(worker->use), WORKER_USE_OFF) ==
		(ssize_t)sizeof(worker->use))
		worker->n_faults = worker->use.n_faults;
	budget_init(&worker->messages, WORKER_MESSAGES, WORKER_MESSAGE_MS, clock_now());
	image_files_init(&worker->files);
	TAILQ_INSERT_TAIL(&broker->pool.workers, worker, entry);
	r = worker_log_init(&worker->log, worker, fds[2]);
	if (r) {
		worker_free(worker);
		return vgpu_error_trace(r);
	}
	*workerp = worker;
	return 0;
}

int worker_listen(struct worker *worker)
{
	return loop_add(&worker->broker->loop, &worker->source, worker->control,
		worker->receive_fn);
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	TAILQ_REMOVE(&worker->broker->pool.workers, worker, entry);
	loop_remove(&worker->source);
	loop_clear_timer(&worker->deadline);
	loop_clear_timer(&worker->rest);
	room_state_close(&worker->room);
	worker->share = arbiter_remove_worker(worker->share);
	group_limit_leave(worker);
	worker_log_deinit(&worker->log);
	image_files_deinit(&worker->files);
	/* Including descriptors in flight that were never received. */
	closer_close(worker->control);
	closer_close(worker->stats);
	free(worker);
	return NULL;
}

struct worker *worker_find(struct broker *broker, uint64_t id)
{
	struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (worker->id == id)
			return worker;
	return NULL;
}

/*
 * Ending
 */

/* The keeper, its parent, sends the signal and reports the exit. */
void worker_kill(struct worker *worker)
{
	link_send_id(worker->broker->link, LINK_KILL, worker->id);
}

static struct worker *of_deadline(struct loop_timer *timer)
{
	return container_of(timer, struct worker, deadline);
}

static int handle_no_exit(struct loop_timer *timer)
{
	struct worker *worker = of_deadline(timer);

	vgpu_log_warning("worker=%d: it was killed and has not exited: it is in a system "
			 "call that does not return",
		(int)worker->pid);
	worker->is_stuck = true;
	if (worker->channel)
		worker->stuck_fn(worker);
	return 0;
}

/* Kills a worker that does not end by itself. */
static void end_by_force(struct worker *worker)
{
	worker->state = WORKER_ENDING;
	worker_kill(worker);
	if (worker->is_killed)
		return;
	worker->is_killed = true;
	loop_set_timer(
		&worker->broker->loop, &worker->deadline, WORKER_EXIT_MS, handle_no_exit);
}

static int handle_deadline(struct loop_timer *timer)
{
	struct worker *worker = of_deadline(timer);

	vgpu_log_info(
		"worker=%d: it did not end on request and is killed", (int)worker->pid);
	end_by_force(worker);
	return 0;
}

void worker_end(struct worker *worker, unsigned int grace_ms)
{
	const struct control_message stop = { .type = CONTROL_STOP };
	const bool told = worker->state == WORKER_ENDING;

	worker->state = WORKER_ENDING;
	if (!grace_ms) {
		end_by_force(worker);
		return;
	}
	/* STOP was sent before: only a shorter deadline has an effect. */
	if (worker->is_killed ||
		(told && worker->deadline.deadline <= clock_now() + grace_ms))
		return;
	loop_set_timer(
		&worker->broker->loop, &worker->deadline, grace_ms, handle_deadline);
	if (!told)
		worker_send(worker, &stop, NULL);
}

void worker_send(
	struct worker *worker, const struct control_message *message, const int *fds)
{
	int r;

	r = control_send(worker->control, message, fds);
	if (!r)
		return;
	/* After end-of-file it is exiting; the keeper will report that. */
	if (r != CONTROL_E_EOF)
		vgpu_log_error("worker=%d: it accepts no message (%s) and is killed",
			(int)worker->pid, r < 0 ? strerror(-r) : "its socket is full");
	end_by_force(worker);
}

void worker_go_on(struct worker *worker)
{
	if (!worker->waits)
		return;
	worker->waits = false;
	if (worker_listen(worker))
		end_by_force(worker);
}
