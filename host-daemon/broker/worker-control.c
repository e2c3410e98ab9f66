/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker control: messages of workers on their control sockets, and their exit
 *
 * A worker may be compromised, so all its messages are checked. A message is peeked,
 * handled, and only then removed from the socket: if the broker dies in between, the next
 * one finds it there. So all messages are idempotent, by means of state in the ledger.
 */

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "broker/channel.h"
#include "broker/device-set.h"
#include "broker/images.h"
#include "broker/oom.h"
#include "broker/pool.h"
#include "broker/rooms.h"
#include "broker/session-line.h"
#include "broker/shares.h"
#include "broker/slots.h"
#include "broker/state.h"
#include "broker/status.h"
#include "broker/use.h"
#include "broker/vm.h"
#include "broker/worker-control.h"
#include "broker/worker.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/container-of.h"
#include "vgpud/link.h"

/* Messages of one worker in a row, before other sources have their turn. */
#define WORKER_BATCH 16

/* The worker is of another build: only the version of its message has a known place. */
static void refuse_version(struct worker *worker, uint32_t version)
{
	struct worker_pool *pool = &worker->broker->pool;

	/* Once: all further workers have the same version. */
	if (!pool->is_version_told)
		vgpu_log_error(
			"worker=%d: it speaks version %u of the control protocol, this "
			"broker version %u: vgpud and its worker program have to be of "
			"one installation, and vgpud has to be restarted after a change",
			(int)worker->pid, version, CONTROL_VERSION);
	pool->is_version_told = true;
	worker_end(worker, CONTROL_STOP_MS);
	pool_handle_failure(worker->devices, VGPU_REASON_HOST);
}

static bool handle_ready(struct worker *worker, const struct control_message *message)
{
	const struct control_ready *ready = &message->ready;
	struct broker *broker = worker->broker;

	if (worker->state == WORKER_ENDING)
		return true;
	if (worker->state != WORKER_STARTING || !worker->devices)
		return false;
	if (message->greeting.version != CONTROL_VERSION) {
		refuse_version(worker, message->greeting.version);
		return true;
	}
	if (ready->reason >= _VGPU_REASON_N)
		return false;
	if (ready->reason != VGPU_REASON_NONE) {
		vgpu_log_warning("worker=%d: it has no driver to serve with%s%s: %s",
			(int)worker->pid, worker->devices->list ? ", devices " : "",
			worker->devices->list ? worker->devices->list : "",
			session_line_reason(ready->reason));
		worker_end(worker, CONTROL_STOP_MS);
		pool_handle_failure(worker->devices, ready->reason);
		return true;
	}
	vgpu_log_debug("worker=%d: it is warm: %s, version %d, %u devices",
		(int)worker->pid, ready->driver, ready->driver_version, ready->n_devices);
	worker->driver_version = ready->driver_version;
	worker->protocol_minor = ready->protocol_minor;
	worker->state = WORKER_WARM;
	status_learn(worker);
	broker->pool.is_version_told = false;
	worker->devices->n_failures = 0;
	loop_clear_timer(&worker->devices->pause);
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

/* Takes the image's descriptor out of fds. Return: as handle_message(). */
static bool handle_keep(
	struct worker *worker, const struct control_message *message, int *fds)
{
	int fd = fds[0];

	if (message->n_fds != 1)
		return false;
	fds[0] = -1;
	return images_handle_keep(worker, &message->image, fd);
}

/* The same for memory that is shared, which may have none. */
static bool handle_share(
	struct worker *worker, const struct control_message *message, int *fds)
{
	int fd = fds[0];

	if (message->n_fds > 1)
		return false;
	fds[0] = -1;
	return shares_handle_share(worker, &message->share, fd);
}

/* Return: false if the message breaks the protocol. */
static bool handle_message(
	struct worker *worker, const struct control_message *message, int *fds)
{
	if (message->type == CONTROL_KEEP)
		return handle_keep(worker, message, fds);
	if (message->type == CONTROL_SHARE)
		return handle_share(worker, message, fds);
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
	case CONTROL_TAKE:
		if (worker->channel)
			shares_handle_take(worker, &message->share);
		return worker->channel;
	case CONTROL_ROOM:
		rooms_look(worker->broker);
		return worker->channel;
	case CONTROL_LEAVE:
		shares_handle_leave(worker, &message->share);
		return worker->channel;
	}
	return false;
}

static void handle_nonsense(struct worker *worker)
{
	vgpu_log_error(
		"worker=%d: it sent an invalid message and is killed", (int)worker->pid);
	if (worker->channel)
		channel_note_reason(worker->channel, VGPU_REASON_HOST);
	worker_end(worker, 0);
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

/* Whether the requested arena will be free soon. The message remains in the socket
 * until then, also for the next broker if this one dies. */
static bool must_wait(const struct worker *worker, const struct control_message *message)
{
	return message->type == CONTROL_WANT && worker->channel && !worker->has_exited &&
	       channel_must_wait(worker->channel, &message->want);
}

/* Return: whether there may be another message. */
static bool receive(struct worker *worker)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX], r;
	bool sane;

	r = control_peek(worker->control, &message, fds);
	if (r == CONTROL_E_AGAIN)
		return false;
	if (r == CONTROL_E_EOF || r < 0) {
		/* Kill it, since it may still run. The state remains: its exit decides
		 * whether it failed or was ended. */
		worker->hung_up = true;
		loop_remove(&worker->source);
		worker_kill(worker);
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
	/* Last, so that the next broker finds the message if this one dies before. */
	take_out(worker);
	return sane;
}

static int handle_rested(struct loop_timer *timer)
{
	return worker_listen(container_of(timer, struct worker, rest));
}

int worker_control_receive(struct loop_source *source)
{
	struct worker *worker = container_of(source, struct worker, source);

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

static void log_exit(const struct worker *worker, int status)
{
	if (worker->state == WORKER_ENDING ||
		(worker->channel && !account_take_log_line(worker->channel->vm->account)))
		return;
	if (status == LINK_STATUS_UNKNOWN)
		vgpu_log_info("worker=%d: it has ended, and how is not known: vgpud was "
			      "started again meanwhile",
			(int)worker->pid);
	else if (WIFSIGNALED(status))
		vgpu_log_warning("worker=%d: it was ended by signal %d (%s)",
			(int)worker->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		vgpu_log_warning("worker=%d: it exited with %d", (int)worker->pid,
			WEXITSTATUS(status));
}

void worker_control_handle_exit(struct worker *worker, int status)
{
	struct broker *broker = worker->broker;
	struct channel *channel;

	/* The socket may still have messages. */
	worker->has_exited = true;
	if (!worker->hung_up)
		while (receive(worker))
			;
	channel = worker->channel;
	/* Before its slot of the quota is cleared: what it shares counts on. */
	shares_forget_worker(worker);
	worker_log_drain(&worker->log);
	log_exit(worker, status);
	oom_note_exit(worker, status);
	if (channel) {
		use_look(worker);
		if (WIFSIGNALED(status))
			channel->record->signal = WTERMSIG(status);
		channel_handle_worker_gone(channel);
		slots_sweep(broker, channel->vm->account);
	}
	/* It may have mapped the quota page of a section that still exists. */
	if (worker->is_orphan)
		slots_sweep_all(broker);
	if (worker->state == WORKER_STARTING && worker->devices)
		pool_handle_failure(worker->devices, VGPU_REASON_HOST);
	images_forget_worker(worker);
	link_send_id(broker->link, LINK_WORKER_DONE, worker->id);
	worker_free(worker);
	rooms_look(broker);
	pool_update(broker);
}
