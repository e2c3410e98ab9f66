/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doors: where VMs come in, and those that came
 *
 * A connection is greeted in the moment it is accepted, whatever the broker is doing:
 * QEMU waits for its greeting with its big lock held. Then the broker is told. That
 * it may be dead at that moment does not matter, because the next one is told of all.
 */

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/packet.h"
#include "control/quota.h"
#include "keeper/endpoints.h"
#include "keeper/greeting.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/closer.h"
#include "vgpud/link.h"

/* Files of transport plain come and go without notice: look this often. */
#define DOORS_PLAIN_MS 500
/* Connections that a VM may have beyond those it may have sessions on. */
#define DOORS_SPARE_CONNECTIONS 16
/* Connections taken at once, and then one in each such time. */
#define DOORS_VISITS 512
#define DOORS_VISIT_MS 10
/* VMs that went and that the broker has not let go of yet: one that is slow to, or is
 * just being replaced, is not given more. */
#define DOORS_GONE_MAX 64
/* Descriptors that no section has: of keeper or broker itself, of workers that start or
 * are spare, of a child between fork and exec. */
#define DOORS_FD_RESERVE 80
/* One that is there, and those before it that the broker is not done with. */
#define DOORS_VMS_AT_ONCE 3
/* A socket and its lock, and the section's page of quotas. */
#define DOORS_FD_LISTENER 3
/* A door at which no descriptor was left is not listened to for so long. */
#define DOORS_DEAF_MS 100

static void note_result(struct doors *doors, int r)
{
	if (r)
		doors->link_result = r;
}

/* Whether to say that somebody came or went: who does nothing else is not told of. */
static bool may_log(struct doors *doors, const struct config_vm *config)
{
	return account_may_log(&doors->doors[config->index].account);
}

static void lose_vm(struct doors *doors, struct held_vm *vm)
{
	if (vm->gone)
		return;
	if (may_log(doors, vm->config))
		vgpu_log_info("vm=%s id=%llu has gone", vm->config->name,
			(unsigned long long)vm->id);
	vm->gone = true;
	vm->connection = vgpu_close(vm->connection);
	/* Nothing of one VM is left for the next. */
	if (vm->config->transport != CONFIG_SOCKET)
		image_store_clear(&doors->doors[vm->config->index].images);
	note_result(doors, link_send_id(doors->link, LINK_VM_GONE, vm->id));
}

/* Return: where a VM's images are, or NULL once it is gone. */
static struct image_store *find_store(
	struct doors *doors, const struct link_message *message)
{
	const uint32_t index = message->image.config_index;
	struct held_vm *vm;

	if (index >= doors->n_doors)
		return NULL;
	if (!message->id)
		return &doors->doors[index].images;
	TAILQ_FOREACH(vm, &doors->vms, entry)
		if (vm->id == message->id && vm->config->index == index && !vm->gone)
			return &doors->doors[index].images;
	return NULL;
}

void doors_keep_image(struct doors *doors, const struct link_message *message, int fd)
{
	const struct link_image *image = &message->image;
	struct image_store *store = find_store(doors, message);

	if (!store || store->n >= IMAGE_STORE_N_MAX ||
		image_store_find(store, image->digest) ||
		image_store_add(store, image->digest, image->size, fd))
		closer_close(fd);
}

void doors_drop_image(struct doors *doors, const struct link_message *message)
{
	struct image_store *store = find_store(doors, message);
	struct stored_image *image = NULL;

	if (store)
		image = image_store_find(store, message->image.digest);
	if (image)
		image_store_remove(store, image);
}

static void tell_quota(struct doors *doors, const struct door *door)
{
	const struct link_message message = {
		.type = LINK_QUOTA,
		.section.config_index = door->config->index,
	};

	note_result(doors, link_send(doors->link, &message, &door->quota, 1));
}

static void tell_images(struct doors *doors, const struct door *door)
{
	struct link_message message = {
		.type = LINK_IMAGE,
		.image.config_index = door->config->index,
	};
	struct stored_image *image;

	TAILQ_FOREACH(image, &door->images.images, entry) {
		memcpy(message.image.digest, image->digest, sizeof(image->digest));
		message.image.size = image->size;
		note_result(doors, link_send(doors->link, &message, &image->fd, 1));
	}
}

