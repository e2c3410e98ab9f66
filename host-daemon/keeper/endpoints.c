/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints: the sockets and files by which VMs connect, and the connected VMs
 *
 * A connection is greeted as soon as it is accepted, whatever the broker is doing: QEMU
 * waits for the greeting with its big lock held. Then the VM is stored for the next
 * keeper, and announced to the broker. If the broker is dead at that moment, the next one
 * learns of all VMs when it starts.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/packet.h"
#include "control/quota.h"
#include "keeper/endpoints.h"
#include "keeper/greeting.h"
#include "keeper/held-worker.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/container-of.h"
#include "vgpud/link.h"

/* Interval of checks for files of transport plain. */
#define ENDPOINTS_PLAIN_MS 500
/* Connections of a section with transport socket: two for each process, whose libcuda and
 * NVML have one each, and some for processes that only look. */
#define ENDPOINTS_CONNECTIONS_EACH 2
#define ENDPOINTS_SPARE_CONNECTIONS 16
/* Budget of connections: a burst, then one per interval. */
#define ENDPOINTS_CONNECTIONS 512
#define ENDPOINTS_CONNECTION_MS 10
/* Removed VMs that the broker still uses. At this limit new connections wait for the
 * broker. */
#define ENDPOINTS_GONE_MAX 64
/* Descriptors outside all sections: of keeper or broker itself, of starting or spare
 * workers, of a child between fork and exec. */
#define ENDPOINTS_FD_RESERVE 80
/* One VM, and earlier ones that the broker has not released. */
#define ENDPOINTS_VMS_AT_ONCE 3
/* A socket and its lock, and the section's quota page. */
#define ENDPOINTS_FD_LISTENER 3
/* Pause of accepting connections when descriptors ran out. */
#define ENDPOINTS_PAUSE_MS 100

static void note_result(struct endpoints *endpoints, int r)
{
	if (r)
		endpoints->link_result = r;
}

/* Takes the budget of a log line about a connection: clients can reconnect at will. */
static bool take_log_line(struct endpoints *endpoints, const struct config_vm *config)
{
	return account_take_log_line(&endpoints->endpoints[config->index].account);
}

static void lose_vm(struct endpoints *endpoints, struct held_vm *vm)
{
	if (vm->gone)
		return;
	if (take_log_line(endpoints, vm->config))
		vgpu_log_info("vm=%s id=%llu: the VM disconnected", vm->config->name,
			(unsigned long long)vm->id);
	vm->gone = true;
	vm->connection = vgpu_close(vm->connection);
	/* The next VM must not get images of this one. */
	if (vm->config->transport != CONFIG_SOCKET)
		image_store_clear(&endpoints->endpoints[vm->config->index].images);
	note_result(endpoints, link_send_id(endpoints->link, LINK_VM_GONE, vm->id));
}

/* Return: the image store of a VM, or NULL once the VM is gone. */
static struct image_store *find_store(
	struct endpoints *endpoints, const struct link_message *message)
{
	const uint32_t index = message->image.config_index;
	struct held_vm *vm;

	if (index >= endpoints->n_endpoints)
		return NULL;
	if (!message->id)
		return &endpoints->endpoints[index].images;
	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		if (vm->id == message->id && vm->config->index == index && !vm->gone)
			return &endpoints->endpoints[index].images;
	return NULL;
}

void endpoints_keep_image(
	struct endpoints *endpoints, const struct link_message *message, int fd)
{
	const struct link_image *image = &message->image;
	struct image_store *store = find_store(endpoints, message);

	if (!store || store->n >= IMAGE_STORE_N_MAX ||
		image_store_find(store, image->digest) ||
		image_store_add(store, image->digest, image->size, fd))
		closer_close(fd);
}

void endpoints_drop_image(struct endpoints *endpoints, const struct link_message *message)
{
	struct image_store *store = find_store(endpoints, message);
	struct stored_image *image = NULL;

	if (store)
		image = image_store_find(store, message->image.digest);
	if (image)
		image_store_remove(store, image);
}

static struct share_table *find_shares(
	struct endpoints *endpoints, const struct link_message *message)
{
	const uint32_t index = message->share.config_index;

	return index < endpoints->n_endpoints ? &endpoints->endpoints[index].shares
					      : NULL;
}

