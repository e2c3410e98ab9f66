/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library: the files from which the loader chooses for a name, in its order
 */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/note.h"
#include "vgpu/root.h"

#include "doctor/doctor.h"
#include "doctor/library.h"
#include "doctor/probe.h"

#define PROGRAM_SECONDS 20

/* Folders that the loader searches without being told: of the distributions, in any
 * order, since only one of them has them all. */
static const char *const default_folders[] = { "/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib" };

/* Where packages and install.sh put ours. */
static const char *const own_folders[] = { VGPU_DIR_LIB, "/usr/local/lib/vgpu",
	"/usr/lib/x86_64-linux-gnu/vgpu", "/usr/lib64/vgpu" };

static bool is_same_file(const struct doctor *doctor, const char *one, const char *other)
{
	char one_path[PATH_MAX * 2], other_path[PATH_MAX * 2];
	struct stat one_info, other_info;

	if (!strcmp(one, other))
		return true;
	snprintf(one_path, sizeof(one_path), "%s%s", doctor->root, one);
	snprintf(other_path, sizeof(other_path), "%s%s", doctor->root, other);
	return !stat(one_path, &one_info) && !stat(other_path, &other_info) &&
	       one_info.st_dev == other_info.st_dev &&
	       one_info.st_ino == other_info.st_ino;
}

const struct library_file *library_at(
	const struct library *library, const struct doctor *doctor, const char *path)
{
	for (unsigned int i = 0; i < library->n; i++)
		if (is_same_file(doctor, library->files[i].path, path))
			return &library->files[i];
	return NULL;
}

const struct library_file *library_ours(const struct library *library)
{
	for (unsigned int i = 0; i < library->n; i++)
		if (*library->files[i].note)
			return &library->files[i];
	return NULL;
}

/* Adds a file that is there and that the loader would take; each file once. */
static void add(struct library *library, const struct doctor *doctor, const char *path,
	enum library_origin origin)
{
	struct library_file *file = &library->files[library->n];
	char whole[PATH_MAX * 2];
	int r;

	if (library->n == LIBRARY_FILES_MAX || strlen(path) >= sizeof(file->path) ||
		library_at(library, doctor, path))
		return;
	snprintf(whole, sizeof(whole), "%s%s", doctor->root, path);
	r = vgpu_note_read_path(whole, file->note, sizeof(file->note));
	/* The loader passes over what is no library, and cannot read. */
	if (r < 0 || r == VGPU_NOTE_E_NOT_ELF)
		return;
	if (r || strncmp(file->note, library->name, strcspn(library->name, ".")))
		*file->note = '\0';
	if (origin == LIBRARY_INSTALLED && !*file->note)
		return;
	snprintf(file->path, sizeof(file->path), "%s", path);
	file->origin = origin;
	library->n++;
}

static void add_in(struct library *library, const struct doctor *doctor,
	const char *folder, enum library_origin origin)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, library->name) <
		sizeof(path))
		add(library, doctor, path, origin);
}

/* Libraries of that name, and of others that begin like it: libcuda.so.550. */
static void add_preloaded(struct library *library, const struct doctor *doctor,
	const char *list, enum library_origin origin)
{
	_vgpu_cleanup_(vgpu_freep) char *copy = strdup(list ? list : "");
	const size_t n = strcspn(library->name, ".");
	char *rest = copy, *word;

	while (copy && (word = strsep(&rest, ": \t\n"))) {
		const char *slash = strrchr(word, '/');

		if (slash && !strncmp(slash + 1, library->name, n) && slash[1 + n] == '.')
			add(library, doctor, word, origin);
	}
}

static void add_preload_file(struct library *library, const struct doctor *doctor)
{
	FILE *file = vgpu_root_open(doctor->root, "/etc/ld.so.preload");
	char line[1024];

	while (file && fgets(line, sizeof(line), file))
		add_preloaded(library, doctor, line, LIBRARY_PRELOAD_FILE);
	if (file)
		fclose(file);
}

/* An empty folder is the current one. */
static void add_library_path(struct library *library, const struct doctor *doctor)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	_vgpu_cleanup_(vgpu_freep) char *copy = strdup(list ? list : "");
	char *rest = copy, *folder;

	if (!list || !*list)
		return;
	while (copy && (folder = strsep(&rest, ":;")))
		add_in(library, doctor, *folder ? folder : ".", LIBRARY_PATH);
}