static void gain_vm(struct doors *doors, struct held_vm *vm)
{
	if (may_log(doors, vm->config))
		vgpu_log_info("vm=%s id=%llu has come by transport %s (pid %d, %llu MiB "
			      "shared)",
			vm->config->name, (unsigned long long)vm->id,
			config_transport_name(vm->config->transport), (int)vm->pid,
			(unsigned long long)vm->size >> 20);
	TAILQ_INSERT_TAIL(&doors->vms, vm, entry);
	note_result(doors, held_vm_tell(vm, doors->link));
}

static unsigned int count_vms(
	struct doors *doors, const struct config_vm *config, bool gone)
{
	struct held_vm *vm;
	unsigned int n = 0;

	TAILQ_FOREACH(vm, &doors->vms, entry)
		n += vm->config == config && vm->gone == gone;
	return n;
}

static unsigned int count_live_vms(struct doors *doors, const struct config_vm *config)
{
	return count_vms(doors, config, false);
}

/*
 * Descriptors. A section that takes more than its share waits or is refused; so there are
 * always some left for the other sections, a broker, and workers.
 */

static unsigned int fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return limit.rlim_cur;
}

/* Most that a section has a use for: all its processes, or a VM and those before it that
 * are not done with. */
static unsigned int fds_wanted(const struct config_vm *config)
{
	const unsigned int n = config->transport == CONFIG_SOCKET
				       ? config->max_processes + DOORS_SPARE_CONNECTIONS
				       : DOORS_VMS_AT_ONCE;

	return n * held_vm_n_fds(config);
}

/* What all sections together may have. */
static unsigned int fds_available(const struct doors *doors)
{
	const unsigned int limit = fd_limit();
	const unsigned int reserve =
		limit / 3 < DOORS_FD_RESERVE ? limit / 3 : DOORS_FD_RESERVE;
	const unsigned int taken = limit / IMAGE_STORE_FD_SHARE + reserve +
				   DOORS_FD_LISTENER * doors->n_doors;

	return limit > taken ? limit - taken : 0;
}

/* All have equal shares; what some have no use for is divided among the others. Each can
 * have one VM, however few there are: doors_init() has warned then. */
