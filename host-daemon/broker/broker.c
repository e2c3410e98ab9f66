/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broker: policy, channels and workers; the keeper's replaceable child
 *
 * It may die at any instruction. The state that the next broker needs is in the ledgers
 * and in the keeper, which announces all VMs and workers and then sends SYNC; only after
 * that does a broker scan channels or request workers.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/arbiter.h"
#include "broker/broker.h"
#include "broker/channel.h"
#include "broker/ctl-server.h"
#include "broker/device-set.h"
#include "broker/group-limit.h"
#include "broker/host-memory.h"
#include "broker/images.h"
#include "broker/shares.h"
#include "broker/owners.h"
#include "broker/pool.h"
#include "broker/quota-watch.h"
#include "broker/rooms.h"
#include "broker/scan.h"
#include "broker/slots.h"
#include "broker/status.h"
#include "broker/vm.h"
#include "broker/worker-control.h"
#include "broker/worker.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/container-of.h"
#include "vgpud/shortage.h"
#include "vgpud/signals.h"

/* Interval of scans while a VM polls for answers, or has no doorbell. */
#define BROKER_POLL_MS 20

static int handle_heartbeat(struct loop_timer *timer);

static struct broker *of_heartbeat(struct loop_timer *timer)
{
	return container_of(timer, struct broker, heartbeat);
}

/* Starts the heartbeat, if any VM needs it. One that is due earlier stays: VMs that come
 * and go more often than it beats must not postpone it, and all that is checked then. */
static void update_heartbeat(struct broker *broker)
{
	const struct loop_timer *timer = &broker->heartbeat;
	unsigned int ms = 0;
	struct vm *vm;

	TAILQ_FOREACH(vm, &broker->vms, entry) {
		if (vm->gone)
			continue;
		if (!ms)
			ms = VGPU_HEARTBEAT_MS / 2;
		if (!vm->n_doorbells)
			ms = BROKER_POLL_MS;
	}
	if (!ms)
		loop_clear_timer(&broker->heartbeat);
	else if (!timer->loop || timer->deadline > clock_now() + ms)
		loop_set_timer(&broker->loop, &broker->heartbeat, ms, handle_heartbeat);
}

static int handle_heartbeat(struct loop_timer *timer)
{
	struct broker *broker = of_heartbeat(timer);
	struct vm *vm;

	TAILQ_FOREACH(vm, &broker->vms, entry)
		scan_tick(vm);
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		account_log_lost(&broker->accounts[i]);
	host_memory_check(broker);
	if (quota_watch_check(broker))
		rooms_watch(broker);
	status_renew(broker);
	update_heartbeat(broker);
	return 0;
}

/* Frees VMs that are gone and have no worker left. */
static void sweep_vms(struct broker *broker)
{
	struct vm *vm, *next;

	for (vm = TAILQ_FIRST(&broker->vms); vm; vm = next) {
		next = TAILQ_NEXT(vm, entry);
		if (!scan_is_done(vm))
			continue;
		link_send_id(broker->link, LINK_VM_DONE, vm->id);
		TAILQ_REMOVE(&broker->vms, vm, entry);
		vm_free(vm);
	}
}

static struct vm *find_vm(struct broker *broker, uint64_t id)
{
	struct vm *vm;

	TAILQ_FOREACH(vm, &broker->vms, entry)
		if (vm->id == id)
			return vm;
	return NULL;
}

/*
 * Messages from the keeper
 */

static int handle_vm(struct broker *broker, const struct link_message *message,
	const int *fds, size_t n_fds)
{
	struct vm *vm;
	int r;

	r = vm_new(&vm, broker, message, fds, n_fds);
	if (r)
		return vgpu_error_trace(r);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_init(&vm->channels[i], vm, i, &vm->ledger->channels[i]);
	owners_publish(vm);
	TAILQ_INSERT_TAIL(&broker->vms, vm, entry);
	update_heartbeat(broker);
	if (!broker->synced)
		return 0;
	status_show(broker, vm);
	/* The guest may have rung before the VM was announced. */
	r = scan_listen(vm);
	if (!r)
		scan_look(vm);
	pool_update(broker);
	return r;
}

