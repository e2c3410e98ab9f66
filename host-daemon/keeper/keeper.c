/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper: vgpud's first process
 *
 * It owns every descriptor that must outlive a broker: listening sockets, connections,
 * shared memories, doorbells, the workers' control sockets. It makes no decisions: it
 * accepts and greets, starts and reaps processes on request, and reports events to the
 * broker. When the broker dies the keeper starts another and announces everything again;
 * guests and running workers notice at most a pause. So it has to be small enough not to
 * die itself.
 *
 * A broker that may die at any moment may also be killed on purpose: a broker with
 * another configuration (SIGHUP) is started in the same way. The keeper itself is
 * replaced by the program that is on the disk by now (SIGUSR2): it executes that one,
 * after a trial, and hands everything over. If the broker of its successor does not
 * start, or keeps dying, the successor executes the previous program again.
 *
 * If the service manager keeps descriptors, see store.h, the keeper stores all of them
 * there whenever they change. Then a keeper that was killed, or one that leaves in order
 * to be started again (SIGUSR1), has a successor as well: the next process.
 *
 * A message that does not reach the broker is not an error here: either the broker has
 * ended, and the next one learns everything when it starts, or it does not read its
 * socket, and is killed, with the same result. A broker that hangs while there is nothing
 * to send is detected by missing answers to pings, see watch.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/child.h"
#include "keeper/endpoints.h"
#include "keeper/handover.h"
#include "keeper/held-ctl.h"
#include "keeper/held-sensors.h"
#include "keeper/held-worker.h"
#include "keeper/keeper-state.h"
#include "keeper/keeper.h"
#include "keeper/own-group.h"
#include "keeper/process.h"
#include "keeper/succession.h"
#include "keeper/store.h"
#include "keeper/trial.h"
#include "keeper/watch.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/config-load.h"
#include "vgpud/link.h"
#include "vgpud/notify.h"
#include "vgpud/shortage.h"

/* How long the broker may take to end all workers after LINK_DRAIN. */
#define KEEPER_DRAIN_MS 4000
/* Time in which a broker that dies KEEPER_RESTARTS_MAX times is not started again. */
#define KEEPER_RESTARTS_MS 10000
/* Descriptors it polls itself: signals, link, workers of an earlier process. */
#define KEEPER_POLLS 3
/* A broker hangs if it reads no message for that time; a starting one has longer. */
#define KEEPER_LINK_TIMEOUT_S 1
#define KEEPER_LINK_START_S 5
/* Pause before the next attempt if the host lacked resources for a broker, doubled each
 * time. */
#define KEEPER_PAUSE_MIN_MS 100
#define KEEPER_PAUSE_MAX_MS 5000

static void handle_message(struct keeper *keeper, const struct link_message *message,
	const int *fds, size_t n_fds);
static void configure(struct keeper *keeper, uint64_t request, int sources, int client);
static void drain(struct keeper *keeper, int signo);

/*
 * Broker
 */

/* Limits how long a send to the broker may block. */
static int set_link_timeout(struct keeper *keeper, unsigned int seconds)
{
	const struct timeval timeout = { .tv_sec = seconds };

	if (setsockopt(keeper->link, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) <
		0)
		return vgpu_error_origin(-errno);
	return 0;
}

static int start_broker(struct keeper *keeper)
{
	_vgpu_cleanup_(vgpu_closep) int theirs = -1;
	char *argv[] = { "vgpud-broker", "--broker", (char *)keeper->path, LINK_VERSION,
		NULL };
	struct child child = {
		.path = "/proc/self/exe",
		.argv = argv,
		.n_fds = 2,
		.output = -1,
		.network = -1,
	};
	struct held_worker *worker;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vgpu_error_origin(-errno);
	keeper->link = pair[0];
	theirs = pair[1];
	r = set_link_timeout(keeper, KEEPER_LINK_START_S);
	if (r)
		return vgpu_error_trace(r);
	child.fds = (int[]){ theirs, keeper->sources };
	keeper->broker_ready = false;
	r = child_spawn(&keeper->broker, &child);
	if (r)
		return vgpu_error_trace(r);

	watch_begin(&keeper->watch, keeper->broker, clock_now());
	keeper->endpoints.link = keeper->link;
	held_sensors_tell(&keeper->sensors, keeper->link);
	held_ctl_tell(&keeper->ctl, keeper->link);
	endpoints_announce_all(&keeper->endpoints);
	TAILQ_FOREACH(worker, &keeper->workers, entry) {
		held_worker_tell(worker, 0, keeper->link);
		if (worker->exited)
			held_worker_tell_exited(worker, keeper->link);
	}
	link_send_id(keeper->link, LINK_SYNC, 0);
	held_ctl_return_kept(&keeper->ctl, keeper->link);
	return 0;
}

