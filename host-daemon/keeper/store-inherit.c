/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: what the service manager gives to the next keeper
 *
 * The bundles become one state, as another program would get it from its predecessor in
 * the same process. They stay in the store, and their messages are only looked at: if
 * this process is killed as well, the next one finds the same.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "keeper/handover.h"
#include "keeper/listen-fds.h"
#include "keeper/store.h"
#include "vgpu-keeper.pb-c.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/link.h"
#include "vgpud/notify.h"

#define PART_SIZE_MAX (16u << 20)

static void free_state(VgpuKeeper__State *state)
{
	vgpu_keeper__state__free_unpacked(state, NULL);
}
VGPU_DEFINE_CLEANUP(VgpuKeeper__State *, free_state);

/* A bundle that was given. */
struct given {
	int fd;
	struct bundle_label label;
	int *fds; /* what was in it; NULL: not opened */
	size_t n_fds;
};

struct inheritance {
	struct given *given;
	size_t n;
	VgpuKeeper__State end; /* what is added to the parts */
	int file;	       /* the state under construction */
	bool has_base;
};

/*
 * Descriptors in parts are places in the bundle
 */

static bool resolve(int32_t *number, const struct given *given)
{
	if (*number == -1)
		return true;
	if (*number < 0 || (size_t)*number + 1 >= given->n_fds)
		return false;
	/* The first is the part itself. */
	*number = given->fds[*number + 1];
	return true;
}

static bool resolve_all(int32_t *numbers, size_t n, const struct given *given)
{
	for (size_t i = 0; i < n; i++)
		if (!resolve(&numbers[i], given))
			return false;
	return true;
}

static bool resolve_listener(VgpuKeeper__Listener *listener, const struct given *given)
{
	return !listener ||
	       (resolve(&listener->socket, given) && resolve(&listener->lock, given));
}

static bool resolve_section(VgpuKeeper__Section *section, const struct given *given)
{
	for (size_t i = 0; i < section->n_images; i++)
		if (!resolve(&section->images[i]->memory, given))
			return false;
	for (size_t i = 0; i < section->n_shares; i++)
		if (!resolve(&section->shares[i]->memory, given))
			return false;
	return resolve(&section->quota, given) &&
	       resolve_listener(section->listener, given);
}

static bool resolve_vm(VgpuKeeper__Vm *vm, const struct given *given)
{
	return resolve(&vm->connection, given) && resolve(&vm->memory, given) &&
	       resolve(&vm->ledger, given) &&
	       resolve_all(vm->doorbells, vm->n_doorbells, given) &&
	       resolve_all(vm->interrupts, vm->n_interrupts, given);
}

static bool resolve_worker(VgpuKeeper__Worker *worker, const struct given *given)
{
	int32_t pidfd = (int32_t)worker->pidfd - 1;

	if (!resolve(&pidfd, given) || !resolve(&worker->control, given) ||
		!resolve(&worker->stats, given) || !resolve(&worker->log, given))
		return false;
	worker->pidfd = (uint32_t)pidfd + 1;
	/* No exit is reported of one without. */
	return worker->pidfd || worker->exited;
}

static bool resolve_base(VgpuKeeper__State *state, const struct given *given)
{
	return resolve(&state->sources, given) && resolve(&state->previous, given) &&
	       resolve(&state->client, given) && resolve_listener(state->ctl, given);
}

/* Only a base has a version. */
static bool is_base(const VgpuKeeper__State *state)
{
	return *state->version;
}

static bool resolve_state(VgpuKeeper__State *state, const struct given *given)
{
	for (size_t i = 0; i < state->n_sections; i++)
		if (!resolve_section(state->sections[i], given))
			return false;
	for (size_t i = 0; i < state->n_vms; i++)
		if (!resolve_vm(state->vms[i], given))
			return false;
	for (size_t i = 0; i < state->n_workers; i++)
		if (!resolve_worker(state->workers[i], given))
			return false;
	return !is_base(state) || resolve_base(state, given);
}

/*
 * The state is the parts one after the other: so are messages merged
 */