static int handle_vm_gone(struct broker *broker, uint64_t id)
{
	struct vm *vm = find_vm(broker, id);

	if (!vm)
		return 0;
	vm->gone = true;
	if (vm->config->transport != CONFIG_SOCKET)
		image_store_clear(&vm->account->images);
	if (broker->synced)
		scan_handle_gone(vm);
	sweep_vms(broker);
	update_heartbeat(broker);
	return 0;
}

/* Finds the channel that a worker of the last broker serves. */
static struct channel *find_channel(struct broker *broker, uint64_t worker)
{
	struct vm *vm;

	TAILQ_FOREACH(vm, &broker->vms, entry)
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			if (vm->channels[i].record->worker == worker)
				return &vm->channels[i];
	return NULL;
}

static int handle_worker(
	struct broker *broker, const struct link_message *message, const int *fds)
{
	struct channel *channel;
	struct worker *worker;
	int r;

	r = worker_new(&worker, broker, message, fds, worker_control_receive);
	if (r)
		return vgpu_error_trace(r);
	if (broker->synced) {
		worker->devices = device_set_find(broker, message->worker.request);
		if (!worker->devices)
			return vgpu_error_origin(-EPROTO);
		if (worker->devices->n_spawning)
			worker->devices->n_spawning--;
		if (broker->draining)
			worker_end(worker, CONTROL_STOP_MS);
		return worker_listen(worker);
	}
	channel = find_channel(broker, worker->id);
	if (channel) {
		channel_restore_worker(channel, worker);
		return 0;
	}
	worker->is_orphan = true;
	worker_end(worker, 0);
	return 0;
}

static int handle_quota(struct broker *broker, const struct link_message *message, int fd)
{
	if (message->section.config_index >= broker->config->n_vms) {
		close(fd);
		return vgpu_error_origin(-EPROTO);
	}
	return account_share_quota(&broker->accounts[message->section.config_index], fd);
}

static void check_drained(struct broker *broker)
{
	if (broker->draining && TAILQ_EMPTY(&broker->pool.workers) &&
		!pool_is_starting(broker))
		loop_quit(&broker->loop, EXIT_SUCCESS);
}

static int handle_no_worker(struct broker *broker, const struct link_message *message)
{
	struct device_set *set = device_set_find(broker, message->id);

	if (!set)
		return vgpu_error_origin(-EPROTO);
	pool_handle_no_worker(set, message->no_worker.error);
	check_drained(broker);
	return 0;
}

static int handle_exited(struct broker *broker, const struct link_message *message)
{
	struct worker *worker = worker_find(broker, message->id);

	if (worker)
		worker_control_handle_exit(worker, message->exited.status);
	sweep_vms(broker);
	check_drained(broker);
	return 0;
}

/* Whether each section has its quota page, which sessions need. */
static bool has_quotas(const struct broker *broker)
{
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		if (!broker->accounts[i].quota)
			return false;
	return true;
}

static int listen_to_workers(struct broker *broker)
{
	struct worker *worker;
	int r;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		r = worker_listen(worker);
		if (r)
			return vgpu_error_trace(r);
	}
	return 0;
}

static int handle_sync(struct broker *broker)
{
	struct vm *vm;
	int r;

	/* A second SYNC would restore channels that this broker serves already. */
	if (broker->synced || !has_quotas(broker))
		return vgpu_error_origin(-EPROTO);
	slots_sweep_all(broker);
	/* Restore all channels before scanning any: the limits depend on all of them. */
	TAILQ_FOREACH(vm, &broker->vms, entry)
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			channel_restore(&vm->channels[i]);
	broker->synced = true;
	TAILQ_FOREACH(vm, &broker->vms, entry) {
		if (vm->gone) {
			scan_handle_gone(vm);
			continue;
		}
		r = scan_listen(vm);
		if (r)
			return vgpu_error_trace(r);
		scan_look(vm);
	}
	r = listen_to_workers(broker);
	if (!r)
		r = ctl_server_listen(broker);
	sweep_vms(broker);
	pool_update(broker);
	return r;
}