/* Records a death of the broker. Return: whether it died too often lately. */
static bool note_restart(struct keeper *keeper)
{
	int64_t now = clock_now(), oldest = keeper->restarts[0];

	memmove(keeper->restarts, keeper->restarts + 1,
		sizeof(keeper->restarts) - sizeof(*keeper->restarts));
	keeper->restarts[KEEPER_RESTARTS_MAX - 1] = now;
	return oldest && now - oldest < KEEPER_RESTARTS_MS;
}

static void close_link(struct keeper *keeper)
{
	keeper->link = vgpu_close(keeper->link);
	keeper->endpoints.link = -1;
}

/* Sessions continue without a broker while resources become free. */
static void start_broker_later(struct keeper *keeper)
{
	unsigned int ms = KEEPER_PAUSE_MIN_MS;

	for (unsigned int i = 0; i < keeper->n_shortages && ms < KEEPER_PAUSE_MAX_MS; i++)
		ms *= 2;
	keeper->n_shortages++;
	ms = ms < KEEPER_PAUSE_MAX_MS ? ms : KEEPER_PAUSE_MAX_MS;
	vgpu_log_error("the host has no room for a broker now: one is started in %u ms; "
		       "running jobs continue",
		ms);
	keeper->start_at = clock_now() + ms;
}

static void give_up(struct keeper *keeper)
{
	keeper->status = EXIT_FAILURE;
	keeper->draining = true;
}

/* Handles messages that the broker sent before it ended, so that the next one finds their
 * effects. Workers that it requested are not started: the next one requests its own. */
static void hear_last_words(struct keeper *keeper)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	keeper->is_broker_gone = true;
	while (process_has_message(keeper->link) &&
		!link_receive(keeper->link, &message, fds, &n_fds))
		handle_message(keeper, &message, fds, n_fds);
	keeper->is_broker_gone = false;
}

/* Whether the broker was killed before it had ended all workers. */
static bool is_draining_unfinished(const struct keeper *keeper, int status)
{
	return keeper->ready && WIFSIGNALED(status) && clock_now() < keeper->drain_end;
}

static void tell_broker(struct keeper *keeper, int r)
{
	if (r == LINK_E_AGAIN && keeper->broker) {
		vgpu_log_error("the broker has read no message for %d s and is killed",
			KEEPER_LINK_TIMEOUT_S);
		kill(keeper->broker, SIGKILL);
	}
}

static void start_next_broker(struct keeper *keeper)
{
	int r;

	keeper->start_at = 0;
	r = start_broker(keeper);
	if (r >= 0)
		return;
	close_link(keeper);
	if (shortage_is(r)) {
		start_broker_later(keeper);
		return;
	}
	vgpu_log_error("no broker can be started: vgpud gives up");
	give_up(keeper);
}

static void handle_broker_exit(struct keeper *keeper, int status)
{
	bool replaced = keeper->replacing;

	hear_last_words(keeper);
	keeper->broker = 0;
	keeper->replacing = false;
	close_link(keeper);
	if (keeper->is_leaving && !keeper->draining)
		succession_leave(keeper);
	if (keeper->is_stepping_aside && !succession_step_aside(keeper) &&
		keeper->ended_by)
		drain(keeper, keeper->ended_by);
	if (keeper->draining && !is_draining_unfinished(keeper, status))
		return;
	if (!keeper->ready) {
		/* The broker has logged the reason. */
		give_up(keeper);
		return;
	}
	if (!replaced && process_lacked_room(status)) {
		start_broker_later(keeper);
		return;
	}
	if (!replaced) {
		bool is_too_often = note_restart(keeper);

		process_log_broker_exit(status);
		if (!keeper->broker_ready || is_too_often)
			succession_return(keeper);
		if (is_too_often) {
			vgpu_log_error("the broker cannot be kept running: vgpud gives "
				       "up");
			give_up(keeper);
			return;
		}
	}
	start_next_broker(keeper);
	if (keeper->draining)
		tell_broker(keeper, link_send_id(keeper->link, LINK_DRAIN, 0));
}

