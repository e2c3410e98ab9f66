/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a whole configuration
 *
 * config.c checks each value; this file checks values against each other and against the
 * host.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpud/config-check.h"
#include "vgpu/cleanup.h"
#include "vgpud/layout.h"

/* Default of max-processes with transport socket. */
#define CONFIG_SOCKET_PROCESSES 64u

/* A size in the notation of the file; the size is a multiple of a MiB. */
static const char *size_text(char text[static 24], uint64_t size)
{
	const bool is_gib = size % (1ull << 30) == 0;

	snprintf(text, 24, "%" PRIu64 "%c", size >> (is_gib ? 30 : 20),
		is_gib ? 'G' : 'M');
	return text;
}

/* An ivshmem device has a doorbell for each of this many channels; a process on a socket
 * has its own memory and doorbells, so the number is free there. */
static void check_processes(struct config_vm *vm, struct mistakes *mistakes)
{
	char size[24], needed[24];
	const bool is_default = !vm->max_processes;
	uint32_t n, n_fit;

	if (vm->transport == CONFIG_SOCKET) {
		if (is_default)
			vm->max_processes = CONFIG_SOCKET_PROCESSES;
		return;
	}
	if (is_default)
		vm->max_processes = VGPU_CHANNELS_MAX;
	n = vm->max_processes < VGPU_CHANNELS_MAX ? vm->max_processes : VGPU_CHANNELS_MAX;
	n_fit = layout_n_channels(vm->size);
	if (n_fit < n)
		mistakes_add(mistakes, vm->place,
			"[vm %s]: size = %s has room for %u guest processes, of %" PRIu64
			" MiB each beside %" PRIu64
			" MiB for all; max-processes = %u%s takes size = %s",
			vm->name, size_text(size, vm->size), n_fit,
			LAYOUT_SHARE_SIZE >> 20, (uint64_t)VGPU_EXTENT_SIZE >> 20, n,
			is_default ? " (the default)" : "",
			size_text(needed, layout_size_for(n)));
}

void config_check_vm(struct config_vm *vm, struct mistakes *mistakes)
{
	check_processes(vm, mistakes);
	if (vm->transport == CONFIG_PLAIN && !vm->memory)
		mistakes_add(mistakes, vm->place,
			"[vm %s] with transport = plain needs memory = PATH", vm->name);
	if (vm->transport == CONFIG_PLAIN && vm->socket)
		mistakes_add(mistakes, vm->place,
			"[vm %s] with transport = plain has no socket", vm->name);
	if (vm->transport != CONFIG_PLAIN && !vm->socket)
		mistakes_add(
			mistakes, vm->place, "[vm %s] needs socket = PATH", vm->name);
	if (vm->transport != CONFIG_PLAIN && vm->memory)
		mistakes_add(mistakes, vm->place,
			"[vm %s] has memory = PATH, which is for transport = plain",
			vm->name);
	if (vm->transport != CONFIG_PLAIN && vm->memory_owner != (uid_t)-1)
		mistakes_add(mistakes, vm->place,
			"[vm %s] has memory-owner, which is for transport = plain",
			vm->name);
	/* A process on a socket maps less than such a page. */
	if (vm->hugepages == CONFIG_HUGEPAGES_HUGETLB && vm->transport != CONFIG_IVSHMEM)
		mistakes_add(mistakes, vm->place,
			"[vm %s] has hugepages = hugetlb, which is for transport = "
			"ivshmem",
			vm->name);
}

/* Return: the folder of a path, to be freed, or NULL without memory. */
static char *folder_of(const char *path)
{
	char *folder = strdup(path), *name;

	name = folder ? strrchr(folder, '/') : NULL;
	if (name)
		name[name == folder] = '\0';
	return folder;
}

/*
 * Paths that vgpud makes or opens
 */

/* Two of them are one file if they have one name in one folder, by whatever path. */
struct used_path {
	const struct config_vm *vm; /* NULL: [vgpud] */
	const char *key;
	const char *path;
	const char *name; /* in the folder */
	struct stat folder;
};

/* A path in a folder that does not exist is compared as a text. */
static void look_at_path(struct used_path *used)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = folder_of(used->path);

	used->name = strrchr(used->path, '/') + 1;
	if (folder && !stat(folder, &used->folder))
		return;
	used->folder = (struct stat){ 0 };
	used->name = used->path;
}

static bool is_same(const struct used_path *a, const struct used_path *b)
{
	return a->folder.st_ino == b->folder.st_ino &&
	       a->folder.st_dev == b->folder.st_dev && !strcmp(a->name, b->name);
}

/* Sockets and memory of VMs, then the ctl socket. Return: their number. */
static size_t list_paths(const struct config *config, struct used_path *list)
{
	const char *ctl = config_ctl_socket(config);
	const struct config_vm *vm;
	size_t n = 0;

	TAILQ_FOREACH(vm, &config->vms, entry) {
		if (vm->socket)
			list[n++] = (struct used_path){ vm, "socket", vm->socket };
		if (vm->memory)
			list[n++] = (struct used_path){ vm, "memory", vm->memory };
	}
	if (ctl)
		list[n++] = (struct used_path){ NULL, "ctl-socket", ctl };
	for (size_t i = 0; i < n; i++)
		look_at_path(&list[i]);
	return n;
}