void endpoints_keep_share(
	struct endpoints *endpoints, const struct link_message *message, int fd)
{
	struct share_table *shares = find_shares(endpoints, message);
	struct share template = {
		.size = message->share.size,
		.fd = fd,
	};

	memcpy(template.token, message->share.token, sizeof(template.token));
	memcpy(template.device, message->share.device, sizeof(template.device));
	if (!shares ||
		share_table_add(shares, &template, message->id, message->share.cookie))
		closer_close(fd);
}

void endpoints_hold_share(struct endpoints *endpoints, const struct link_message *message)
{
	struct share_table *shares = find_shares(endpoints, message);
	struct share *share = NULL;

	if (shares)
		share = share_table_find(shares, message->share.token);
	if (share)
		share_table_hold(shares, share, message->id, message->share.cookie);
}

void endpoints_leave_share(
	struct endpoints *endpoints, const struct link_message *message)
{
	struct share_table *shares = find_shares(endpoints, message);

	if (shares)
		share_table_leave(shares, message->id, message->share.cookie);
}

void endpoints_forget_worker(struct endpoints *endpoints, uint64_t worker)
{
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		share_table_forget(&endpoints->endpoints[i].shares, worker);
}

static void tell_share(
	struct endpoints *endpoints, uint32_t config_index, const struct share *share)
{
	struct link_message message = {
		.share = {
			.size = share->size,
			.config_index = config_index,
		},
	};

	memcpy(message.share.token, share->token, sizeof(share->token));
	memcpy(message.share.device, share->device, sizeof(share->device));
	for (uint32_t i = 0; i < share->n_holders; i++) {
		message.type = i ? LINK_SHARE_HELD : LINK_SHARE;
		message.id = share->holders[i].worker;
		message.share.cookie = share->holders[i].cookie;
		note_result(endpoints,
			link_send(endpoints->link, &message, i ? NULL : &share->fd, !i));
	}
}

static void tell_shares(struct endpoints *endpoints, const struct endpoint *endpoint)
{
	const struct share *share;

	TAILQ_FOREACH(share, &endpoint->shares.shares, entry)
		tell_share(endpoints, endpoint->config->index, share);
}

static void tell_quota(struct endpoints *endpoints, const struct endpoint *endpoint)
{
	const struct link_message message = {
		.type = LINK_QUOTA,
		.section.config_index = endpoint->config->index,
	};

	note_result(endpoints, link_send(endpoints->link, &message, &endpoint->quota, 1));
}

static void tell_images(struct endpoints *endpoints, const struct endpoint *endpoint)
{
	struct link_message message = {
		.type = LINK_IMAGE,
		.image.config_index = endpoint->config->index,
	};
	struct stored_image *image;

	TAILQ_FOREACH(image, &endpoint->images.images, entry) {
		memcpy(message.image.digest, image->digest, sizeof(image->digest));
		message.image.size = image->size;
		note_result(
			endpoints, link_send(endpoints->link, &message, &image->fd, 1));
	}
}

static void gain_vm(struct endpoints *endpoints, struct held_vm *vm)
{
	if (take_log_line(endpoints, vm->config))
		vgpu_log_info("vm=%s id=%llu: the VM connected (transport %s, pid %d, "
			      "%llu MiB shared)",
			vm->config->name, (unsigned long long)vm->id,
			config_transport_name(vm->config->transport), (int)vm->pid,
			(unsigned long long)vm->size >> 20);
	TAILQ_INSERT_TAIL(&endpoints->vms, vm, entry);
	note_result(endpoints, held_vm_tell(vm, endpoints->link));
}

static unsigned int count_vms(
	struct endpoints *endpoints, const struct config_vm *config, bool gone)
{
	struct held_vm *vm;
	unsigned int n = 0;

	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		n += vm->config == config && vm->gone == gone;
	return n;
}

static unsigned int count_live_vms(
	struct endpoints *endpoints, const struct config_vm *config)
{
	return count_vms(endpoints, config, false);
}

/*
 * Descriptors. A section that exceeds its share waits or is refused, so that descriptors
 * remain for other sections, a broker, and workers.
 */

static unsigned int fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return limit.rlim_cur;
}

static unsigned int connections_max(const struct config_vm *config)
{
	return ENDPOINTS_CONNECTIONS_EACH * config->max_processes +
	       ENDPOINTS_SPARE_CONNECTIONS;
}

/* Descriptors of so many VMs of a section. Of connections by socket no more have a worker
 * than there may be processes, and some whose end is not known yet. */