/* Kills the broker; another one is started with the present configuration. */
static void replace_broker(struct keeper *keeper)
{
	if (!keeper->broker)
		return;
	keeper->replacing = true;
	kill(keeper->broker, SIGKILL);
}

/* Checks that the broker still answers; reads /proc only if it does not. */
static void watch_broker(struct keeper *keeper)
{
	if (!keeper->broker || keeper->link < 0 || keeper->draining)
		return;
	switch (watch_look(&keeper->watch, clock_now())) {
	case WATCH_PING:
		tell_broker(keeper,
			link_send_id(keeper->link, LINK_PING, keeper->watch.asked));
		return;
	case WATCH_HUNG:
		vgpu_log_error("the broker hangs: it has not answered %u times and is "
			       "killed",
			keeper->watch.n_seen);
		kill(keeper->broker, SIGKILL);
		/* Restart the watch until the exit is reported. */
		watch_begin(&keeper->watch, keeper->broker, clock_now());
		return;
	case WATCH_NOTHING:
		return;
	}
}

/*
 * Workers
 */

/* A user id for a worker or the sensors' process. */
static uid_t pick_uid(struct keeper *keeper)
{
	return held_workers_pick_uid(&keeper->workers, *keeper->configp,
		keeper->sensors.pid ? keeper->sensors.uid : 0, &keeper->last_uid);
}

/* @request:	0, or one more than the index of the section whose devices it uses */
static void spawn_worker(struct keeper *keeper, uint64_t request)
{
	const struct config_vm *vm = NULL;
	struct link_message message = { .type = LINK_NO_WORKER, .id = request };
	struct held_worker *worker;
	int r;

	if (request && request <= (*keeper->configp)->n_vms)
		vm = config_vm_at(*keeper->configp, (unsigned int)(request - 1));
	r = request && !vm
		    ? -ENODEV
		    : held_worker_new(&worker, *keeper->configp, vm ? vm->devices : NULL,
			      ++keeper->last_worker, pick_uid(keeper), keeper->network,
			      keeper->store.n_max);
	if (r) {
		message.no_worker.error = r;
		tell_broker(keeper, link_send(keeper->link, &message, NULL, 0));
		return;
	}
	TAILQ_INSERT_TAIL(&keeper->workers, worker, entry);
	/* Before it can have a session. */
	succession_store(keeper);
	tell_broker(keeper, held_worker_tell(worker, request, keeper->link));
}

static void forget_worker(struct keeper *keeper, struct held_worker *worker)
{
	endpoints_forget_worker(&keeper->endpoints, worker->id);
	TAILQ_REMOVE(&keeper->workers, worker, entry);
	held_worker_free(worker);
}

/* @can:	the program on the disk can take over */
static void handle_trial(struct keeper *keeper, bool can)
{
	if (!can || keeper->draining)
		return;
	vgpu_log_info("vgpud is replaced by %s; running jobs continue", keeper->program);
	keeper->is_leaving = true;
	if (keeper->broker)
		replace_broker(keeper);
	else
		succession_leave(keeper);
}

static void reap_earlier(struct keeper *keeper)
{
	struct held_worker *worker;

	while ((worker = held_workers_next_exit(&keeper->workers, keeper->earlier)))
		tell_broker(keeper, held_worker_tell_exited(worker, keeper->link));
}

/* Reaps all children that exited, including orphans of workers: the keeper is their
 * subreaper. */
static void reap(struct keeper *keeper)
{
	struct held_worker *worker;
	bool can;
	int status, pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == keeper->broker) {
			handle_broker_exit(keeper, status);
			continue;
		}
		if (trial_handle_exit(&keeper->trial, pid, status, &can)) {
			handle_trial(keeper, can);
			continue;
		}
		if (held_sensors_handle_exit(&keeper->sensors, pid, status))
			continue;
		TAILQ_FOREACH(worker, &keeper->workers, entry) {
			if (worker->pid != pid || worker->exited || worker->pidfd >= 0)
				continue;
			worker->exited = true;
			worker->status = status;
			tell_broker(
				keeper, held_worker_tell_exited(worker, keeper->link));
		}
	}
}

/*
 * Events
 */

