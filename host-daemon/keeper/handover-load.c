/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handover: what a keeper has left, read by its successor
 *
 * Both are the same process, so the message is believed, but for mistakes of a program of
 * another release: numbers and sizes are checked, and descriptors have to be open.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/handover.h"
#include "vgpu-keeper.pb-c.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/config-load.h"
#include "vgpud/link.h"

/* 1024 VMs with everything that each may have stay below. */
#define STATE_SIZE_MAX (256u << 20)

static void free_state(VgpuKeeper__State *state)
{
	vgpu_keeper__state__free_unpacked(state, NULL);
}
VGPU_DEFINE_CLEANUP(VgpuKeeper__State *, free_state);

static int read_state(int file, VgpuKeeper__State **statep)
{
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = NULL;
	struct stat st;

	if (fstat(file, &st) < 0)
		return vgpu_error_origin(-errno);
	if (!S_ISREG(st.st_mode) || st.st_size > STATE_SIZE_MAX)
		return vgpu_error_origin(-EINVAL);
	bytes = malloc(st.st_size + 1);
	if (!bytes)
		return vgpu_error_origin(-ENOMEM);
	if (pread(file, bytes, st.st_size, 0) != st.st_size)
		return vgpu_error_origin(-EIO);
	*statep = vgpu_keeper__state__unpack(NULL, st.st_size, bytes);
	return *statep ? 0 : vgpu_error_origin(-EINVAL);
}

/* Return: the descriptor, or -EBADF. */
static int take(int fd)
{
	return fd >= 0 && fcntl(fd, F_GETFD) >= 0 ? fd : vgpu_error_origin(-EBADF);
}

static bool is_open_or_none(int fd)
{
	return fd == -1 || take(fd) >= 0;
}

static bool are_open(const int32_t *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (take(fds[i]) < 0)
			return false;
	return true;
}

static int load_listener(struct listener *listener, const VgpuKeeper__Listener *in)
{
	*listener = (struct listener)LISTENER_NULL;
	if (!in)
		return 0;
	if (take(in->socket) < 0 || take(in->lock) < 0)
		return vgpu_error_origin(-EBADF);
	return listener_adopt(listener, in->path, in->socket, in->lock);
}

static int load_image(struct image_store *store, const VgpuKeeper__Image *in)
{
	if (in->digest.len != CONTROL_DIGEST_SIZE || store->n >= IMAGE_STORE_N_MAX)
		return vgpu_error_origin(-EINVAL);
	if (take(in->memory) < 0)
		return vgpu_error_origin(-EBADF);
	/* In the piece after this one as well, if images before it have gone since. */
	if (image_store_find(store, in->digest.data)) {
		close(in->memory);
		return 0;
	}
	return image_store_add(store, in->digest.data, in->size, in->memory);
}

static int load_share(struct share_table *table, const VgpuKeeper__Share *in)
{
	struct share template = { .size = in->size, .fd = in->memory }, *share = NULL;
	int r;

	if (in->token.len != CONTROL_TOKEN_SIZE || !in->n_holders)
		return vgpu_error_origin(-EINVAL);
	if (take(in->memory) < 0)
		return vgpu_error_origin(-EBADF);
	memcpy(template.token, in->token.data, sizeof(template.token));
	if (in->device.len == sizeof(template.device))
		memcpy(template.device, in->device.data, sizeof(template.device));
	r = share_table_add(
		table, &template, in->holders[0]->worker, in->holders[0]->cookie);
	if (r == -EEXIST) {
		close(in->memory);
		return 0;
	}
	if (!r)
		share = TAILQ_LAST(&table->shares, shares);
	for (size_t i = 1; !r && i < in->n_holders; i++)
		r = share_table_hold(
			table, share, in->holders[i]->worker, in->holders[i]->cookie);
	return r;
}

static const struct config_vm *find_section(const struct config *config, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (!strcmp(vm->name, name))
			return vm;
	return NULL;
}