static unsigned int fds_of(const struct config_vm *config, unsigned int n)
{
	const unsigned int n_workers =
		config->max_processes + ENDPOINTS_SPARE_CONNECTIONS;
	const unsigned int fds = n * held_vm_n_fds(config);

	if (config->transport != CONFIG_SOCKET || n <= n_workers)
		return fds;
	return fds - (n - n_workers) * HELD_WORKER_FDS;
}

/* The maximum that a section can use: for all its processes, or for a VM and earlier ones
 * that are not released. */
static unsigned int fds_wanted(const struct config_vm *config)
{
	return fds_of(config, config->transport == CONFIG_SOCKET ? connections_max(config)
								 : ENDPOINTS_VMS_AT_ONCE);
}

/* Descriptors for all sections together. */
static unsigned int fds_available(const struct endpoints *endpoints)
{
	const unsigned int limit = fd_limit();
	const unsigned int reserve =
		limit / 3 < ENDPOINTS_FD_RESERVE ? limit / 3 : ENDPOINTS_FD_RESERVE;
	const unsigned int taken = limit / IMAGE_STORE_FD_SHARE +
				   limit / SHARE_TABLE_FD_SHARE + reserve +
				   ENDPOINTS_FD_LISTENER * endpoints->n_endpoints;

	return limit > taken ? limit - taken : 0;
}

/* All sections have equal shares; what some do not need is divided among the others. Each
 * can have one VM in any case; endpoints_init() has warned if descriptors are too few. */
static unsigned int fd_share(
	const struct endpoints *endpoints, const struct config_vm *config)
{
	const unsigned int available = fds_available(endpoints);
	const unsigned int one = held_vm_n_fds(config), wanted = fds_wanted(config);
	unsigned int share = 0, last, left, n_others;

	do {
		last = share;
		left = available;
		n_others = 0;
		for (unsigned int i = 0; i < endpoints->n_endpoints; i++) {
			const unsigned int n = fds_wanted(endpoints->endpoints[i].config);

			if (n > last)
				n_others++;
			else
				left -= n;
		}
		share = n_others ? left / n_others : wanted;
	} while (n_others && share > last);
	share = share < wanted ? share : wanted;
	return share > one ? share : one;
}

/* Descriptors with one more VM. */
static unsigned int count_fds(
	const struct endpoints *endpoints, const struct config_vm *config)
{
	const struct held_vm *vm;
	unsigned int n = 1, n_leaving = 0;

	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		n += vm->config == config;
	TAILQ_FOREACH(vm, &endpoints->leaving, entry)
		n_leaving += vm->config == config;
	return fds_of(config, n) + n_leaving;
}

static bool has_fds(const struct endpoints *endpoints, const struct config_vm *config)
{
	return count_fds(endpoints, config) <= fd_share(endpoints, config);
}

/* Whether the section will soon release some of its descriptors. */
static bool is_losing(struct endpoints *endpoints, const struct config_vm *config)
{
	const struct held_vm *vm;

	TAILQ_FOREACH(vm, &endpoints->leaving, entry)
		if (vm->config == config)
			return true;
	return count_vms(endpoints, config, true);
}

static void warn_of_few_fds(const struct endpoints *endpoints)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		n += fds_wanted(endpoints->endpoints[i].config);
	if (n > fds_available(endpoints))
		vgpu_log_warning(
			"%u descriptors are few for the processes that all sections may "
			"have: each section has its share, and requests beyond it are "
			"refused; LimitNOFILE= of systemd and ulimit -Hn allow more",
			fd_limit());
}

/* Return: the reason to refuse one more connection, or NULL. */
static const char *refusal(struct endpoints *endpoints, const struct config_vm *config)
{
	unsigned int n = count_live_vms(endpoints, config);

	if (config->transport == CONFIG_IVSHMEM && n)
		return "one socket serves one QEMU at a time";
	if (n >= connections_max(config))
		return "there are too many";
	if (!has_fds(endpoints, config))
		return "its share of vgpud's descriptors is used up";
	return NULL;
}

/* Without descriptors the connection stays in the accept queue, and poll() would report
 * it at once again. */
static void handle_accept_error(struct endpoint *endpoint)
{
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	if (account_take_log_line(&endpoint->account))
		vgpu_log_error(
			"vm=%s: cannot accept a connection: %m", endpoint->config->name);
	endpoint->paused_until = clock_now() + ENDPOINTS_PAUSE_MS;
}