static void handle_message(struct keeper *keeper, const struct link_message *message,
	const int *fds, size_t n_fds)
{
	struct held_worker *worker;

	switch (message->type) {
	case LINK_READY:
		if (!keeper->ready)
			vgpu_log_info("vgpud ready");
		keeper->ready = keeper->broker_ready = true;
		/* Once the service manager knows, it may be killed. */
		succession_store(keeper);
		notify_ready();
		keeper->n_shortages = 0;
		set_link_timeout(keeper, KEEPER_LINK_TIMEOUT_S);
		break;
	case LINK_PONG:
		watch_handle_answer(&keeper->watch, message->id);
		break;
	case LINK_SPAWN:
		if (!keeper->is_broker_gone)
			spawn_worker(keeper, message->id);
		break;
	case LINK_KILL:
		worker = held_workers_find(&keeper->workers, message->id);
		if (worker)
			held_worker_kill(worker);
		break;
	case LINK_JOIN:
		worker = held_workers_find(&keeper->workers, message->id);
		if (worker && n_fds == 1)
			held_worker_join(worker, fds[0]);
		link_discard(fds, n_fds);
		break;
	case LINK_IMAGE:
		if (n_fds == 1)
			endpoints_keep_image(&keeper->endpoints, message, fds[0]);
		break;
	case LINK_IMAGE_DONE:
		endpoints_drop_image(&keeper->endpoints, message);
		break;
	case LINK_SHARE:
		if (n_fds == 1)
			endpoints_keep_share(&keeper->endpoints, message, fds[0]);
		break;
	case LINK_SHARE_HELD:
		endpoints_hold_share(&keeper->endpoints, message);
		break;
	case LINK_SHARE_LEFT:
		endpoints_leave_share(&keeper->endpoints, message);
		break;
	case LINK_CONFIGURE:
		if (n_fds == 2)
			configure(keeper, message->id, fds[0], fds[1]);
		break;
	case LINK_VM_DONE:
		endpoints_forget_vm(&keeper->endpoints, message->id);
		break;
	case LINK_WORKER_DONE:
		worker = held_workers_find(&keeper->workers, message->id);
		if (worker)
			forget_worker(keeper, worker);
		break;
	default:
		/* The rest is what keepers send to brokers. */
		link_discard(fds, n_fds);
	}
}

static void handle_link(struct keeper *keeper)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;
	int r;

	r = link_receive(keeper->link, &message, fds, &n_fds);
	/* An image whose descriptor cannot be received is not kept. */
	if (r == -EMFILE)
		return;
	if (!r)
		handle_message(keeper, &message, fds, n_fds);
	else if (r < 0 && keeper->broker)
		kill(keeper->broker, SIGKILL);
	/* SIGCHLD follows end-of-file; until then there is nothing to receive. */
	if (r)
		close_link(keeper);
}

static void drain(struct keeper *keeper, int signo)
{
	if (keeper->is_stepping_aside) {
		keeper->ended_by = signo;
		return;
	}
	if (keeper->draining) {
		keeper->drain_end = 0;
		return;
	}
	vgpu_log_info("signal %d (%s): no new sessions, running ones are ended", signo,
		strsignal(signo));
	notify_stopping();
	store_end(&keeper->store);
	keeper->draining = true;
	keeper->drain_end = clock_now() + KEEPER_DRAIN_MS;
	endpoints_close(&keeper->endpoints);
	tell_broker(keeper, link_send_id(keeper->link, LINK_DRAIN, 0));
}

static void prepare_sandbox(struct keeper *keeper)
{
	int r;

	if (!(*keeper->configp)->sandbox) {
		vgpu_log_warning(
			"sandbox = no: WORKERS RUN WITH ALL THE RIGHTS OF VGPUD, and so "
			"does a guest that has taken over a worker");
		return;
	}
	if (geteuid() != 0 || keeper->network >= 0)
		return;
	r = process_make_network(&keeper->network);
	if (r)
		vgpu_log_info("workers are in vgpud's network namespace (%s): their "
			      "filter keeps them off the network",
			strerror(-r));
}

/* Opens what a configuration needs besides the present one, or nothing. The log and the
 * socket for vgpuctl are tried first, since endpoints have no way back. */
static int open_all(
	struct keeper *keeper, const struct config *config, struct listener *nextp)
{
	int r;