static int append(int file, const VgpuKeeper__State *state)
{
	const size_t size = vgpu_keeper__state__get_packed_size(state);
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = malloc(size + 1);
	ssize_t n;

	if (!bytes)
		return vgpu_error_origin(-ENOMEM);
	vgpu_keeper__state__pack(state, bytes);
	n = write(file, bytes, size);
	if (n < 0)
		return vgpu_error_origin(-errno);
	return (size_t)n == size ? 0 : vgpu_error_origin(-ENOSPC);
}

static int read_part(int file, VgpuKeeper__State **statep)
{
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = NULL;
	struct stat st;

	if (fstat(file, &st) < 0)
		return vgpu_error_origin(-errno);
	if (!S_ISREG(st.st_mode) || st.st_size > PART_SIZE_MAX)
		return vgpu_error_origin(-EBADMSG);
	bytes = malloc(st.st_size + 1);
	if (!bytes)
		return vgpu_error_origin(-ENOMEM);
	if (pread(file, bytes, st.st_size, 0) != st.st_size)
		return vgpu_error_origin(-EIO);
	*statep = vgpu_keeper__state__unpack(NULL, st.st_size, bytes);
	return *statep ? 0 : vgpu_error_origin(-EBADMSG);
}

/* Others, the service manager as well, may have the same descriptor: so sockets are shut
 * down, locks released, and workers killed. */
static void let_go(int fd)
{
	shutdown(fd, SHUT_RDWR);
	flock(fd, LOCK_UN);
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	close(fd);
}

static int open_given(struct given *given)
{
	given->fds = calloc(BUNDLE_FDS_MAX, sizeof(*given->fds));
	if (!given->fds)
		return vgpu_error_origin(-ENOMEM);
	return bundle_open(given->fd, given->fds, &given->n_fds);
}

static void let_go_of(struct given *given)
{
	if (!given->fds)
		open_given(given);
	for (size_t i = 0; given->fds && i < given->n_fds; i++)
		let_go(given->fds[i]);
	given->n_fds = 0;
}

static int inherit_part(struct inheritance *all, struct given *given)
{
	_vgpu_cleanup_(free_statep) VgpuKeeper__State *state = NULL;
	int r;

	r = open_given(given);
	if (!r)
		r = read_part(given->fds[0], &state);
	if (!r && !resolve_state(state, given))
		r = vgpu_error_origin(-EBADMSG);
	if (r) {
		vgpu_log_error("what an earlier vgpud has stored cannot be read: %s",
			strerror(-r));
		return r;
	}
	if (is_base(state) && strcmp(state->version, LINK_VERSION)) {
		vgpu_log_error("this program needs sessions of version %s, those that an "
			       "earlier vgpud has stored have version %s",
			LINK_VERSION, state->version);
		return -EPROTO;
	}
	all->has_base = all->has_base || is_base(state);
	return append(all->file, state);
}

/* The later ones first. */
static int compare(const void *a, const void *b)
{
	const struct given *x = a, *y = b;

	return (x->label.number < y->label.number) - (x->label.number > y->label.number);
}

/* Whether a later bundle is about the same object. */
static int compare_identities(const void *a, const void *b)
{
	const struct given *const *x = a, *const *y = b;

	if ((*x)->label.identity != (*y)->label.identity)
		return (*x)->label.identity < (*y)->label.identity ? -1 : 1;
	return compare(*x, *y);
}

/* Of two about one object the later one counts: the other is to be removed. */
static int find_outdated(struct inheritance *all)
{
	_vgpu_cleanup_(vgpu_freep) struct given **order = calloc(all->n, sizeof(*order));

	if (!order)
		return vgpu_error_origin(-ENOMEM);
	for (size_t i = 0; i < all->n; i++)
		order[i] = &all->given[i];
	qsort(order, all->n, sizeof(*order), compare_identities);
	for (size_t i = 1; i < all->n; i++)
		if (order[i]->label.identity == order[i - 1]->label.identity)
			order[i]->label.key = 0;
	return 0;
}

static int note_stored(VgpuKeeper__State *end, const struct given *given)
{
	VgpuKeeper__Stored *stored = malloc(sizeof(*stored));

	if (!stored)
		return vgpu_error_origin(-ENOMEM);
	vgpu_keeper__stored__init(stored);
	stored->number = given->label.number;
	stored->key = given->label.key;
	end->stored[end->n_stored++] = stored;
	return 0;
}

