/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper: vgpud's first process
 *
 * It owns every descriptor that must outlive a broker: listening sockets, connections,
 * memories, doorbells, the workers' control sockets. It decides nothing: it accepts and
 * greets, starts and reaps what it is told to, and tells the broker what happened. When
 * the broker dies it starts another and tells it everything again; guests and running
 * workers notice a pause at most. So it has to be small enough not to die itself.
 *
 * A message that does not reach the broker is not an error here: either the broker's
 * end is noticed a moment later and the next one is told all, or it has stopped
 * listening for seconds, and is killed, with the same result.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/child.h"
#include "broker/greeting.h"
#include "broker/held-vm.h"
#include "broker/held-worker.h"
#include "broker/keeper.h"
#include "broker/link.h"
#include "broker/listener.h"
#include "packet.h"
#include "vgpu/error.h"

/* How long the broker may take to end all workers once it was told to. */
#define KEEPER_DRAIN_MS 4000
/* Files of transport plain come and go without notice: look this often. */
#define KEEPER_PLAIN_MS 500
/* A broker that dies this often in that time will not do better the next time. */
#define KEEPER_RESTARTS_MAX 5
#define KEEPER_RESTARTS_MS 10000
/* Connections that a VM may have beyond those it may have sessions on. */
#define KEEPER_SPARE_CONNECTIONS 16
/* A door at which no descriptor was left is not listened to for so long. */
#define KEEPER_DEAF_MS 100
/* A broker that takes no message for so long hangs. */
#define KEEPER_LINK_TIMEOUT_S 5

/* What the keeper knows of one [vm NAME]. */
struct keeper_door {
	const struct config_vm *config;
	struct listener listener;
	struct held_vm *plain;
	int64_t deaf_until;    /* ms */
	const char *complaint; /* logged last about the plain file: not to be repeated */
};

struct keeper {
	const struct config *config;
	const char *name;
	int text; /* sealed memfd with the configuration */
	int signals;
	uint64_t last_id;
	uint16_t last_peer;

	struct keeper_door *doors;
	unsigned int n_doors;
	struct held_vms vms;
	struct held_workers workers;

	pid_t broker; /* 0: none runs */
	int link;
	bool ready; /* said so once */
	bool draining;
	int64_t drain_end;
	int status; /* exit status so far */
	int64_t restarts[KEEPER_RESTARTS_MAX];

