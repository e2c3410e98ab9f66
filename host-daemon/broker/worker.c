/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker: a worker process as the broker sees it
 *
 * A worker is STARTING, then WARM, then BUSY with one channel, then ENDING; it never
 * takes a step back, because what a guest did to it cannot be known. Whatever it says
 * is checked as if its guest said it. A message is looked at in the socket, acted on,
 * and only then taken out: if the broker dies between, the next one finds it there. So
 * whatever is done here does the same when it is done twice; what that needs to know
 * stands in the ledger.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/images.h"
#include "broker/session-line.h"
#include "broker/slots.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"

/* Messages of one worker in a row, before others have their turn. */
#define WORKER_BATCH 16
/* Messages a worker may send at once, and then one in each such time: an honest one asks
 * for arena a few times in its life, and says one or two words about each image. */
#define WORKER_MESSAGES 1024
#define WORKER_MESSAGE_MS 2

static int handle_control(struct loop_source *source);

int worker_new(struct worker **workerp, struct broker *broker,
	const struct link_message *message, const int fds[3])
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
	return loop_add(
		&worker->broker->loop, &worker->source, worker->control, handle_control);
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	TAILQ_REMOVE(&worker->broker->pool.workers, worker, entry);
	loop_remove(&worker->source);
	loop_clear_timer(&worker->deadline);
	loop_clear_timer(&worker->rest);
	worker_log_deinit(&worker->log);
	image_files_deinit(&worker->files);
	/* With descriptors that it sent and nobody took out. */
	closer_close(worker->control);
	vgpu_close(worker->stats);
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

/* SIGKILL; the keeper, whose child it is, sends it and reports the end. */
static void kill_worker(struct worker *worker)
{
	worker->state = WORKER_ENDING;
	loop_clear_timer(&worker->deadline);
	link_send_id(worker->broker->link, LINK_KILL, worker->id);
}

void worker_kill(struct worker *worker, uint32_t reason)
{
	if (worker->channel)
		channel_note_reason(worker->channel, reason);
	link_send_id(worker->broker->link, LINK_KILL, worker->id);
}

static struct worker *of_deadline(struct loop_timer *timer)
{
	return (struct worker *)((char *)timer - offsetof(struct worker, deadline));
}

static int handle_deadline(struct loop_timer *timer)
{
	struct worker *worker = of_deadline(timer);

	vgpu_log_info(
		"worker %d has not ended when told to and is killed", (int)worker->pid);
	kill_worker(worker);
	return 0;
}

void worker_end(struct worker *worker, unsigned int grace_ms)
{
	const struct control_message stop = { .type = CONTROL_STOP };
	const bool told = worker->state == WORKER_ENDING;

	worker->state = WORKER_ENDING;
	if (!grace_ms) {
		kill_worker(worker);
		return;
	}
	/* Told before: only a shorter time counts, and none set means killed already. */
	if (told && (!worker->deadline.loop ||
			    worker->deadline.deadline <= clock_now() + grace_ms))
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
	/* At end-of-file it is ending already; its exit will be reported. */
	if (r != CONTROL_E_EOF)
		vgpu_log_error("worker %d takes no message (%s) and is killed",
			(int)worker->pid, r < 0 ? strerror(-r) : "its socket is full");
	kill_worker(worker);
}

/*
 * What a worker says
 */

/* It is another build's: no number of it but this one can be understood. */
static void refuse_version(struct worker *worker, uint32_t version)
{
	struct worker_pool *pool = &worker->broker->pool;

	/* Once: each that is tried meanwhile says the same. */
	if (!pool->is_version_told)
		vgpu_log_error(
			"worker %d speaks version %u of the control protocol, this "
			"broker version %u: vgpud and its worker program have to be of "
			"one installation, and vgpud be restarted after it has changed",
			(int)worker->pid, version, CONTROL_VERSION);
	pool->is_version_told = true;
	worker_end(worker, CONTROL_STOP_MS);
	pool_handle_failure(worker->broker, VGPU_REASON_HOST);
}

static bool handle_ready(struct worker *worker, const struct control_message *message)
{
	const struct control_ready *ready = &message->ready;
	struct broker *broker = worker->broker;

	if (worker->state == WORKER_ENDING)
		return true;
	if (worker->state != WORKER_STARTING)
		return false;
	if (message->greeting.version != CONTROL_VERSION) {
		refuse_version(worker, message->greeting.version);
		return true;
	}
	if (ready->reason >= _VGPU_REASON_N)
		return false;
	if (ready->reason != VGPU_REASON_NONE) {
		vgpu_log_warning("worker %d has no driver to serve with: %s",
			(int)worker->pid, session_line_reason(ready->reason));
		worker_end(worker, CONTROL_STOP_MS);
		pool_handle_failure(broker, ready->reason);
		return true;
	}
	vgpu_log_debug("worker %d is warm: %s, version %d, %u devices", (int)worker->pid,
		ready->driver, ready->driver_version, ready->n_devices);
	worker->driver_version = ready->driver_version;
	worker->state = WORKER_WARM;
	broker->pool.is_version_told = false;
	broker->pool.n_failures = 0;
	loop_clear_timer(&broker->pool.pause);
	pool_update(broker);
	return true;
}

static bool handle_ended(struct worker *worker, uint32_t reason)
{
	if (reason >= _VGPU_REASON_N)
		return false;
	if (worker->channel)
		channel_note_reason(worker->channel, reason);
	return true;
}

/* Its descriptor is an image's, and no longer among fds then. Returns: as
 * handle_message(). */
