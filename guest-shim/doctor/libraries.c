/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: which files the loader gives to programs, and who put others before ours
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/root.h"

#include "doctor/doctor.h"
#include "doctor/library.h"

static const char *const origins[_LIBRARY_ORIGIN_N] = {
	[LIBRARY_PRELOADED] = "LD_PRELOAD",
	[LIBRARY_PRELOAD_FILE] = "/etc/ld.so.preload",
	[LIBRARY_PATH] = "LD_LIBRARY_PATH",
	[LIBRARY_CACHE] = "the cache of ldconfig",
	[LIBRARY_FOLDER] = "a default folder of the loader",
};

/* The folder of a file. */
static int folder_size(const struct library_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return slash ? (int)(slash - file->path) : 0;
}

/* What brings ours before another file, or into the cache. */
static void advise(const struct doctor *doctor, const struct library_file *other,
	const struct library_file *ours, char *advice, size_t size)
{
	char conf[256] = "";

	if (!ours) {
		snprintf(advice, size,
			"install the guest package (install.sh%s), or libcuda1-vgpu and "
			"libnvidia-ml1-vgpu",
			other ? " --replace" : "");
		return;
	}
	library_name_conf(doctor, ours, conf);
	if (other && other->origin == LIBRARY_PATH)
		snprintf(advice, size,
			"take %.*s out of LD_LIBRARY_PATH, or put %.*s before it",
			folder_size(other), other->path, folder_size(ours), ours->path);
	else if (other && other->origin < LIBRARY_PATH)
		snprintf(advice, size, "take %s out of %s", other->path,
			origins[other->origin]);
	else if (*conf && ours->origin == LIBRARY_INSTALLED)
		snprintf(advice, size, "%s names %.*s: run ldconfig", conf,
			folder_size(ours), ours->path);
	else
		snprintf(advice, size,
			"write %.*s into a file of /etc/ld.so.conf.d that sorts before "
			"all others, such as 00-vgpu.conf, and run ldconfig",
			folder_size(ours), ours->path);
}

/* By whom: a package and, of the cache, the file that names its folder. */
static void describe(const struct doctor *doctor, const struct library_file *file,
	char *text, size_t size)
{
	char package[128] = "", conf[256] = "";

	if (!*doctor->root)
		library_name_package(file->path, package);
	if (file->origin == LIBRARY_CACHE)
		library_name_conf(doctor, file, conf);
	snprintf(text, size, "%s%s%s, by %s%s%s%s", file->path,
		*package ? " of the package " : "", package, origins[file->origin],
		*conf ? " (" : "", conf, *conf ? ")" : "");
}

/* The release in "NAME RELEASE ...". */
static void look_at_release(
	struct doctor *doctor, const char *subject, const struct library_file *file)
{
	char release[32] = "";

	sscanf(file->note, "%*s %31s", release);
	if (strcmp(release, VGPU_VERSION))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, subject,
			"install all packages of one release, that of the host",
			"%s is of release %s, vgpu-doctor of " VGPU_VERSION, file->path,
			release);
}

static void tell_foreign(struct doctor *doctor, const char *subject,
	const struct library *library, const char *advice)
{
	const struct library_file *first = &library->files[0];
	/* A machine with a GPU of its own may be meant to use that. */
	const bool has_driver =
		!vgpu_root_access(doctor->root, "/proc/driver/nvidia/version", 0);
	char text[PATH_MAX + 512];

	describe(doctor, first, text, sizeof(text));
	vgpu_findings_add(&doctor->found,
		has_driver ? VGPU_FINDING_WARN : VGPU_FINDING_FAIL, subject, advice,
		"programs get %s, which is not of vGPU%s%s%s", text,
		library_ours(library) ? "; ours is " : "",
		library_ours(library) ? library_ours(library)->path : "",
		has_driver ? "; NVIDIA's driver is loaded here, for a GPU of this machine"
			   : "");
}

static void tell_ours(
	struct doctor *doctor, const char *subject, const struct library *library)
{
	char text[PATH_MAX + 512];
	const struct library_file *next = NULL;

	describe(doctor, &library->files[0], text, sizeof(text));
	for (unsigned int i = 1; i < library->n && !next; i++)
		if (!*library->files[i].note)
			next = &library->files[i];
	vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, subject, NULL, "%s%s%s", text,
		next ? ", before " : "", next ? next->path : "");
	look_at_release(doctor, subject, &library->files[0]);
}

static void look_at(struct doctor *doctor, const char *subject, struct library *library)
{
	const struct library_file *first = library->files;
	char advice[PATH_MAX * 2 + 256];

	if (!library->n || first->origin == LIBRARY_INSTALLED)
		first = NULL;
	advise(doctor, first, library_ours(library), advice, sizeof(advice));
	if (first && *first->note)
		tell_ours(doctor, subject, library);
	else if (first)
		tell_foreign(doctor, subject, library, advice);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject, advice,
			"the loader finds no %s%s%s", library->name,
			library->n ? "; ours is " : "",
			library->n ? library->files[0].path : "");
}

void doctor_look_at_libraries(struct doctor *doctor)
{
	_vgpu_cleanup_(vgpu_freep) struct library *library = malloc(sizeof(*library));

	if (!library)
		return;
	library_find(library, doctor, "libcuda.so.1");
	look_at(doctor, "libcuda", library);
	if (library->n && library->files[0].origin != LIBRARY_INSTALLED) {
		snprintf(doctor->libcuda, sizeof(doctor->libcuda), "%s",
			library->files[0].path);
		doctor->is_ours = *library->files[0].note;
	}
	library_find(library, doctor, "libnvidia-ml.so.1");
	look_at(doctor, "libnvidia-ml", library);
}