/* Accepts one connection and greets it at once, whatever the broker is doing. */
static void handle_connection(struct endpoints *endpoints, struct endpoint *endpoint)
{
	const struct config_vm *config = endpoint->config;
	struct held_vm *vm;
	const char *reason;
	int fd, r;

	/* Limits clients that connect and disconnect all the time: each connection
	 * allocates a shared memory. */
	if (count_vms(endpoints, config, true) >= ENDPOINTS_GONE_MAX ||
		(!has_fds(endpoints, config) && is_losing(endpoints, config)) ||
		!budget_take(&endpoint->connections, clock_now())) {
		endpoint->paused_until = clock_now() + ENDPOINTS_PAUSE_MS;
		return;
	}
	fd = accept4(endpoint->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		handle_accept_error(endpoint);
		return;
	}
	reason = refusal(endpoints, config);
	if (reason) {
		if (take_log_line(endpoints, config))
			vgpu_log_warning(
				"vm=%s: a further connection to %s is refused: %s",
				config->name, config->socket, reason);
		close(fd);
		return;
	}
	r = held_vm_new(&vm, config, ++endpoints->last_id, fd);
	if (r) {
		if (take_log_line(endpoints, config))
			vgpu_log_error("vm=%s: no memory or descriptors for it: %s%s",
				config->name, strerror(-r),
				config->hugepages == CONFIG_HUGEPAGES_HUGETLB
					? "; hugepages = hugetlb needs as many free "
					  "pages of 2 MiB, see HugePages_Free in "
					  "/proc/meminfo and vm.nr_hugepages"
					: "");
		endpoint->paused_until = clock_now() + ENDPOINTS_PAUSE_MS;
		return;
	}
	if (config->transport == CONFIG_IVSHMEM)
		endpoints->last_peer = endpoints->last_peer % GREETING_PEER_MAX + 1;
	r = held_vm_greet(vm, endpoints->last_peer);
	if (r) {
		if (take_log_line(endpoints, config))
			vgpu_log_error("vm=%s: its connection cannot be greeted: %s",
				config->name,
				r < 0 ? strerror(-r) : "it ended or takes nothing");
		held_vm_free(vm);
		return;
	}
	if (endpoints->greeted_fn)
		endpoints->greeted_fn(endpoints, vm);
	gain_vm(endpoints, vm);
}

/* Checks one file of transport plain. */
static void scan_plain(struct endpoints *endpoints, struct endpoint *endpoint)
{
	const char *reason = NULL;
	int r;

	if (endpoint->plain && !endpoint->plain->gone &&
		held_vm_is_replaced(endpoint->plain))
		lose_vm(endpoints, endpoint->plain);
	if (count_live_vms(endpoints, endpoint->config) ||
		!has_fds(endpoints, endpoint->config))
		return;
	r = held_vm_new_plain(
		&endpoint->plain, endpoint->config, ++endpoints->last_id, &reason);
	if (!r) {
		endpoint->complaint = NULL;
		gain_vm(endpoints, endpoint->plain);
		return;
	}
	endpoint->plain = NULL;
	if (r == HELD_VM_E_ABSENT)
		reason = "it does not exist yet";
	else if (r < 0)
		reason = strerror(-r);
	if (!endpoint->complaint || strcmp(endpoint->complaint, reason))
		vgpu_log_info("vm=%s: waiting for %s: %s", endpoint->config->name,
			endpoint->config->memory, reason);
	endpoint->complaint = reason;
}

void endpoints_scan_plain(struct endpoints *endpoints)
{
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		if (endpoints->endpoints[i].config->transport == CONFIG_PLAIN)
			scan_plain(endpoints, &endpoints->endpoints[i]);
}

static struct held_vm *of_wipe(struct wipe *wipe)
{
	return container_of(wipe, struct held_vm, wipe);
}

static struct endpoints *of_wiper(struct wiper *wiper)
{
	return container_of(wiper, struct endpoints, wiper);
}

static void let_go(struct endpoints *endpoints, struct held_vm *vm);

static void handle_wiped(struct wiper *wiper, struct wipe *wipe, int error)
{
	struct held_vm *vm = of_wipe(wipe);
	struct endpoints *endpoints = of_wiper(wiper);

	TAILQ_REMOVE(&endpoints->leaving, vm, entry);
	if (error)
		held_vm_free(vm);
	else
		let_go(endpoints, vm);
}