/* Adds the endpoint of a section, or finds it: another piece may have come before. */
static struct endpoint *get_endpoint(
	struct endpoints *endpoints, const struct config_vm *section)
{
	struct endpoint *endpoint = endpoints->endpoints;

	for (unsigned int i = 0; i < endpoints->n_endpoints; i++, endpoint++)
		if (endpoint->config == section)
			return endpoint;
	*endpoint = (struct endpoint){
		.config = section,
		.listener = LISTENER_NULL,
		.quota = -1,
	};
	image_store_init(&endpoint->images);
	share_table_init(&endpoint->shares);
	endpoints->n_endpoints++;
	return endpoint;
}

/* Whether the section has that socket, or none, in the configuration. */
static bool is_place(const struct config_vm *section, const VgpuKeeper__Listener *in)
{
	if (section->transport == CONFIG_PLAIN || !in)
		return section->transport == CONFIG_PLAIN && !in;
	return !strcmp(in->path, section->socket);
}

/* What was stored for a configuration before that one. */
static void drop_section(const VgpuKeeper__Section *in)
{
	struct listener listener;

	vgpu_close(in->quota);
	if (!load_listener(&listener, in->listener))
		listener_deinit(&listener);
	for (size_t i = 0; i < in->n_images; i++)
		vgpu_close(in->images[i]->memory);
	for (size_t i = 0; i < in->n_shares; i++)
		vgpu_close(in->shares[i]->memory);
}

static int load_section(struct endpoints *endpoints, const VgpuKeeper__Section *in,
	const struct config *config, bool restarted)
{
	const struct config_vm *section = find_section(config, in->name);
	const bool is_part = restarted && in->quota == -1;
	struct endpoint *endpoint;
	int r = 0;

	if (restarted && (!section || (!is_part && !is_place(section, in->listener)))) {
		drop_section(in);
		return 0;
	}
	if (!section)
		return vgpu_error_origin(-EINVAL);
	endpoint = get_endpoint(endpoints, section);
	if (!is_part) {
		endpoint->quota = take(in->quota);
		r = endpoint->quota < 0
			    ? endpoint->quota
			    : load_listener(&endpoint->listener, in->listener);
	}
	for (size_t i = 0; !r && i < in->n_images; i++)
		r = load_image(&endpoint->images, in->images[i]);
	for (size_t i = 0; !r && i < in->n_shares; i++)
		r = load_share(&endpoint->shares, in->shares[i]);
	return r;
}

/* Only pieces of it are there: the section opens its socket as a new one. */
static void drop_pieces(struct endpoints *endpoints)
{
	struct endpoint *endpoint, *last;

	for (unsigned int i = endpoints->n_endpoints; i-- > 0;) {
		endpoint = &endpoints->endpoints[i];
		if (endpoint->quota >= 0)
			continue;
		image_store_clear(&endpoint->images);
		share_table_clear(&endpoint->shares);
		last = &endpoints->endpoints[--endpoints->n_endpoints];
		if (endpoint == last)
			continue;
		endpoint->config = last->config;
		endpoint->listener = last->listener;
		endpoint->quota = last->quota;
		image_store_move(&endpoint->images, &last->images);
		share_table_move(&endpoint->shares, &last->shares);
	}
}

static bool is_vm(const VgpuKeeper__Vm *in)
{
	return in->n_doorbells <= VGPU_IVSHMEM_VECTORS &&
	       in->n_interrupts <= VGPU_IVSHMEM_VECTORS && in->n_channels_max &&
	       in->n_channels_max <= VGPU_CHANNELS_MAX &&
	       is_open_or_none(in->connection) && take(in->memory) >= 0 &&
	       (in->leaving ? in->ledger == -1 : take(in->ledger) >= 0) &&
	       are_open(in->doorbells, in->n_doorbells) &&
	       are_open(in->interrupts, in->n_interrupts);
}