	r = held_ctl_open(&keeper->ctl, config, nextp);
	if (!r)
		r = config_load_log(config);
	if (!r) {
		r = endpoints_reload(&keeper->endpoints, config);
		if (r)
			config_load_log(*keeper->configp);
	}
	if (r)
		listener_deinit(nextp);
	return r;
}

/*
 * Puts a configuration in force, except in the broker. Takes both in any case. A failure
 * is logged and changes nothing.
 *
 * @kept:	its sources
 */
static int use_config(struct keeper *keeper, struct config *config, int kept)
{
	struct listener listener;
	int r;

	r = open_all(keeper, config, &listener);
	if (r) {
		config_free(config);
		vgpu_close(kept);
		return r;
	}
	held_ctl_use(&keeper->ctl, config, &listener);
	config_free(*keeper->configp);
	*keeper->configp = config;
	vgpu_close(keeper->sources);
	keeper->sources = kept;
	vgpu_log_init("vgpud", config->log_level);
	prepare_sandbox(keeper);
	held_sensors_reload(&keeper->sensors);
	return 0;
}

/* The broker has the old configuration, and so have its messages in the link. */
static void replace_configured_broker(struct keeper *keeper)
{
	if (!keeper->is_broker_gone)
		replace_broker(keeper);
	close_link(keeper);
}

static int try_reload(struct keeper *keeper)
{
	struct config *config;
	int kept, r;

	r = config_load(keeper->path, *keeper->configp, &kept, &config);
	return r ? r : use_config(keeper, config, kept);
}

static void reload(struct keeper *keeper)
{
	if (keeper->draining || !keeper->ready)
		return;
	notify_reloading();
	if (try_reload(keeper)) {
		vgpu_log_error("SIGHUP: the configuration stays as it was");
		notify_ready();
		return;
	}
	replace_configured_broker(keeper);
	vgpu_log_info("SIGHUP: %s is in force; running jobs continue", keeper->path);
}

/* The broker has parsed these sources without a mistake, so the rest is left to try. */
static int try_configure(struct keeper *keeper, int sources)
{
	struct config *config;
	int r;

	if (keeper->draining || !keeper->ready)
		return -EBUSY;
	r = config_load_kept(sources, &config);
	if (r) {
		vgpu_close(sources);
		return -EINVAL;
	}
	return use_config(keeper, config, sources) ? -EADDRNOTAVAIL : 0;
}

/*
 * Another configuration by vgpuctl, checked by the broker. Takes both descriptors.
 *
 * If it is in force the next broker answers the client, also if the present one has died
 * since: this message is handled before the next one starts.
 */
static void configure(struct keeper *keeper, uint64_t request, int sources, int client)
{
	const int r = try_configure(keeper, sources);

	if (r) {
		held_ctl_return(client, request, r, keeper->link);
		return;
	}
	held_ctl_keep(&keeper->ctl, client, request);
	replace_configured_broker(keeper);
	vgpu_log_info("a change by vgpuctl is in force; running jobs continue");
}

/* Another process continues. */
static void begin_to_step_aside(struct keeper *keeper)
{
	if (!keeper->store.n_max || keeper->draining || !keeper->ready)
		return;
	vgpu_log_info("SIGUSR1: vgpud is to be started again; running jobs continue");
	keeper->is_stepping_aside = true;
	if (keeper->broker)
		replace_broker(keeper);
	else
		succession_step_aside(keeper);
}

static void handle_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			drain(keeper, info.ssi_signo);
		else if (info.ssi_signo == SIGHUP)
			reload(keeper);
		else if (info.ssi_signo == SIGUSR1)
			begin_to_step_aside(keeper);
		else if (info.ssi_signo == SIGUSR2)
			succession_try(keeper);
	}
	reap(keeper);
}

/* Its own first, then those of the endpoints. */
static int fill_polls(struct keeper *keeper, unsigned int *n_pollsp)
{
	unsigned int n = KEEPER_POLLS + endpoints_count_polls(&keeper->endpoints);

	if (n > keeper->n_polls_max) {
		struct pollfd *polls = reallocarray(keeper->polls, 2 * n, sizeof(*polls));

		if (!polls)
			return vgpu_error_origin(-ENOMEM);
		keeper->polls = polls;
		keeper->n_polls_max = 2 * n;
	}
	keeper->polls[0] = (struct pollfd){ keeper->signals, POLLIN, 0 };
	keeper->polls[1] = (struct pollfd){ keeper->link, POLLIN, 0 };
	keeper->polls[2] = (struct pollfd){ keeper->earlier, POLLIN, 0 };
	endpoints_fill_polls(&keeper->endpoints, keeper->polls + KEEPER_POLLS);
	*n_pollsp = n;
	return 0;
}