static void tell_same(const struct config *config, const struct used_path *second,
	const struct used_path *first, struct mistakes *mistakes)
{
	const struct text_place place = second->vm ? second->vm->place : config->place;
	const bool is_same_text = !strcmp(first->path, second->path);
	char head[CONTROL_VM_NAME_MAX + 16] = "";

	if (second->vm)
		snprintf(head, sizeof(head), "[vm %s]: ", second->vm->name);
	mistakes_add(mistakes, place, "%s%s = %s is the %s of [vm %s]%s%s", head,
		second->key, second->path, first->key, first->vm->name,
		is_same_text ? "" : ", ", is_same_text ? "" : first->path);
}

static void check_paths(const struct config *config, struct mistakes *mistakes)
{
	_vgpu_cleanup_(vgpu_freep) struct used_path *list =
		calloc(2 * config->n_vms + 1, sizeof(*list));
	const size_t n = list ? list_paths(config, list) : 0;

	if (!list)
		mistakes->no_memory = true;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++) {
			if (!is_same(&list[i], &list[j]))
				continue;
			tell_same(config, &list[i], &list[j], mistakes);
			break;
		}
	}
}

void config_check_vgpud(const struct config *config, struct mistakes *mistakes)
{
	check_paths(config, mistakes);
	if (config->worker_uids.last - config->worker_uids.first + 1 <
		config->max_workers)
		mistakes_add(mistakes, config->place,
			"worker-uids has fewer numbers than max-workers = %u",
			config->max_workers);
}

/*
 * This host
 */

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Return: 0 if a file can be created in the folder of a path, or -errno. */
static int check_folder(const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = folder_of(path);

	if (!folder)
		return -ENOMEM;
	if (access(folder, W_OK | X_OK) < 0)
		return -errno;
	return is_folder(folder) ? 0 : -ENOTDIR;
}

static void check_program(struct mistakes *mistakes, struct text_place place,
	const char *key, const char *path, int mode)
{
	if (access(path, mode) < 0)
		mistakes_add(mistakes, place, "%s = %s: %s", key, path, strerror(errno));
	else if (is_folder(path))
		mistakes_add(mistakes, place, "%s = %s is a folder", key, path);
}

static void check_driver(const struct config *config, struct mistakes *mistakes)
{
	const char *driver = config->driver;

	if (*driver == '/')
		check_program(mistakes, config->place, "driver", driver, R_OK);
	if (!strcmp(driver, "soft") || !strcmp(driver, "auto"))
		check_program(mistakes, config->place, "softgpu", config->softgpu, R_OK);
	if (!strcmp(driver, "null"))
		check_program(mistakes, config->place, "null-driver", config->null_driver,
			R_OK);
}

static void check_log_file(const struct config *config, struct mistakes *mistakes)
{
	const char *path = config->log_file;
	int r = 0;

	if (!path)
		return;
	if (is_folder(path))
		r = -EISDIR;
	else if (!access(path, F_OK))
		r = access(path, W_OK) < 0 ? -errno : 0;
	else
		r = check_folder(path);
	if (r)
		mistakes_add(
			mistakes, config->place, "log-file = %s: %s", path, strerror(-r));
}

static void check_flight_folder(const struct config *config, struct mistakes *mistakes)
{
	const char *path = config->flight_folder;
	int r = 0;

	if (!path)
		return;
	if (access(path, W_OK | X_OK) < 0)
		r = -errno;
	else if (!is_folder(path))
		r = -ENOTDIR;
	if (r)
		mistakes_add(mistakes, config->place, "flight-folder = %s: %s", path,
			strerror(-r));
}

/* The folder may be missing if vgpud can create it. */
static void check_socket(struct mistakes *mistakes, struct text_place place,
	const char *key, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = folder_of(path);
	struct stat st;
	int r;

	if (!folder)
		return;
	r = check_folder(
		access(folder, F_OK) < 0 && strchr(folder + 1, '/') ? folder : path);
	if (r)
		mistakes_add(mistakes, place, "%s = %s cannot be made: %s", key, path,
			strerror(-r));
	else if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
		mistakes_add(
			mistakes, place, "%s = %s exists and is not a socket", key, path);
}

static void check_vm_socket(const struct config_vm *vm, struct mistakes *mistakes)
{
	char key[CONTROL_VM_NAME_MAX + 16];

	snprintf(key, sizeof(key), "[vm %s]: socket", vm->name);
	check_socket(mistakes, vm->place, key, vm->socket);
}

/* QEMU creates the file, vgpud opens it. */
static void check_memory(const struct config_vm *vm, struct mistakes *mistakes)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = folder_of(vm->memory);

	if (folder && !is_folder(folder))
		mistakes_add(mistakes, vm->place,
			"[vm %s]: memory = %s: there is no folder %s", vm->name,
			vm->memory, folder);
}

void config_check_host(const struct config *config, struct mistakes *mistakes)
{
	const struct config_vm *vm;

	check_program(mistakes, config->place, "worker", config->worker, X_OK);
	check_driver(config, mistakes);
	check_log_file(config, mistakes);
	check_flight_folder(config, mistakes);
	if (config_ctl_socket(config))
		check_socket(
			mistakes, config->place, "ctl-socket", config_ctl_socket(config));
	TAILQ_FOREACH(vm, &config->vms, entry) {
		if (vm->socket)
			check_vm_socket(vm, mistakes);
		if (vm->memory)
			check_memory(vm, mistakes);
	}
}