	struct pollfd *polls;
	unsigned int n_polls_max;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Broker
 */

static int start_broker(struct keeper *keeper)
{
	_vgpu_cleanup_(vgpu_closep) int theirs = -1;
	const struct timeval timeout = { .tv_sec = KEEPER_LINK_TIMEOUT_S };
	char *argv[] = { "vgpud-broker", "--broker", (char *)keeper->name, NULL };
	struct held_worker *worker;
	struct held_vm *vm;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vgpu_error_origin(-errno);
	keeper->link = pair[0];
	theirs = pair[1];
	if (setsockopt(keeper->link, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) <
		0)
		return vgpu_error_origin(-errno);
	r = child_spawn(&keeper->broker, "/proc/self/exe", argv,
		(int[]){ theirs, keeper->text }, 2, false);
	if (r)
		return vgpu_error_trace(r);

	TAILQ_FOREACH(vm, &keeper->vms, entry) {
		held_vm_tell(vm, keeper->link);
		if (vm->gone)
			link_send_id(keeper->link, LINK_VM_GONE, vm->id);
	}
	TAILQ_FOREACH(worker, &keeper->workers, entry) {
		held_worker_tell(worker, keeper->link);
		if (worker->exited)
			held_worker_tell_exited(worker, keeper->link);
	}
	link_send_id(keeper->link, LINK_SYNC, 0);
	return 0;
}

/* Whether the broker died too often lately; notes this time. */
static bool is_hopeless(struct keeper *keeper)
{
	int64_t now = now_ms(), oldest = keeper->restarts[0];

	memmove(keeper->restarts, keeper->restarts + 1,
		sizeof(keeper->restarts) - sizeof(*keeper->restarts));
	keeper->restarts[KEEPER_RESTARTS_MAX - 1] = now;
	return oldest && now - oldest < KEEPER_RESTARTS_MS;
}

static void handle_broker_exit(struct keeper *keeper, int status)
{
	keeper->broker = 0;
	keeper->link = vgpu_close(keeper->link);
	if (keeper->draining)
		return;
	if (!keeper->ready) {
		/* It has said why. */
		keeper->status = EXIT_FAILURE;
		keeper->draining = true;
		return;
	}
	if (WIFSIGNALED(status))
		vgpu_log_error(
			"the broker was ended by signal %d (%s), another is started; "
			"running jobs go on",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		vgpu_log_error(
			"the broker exited with %d, another is started; running jobs "
			"go on",
			WEXITSTATUS(status));
	if (is_hopeless(keeper) || start_broker(keeper) < 0) {
		vgpu_log_error("the broker cannot be kept running: vgpud gives up");
		keeper->status = EXIT_FAILURE;
		keeper->draining = true;
	}
}

static void tell_broker(struct keeper *keeper, int r)
{
	if (r == LINK_E_AGAIN && keeper->broker) {
		vgpu_log_error("the broker has not listened for %d s and is killed",
			KEEPER_LINK_TIMEOUT_S);
		kill(keeper->broker, SIGKILL);
	}
}

/*
 * VMs
 */

static void lose_vm(struct keeper *keeper, struct held_vm *vm)
{
	if (vm->gone)
		return;
	vgpu_log_info(
		"vm=%s id=%llu has gone", vm->config->name, (unsigned long long)vm->id);
	vm->gone = true;
	vm->connection = vgpu_close(vm->connection);
	tell_broker(keeper, link_send_id(keeper->link, LINK_VM_GONE, vm->id));
}

static void gain_vm(struct keeper *keeper, struct held_vm *vm)
{
	vgpu_log_info("vm=%s id=%llu has come by transport %s (pid %d, %llu MiB shared)",
		vm->config->name, (unsigned long long)vm->id,
		config_transport_name(vm->config->transport), (int)vm->pid,
		(unsigned long long)vm->size >> 20);
	TAILQ_INSERT_TAIL(&keeper->vms, vm, entry);
	tell_broker(keeper, held_vm_tell(vm, keeper->link));
}

static unsigned int count_live_vms(struct keeper *keeper, const struct config_vm *config)
{
	struct held_vm *vm;
	unsigned int n = 0;

	TAILQ_FOREACH(vm, &keeper->vms, entry)
		n += vm->config == config && !vm->gone;
	return n;
}

/* Returns: why one more connection is refused, or NULL. */
static const char *refusal(struct keeper *keeper, const struct config_vm *config)
{
	unsigned int n = count_live_vms(keeper, config);

	if (config->transport == CONFIG_IVSHMEM && n)
		return "one socket serves one QEMU at a time";
	if (n >= config->max_processes + KEEPER_SPARE_CONNECTIONS)
		return "there are too many";
	return NULL;
}

/* Without descriptors the connection stays where it is, and would be told again. */
static void handle_accept_error(struct keeper_door *door)
{
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	vgpu_log_error("vm=%s: cannot accept a connection: %m", door->config->name);
	door->deaf_until = now_ms() + KEEPER_DEAF_MS;
}

/* Accepts one connection and greets it at once, whatever the broker is doing. */
static void handle_connection(struct keeper *keeper, struct keeper_door *door)
{
	const struct config_vm *config = door->config;
	struct held_vm *vm;
	const char *reason;
	int fd, r;

	fd = accept4(door->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		handle_accept_error(door);
		return;
	}
	reason = refusal(keeper, config);
	if (reason) {
		vgpu_log_warning("vm=%s: a further connection to %s is refused: %s",
			config->name, config->socket, reason);
		close(fd);
		return;
	}
	r = held_vm_new(&vm, config, ++keeper->last_id, fd);
	if (r) {
		vgpu_log_error("vm=%s: no memory or descriptors for it: %s", config->name,
			strerror(-r));
		return;
	}
	if (config->transport == CONFIG_IVSHMEM)
		keeper->last_peer = keeper->last_peer % GREETING_PEER_MAX + 1;
	r = held_vm_greet(vm, keeper->last_peer);
	if (r) {
		vgpu_log_error("vm=%s: its connection cannot be greeted: %s",
			config->name, r < 0 ? strerror(-r) : "it ended or takes nothing");
		held_vm_free(vm);
		return;
	}
	gain_vm(keeper, vm);
}

/* Looks after one file of transport plain. */
static void visit_plain(struct keeper *keeper, struct keeper_door *door)
{
	const char *reason = NULL;
	int r;

	if (door->plain && !door->plain->gone && held_vm_is_replaced(door->plain))
		lose_vm(keeper, door->plain);
	if (count_live_vms(keeper, door->config))
		return;
	r = held_vm_new_plain(&door->plain, door->config, ++keeper->last_id, &reason);
	if (!r) {
		door->complaint = NULL;
		gain_vm(keeper, door->plain);
		return;
	}
	door->plain = NULL;
	if (r == HELD_VM_E_ABSENT)
		reason = "it does not exist yet";
	else if (r < 0)
		reason = strerror(-r);
	if (!door->complaint || strcmp(door->complaint, reason))
		vgpu_log_info("vm=%s waits for %s: %s", door->config->name,
			door->config->memory, reason);
	door->complaint = reason;
}

static void visit_plains(struct keeper *keeper)
{
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		if (keeper->doors[i].config->transport == CONFIG_PLAIN)
			visit_plain(keeper, &keeper->doors[i]);
}

static void forget_vm(struct keeper *keeper, uint64_t id)
{
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &keeper->vms, entry)
		if (vm->id == id)
			break;
	if (!vm)
		return;
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		if (keeper->doors[i].plain == vm)
			keeper->doors[i].plain = NULL;
	TAILQ_REMOVE(&keeper->vms, vm, entry);
	held_vm_free(vm);
}

/*
 * Workers
 */

static struct held_worker *find_worker(struct keeper *keeper, uint64_t id)
{
	struct held_worker *worker;