/* Tells the service manager in time that this loop turns. */
static void report_alive(struct keeper *keeper)
{
	const unsigned int interval = notify_interval_ms();
	const int64_t now = clock_now();

	if (!interval || now < keeper->report_at)
		return;
	notify_alive();
	keeper->report_at = now + interval;
}

static int earlier(int timeout, int64_t at, int64_t now)
{
	const int64_t left = at > now ? at - now : 0;

	return timeout < 0 || left < timeout ? (int)left : timeout;
}

static int poll_timeout(const struct keeper *keeper)
{
	const int64_t now = clock_now();
	int64_t end = keeper->drain_end;
	int timeout = -1;

	if (!keeper->draining) {
		timeout = endpoints_timeout(&keeper->endpoints);
		end = keeper->start_at ? keeper->start_at : INT64_MAX;
		if (keeper->broker)
			end = now + watch_timeout(&keeper->watch, now);
	}
	if (end != INT64_MAX)
		timeout = earlier(timeout, end, now);
	if (keeper->report_at)
		timeout = earlier(timeout, keeper->report_at, now);
	if (keeper->trial.pid)
		timeout = earlier(timeout, keeper->trial.end, now);
	if (keeper->store.retry_at)
		timeout = earlier(timeout, keeper->store.retry_at, now);
	return timeout;
}

/* Signals last, because they may start a broker, to which everything is announced. */
static void dispatch(struct keeper *keeper)
{
	endpoints_dispatch(&keeper->endpoints, keeper->polls + KEEPER_POLLS);
	if (keeper->polls[1].revents)
		handle_link(keeper);
	if (keeper->polls[2].revents)
		reap_earlier(keeper);
	if (keeper->polls[0].revents)
		handle_signal(keeper);
	if (!keeper->draining)
		endpoints_scan_plain(&keeper->endpoints);
	if (!keeper->draining && keeper->start_at && clock_now() >= keeper->start_at)
		start_next_broker(keeper);
	if (!keeper->draining && keeper->ready &&
		held_sensors_is_due(&keeper->sensors, *keeper->configp, clock_now()))
		held_sensors_start(&keeper->sensors, *keeper->configp, pick_uid(keeper),
			keeper->network);
	watch_broker(keeper);
	trial_watch(&keeper->trial, clock_now());
	tell_broker(keeper, keeper->endpoints.link_result);
	keeper->endpoints.link_result = 0;
	succession_store(keeper);
}

static int run(struct keeper *keeper)
{
	unsigned int n = 0;
	int r;

	while (!keeper->draining || keeper->broker) {
		report_alive(keeper);
		r = fill_polls(keeper, &n);
		if (!r && poll(keeper->polls, n, poll_timeout(keeper)) < 0)
			r = -errno;
		if (r == -ENOMEM || r == -EAGAIN) {
			usleep(KEEPER_PAUSE_MIN_MS * 1000);
			continue;
		}
		if (r && r != -EINTR)
			return vgpu_error_trace(r);
		if (!r)
			dispatch(keeper);
		if (keeper->draining && keeper->broker &&
			clock_now() >= keeper->drain_end)
			kill(keeper->broker, SIGKILL);
	}
	return 0;
}

/*
 * Start and end
 */

static int open_ctl(struct keeper *keeper)
{
	struct listener listener;
	int r;

	r = held_ctl_open(&keeper->ctl, *keeper->configp, &listener);
	if (!r)
		held_ctl_use(&keeper->ctl, *keeper->configp, &listener);
	return r;
}

static int find_program(struct keeper *keeper)
{
	if (readlink("/proc/self/exe", keeper->program, sizeof(keeper->program) - 1) < 0)
		return vgpu_error_origin(-errno);
	return 0;
}

/* Another process has left this: the configuration may be another one by now. */
static int continue_earlier(struct keeper *keeper)
{
	vgpu_log_info("vgpud continues what an earlier one has left");
	if (try_reload(keeper))
		vgpu_log_error("the configuration stays as it was");
	return find_program(keeper);
}