static bool handle_keep(
	struct worker *worker, const struct control_message *message, int *fds)
{
	int fd = fds[0];

	if (message->n_fds != 1)
		return false;
	fds[0] = -1;
	return images_handle_keep(worker, &message->image, fd);
}

/* Returns: whether an honest worker would have said this now. */
static bool handle_message(
	struct worker *worker, const struct control_message *message, int *fds)
{
	if (message->type == CONTROL_KEEP)
		return handle_keep(worker, message, fds);
	if (message->n_fds)
		return false;
	switch (message->type) {
	case CONTROL_READY:
		return handle_ready(worker, message);
	case CONTROL_OPENED:
		return worker->channel &&
		       channel_handle_opened(worker->channel, message->opened.reason);
	case CONTROL_WANT:
		return worker->channel &&
		       channel_handle_want(worker->channel, &message->want);
	case CONTROL_ENDED:
		return handle_ended(worker, message->ended.reason);
	case CONTROL_FIND:
		if (worker->channel)
			images_handle_find(worker, &message->image);
		return worker->channel;
	case CONTROL_FILE:
		if (worker->channel)
			images_handle_file(worker, &message->image);
		return worker->channel;
	case CONTROL_DROP:
		images_handle_drop(worker, &message->image);
		return worker->channel;
	}
	return false;
}

static void handle_nonsense(struct worker *worker)
{
	vgpu_log_error(
		"worker %d said what no worker says and is killed", (int)worker->pid);
	if (worker->channel)
		channel_note_reason(worker->channel, VGPU_REASON_HOST);
	kill_worker(worker);
}

static void close_all(const int fds[CONTROL_FDS_MAX])
{
	for (int i = 0; i < CONTROL_FDS_MAX; i++)
		closer_close(fds[i]);
}

static void take_out(struct worker *worker)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	if (!control_receive(worker->control, &message, fds))
		close_all(fds);
}

/* Arena that the worker wants is being emptied: it is answered then, by another broker if
 * this one dies, because the message stays where it is. */
static bool must_wait(const struct worker *worker, const struct control_message *message)
{
	return message->type == CONTROL_WANT && worker->channel && !worker->has_exited &&
	       channel_must_wait(worker->channel, &message->want);
}

/* Returns: whether there may be more. */
static bool receive(struct worker *worker)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX], r;
	bool sane;

	r = control_peek(worker->control, &message, fds);
	if (r == CONTROL_E_AGAIN)
		return false;
	if (r == CONTROL_E_EOF || r < 0) {
		/* What still lives of it shall not. The state stays: whether it failed
		 * or was ended is judged when its exit is reported. */
		worker->hung_up = true;
		loop_remove(&worker->source);
		link_send_id(worker->broker->link, LINK_KILL, worker->id);
		return false;
	}
	if (!r && must_wait(worker, &message)) {
		close_all(fds);
		worker->waits = true;
		loop_remove(&worker->source);
		return false;
	}
	budget_take(&worker->messages, clock_now());
	sane = !r && handle_message(worker, &message, fds);
	if (!r)
		close_all(fds);
	if (!sane)
		handle_nonsense(worker);
	/* Last, so that the next broker finds whatever this one did not do. */
	take_out(worker);
	return sane;
}

static int handle_rested(struct loop_timer *timer)
{
	return worker_listen(
		(struct worker *)((char *)timer - offsetof(struct worker, rest)));
}

static int handle_control(struct loop_source *source)
{
	struct worker *worker =
		(struct worker *)((char *)source - offsetof(struct worker, source));

	uint32_t wait;

	for (int i = 0; i < WORKER_BATCH; i++)
		if (budget_wait(&worker->messages, clock_now()) || !receive(worker))
			break;
	wait = budget_wait(&worker->messages, clock_now());
	if (!wait || !worker->source.loop)
		return 0;
	loop_remove(&worker->source);
	loop_set_timer(&worker->broker->loop, &worker->rest, wait, handle_rested);
	return 0;
}

void worker_go_on(struct worker *worker)
{
	if (!worker->waits)
		return;
	worker->waits = false;
	if (worker_listen(worker))
		kill_worker(worker);
}

static void log_exit(const struct worker *worker, int status)
{
	if (worker->state == WORKER_ENDING ||
		(worker->channel && !account_may_log(worker->channel->vm->account)))
		return;
	if (WIFSIGNALED(status))
		vgpu_log_warning("worker %d was ended by signal %d (%s)",
			(int)worker->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		vgpu_log_warning("worker %d exited with %d", (int)worker->pid,
			WEXITSTATUS(status));
}

void worker_handle_exit(struct worker *worker, int status)
{
	struct broker *broker = worker->broker;
	struct channel *channel;

	/* Its last words may still lie in the socket. */
	worker->has_exited = true;
	if (!worker->hung_up)
		while (receive(worker))
			;
	channel = worker->channel;
	worker_log_drain(&worker->log);
	log_exit(worker, status);
	if (channel) {
		if (WIFSIGNALED(status))
			channel->record->signal = WTERMSIG(status);
		channel_handle_worker_gone(channel);
		slots_sweep(broker, channel->vm->account);
	}
	/* It may have held a quota page of a section that is still there. */
	if (worker->is_orphan)
		slots_sweep_all(broker);
	if (worker->state == WORKER_STARTING)
		pool_handle_failure(broker, VGPU_REASON_HOST);
	images_forget_worker(worker);
	link_send_id(broker->link, LINK_WORKER_DONE, worker->id);
	worker_free(worker);
	pool_update(broker);
}