static int handle_drain(struct broker *broker)
{
	struct worker *worker, *next;
	struct vm *vm;

	/* Channels that waited are in no queue before they are restored. */
	if (!broker->synced)
		return vgpu_error_origin(-EPROTO);
	broker->draining = true;
	TAILQ_FOREACH(vm, &broker->vms, entry)
		for (uint32_t i = 0; i < vm->layout.n_channels; i++)
			if (channel_is_active(&vm->channels[i]))
				channel_end(&vm->channels[i], CHANNEL_AFTER_DEAD,
					VGPU_REASON_SHUTDOWN, CONTROL_STOP_MS);
	for (worker = TAILQ_FIRST(&broker->pool.workers); worker; worker = next) {
		next = TAILQ_NEXT(worker, entry);
		if (worker->state != WORKER_ENDING)
			worker_end(worker, CONTROL_STOP_MS);
	}
	check_drained(broker);
	return 0;
}

static int handle_message(struct broker *broker, const struct link_message *message,
	const int *fds, size_t n_fds)
{
	switch (message->type) {
	case LINK_VM:
		return handle_vm(broker, message, fds, n_fds);
	case LINK_VM_GONE:
		return handle_vm_gone(broker, message->id);
	case LINK_WORKER:
		return handle_worker(broker, message, fds);
	case LINK_IMAGE:
		images_restore(broker, message, fds[0]);
		return 0;
	case LINK_SHARE:
		shares_restore(broker, message, fds[0]);
		return 0;
	case LINK_SHARE_HELD:
		shares_restore_holder(broker, message);
		return 0;
	case LINK_QUOTA:
		return handle_quota(broker, message, fds[0]);
	case LINK_NO_WORKER:
		return handle_no_worker(broker, message);
	case LINK_SENSORS:
		return status_use_sensors(broker, fds[0]);
	case LINK_CTL:
		ctl_server_take(broker, fds[0]);
		return broker->synced ? ctl_server_listen(broker) : 0;
	case LINK_CONFIGURED:
		ctl_server_handle_configured(
			broker, message->id, message->configured.error, fds[0]);
		return 0;
	case LINK_EXITED:
		return handle_exited(broker, message);
	case LINK_SYNC:
		return handle_sync(broker);
	case LINK_DRAIN:
		return handle_drain(broker);
	case LINK_PING:
		link_send_id(broker->link, LINK_PONG, message->id);
		return 0;
	}
	/* The rest is what brokers send to keepers. */
	link_discard(fds, n_fds);
	return vgpu_error_origin(-EPROTO);
}

static int handle_link(struct loop_source *source)
{
	struct broker *broker = container_of(source, struct broker, link_source);
	struct link_message message;
	int fds[LINK_FDS_MAX], r;
	size_t n_fds;

	r = link_receive(broker->link, &message, fds, &n_fds);
	if (r == LINK_E_EOF) {
		vgpu_log_error("the keeper is gone: the broker ends");
		loop_quit(&broker->loop, EXIT_FAILURE);
		return 0;
	}
	if (r)
		return vgpu_error_fold(r);
	return handle_message(broker, &message, fds, n_fds);
}

/*
 * Start and end
 */

static int open_accounts(struct broker *broker)
{
	const struct config *config = broker->config;

	broker->accounts = calloc(config->n_vms, sizeof(*broker->accounts));
	if (!broker->accounts)
		return vgpu_error_origin(-ENOMEM);
	for (unsigned int i = 0; i < config->n_vms; i++) {
		account_init(&broker->accounts[i], config_vm_at(config, i), clock_now());
		broker->accounts[i].n_images_max = account_fds_max(
			IMAGE_STORE_FD_SHARE, config->n_vms, IMAGE_STORE_N_MAX);
		broker->accounts[i].n_shares_max = account_fds_max(
			SHARE_TABLE_FD_SHARE, config->n_vms, SHARE_TABLE_N_MAX);
	}
	return device_sets_init(broker);
}

/* Shares of the device's time. */
static int open_shares(struct broker *broker)
{
	const struct config *config = broker->config;
	int r;

	group_limits_open(broker);
	r = arbiter_new(&broker->arbiter, config->quantum * UINT64_C(1000000));
	for (unsigned int i = 0; !r && i < config->n_vms; i++) {
		const struct config_vm *vm = config_vm_at(config, i);
		const struct arbiter_share share = {
			.weight = vm->weight,
			.priority = vm->priority,
			.is_paused = vm->paused,
			.percent = group_limit_of_kernels(broker, &broker->accounts[i]),
		};

		r = arbiter_add_vm(broker->arbiter, &broker->accounts[i].arbiter, &share);
	}
	return r ? vgpu_error_trace(r) : 0;
}