/* Of a line "\tNAME (libc6,x86-64) => PATH". Return: the path, or NULL. */
static char *parse_cache(char *line, const char *name)
{
	const size_t n = strlen(name);
	char *arrow = strstr(line, " => ");

	line += strspn(line, " \t");
	if (strncmp(line, name, n) || line[n] != ' ' || !arrow ||
		!memmem(line, (size_t)(arrow - line), "x86-64", 6))
		return NULL;
	return arrow + 4;
}

static void add_cached(struct library *library, const struct doctor *doctor)
{
	char cache[PATH_MAX];
	const char *const arguments[] = { "ldconfig", "-p", "-C", cache, NULL };
	struct probe probe;
	char *rest, *line, *path;

	snprintf(cache, sizeof(cache), "%s/etc/ld.so.cache", doctor->root);
	if (probe_run(&probe, arguments, PROGRAM_SECONDS)) {
		rest = probe.output;
		while ((line = strsep(&rest, "\n")))
			if ((path = parse_cache(line, library->name)))
				add(library, doctor, path, LIBRARY_CACHE);
	}
	probe_deinit(&probe);
}

void library_find(struct library *library, const struct doctor *doctor, const char *name)
{
	const bool is_here = !*doctor->root;

	library->name = name;
	library->n = 0;
	/* The environment is that of programs here, not of those in an image. */
	if (is_here)
		add_preloaded(library, doctor, getenv("LD_PRELOAD"), LIBRARY_PRELOADED);
	add_preload_file(library, doctor);
	if (is_here)
		add_library_path(library, doctor);
	add_cached(library, doctor);
	for (size_t i = 0; i < sizeof(default_folders) / sizeof(*default_folders); i++)
		add_in(library, doctor, default_folders[i], LIBRARY_FOLDER);
	for (size_t i = 0; i < sizeof(own_folders) / sizeof(*own_folders); i++)
		add_in(library, doctor, own_folders[i], LIBRARY_INSTALLED);
}

/* Return: whether a file of ldconfig's has a line with that folder. */
static bool names_folder(
	const struct doctor *doctor, const char *conf, const char *folder)
{
	FILE *file = vgpu_root_open(doctor->root, conf);
	char line[1024];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *start = line + strspn(line, " \t");
		size_t n = strcspn(start, " \t\n#");

		while (n > 1 && start[n - 1] == '/')
			n--;
		found = n == strlen(folder) && !strncmp(start, folder, n);
	}
	if (file)
		fclose(file);
	return found;
}

void library_name_conf(const struct doctor *doctor, const struct library_file *file,
	char conf[static 256])
{
	const char *slash = strrchr(file->path, '/');
	char folder[PATH_MAX], pattern[PATH_MAX];
	const size_t n_root = strlen(doctor->root);
	glob_t found = { 0 };

	*conf = '\0';
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file->path) : 0,
		file->path);
	if (names_folder(doctor, "/etc/ld.so.conf", folder)) {
		snprintf(conf, 256, "/etc/ld.so.conf");
		return;
	}
	snprintf(pattern, sizeof(pattern), "%s/etc/ld.so.conf.d/*.conf", doctor->root);
	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc && !*conf; i++)
			if (names_folder(doctor, found.gl_pathv[i] + n_root, folder))
				snprintf(conf, 256, "%s", found.gl_pathv[i] + n_root);
	globfree(&found);
}

/* Return: whether that manager of packages knows the file. */
static bool ask_package(
	const char *const *arguments, const char *end, char package[static 128])
{
	struct probe probe;
	const bool is_known = probe_run(&probe, arguments, PROGRAM_SECONDS) &&
			      *probe.output && *probe.output != ':';

	if (is_known)
		snprintf(package, 128, "%.*s", (int)strcspn(probe.output, end),
			probe.output);
	probe_deinit(&probe);
	return is_known;
}

void library_name_package(const char *path, char package[static 128])
{
	_vgpu_cleanup_(vgpu_freep) char *target = realpath(path, NULL);
	const char *const paths[] = { path, target };

	*package = '\0';
	/* Packages list a file by the name that it had before /lib was a link. */
	for (size_t i = 0; i < 2 && paths[i]; i++) {
		const char *const dpkg[] = { "dpkg-query", "-S", paths[i], NULL };
		const char *const rpm[] = { "rpm", "-qf", "--qf", "%{NAME}\n", paths[i],
			NULL };

		if (ask_package(dpkg, ":\n", package) || ask_package(rpm, "\n", package))
			return;
	}
}