/* Frees the VM after its memory was emptied. A process that still maps it may fill it
 * again, and closing it would then take long, so the size is checked again. */
static void let_go(struct endpoints *endpoints, struct held_vm *vm)
{
	if (!held_vm_is_large(vm)) {
		held_vm_free(vm);
		return;
	}
	vm->wipe.fd = vm->shm;
	vm->wipe.offset = 0;
	vm->wipe.end = vm->size;
	vm->wipe.done_fn = handle_wiped;
	TAILQ_INSERT_TAIL(&endpoints->leaving, vm, entry);
	wiper_add(&endpoints->wiper, &vm->wipe);
}

void endpoints_adopt(struct endpoints *endpoints, struct held_vm *vm, bool leaving)
{
	if (leaving) {
		vm->wipe.section = vm->config ? vm->config->index : 0;
		let_go(endpoints, vm);
		return;
	}
	TAILQ_INSERT_TAIL(&endpoints->vms, vm, entry);
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		if (endpoints->endpoints[i].config == vm->config && !vm->gone &&
			vm->config->transport == CONFIG_PLAIN)
			endpoints->endpoints[i].plain = vm;
}

void endpoints_forget_vm(struct endpoints *endpoints, uint64_t id)
{
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		if (vm->id == id)
			break;
	if (!vm)
		return;
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		endpoint_forget(&endpoints->endpoints[i], vm);
	TAILQ_REMOVE(&endpoints->vms, vm, entry);
	/* The file of transport plain is not the keeper's to empty. */
	if (vm->config->transport == CONFIG_PLAIN) {
		held_vm_free(vm);
		return;
	}
	held_vm_strip(vm);
	vm->wipe.section = vm->config->index;
	let_go(endpoints, vm);
}

/* Return: the descriptor to poll, -1 during a pause. */
static int listening_fd(const struct endpoint *endpoint)
{
	return endpoint->paused_until && clock_now() < endpoint->paused_until
		       ? -1
		       : endpoint->listener.fd;
}

unsigned int endpoints_count_polls(const struct endpoints *endpoints)
{
	unsigned int n = 1 + endpoints->n_endpoints;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		n++;
	return n;
}

/* The wiper, then one for each endpoint and one for each VM, in list order. */
void endpoints_fill_polls(const struct endpoints *endpoints, struct pollfd *polls)
{
	struct held_vm *vm;

	*polls++ = (struct pollfd){ endpoints->wiper.done, POLLIN, 0 };
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		*polls++ = (struct pollfd){ listening_fd(&endpoints->endpoints[i]),
			POLLIN, 0 };
	/* Data from a peer is never read; only the end of the connection matters. */
	TAILQ_FOREACH(vm, &endpoints->vms, entry)
		*polls++ = (struct pollfd){ vm->connection, POLLRDHUP, 0 };
}

int endpoints_timeout(const struct endpoints *endpoints)
{
	int timeout = -1;

	for (unsigned int i = 0; i < endpoints->n_endpoints; i++) {
		if (endpoints->endpoints[i].paused_until > clock_now())
			return ENDPOINTS_PAUSE_MS;
		if (endpoints->endpoints[i].config->transport == CONFIG_PLAIN)
			timeout = ENDPOINTS_PLAIN_MS;
	}
	return timeout;
}

/* Ended connections first, so that a restarting VM can connect again. */
void endpoints_dispatch(struct endpoints *endpoints, const struct pollfd *polls)
{
	const struct pollfd *endpoint = polls + 1,
			    *poll = endpoint + endpoints->n_endpoints;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &endpoints->vms, entry) {
		if (poll->revents)
			lose_vm(endpoints, vm);
		poll++;
	}
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		if (endpoint[i].revents)
			handle_connection(endpoints, &endpoints->endpoints[i]);
	if (polls->revents)
		wiper_handle_done(&endpoints->wiper);
}

void endpoints_announce_all(struct endpoints *endpoints)
{
	struct held_vm *vm;

	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		tell_quota(endpoints, &endpoints->endpoints[i]);
	TAILQ_FOREACH(vm, &endpoints->vms, entry) {
		note_result(endpoints, held_vm_tell(vm, endpoints->link));
		if (vm->gone)
			note_result(endpoints,
				link_send_id(endpoints->link, LINK_VM_GONE, vm->id));
	}
	/* After the connections, because a removed VM's images are dropped. */
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++) {
		tell_images(endpoints, &endpoints->endpoints[i]);
		tell_shares(endpoints, &endpoints->endpoints[i]);
	}
}