static void close_shares(struct broker *broker)
{
	for (unsigned int i = 0; broker->accounts && i < broker->config->n_vms; i++)
		broker->accounts[i].arbiter =
			arbiter_remove_vm(broker->accounts[i].arbiter);
	broker->arbiter = arbiter_free(broker->arbiter);
	group_limits_close(broker);
}

static int handle_wiper(struct loop_source *source)
{
	struct broker *broker = container_of(source, struct broker, wiper_source);

	wiper_handle_done(&broker->wiper);
	sweep_vms(broker);
	return 0;
}

/* Slow system calls run on separate threads. */
static int start_helpers(struct broker *broker)
{
	int r;

	r = closer_start();
	if (!r)
		r = open_shares(broker);
	if (!r)
		r = wiper_init(&broker->wiper);
	if (!r)
		r = loop_add(&broker->loop, &broker->wiper_source, broker->wiper.done,
			handle_wiper);
	return r;
}

/* The keeper handles signals and sends messages instead. */
static void block_signals(void)
{
	sigset_t set;

	signals_ignore();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int broker_init(struct broker *broker, const struct config *config, int link)
{
	int r;

	*broker = (struct broker){
		.config = config,
		.sources = -1,
		.link = link,
		.groups = VM_GROUPS_NULL,
		.wiper = WIPER_NULL,
	};
	TAILQ_INIT(&broker->vms);
	pool_init(&broker->pool);
	TAILQ_INIT(&broker->waiting);
	r = open_accounts(broker);
	if (!r)
		r = ctl_server_new(broker);
	if (r)
		return vgpu_error_trace(r);
	r = loop_init(&broker->loop);
	if (r == -EPERM || r == -ENOSYS) {
		vgpu_log_error(
			"io_uring_setup: %s. vgpud's event loop needs io_uring, which "
			"%s",
			strerror(-r),
			r == -EPERM
				? "a seccomp filter (containers often have one) or the "
				  "sysctl kernel.io_uring_disabled forbids here"
				: "this kernel does not have");
		return r;
	}
	if (r) {
		vgpu_log_error("io_uring cannot be set up: %s", strerror(-r));
		return r;
	}
	r = start_helpers(broker);
	if (!r)
		r = loop_add(
			&broker->loop, &broker->link_source, broker->link, handle_link);
	if (r)
		return vgpu_error_trace(r);
	r = link_send_id(broker->link, LINK_READY, 0);
	return r ? vgpu_error_fold(r) : 0;
}

void broker_deinit(struct broker *broker)
{
	struct worker *worker;
	struct vm *vm;

	wiper_deinit(&broker->wiper);
	while ((worker = TAILQ_FIRST(&broker->pool.workers)))
		worker_free(worker);
	close_shares(broker);
	while ((vm = TAILQ_FIRST(&broker->vms))) {
		TAILQ_REMOVE(&broker->vms, vm, entry);
		vm_free(vm);
	}
	ctl_server_free(broker->ctl);
	if (broker->loop.has_ring) {
		loop_remove(&broker->link_source);
		loop_remove(&broker->wiper_source);
	}
	loop_deinit(&broker->loop);
	for (unsigned int i = 0; broker->accounts && i < broker->config->n_vms; i++)
		account_deinit(&broker->accounts[i]);
	free(broker->accounts);
	device_sets_deinit(broker);
	status_deinit(broker);
}

int broker_run(const struct config *config, const char *path, int sources, int link)
{
	struct broker broker;
	int r;

	block_signals();
	r = broker_init(&broker, config, link);
	broker.path = path;
	broker.sources = sources;
	if (!r)
		r = loop_run(&broker.loop);
	if (r < 0)
		vgpu_log_error("the broker ends: %s", strerror(-r));
	broker_deinit(&broker);
	vgpu_close(link);
	if (shortage_is(r))
		return EXIT_SHORTAGE;
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