/* Takes over what that file says, and reaps workers that have ended since. */
static int take_over(struct keeper *keeper, int file)
{
	_vgpu_cleanup_(vgpu_freep) char *program = NULL;
	struct handover handover = {
		.previous = -1,
		.store = &keeper->store,
		.endpoints = &keeper->endpoints,
		.ctl = &keeper->ctl,
		.workers = &keeper->workers,
	};
	int r = handover_load(&handover, file, *keeper->configp);

	program = handover.program;
	keeper->previous = handover.previous;
	keeper->last_worker = handover.last_worker;
	keeper->last_uid = handover.last_uid;
	if (!r && strlen(program) >= sizeof(keeper->program))
		r = vgpu_error_origin(-ENAMETOOLONG);
	if (r)
		return r;
	strcpy(keeper->program, program);
	keeper->ready = true;
	r = held_workers_watch(&keeper->workers, &keeper->earlier);
	reap(keeper);
	return r || !handover.restarted ? r : continue_earlier(keeper);
}

static int begin(struct keeper *keeper)
{
	const struct config *config = *keeper->configp;
	int r;

	if (access(config->worker, X_OK) < 0) {
		r = -errno;
		vgpu_log_error("the worker program %s cannot be executed: %s",
			config->worker, strerror(-r));
		return r;
	}
	r = find_program(keeper);
	return r ? r : endpoints_init(&keeper->endpoints, config);
}

static int keeper_init(struct keeper *keeper, int state, bool own_group)
{
	int r;

	process_raise_limits();
	process_raise_priority();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return vgpu_error_origin(-errno);
	prepare_sandbox(keeper);
	r = process_catch_signals(&keeper->signals);
	if (!r)
		r = closer_start();
	if (!r)
		r = state < 0 ? begin(keeper) : take_over(keeper, state);
	keeper->endpoints.greeted_fn = succession_store_vm;
	if (!r)
		r = open_ctl(keeper);
	held_sensors_init(&keeper->sensors);
	/* Its children are where it is. */
	if (!r)
		own_group_enter(&keeper->workers, own_group);
	if (!r && state >= 0)
		start_next_broker(keeper);
	else if (!r)
		r = start_broker(keeper);
	return r;
}

static void keeper_deinit(struct keeper *keeper)
{
	struct held_worker *worker;

	store_end(&keeper->store);
	store_deinit(&keeper->store);
	if (keeper->broker) {
		kill(keeper->broker, SIGKILL);
		while (waitpid(keeper->broker, NULL, 0) < 0 && errno == EINTR)
			;
	}
	while ((worker = TAILQ_FIRST(&keeper->workers)))
		forget_worker(keeper, worker);
	held_sensors_deinit(&keeper->sensors);
	process_reap_orphans();
	own_group_leave();
	held_ctl_close(&keeper->ctl);
	endpoints_deinit(&keeper->endpoints);
	free(keeper->polls);
	vgpu_close(keeper->link);
	vgpu_close(keeper->signals);
	vgpu_close(keeper->sources);
	vgpu_close(keeper->network);
	vgpu_close(keeper->earlier);
	vgpu_close(keeper->previous);
}

int keeper_run(struct config **configp, int sources, const char *path, int state,
	unsigned int n_stored_max, int control, bool own_group)
{
	struct keeper keeper = {
		.configp = configp,
		.path = path,
		.sources = sources,
		.signals = -1,
		.link = -1,
		.network = -1,
		.earlier = -1,
		.previous = -1,
		.store.n_max = n_stored_max,
		.sensors = HELD_SENSORS_NULL,
		.ctl = HELD_CTL_NULL,
		.endpoints.vms = TAILQ_HEAD_INITIALIZER(keeper.endpoints.vms),
		.endpoints.leaving = TAILQ_HEAD_INITIALIZER(keeper.endpoints.leaving),
		.endpoints.wiper = WIPER_NULL,
		.workers = TAILQ_HEAD_INITIALIZER(keeper.workers),
	};
	int r;

	/* Without it this process makes its own. */
	if (control >= 0)
		held_ctl_take(&keeper.ctl, control);
	r = keeper_init(&keeper, state, own_group);
	vgpu_close(state);
	if (!r)
		r = run(&keeper);
	if (r < 0)
		vgpu_log_error("vgpud ends: %s", strerror(-r));
	keeper_deinit(&keeper);
	if (r)
		return EXIT_FAILURE;
	vgpu_log_info("vgpud has ended");
	return keeper.status;
}
