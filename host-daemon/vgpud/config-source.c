/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of a configuration
 *
 * The memory file has strings with their NULs: the folder's name, or an empty string
 * without a folder, then path and text of each source.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/config-source.h"
#include "vgpud/config.h"

#define KEPT_MAX (8u << 20)

/* Return: the name of the VM that a file of the folder is for, to be freed, or NULL
 * without memory. */
static char *vm_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const size_t size = strlen(name), end = strlen(CONFIG_SOURCE_SUFFIX);

	return strndup(name, size > end ? size - end : 0);
}

/* Takes path and text, also if it fails. */
static int add(struct config_sources *sources, char *path, char *text)
{
	const bool is_main = !sources->n;
	struct config_source *list;
	char *vm = NULL;

	list = reallocarray(sources->list, sources->n + 1, sizeof(*list));
	if (list)
		sources->list = list;
	if (!is_main && path)
		vm = vm_of(path);
	if (!list || !path || !text || (!is_main && !vm)) {
		free(vm);
		free(path);
		free(text);
		return vgpu_error_origin(-ENOMEM);
	}
	list[sources->n++] =
		(struct config_source){ .path = path, .text = text, .vm = vm };
	return 0;
}

static int add_unreadable(struct config_sources *sources, char *path, int error)
{
	const int r = add(sources, path, strdup(""));

	if (!r)
		sources->list[sources->n - 1].error = error;
	return r ? vgpu_error_trace(r) : 0;
}

/* Takes the path. */
static int add_file(struct config_sources *sources, char *path, char **failedp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char *text = NULL;
	int r;

	if (!path)
		return vgpu_error_origin(-ENOMEM);
	/* A FIFO is an error then, instead of a wait for its writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	r = fd < 0 ? -errno : config_read(fd, &text);
	if (!r)
		return add(sources, path, text);
	if (sources->n && r != -ENOMEM)
		return add_unreadable(sources, path, r);
	*failedp = path;
	return vgpu_error_trace(r);
}

static int is_source(const struct dirent *entry)
{
	const size_t size = strlen(entry->d_name), end = strlen(CONFIG_SOURCE_SUFFIX);

	return size > end && *entry->d_name != '.' &&
	       !strcmp(entry->d_name + size - end, CONFIG_SOURCE_SUFFIX);
}

static char *join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Return: the folder beside the main file, to be freed, or NULL without memory. */
static char *folder_of(const char *path)
{
	const char *end = strrchr(path, '/');
	char *folder;

	if (asprintf(&folder, "%.*s%s", end ? (int)(end - path) + 1 : 0, path,
		    CONFIG_SOURCE_FOLDER) < 0)
		return NULL;
	return folder;
}

static int add_folder(struct config_sources *sources, const char *folder, char **failedp)
{
	struct dirent **entries = NULL;
	int n, r = 0;

	n = scandir(folder, &entries, is_source, alphasort);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0) {
		r = -errno;
		*failedp = strdup(folder);
		return vgpu_error_origin(r);
	}
	sources->has_folder = true;
	if (n > CONFIG_VMS_MAX) {
		r = vgpu_error_origin(-E2BIG);
		*failedp = strdup(folder);
	}
	for (int i = 0; i < n; i++) {
		if (!r)
			r = add_file(sources, join(folder, entries[i]->d_name), failedp);
		free(entries[i]);
	}
	free(entries);
	return r ? vgpu_error_trace(r) : 0;
}

int config_sources_read(struct config_sources *sources, const char *path, char **failedp)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = folder_of(path);
	int r;

	*failedp = NULL;
	*sources = CONFIG_SOURCES_NULL;
	r = add_file(sources, strdup(path), failedp);
	if (!r)
		r = folder ? add_folder(sources, folder, failedp) : -ENOMEM;
	if (r)
		config_sources_deinit(sources);
	return r ? vgpu_error_trace(r) : 0;
}

static int write_string(FILE *file, const char *string)
{
	const size_t size = strlen(string) + 1;

	return fwrite(string, 1, size, file) == size ? 0 : vgpu_error_origin(-errno);
}

static int write_all(const struct config_sources *sources, FILE *file)
{
	int r = write_string(file, sources->has_folder ? CONFIG_SOURCE_FOLDER : "");

	for (size_t i = 0; i < sources->n && !r; i++) {
		const struct config_source *source = &sources->list[i];

		if (source->is_left_out)
			continue;
		r = write_string(file, source->path);
		if (!r)
			r = write_string(file, source->text);
	}
	if (!r && ftello(file) > KEPT_MAX)
		r = -EFBIG;
	if (!r && fflush(file))
		r = -errno;
	return r ? vgpu_error_trace(r) : 0;
}

int config_sources_keep(const struct config_sources *sources, int *fdp)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	FILE *file;
	int copy, r;

	fd = memfd_create("vgpud-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file = copy < 0 ? NULL : fdopen(copy, "w");
	if (!file) {
		r = vgpu_error_origin(-errno);
		vgpu_close(copy);
		return r;
	}
	r = write_all(sources, file);
	fclose(file);
	if (!r && fcntl(fd, F_ADD_SEALS, seals) < 0)
		r = -errno;
	if (r)
		return vgpu_error_trace(r);
	*fdp = fd;
	fd = -1;
	return 0;
}

/* Return: a copy of the next string, or NULL at the end, without its NUL, or without
 * memory. */
static char *take_string(const char **restp, const char *end)
{
	const char *start = *restp, *nul = memchr(start, '\0', end - start);

	if (!nul)
		return NULL;
	*restp = nul + 1;
	return strdup(start);
}

static int take_all(struct config_sources *sources, const char *bytes, size_t size)
{
	const char *rest = bytes, *end = bytes + size;
	_vgpu_cleanup_(vgpu_freep) char *folder = take_string(&rest, end);
	int r = 0;

	if (!folder)
		return vgpu_error_origin(-EPROTO);
	sources->has_folder = *folder;
	while (rest < end && !r) {
		char *path = take_string(&rest, end);
		char *text = path ? take_string(&rest, end) : NULL;

		if (!text)
			free(path);
		r = text ? add(sources, path, text) : vgpu_error_origin(-EPROTO);
	}
	return r || sources->n ? r : vgpu_error_origin(-EPROTO);
}

int config_sources_take(struct config_sources *sources, int fd)
{
	struct stat st;
	char *bytes;
	int r;

	*sources = CONFIG_SOURCES_NULL;
	if (fstat(fd, &st) < 0)
		return vgpu_error_origin(-errno);
	if (st.st_size <= 0 || st.st_size > KEPT_MAX)
		return vgpu_error_origin(-EPROTO);
	bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return vgpu_error_origin(-errno);
	r = take_all(sources, bytes, st.st_size);
	munmap(bytes, st.st_size);
	if (r)
		config_sources_deinit(sources);
	return r ? vgpu_error_trace(r) : 0;
}

void config_sources_deinit(struct config_sources *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		free(sources->list[i].path);
		free(sources->list[i].text);
		free(sources->list[i].vm);
	}
	free(sources->list);
	*sources = CONFIG_SOURCES_NULL;
}