	TAILQ_FOREACH(worker, &keeper->workers, entry)
		if (worker->id == id)
			return worker;
	return NULL;
}

static void spawn_worker(struct keeper *keeper)
{
	struct link_message message = { .type = LINK_NO_WORKER };
	struct held_worker *worker;
	int r;

	r = held_worker_new(&worker, keeper->config, ++keeper->last_id);
	if (r) {
		message.no_worker.error = r;
		tell_broker(keeper, link_send(keeper->link, &message, NULL, 0));
		return;
	}
	TAILQ_INSERT_TAIL(&keeper->workers, worker, entry);
	tell_broker(keeper, held_worker_tell(worker, keeper->link));
}

static void forget_worker(struct keeper *keeper, struct held_worker *worker)
{
	TAILQ_REMOVE(&keeper->workers, worker, entry);
	held_worker_free(worker);
}

/* Reaps whatever ended, also orphans of workers: the keeper is their subreaper. */
static void reap(struct keeper *keeper)
{
	struct held_worker *worker;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == keeper->broker) {
			handle_broker_exit(keeper, status);
			continue;
		}
		TAILQ_FOREACH(worker, &keeper->workers, entry) {
			if (worker->pid != pid || worker->exited)
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

static void handle_message(struct keeper *keeper, const struct link_message *message)
{
	struct held_worker *worker;

	switch (message->type) {
	case LINK_READY:
		if (!keeper->ready)
			vgpu_log_info("vgpud ready");
		keeper->ready = true;
		break;
	case LINK_SPAWN:
		spawn_worker(keeper);
		break;
	case LINK_KILL:
		worker = find_worker(keeper, message->id);
		if (worker)
			held_worker_kill(worker);
		break;
	case LINK_VM_DONE:
		forget_vm(keeper, message->id);
		break;
	case LINK_WORKER_DONE:
		worker = find_worker(keeper, message->id);
		if (worker)
			forget_worker(keeper, worker);
		break;
	}
}

static void handle_link(struct keeper *keeper)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;
	int r;

	r = link_receive(keeper->link, &message, fds, &n_fds);
	if (!r)
		handle_message(keeper, &message);
	else if (r < 0 && keeper->broker)
		kill(keeper->broker, SIGKILL);
	/* At end-of-file SIGCHLD follows; until then there is nothing to listen to. */
	if (r)
		keeper->link = vgpu_close(keeper->link);
}

static void drain(struct keeper *keeper, int signo)
{
	if (keeper->draining) {
		keeper->drain_end = 0;
		return;
	}
	vgpu_log_info("signal %d (%s): no new sessions, running ones are ended", signo,
		strsignal(signo));
	keeper->draining = true;
	keeper->drain_end = now_ms() + KEEPER_DRAIN_MS;
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		listener_deinit(&keeper->doors[i].listener);
	tell_broker(keeper, link_send_id(keeper->link, LINK_DRAIN, 0));
}

static void handle_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			drain(keeper, info.ssi_signo);
		else if (info.ssi_signo == SIGHUP)
			vgpu_log_warning("SIGHUP is ignored: restart vgpud to have the "
					 "configuration read again");
	}
	reap(keeper);
}