/* Whether a VM can be one of that section, whose socket or file may have been another
 * when it connected. */
static bool fits(const VgpuKeeper__Vm *in, const struct config_vm *section,
	const VgpuKeeper__State *state)
{
	const VgpuKeeper__Section *stored;
	enum config_transport transport = CONFIG_PLAIN;

	if (in->n_doorbells)
		transport = in->n_interrupts ? CONFIG_IVSHMEM : CONFIG_SOCKET;
	if (section->transport != transport)
		return false;
	for (size_t i = 0; i < state->n_sections; i++) {
		stored = state->sections[i];
		if (stored->quota != -1 && !strcmp(stored->name, section->name))
			return is_place(section, stored->listener);
	}
	return true;
}

/* The configuration is not the one with which it connected: see load() in main.c. */
static void lose(struct endpoints *endpoints, const VgpuKeeper__Vm *in)
{
	struct endpoint *endpoint = endpoints->endpoints;

	vgpu_log_warning("vm=%s id=%llu: the VM loses its device: its section is not in "
			 "the configuration, or has another transport or socket",
		in->section, (unsigned long long)in->id);
	/* The next VM must not get images of this one. */
	for (unsigned int i = 0; i < endpoints->n_endpoints; i++, endpoint++)
		if (!strcmp(endpoint->config->name, in->section))
			image_store_clear(&endpoint->images);
}

static int load_vm(struct endpoints *endpoints, const VgpuKeeper__Vm *in,
	const struct config *config, const VgpuKeeper__State *state)
{
	const struct config_vm *section = find_section(config, in->section);
	const bool is_lost = state->restarted && !in->leaving &&
			     (!section || !fits(in, section, state));
	const bool leaving = in->leaving || is_lost;
	struct held_vm *vm;

	if ((!section && !leaving) || !is_vm(in))
		return vgpu_error_origin(-EINVAL);
	if (is_lost)
		lose(endpoints, in);
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return vgpu_error_origin(-ENOMEM);
	*vm = (struct held_vm){
		.id = in->id,
		.config = section,
		.pid = in->pid,
		.gone = in->gone,
		.connection = in->connection,
		.shm = in->memory,
		.ledger = in->ledger,
		.n_channels_max = in->n_channels_max,
		.n_doorbells = in->n_doorbells,
		.n_interrupts = in->n_interrupts,
		.dev = in->device,
		.ino = in->inode,
		.size = in->size,
	};
	for (size_t i = 0; i < in->n_doorbells; i++)
		vm->doorbells[i] = in->doorbells[i];
	for (size_t i = 0; i < in->n_interrupts; i++)
		vm->interrupts[i] = in->interrupts[i];
	if (vm->id > endpoints->last_id)
		endpoints->last_id = vm->id;
	/* The file of transport plain is not the keeper's to empty. */
	if (is_lost && !in->n_doorbells) {
		held_vm_free(vm);
		return 0;
	}
	if (leaving)
		held_vm_strip(vm);
	endpoints_adopt(endpoints, vm, leaving);
	return 0;
}

static int load_worker(struct held_workers *workers, const VgpuKeeper__Worker *in)
{
	struct held_worker *worker;

	if (!in->pid || take(in->control) < 0 || take(in->stats) < 0 ||
		take(in->log) < 0 || !is_open_or_none((int)in->pidfd - 1))
		return vgpu_error_origin(-EINVAL);
	worker = calloc(1, sizeof(*worker));
	if (!worker)
		return vgpu_error_origin(-ENOMEM);
	*worker = (struct held_worker){
		.id = in->id,
		.pid = in->pid,
		.control = in->control,
		.stats = in->stats,
		.log = in->log,
		.pidfd = (int)in->pidfd - 1,
		.uid = in->uid,
		.exited = in->exited,
		.status = in->status,
	};
	TAILQ_INSERT_TAIL(workers, worker, entry);
	return 0;
}