static unsigned int fd_share(const struct doors *doors, const struct config_vm *config)
{
	const unsigned int available = fds_available(doors);
	const unsigned int one = held_vm_n_fds(config), wanted = fds_wanted(config);
	unsigned int share = 0, last, left, n_others;

	do {
		last = share;
		left = available;
		n_others = 0;
		for (unsigned int i = 0; i < doors->n_doors; i++) {
			const unsigned int n = fds_wanted(doors->doors[i].config);

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

static unsigned int count_fds(const struct doors *doors, const struct config_vm *config)
{
	const struct held_vm *vm;
	unsigned int n = 0;

	TAILQ_FOREACH(vm, &doors->vms, entry)
		if (vm->config == config)
			n += held_vm_n_fds(config);
	TAILQ_FOREACH(vm, &doors->leaving, entry)
		n += vm->config == config;
	return n;
}

static bool has_fds(const struct doors *doors, const struct config_vm *config)
{
	return count_fds(doors, config) + held_vm_n_fds(config) <=
	       fd_share(doors, config);
}

/* Whether some of what the section has will soon be let go of. */
static bool is_losing(struct doors *doors, const struct config_vm *config)
{
	const struct held_vm *vm;

	TAILQ_FOREACH(vm, &doors->leaving, entry)
		if (vm->config == config)
			return true;
	return count_vms(doors, config, true);
}

static void warn_of_few_fds(const struct doors *doors)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < doors->n_doors; i++)
		n += fds_wanted(doors->doors[i].config);
	if (n > fds_available(doors))
		vgpu_log_warning(
			"%u descriptors are few for the processes that all sections may "
			"have: each has its share, and who needs more is refused; "
			"LimitNOFILE= of systemd and ulimit -Hn allow more",
			fd_limit());
}

/* Returns: why one more connection is refused, or NULL. */
static const char *refusal(struct doors *doors, const struct config_vm *config)
{
	unsigned int n = count_live_vms(doors, config);

	if (config->transport == CONFIG_IVSHMEM && n)
		return "one socket serves one QEMU at a time";
	if (n >= config->max_processes + DOORS_SPARE_CONNECTIONS)
		return "there are too many";
	if (!has_fds(doors, config))
		return "its share of vgpud's descriptors is used up";
	return NULL;
}

/* Without descriptors the connection stays where it is, and would be told again. */
static void handle_accept_error(struct door *door)
{
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	if (account_may_log(&door->account))
		vgpu_log_error(
			"vm=%s: cannot accept a connection: %m", door->config->name);
	door->deaf_until = clock_now() + DOORS_DEAF_MS;
}

/* Accepts one connection and greets it at once, whatever the broker is doing. */
static void handle_connection(struct doors *doors, struct door *door)
{
	const struct config_vm *config = door->config;
	struct held_vm *vm;
	const char *reason;
	int fd, r;

	/* Who only comes and goes waits at the door: each visit costs us a memory. */
	if (count_vms(doors, config, true) >= DOORS_GONE_MAX ||
		(!has_fds(doors, config) && is_losing(doors, config)) ||
		!budget_take(&door->visits, clock_now())) {
		door->deaf_until = clock_now() + DOORS_DEAF_MS;
		return;
	}
	fd = accept4(door->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		handle_accept_error(door);
		return;
	}
	reason = refusal(doors, config);
	if (reason) {
		if (may_log(doors, config))
			vgpu_log_warning(
				"vm=%s: a further connection to %s is refused: %s",
				config->name, config->socket, reason);
		close(fd);
		return;
	}
	r = held_vm_new(&vm, config, ++doors->last_id, fd);
	if (r) {
		if (may_log(doors, config))
			vgpu_log_error("vm=%s: no memory or descriptors for it: %s",
				config->name, strerror(-r));
		door->deaf_until = clock_now() + DOORS_DEAF_MS;
		return;
	}
	if (config->transport == CONFIG_IVSHMEM)
		doors->last_peer = doors->last_peer % GREETING_PEER_MAX + 1;
	r = held_vm_greet(vm, doors->last_peer);
	if (r) {
		if (may_log(doors, config))
			vgpu_log_error("vm=%s: its connection cannot be greeted: %s",
				config->name,
				r < 0 ? strerror(-r) : "it ended or takes nothing");
		held_vm_free(vm);
		return;
	}
	gain_vm(doors, vm);
}

/* Looks after one file of transport plain. */
static void visit_plain(struct doors *doors, struct door *door)
{
	const char *reason = NULL;
	int r;

	if (door->plain && !door->plain->gone && held_vm_is_replaced(door->plain))
		lose_vm(doors, door->plain);
	if (count_live_vms(doors, door->config) || !has_fds(doors, door->config))
		return;
	r = held_vm_new_plain(&door->plain, door->config, ++doors->last_id, &reason);
	if (!r) {
		door->complaint = NULL;
		gain_vm(doors, door->plain);
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

void doors_visit_plains(struct doors *doors)
{
	for (unsigned int i = 0; i < doors->n_doors; i++)
		if (doors->doors[i].config->transport == CONFIG_PLAIN)
			visit_plain(doors, &doors->doors[i]);
}

static struct held_vm *of_wipe(struct wipe *wipe)
{
	return (struct held_vm *)((char *)wipe - offsetof(struct held_vm, wipe));
}

static struct doors *of_wiper(struct wiper *wiper)
{
	return (struct doors *)((char *)wiper - offsetof(struct doors, wiper));
}

static void let_go(struct doors *doors, struct held_vm *vm);

static void handle_wiped(struct wiper *wiper, struct wipe *wipe, int error)
{
	struct held_vm *vm = of_wipe(wipe);
	struct doors *doors = of_wiper(wiper);

	TAILQ_REMOVE(&doors->leaving, vm, entry);
	if (error)
		held_vm_free(vm);
	else
		let_go(doors, vm);
}

/* Has its memory emptied, and frees it then. Who still holds it may fill it again, to
 * have it freed in one go when we close it: so it is looked at again at the end. */
static void let_go(struct doors *doors, struct held_vm *vm)
{
	if (!held_vm_is_large(vm)) {
		held_vm_free(vm);
		return;
	}
	vm->wipe.fd = vm->shm;
	vm->wipe.offset = 0;
	vm->wipe.end = vm->size;
	vm->wipe.done_fn = handle_wiped;
	TAILQ_INSERT_TAIL(&doors->leaving, vm, entry);
	wiper_add(&doors->wiper, &vm->wipe);
}

void doors_forget_vm(struct doors *doors, uint64_t id)
{
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &doors->vms, entry)
		if (vm->id == id)
			break;
	if (!vm)
		return;
	for (unsigned int i = 0; i < doors->n_doors; i++)
		door_forget(&doors->doors[i], vm);
	TAILQ_REMOVE(&doors->vms, vm, entry);
	/* The file of transport plain stays where it is. */
	if (vm->config->transport == CONFIG_PLAIN) {
		held_vm_free(vm);
		return;
	}
	held_vm_strip(vm);
	vm->wipe.section = vm->config->index;
	let_go(doors, vm);
}

/* Returns: the descriptor to poll, -1 while it takes no connections. */
static int listening_fd(const struct door *door)
{
	return door->deaf_until && clock_now() < door->deaf_until ? -1
								  : door->listener.fd;
}

unsigned int doors_count_polls(const struct doors *doors)
{
	unsigned int n = 1 + doors->n_doors;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &doors->vms, entry)
		n++;
	return n;
}

/* The wiper, then one for each door and one for each VM, in list order. */
void doors_fill_polls(const struct doors *doors, struct pollfd *polls)
{
	struct held_vm *vm;

	*polls++ = (struct pollfd){ doors->wiper.done, POLLIN, 0 };
	for (unsigned int i = 0; i < doors->n_doors; i++)
		*polls++ = (struct pollfd){ listening_fd(&doors->doors[i]), POLLIN, 0 };
	/* What a peer may send is never read; only its end matters. */
	TAILQ_FOREACH(vm, &doors->vms, entry)
		*polls++ = (struct pollfd){ vm->connection, POLLRDHUP, 0 };
}

int doors_timeout(const struct doors *doors)
{
	int timeout = -1;

	for (unsigned int i = 0; i < doors->n_doors; i++) {
		if (doors->doors[i].deaf_until > clock_now())
			return DOORS_DEAF_MS;
		if (doors->doors[i].config->transport == CONFIG_PLAIN)
			timeout = DOORS_PLAIN_MS;
	}
	return timeout;
}

/* Connections that ended come before new ones: a VM that restarts finds its place free.
 */
void doors_dispatch(struct doors *doors, const struct pollfd *polls)
{
	const struct pollfd *door = polls + 1, *poll = door + doors->n_doors;
	struct held_vm *vm;

	TAILQ_FOREACH(vm, &doors->vms, entry) {
		if (poll->revents)
			lose_vm(doors, vm);
		poll++;
	}
	for (unsigned int i = 0; i < doors->n_doors; i++)
		if (door[i].revents)
			handle_connection(doors, &doors->doors[i]);
	if (polls->revents)
		wiper_handle_done(&doors->wiper);
}

void doors_tell_all(struct doors *doors)
{
	struct held_vm *vm;

	for (unsigned int i = 0; i < doors->n_doors; i++)
		tell_quota(doors, &doors->doors[i]);
	TAILQ_FOREACH(vm, &doors->vms, entry) {
		note_result(doors, held_vm_tell(vm, doors->link));
		if (vm->gone)
			note_result(
				doors, link_send_id(doors->link, LINK_VM_GONE, vm->id));
	}
	/* After that, since a VM that is gone takes what is there with it. */
	for (unsigned int i = 0; i < doors->n_doors; i++)
		tell_images(doors, &doors->doors[i]);
}

static int open_door(struct door *door)
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

static bool is_same_path(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Whether both name the same place to come in by. */
static bool is_same_place(const struct config_vm *a, const struct config_vm *b)
{
	return a->transport == b->transport && is_same_path(a->socket, b->socket) &&
	       is_same_path(a->memory, b->memory);
}

static struct door *find_door(struct doors *doors, const struct config_vm *config)
{
	for (unsigned int i = 0; i < doors->n_doors; i++)
		if (is_same_place(doors->doors[i].config, config))
			return &doors->doors[i];
	return NULL;
}

/* Listens at every door that is not open already; those stay empty. */
static int open_new_doors(
	struct doors *doors, struct doors *next, const struct config *config)
{
	int r;

	next->doors = calloc(config->n_vms, sizeof(*next->doors));
	if (!next->doors)
		return vgpu_error_origin(-ENOMEM);
	for (unsigned int i = 0; i < config->n_vms; i++) {
		next->doors[i] = (struct door){
			.config = config_vm_at(config, i),
			.listener = LISTENER_NULL,
			.quota = -1,
		};
		account_init(&next->doors[i].account, next->doors[i].config, clock_now());
		image_store_init(&next->doors[i].images);
		budget_init(&next->doors[i].visits, DOORS_VISITS, DOORS_VISIT_MS,
			clock_now());
		next->n_doors = i + 1;
		r = quota_make(&next->doors[i].quota);
		if (r)
			return vgpu_error_trace(r);
		if (find_door(doors, next->doors[i].config))
			continue;
		r = open_door(&next->doors[i]);
		if (r)
			return r;
	}
	return 0;
}

static void take_door_over(struct door *next, struct door *door)
{
	const struct config_vm *config = next->config;
	int r = 0;

	next->listener = door->listener;
	next->deaf_until = door->deaf_until;
	door->listener = (struct listener)LISTENER_NULL;
	if (next->listener.path)
		r = listener_permit(
			&next->listener, config->socket_mode, config->socket_group);
	if (r)
		vgpu_log_error("vm=%s: mode and group of %s stay as they are: %s",
			config->name, config->socket, strerror(-r));
}

/* The section by which it came, in another configuration. */
static const struct config_vm *find_section(
	const struct config *config, const struct config_vm *old)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (!strcmp(vm->name, old->name) && is_same_place(vm, old))
			return vm;
	return NULL;
}

/* Nobody is told: this is for the time between two brokers, and the next one ends the
 * workers of a VM that it does not know. */
static void sort_vms(struct doors *doors, const struct config *config)
{
	struct held_vm *vm, *next;

	for (vm = TAILQ_FIRST(&doors->vms); vm; vm = next) {
		const struct config_vm *section = find_section(config, vm->config);

		next = TAILQ_NEXT(vm, entry);
		if (!section || vm->gone) {
			if (!section)
				vgpu_log_warning(
					"vm=%s id=%llu loses its device: its section has "
					"left the configuration",
					vm->config->name, (unsigned long long)vm->id);
			doors_forget_vm(doors, vm->id);
			continue;
		}
		vm->config = section;
	}
	TAILQ_FOREACH(vm, &doors->leaving, entry)
		if (vm->config)
			vm->config = find_section(config, vm->config);
}

/* What the doors hold beside their listeners and VMs. */
static void empty_doors(struct doors *doors)
{
	for (unsigned int i = 0; i < doors->n_doors; i++) {
		image_store_clear(&doors->doors[i].images);
		doors->doors[i].quota = vgpu_close(doors->doors[i].quota);
	}
	free(doors->doors);
}

/* What goes on with the VMs of a section, see sort_vms(). */
static void take_section_over(struct door *next, struct door *door)
{
	image_store_move(&next->images, &door->images);
	vgpu_close(next->quota);
	next->quota = door->quota;
	door->quota = -1;
}

int doors_reload(struct doors *doors, const struct config *config)
{
	struct doors next = { .n_doors = 0 };
	struct door *door;
	int r;

	r = open_new_doors(doors, &next, config);
	if (r) {
		doors_close(&next);
		empty_doors(&next);
		return r;
	}
	sort_vms(doors, config);
	warn_of_few_fds(&next);
	for (unsigned int i = 0; i < next.n_doors; i++) {
		door = find_door(doors, next.doors[i].config);
		if (!door)
			continue;
		take_door_over(&next.doors[i], door);
		next.doors[i].plain = door->plain;
		if (!strcmp(next.doors[i].config->name, door->config->name))
			take_section_over(&next.doors[i], door);
	}
	doors_close(doors);
	empty_doors(doors);
	doors->doors = next.doors;
	doors->n_doors = next.n_doors;
	return 0;
}

int doors_init(struct doors *doors, const struct config *config)
{
	struct doors next = { .n_doors = 0 };
	int r;

	*doors = (struct doors){ .link = -1, .wiper = WIPER_NULL };
	TAILQ_INIT(&doors->vms);
	TAILQ_INIT(&doors->leaving);
	r = wiper_init(&doors->wiper);
	if (r) {
		vgpu_log_error("vgpud cannot start a thread: %s", strerror(-r));
		return r;
	}
	r = open_new_doors(doors, &next, config);
	doors->doors = next.doors;
	doors->n_doors = next.n_doors;
	if (!r)
		warn_of_few_fds(doors);
	return r;
}

void doors_close(struct doors *doors)
{
	for (unsigned int i = 0; i < doors->n_doors; i++)
		listener_deinit(&doors->doors[i].listener);
}

void doors_deinit(struct doors *doors)
{
	struct held_vm *vm;

	wiper_deinit(&doors->wiper);
	TAILQ_CONCAT(&doors->leaving, &doors->vms, entry);
	while ((vm = TAILQ_FIRST(&doors->leaving))) {
		TAILQ_REMOVE(&doors->leaving, vm, entry);
		held_vm_free(vm);
	}
	doors_close(doors);
	empty_doors(doors);
}