/* @r:	of a listener */
static void log_failure(const struct config_vm *config, int r)
{
	if (r == LISTENER_E_TAKEN)
		vgpu_log_error("vm=%s: another vgpud serves %s (%s.lock is locked)",
			config->name, config->socket, config->socket);
	else if (r == LISTENER_E_ALIEN)
		vgpu_log_error("vm=%s: %s exists and is not a socket", config->name,
			config->socket);
	else if (r)
		vgpu_log_error("vm=%s: cannot listen on %s: %s", config->name,
			config->socket, strerror(-r));
}

static int open_endpoint(struct endpoint *endpoint)
{
	const struct config_vm *config = endpoint->config;
	int r;

	if (config->transport == CONFIG_PLAIN)
		return 0;
	r = listener_init(&endpoint->listener, config->socket, SOCK_STREAM,
		config->socket_mode, config->socket_group);
	log_failure(config, r);
	return r > 0 ? ENDPOINTS_E_UNUSABLE : r;
}

static bool is_same_path(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Whether both are the same socket or file. */
static bool is_same_place(const struct config_vm *a, const struct config_vm *b)
{
	return a->transport == b->transport && is_same_path(a->socket, b->socket) &&
	       is_same_path(a->memory, b->memory);
}

static struct endpoint *find_endpoint(
	struct endpoints *endpoints, const struct config_vm *config)
{
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		if (is_same_place(endpoints->endpoints[i].config, config))
			return &endpoints->endpoints[i];
	return NULL;
}

/* Listens at every endpoint that is not open already; open ones are moved later. */
static int open_new_endpoints(
	struct endpoints *endpoints, struct endpoints *next, const struct config *config)
{
	int r;

	next->endpoints = calloc(config->n_vms, sizeof(*next->endpoints));
	if (!next->endpoints)
		return vgpu_error_origin(-ENOMEM);
	for (unsigned int i = 0; i < config->n_vms; i++) {
		next->endpoints[i] = (struct endpoint){
			.config = config_vm_at(config, i),
			.listener = LISTENER_NULL,
			.quota = -1,
		};
		account_init(&next->endpoints[i].account, next->endpoints[i].config,
			clock_now());
		image_store_init(&next->endpoints[i].images);
		share_table_init(&next->endpoints[i].shares);
		budget_init(&next->endpoints[i].connections, ENDPOINTS_CONNECTIONS,
			ENDPOINTS_CONNECTION_MS, clock_now());
		next->n_endpoints = i + 1;
		r = quota_make(&next->endpoints[i].quota);
		if (r)
			return vgpu_error_trace(r);
		if (find_endpoint(endpoints, next->endpoints[i].config))
			continue;
		r = open_endpoint(&next->endpoints[i]);
		if (r)
			return r;
	}
	return 0;
}

/* Its files may be gone, as a folder of /run that somebody has emptied. */
static void renew_listener(struct endpoint *endpoint)
{
	const struct config_vm *config = endpoint->config;
	const int r = listener_renew(&endpoint->listener, SOCK_STREAM,
		config->socket_mode, config->socket_group);

	log_failure(config, r);
	if (!r)
		vgpu_log_warning("vm=%s: %s or its lock was gone and has been made again",
			config->name, config->socket);
}

static void take_listener_over(struct endpoint *next, struct endpoint *endpoint)
{
	const struct config_vm *config = next->config;
	int r;

	next->listener = endpoint->listener;
	next->paused_until = endpoint->paused_until;
	endpoint->listener = (struct listener)LISTENER_NULL;
	if (!next->listener.path)
		return;
	if (!listener_is_whole(&next->listener)) {
		renew_listener(next);
		return;
	}
	r = listener_permit(&next->listener, config->socket_mode, config->socket_group);
	if (r)
		vgpu_log_error("vm=%s: mode and group of %s stay as they are: %s",
			config->name, config->socket, strerror(-r));
}

/* The section of the same endpoint in another configuration. */
static const struct config_vm *find_section(
	const struct config *config, const struct config_vm *old)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (!strcmp(vm->name, old->name) && is_same_place(vm, old))
			return vm;
	return NULL;
}