/*
 * What cannot be read is let go and removed, and the others go on without it: a VM
 * without its part has no device any more, and a session without its worker ends. Only
 * the base is needed by all.
 */
static int inherit_given(struct inheritance *all, struct given *given)
{
	int r = 0;

	if (given->label.key)
		r = inherit_part(all, given);
	if (r == -EBADMSG) {
		let_go_of(given);
		given->label.key = 0;
		r = 0;
	}
	return r ? r : note_stored(&all->end, given);
}

static int make_state(struct inheritance *all, unsigned int n_max)
{
	int r;

	all->file = memfd_create("vgpu-handover", MFD_CLOEXEC);
	if (all->file < 0)
		return vgpu_error_origin(-errno);
	all->end.store = n_max;
	all->end.restarted = true;
	all->end.stored = calloc(all->n, sizeof(*all->end.stored));
	if (!all->end.stored)
		return vgpu_error_origin(-ENOMEM);
	r = find_outdated(all);
	for (size_t i = 0; !r && i < all->n; i++)
		r = inherit_given(all, &all->given[i]);
	if (!r && !all->has_base) {
		vgpu_log_error("what an earlier vgpud has stored is not complete");
		r = -EBADMSG;
	}
	return r ? r : append(all->file, &all->end);
}

/*
 * What cannot be used
 */

static void discard(struct inheritance *all)
{
	vgpu_log_warning("all sessions and VMs of an earlier vgpud are let go");
	for (size_t i = 0; i < all->n; i++) {
		let_go_of(&all->given[i]);
		if (notify_unstore(all->given[i].label.number))
			vgpu_log_warning("the service manager keeps what is not needed");
	}
}

/*
 * What was given
 */

static bool is_listening(int fd)
{
	int is = 0;
	socklen_t size = sizeof(is);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &size) && is;
}

static void refuse(const struct listen_fd *given)
{
	if (is_listening(given->fd)) {
		vgpu_log_error("the service manager has given the socket \"%s\", which "
			       "is not vgpud's: it takes one, of a unit with "
			       "FileDescriptorName=control",
			given->name);
		return;
	}
	vgpu_log_warning(
		"the service manager has kept \"%s\", which is not vgpud's", given->name);
	notify_unstore_name(given->name);
}

/* Takes the bundles; what is none is closed with the list. */
static int take_given(struct inheritance *all, struct listen_fds *fds)
{
	struct given *given;

	all->given = calloc(fds->n, sizeof(*all->given));
	if (!all->given)
		return vgpu_error_origin(-ENOMEM);
	for (size_t i = 0; i < fds->n; i++) {
		if (fds->list[i].fd < 0)
			continue;
		given = &all->given[all->n];
		if (bundle_read_label(fds->list[i].fd, &given->label)) {
			refuse(&fds->list[i]);
			continue;
		}
		given->fd = fds->list[i].fd;
		fds->list[i].fd = -1;
		all->n++;
	}
	qsort(all->given, all->n, sizeof(*all->given), compare);
	return 0;
}

static void inheritance_deinit(struct inheritance *all)
{
	for (size_t i = 0; i < all->n; i++) {
		close(all->given[i].fd);
		/* The part itself; the others are in the state. */
		if (all->given[i].n_fds)
			close(all->given[i].fds[0]);
		free(all->given[i].fds);
	}
	free(all->given);
	for (size_t i = 0; i < all->end.n_stored; i++)
		free(all->end.stored[i]);
	free(all->end.stored);
}

int store_inherit(struct listen_fds *fds, unsigned int n_max)
{
	struct inheritance all = { .file = -1 };
	int r;

	if (!fds->n)
		return -1;
	vgpu_keeper__state__init(&all.end);
	r = take_given(&all, fds);
	if (!r && !all.n)
		r = -ENOENT;
	else if (!r)
		r = n_max ? make_state(&all, n_max) : -ENOTSUP;
	if (r && all.n)
		discard(&all);
	if (r)
		all.file = vgpu_close(all.file);
	inheritance_deinit(&all);
	return all.file;
}