/* Returns: the descriptor to poll, -1 while the door is deaf. */
static int listening_fd(const struct keeper_door *door)
{
	return door->deaf_until && now_ms() < door->deaf_until ? -1 : door->listener.fd;
}

/* Signals and link first, then one entry a door and one a VM, in list order. */
static int fill_polls(struct keeper *keeper, unsigned int *n_pollsp)
{
	unsigned int n = 2 + keeper->n_doors;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &keeper->vms, entry)
		n++;
	if (n > keeper->n_polls_max) {
		struct pollfd *polls = reallocarray(keeper->polls, 2 * n, sizeof(*polls));

		if (!polls)
			return vgpu_error_origin(-ENOMEM);
		keeper->polls = polls;
		keeper->n_polls_max = 2 * n;
	}
	n = 0;
	keeper->polls[n++] = (struct pollfd){ keeper->signals, POLLIN, 0 };
	keeper->polls[n++] = (struct pollfd){ keeper->link, POLLIN, 0 };
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		keeper->polls[n++] =
			(struct pollfd){ listening_fd(&keeper->doors[i]), POLLIN, 0 };
	/* What a peer may send is never read; only its end matters. */
	TAILQ_FOREACH(vm, &keeper->vms, entry)
		keeper->polls[n++] = (struct pollfd){ vm->connection, POLLRDHUP, 0 };
	*n_pollsp = n;
	return 0;
}

static int poll_timeout(const struct keeper *keeper)
{
	int timeout = -1;
	int64_t left;

	if (keeper->draining) {
		left = keeper->drain_end - now_ms();
		return left > 0 ? left : 0;
	}
	for (unsigned int i = 0; i < keeper->n_doors; i++) {
		if (keeper->doors[i].deaf_until > now_ms())
			return KEEPER_DEAF_MS;
		if (keeper->doors[i].config->transport == CONFIG_PLAIN)
			timeout = KEEPER_PLAIN_MS;
	}
	return timeout;
}

/* Connections that ended come before new ones: a VM that restarts finds its place
 * free. Signals come last, because they may start a broker, which hears all. */
static void dispatch(struct keeper *keeper)
{
	struct pollfd *poll = keeper->polls + 2 + keeper->n_doors;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &keeper->vms, entry) {
		if (poll->revents)
			lose_vm(keeper, vm);
		poll++;
	}
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		if (keeper->polls[2 + i].revents)
			handle_connection(keeper, &keeper->doors[i]);
	if (keeper->polls[1].revents)
		handle_link(keeper);
	if (keeper->polls[0].revents)
		handle_signal(keeper);
}

static int run(struct keeper *keeper)
{
	unsigned int n;
	int r;

	while (!keeper->draining || keeper->broker) {
		r = fill_polls(keeper, &n);
		if (r)
			return vgpu_error_trace(r);
		if (poll(keeper->polls, n, poll_timeout(keeper)) < 0 && errno != EINTR)
			return vgpu_error_origin(-errno);
		dispatch(keeper);
		if (!keeper->draining)
			visit_plains(keeper);
		else if (keeper->broker && now_ms() >= keeper->drain_end)
			kill(keeper->broker, SIGKILL);
	}
	return 0;
}

/*
 * Start and end
 */