/* The broker is not notified: this runs between two brokers, and the next one ends the
 * workers of VMs that it does not know. */
static void sort_vms(struct endpoints *endpoints, const struct config *config)
{
	struct held_vm *vm, *next;

	for (vm = TAILQ_FIRST(&endpoints->vms); vm; vm = next) {
		const struct config_vm *section = find_section(config, vm->config);

		next = TAILQ_NEXT(vm, entry);
		if (!section) {
			if (!vm->gone)
				vgpu_log_warning(
					"vm=%s id=%llu: the VM loses its device: its "
					"section was removed from the configuration",
					vm->config->name, (unsigned long long)vm->id);
			endpoints_forget_vm(endpoints, vm->id);
			continue;
		}
		vm->config = section;
	}
	TAILQ_FOREACH(vm, &endpoints->leaving, entry)
		if (vm->config)
			vm->config = find_section(config, vm->config);
}

/* Frees the resources of endpoints except listeners and VMs. */
static void empty_endpoints(struct endpoints *endpoints)
{
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++) {
		image_store_clear(&endpoints->endpoints[i].images);
		share_table_clear(&endpoints->endpoints[i].shares);
		endpoints->endpoints[i].quota = vgpu_close(endpoints->endpoints[i].quota);
	}
	free(endpoints->endpoints);
}

/* Moves the resources of a section's VMs, see sort_vms(). */
static void take_section_over(struct endpoint *next, struct endpoint *endpoint)
{
	image_store_move(&next->images, &endpoint->images);
	share_table_move(&next->shares, &endpoint->shares);
	vgpu_close(next->quota);
	next->quota = endpoint->quota;
	endpoint->quota = -1;
}

int endpoints_reload(struct endpoints *endpoints, const struct config *config)
{
	struct endpoints next = { .n_endpoints = 0 };
	struct endpoint *endpoint;
	int r;

	r = open_new_endpoints(endpoints, &next, config);
	if (r) {
		endpoints_close(&next);
		empty_endpoints(&next);
		return r;
	}
	sort_vms(endpoints, config);
	warn_of_few_fds(&next);
	for (unsigned int i = 0; i < next.n_endpoints; i++) {
		endpoint = find_endpoint(endpoints, next.endpoints[i].config);
		if (!endpoint)
			continue;
		take_listener_over(&next.endpoints[i], endpoint);
		next.endpoints[i].plain = endpoint->plain;
		if (!strcmp(next.endpoints[i].config->name, endpoint->config->name))
			take_section_over(&next.endpoints[i], endpoint);
	}
	endpoints_close(endpoints);
	empty_endpoints(endpoints);
	endpoints->endpoints = next.endpoints;
	endpoints->n_endpoints = next.n_endpoints;
	return 0;
}

int endpoints_prepare(struct endpoints *endpoints)
{
	int r;

	*endpoints = (struct endpoints){ .link = -1, .wiper = WIPER_NULL };
	TAILQ_INIT(&endpoints->vms);
	TAILQ_INIT(&endpoints->leaving);
	r = wiper_init(&endpoints->wiper);
	if (r)
		vgpu_log_error("vgpud cannot start a thread: %s", strerror(-r));
	return r;
}

int endpoints_init(struct endpoints *endpoints, const struct config *config)
{
	struct endpoints next = { .n_endpoints = 0 };
	int r;

	r = endpoints_prepare(endpoints);
	if (r)
		return r;
	r = open_new_endpoints(endpoints, &next, config);
	endpoints->endpoints = next.endpoints;
	endpoints->n_endpoints = next.n_endpoints;
	if (!r)
		warn_of_few_fds(endpoints);
	return r;
}

void endpoints_close(struct endpoints *endpoints)
{
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++)
		listener_deinit(&endpoints->endpoints[i].listener);
}

void endpoints_deinit(struct endpoints *endpoints)
{
	struct held_vm *vm;

	wiper_deinit(&endpoints->wiper);
	TAILQ_CONCAT(&endpoints->leaving, &endpoints->vms, entry);
	while ((vm = TAILQ_FIRST(&endpoints->leaving))) {
		TAILQ_REMOVE(&endpoints->leaving, vm, entry);
		held_vm_free(vm);
	}
	endpoints_close(endpoints);
	empty_endpoints(endpoints);
}