/* The sections first, as endpoints of the same configuration, and then reloads that. */
static int load_endpoints(struct endpoints *endpoints, const VgpuKeeper__State *state,
	const struct config *config)
{
	int r;

	r = endpoints_prepare(endpoints);
	if (r)
		return r;
	endpoints->last_id = state->last_vm;
	endpoints->last_peer = state->last_peer;
	endpoints->endpoints =
		calloc(state->n_sections + 1, sizeof(*endpoints->endpoints));
	if (!endpoints->endpoints)
		return vgpu_error_origin(-ENOMEM);
	for (size_t i = 0; !r && i < state->n_sections; i++)
		r = load_section(endpoints, state->sections[i], config, state->restarted);
	drop_pieces(endpoints);
	for (size_t i = 0; !r && i < state->n_vms; i++)
		r = load_vm(endpoints, state->vms[i], config, state);
	return r ? r : endpoints_reload(endpoints, config);
}

static int load_ctl(struct held_ctl *ctl, const VgpuKeeper__State *state)
{
	if (!is_open_or_none(state->client))
		return vgpu_error_origin(-EBADF);
	ctl->client = state->client;
	ctl->request = state->request;
	/* To another process the service manager has given it. */
	if (!state->restarted && state->given && take((int)state->given - 1) >= 0)
		held_ctl_take(ctl, (int)state->given - 1);
	if (!state->ctl)
		return 0;
	if (take(state->ctl->socket) < 0 || take(state->ctl->lock) < 0)
		return vgpu_error_origin(-EBADF);
	return held_ctl_adopt(
		ctl, state->ctl->path, state->ctl->socket, state->ctl->lock);
}

static int load_store(struct store *store, const VgpuKeeper__State *state)
{
	int r = 0;

	store->n_max = state->store < STORE_MAX ? state->store : STORE_MAX;
	for (size_t i = 0; !r && i < state->n_stored; i++)
		r = store_add(store, state->stored[i]->number, state->stored[i]->key);
	return r;
}

int handover_load(struct handover *handover, int file, const struct config *config)
{
	_vgpu_cleanup_(free_statep) VgpuKeeper__State *state = NULL;
	int r;

	r = read_state(file, &state);
	if (r)
		return r;
	if (strcmp(state->version, LINK_VERSION) || !is_open_or_none(state->previous))
		return vgpu_error_origin(-EINVAL);
	handover->program = strdup(state->program);
	if (!handover->program)
		return vgpu_error_origin(-ENOMEM);
	handover->sources = state->sources;
	handover->previous = state->previous;
	handover->last_worker = state->last_worker;
	handover->last_uid = state->last_uid;
	handover->restarted = state->restarted;
	r = load_store(handover->store, state);
	if (!r)
		r = load_ctl(handover->ctl, state);
	for (size_t i = 0; !r && i < state->n_workers; i++) {
		r = load_worker(handover->workers, state->workers[i]);
		if (state->workers[i]->id > handover->last_worker)
			handover->last_worker = state->workers[i]->id;
	}
	return r ? r : load_endpoints(handover->endpoints, state, config);
}

int handover_find_sources(int file)
{
	_vgpu_cleanup_(free_statep) VgpuKeeper__State *state = NULL;
	const int r = read_state(file, &state);

	return r ? r : take(state->sources);
}

bool handover_is_possible(int file)
{
	_vgpu_cleanup_(free_statep) VgpuKeeper__State *state = NULL;

	if (read_state(file, &state)) {
		vgpu_log_error("what the running vgpud hands over cannot be read");
		return false;
	}
	if (!strcmp(state->version, LINK_VERSION))
		return true;
	vgpu_log_error("this program needs sessions of version %s, those of the running "
		       "vgpud have version %s: vgpud has to be restarted",
		LINK_VERSION, state->version);
	return false;
}