static int open_door(struct keeper_door *door)
{
	const struct config_vm *config = door->config;
	int r;

	if (config->transport == CONFIG_PLAIN)
		return 0;
	r = listener_init(&door->listener, config->socket, config->socket_mode,
		config->socket_group);
	if (r == LISTENER_E_TAKEN)
		vgpu_log_error("vm=%s: another vgpud serves %s (%s.lock is locked)",
			config->name, config->socket, config->socket);
	else if (r == LISTENER_E_ALIEN)
		vgpu_log_error("vm=%s: %s exists and is not a socket", config->name,
			config->socket);
	else if (r)
		vgpu_log_error("vm=%s: cannot listen on %s: %s", config->name,
			config->socket, strerror(-r));
	return r;
}

static int open_doors(struct keeper *keeper)
{
	int r;

	keeper->doors = calloc(keeper->config->n_vms, sizeof(*keeper->doors));
	if (!keeper->doors)
		return vgpu_error_origin(-ENOMEM);
	for (unsigned int i = 0; i < keeper->config->n_vms; i++) {
		keeper->doors[i] = (struct keeper_door){
			.config = config_vm_at(keeper->config, i),
			.listener = LISTENER_NULL,
		};
		keeper->n_doors = i + 1;
		r = open_door(&keeper->doors[i]);
		if (r)
			return r;
	}
	return 0;
}

static int keep_text(struct keeper *keeper, const char *text)
{
	size_t size = strlen(text);

	keeper->text = memfd_create("vgpud-config", MFD_CLOEXEC);
	if (keeper->text < 0)
		return vgpu_error_origin(-errno);
	if (write(keeper->text, text, size) != (ssize_t)size)
		return vgpu_error_origin(errno ? -errno : -EIO);
	return 0;
}

static int catch_signals(struct keeper *keeper)
{
	sigset_t set;

	/* A log that goes into a closed pipe must not end vgpud or a worker. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return vgpu_error_origin(-errno);
	keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return keeper->signals < 0 ? vgpu_error_origin(-errno) : 0;
}

/* A VM takes up to 67 descriptors in the keeper and as many in the broker. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int keeper_init(struct keeper *keeper, const char *text)
{
	int r;

	raise_fd_limit();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return vgpu_error_origin(-errno);
	if (access(keeper->config->worker, X_OK) < 0) {
		r = -errno;
		vgpu_log_error("the worker program %s cannot be executed: %s",
			keeper->config->worker, strerror(-r));
		return r;
	}
	r = keep_text(keeper, text);
	if (!r)
		r = catch_signals(keeper);
	if (!r)
		r = open_doors(keeper);
	if (!r)
		r = start_broker(keeper);
	return r;
}

static void keeper_deinit(struct keeper *keeper)
{
	struct held_worker *worker;
	struct held_vm *vm;

	if (keeper->broker) {
		kill(keeper->broker, SIGKILL);
		while (waitpid(keeper->broker, NULL, 0) < 0 && errno == EINTR)
			;
	}
	while ((worker = TAILQ_FIRST(&keeper->workers)))
		forget_worker(keeper, worker);
	while ((vm = TAILQ_FIRST(&keeper->vms)))
		forget_vm(keeper, vm->id);
	for (unsigned int i = 0; i < keeper->n_doors; i++)
		listener_deinit(&keeper->doors[i].listener);
	free(keeper->doors);
	free(keeper->polls);
	vgpu_close(keeper->link);
	vgpu_close(keeper->signals);
	vgpu_close(keeper->text);
}

int keeper_run(const struct config *config, const char *text, const char *name)
{
	struct keeper keeper = {
		.config = config,
		.name = name,
		.text = -1,
		.signals = -1,
		.link = -1,
		.vms = TAILQ_HEAD_INITIALIZER(keeper.vms),
		.workers = TAILQ_HEAD_INITIALIZER(keeper.workers),
	};
	int r;

	r = keeper_init(&keeper, text);
	if (!r)
		r = run(&keeper);
	keeper_deinit(&keeper);
	if (r)
		return EXIT_FAILURE;
	vgpu_log_info("vgpud has ended");
	return keeper.status;
}
