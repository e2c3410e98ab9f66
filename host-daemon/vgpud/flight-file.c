/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight files: what a worker's flight recorder had, one file an incident
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "vgpud/flight-file.h"
#include "vgpud/helper.h"

/* Files that are being written at once, by a thread each. */
#define WRITERS_MAX 4u
/* Behind the name of a file that is not complete. */
#define UNFINISHED ".part"

struct job {
	char folder[PATH_MAX];
	struct flight_report *report;
};

static uint32_t n_writers; /* atomic */
/* Held while files are counted and removed: two writers would remove too many. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void write_error(FILE *file, const struct flight_report *report)
{
	const struct flight *flight = &report->flight;
	char text[32];

	if (!flight->error_ns || flight->error_ns > report->time.ns)
		return;
	fprintf(file, "last error: %s in %s, %.6f s ago\n",
		flight_result(flight->error_result, text),
		vgpu_call_name(flight->error_call),
		(double)(report->time.ns - flight->error_ns) / 1e9);
}

static void write_report(FILE *file, const struct flight_report *report)
{
	const struct flight *flight = &report->flight;
	const struct flight_call *order[FLIGHT_CALLS];
	const size_t n = flight_order(
		report->is_of_fault ? flight->at_fault : flight->calls, order);
	const time_t date = report->date;
	char line[FLIGHT_LINE_MAX], when[32] = "";
	struct tm tm;

	if (gmtime_r(&date, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(file,
		"vm=%s channel=%u pid=%u comm=%s worker=%d\n"
		"time: %s\nreason: %s\n",
		report->vm, report->channel, report->guest_pid, report->comm,
		(int)report->worker, when, report->reason);
	write_error(file, report);
	fprintf(file, "calls: %zu\n\n", n);
	for (size_t i = 0; i < n; i++) {
		flight_format(flight, order[i], &report->time, line);
		fprintf(file, "%s\n", line);
	}
}

static void make_name(const struct flight_report *report, char name[NAME_MAX])
{
	const time_t date = report->date;
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&date, &tm))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, NAME_MAX, "%s@%s-%06" PRIu64 "-%s.txt", report->vm, when,
		report->worker_id, report->kind);
}

static bool is_of(const char *name, const char *vm)
{
	const size_t size = strlen(vm);

	return !strncmp(name, vm, size) && name[size] == '@';
}

/* Also those that a vgpud has left unfinished: none is written to for long. */
static int remove_oldest(int folder, const char *vm)
{
	const int copy = dup(folder);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	char oldest[NAME_MAX + 1];
	struct dirent *entry;
	size_t n;
	int r = 0;

	if (!dir) {
		vgpu_close(copy);
		return vgpu_error_origin(-errno);
	}
	do {
		n = 0;
		rewinddir(dir);
		while ((entry = readdir(dir))) {
			if (!is_of(entry->d_name, vm))
				continue;
			if (!n++ || strcmp(entry->d_name, oldest) < 0)
				snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
		if (n > FLIGHT_FILES_MAX && unlinkat(folder, oldest, 0) < 0 &&
			errno != ENOENT)
			r = vgpu_error_origin(-errno);
	} while (!r && n > FLIGHT_FILES_MAX + 1);
	closedir(dir);
	return r;
}

static int write_file(int folder, const char *name, const struct flight_report *report)
{
	int fd = openat(
		folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *file;
	int r = 0;

	if (fd < 0)
		return vgpu_error_origin(-errno);
	/* Whatever the umask: the group of the folder may read it. */
	if (fchmod(fd, 0640) < 0)
		r = -errno;
	file = r ? NULL : fdopen(fd, "w");
	if (!file) {
		r = r ? r : -errno;
		close(fd);
		return vgpu_error_origin(r);
	}
	write_report(file, report);
	if (ferror(file))
		r = -EIO;
	if (fclose(file))
		r = -errno;
	return r ? vgpu_error_origin(r) : 0;
}

int flight_file_write(const char *folder, const struct flight_report *report)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char name[NAME_MAX], part[NAME_MAX + sizeof(UNFINISHED)];
	int r;

	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	make_name(report, name);
	snprintf(part, sizeof(part), "%s" UNFINISHED, name);
	r = write_file(fd, part, report);
	if (!r && renameat(fd, part, fd, name) < 0)
		r = vgpu_error_origin(-errno);
	if (r) {
		if (r != -EEXIST)
			unlinkat(fd, part, 0);
		return vgpu_error_trace(r);
	}
	pthread_mutex_lock(&lock);
	r = remove_oldest(fd, report->vm);
	pthread_mutex_unlock(&lock);
	return r;
}

static void *run(void *data)
{
	static struct rate rate;
	struct job *job = data;
	int r;

	helper_lower_priority();
	r = flight_file_write(job->folder, job->report);
	if (r && rate_allows(&rate))
		vgpu_log_warning("vm=%s: the last calls of worker %d cannot be written "
				 "to %s: %s",
			job->report->vm, (int)job->report->worker, job->folder,
			strerror(-r));
	free(job->report);
	free(job);
	__atomic_sub_fetch(&n_writers, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int start(const char *folder, struct flight_report *report)
{
	struct job *job = malloc(sizeof(*job));
	pthread_t thread;
	int r;

	if (!job)
		return vgpu_error_origin(-ENOMEM);
	snprintf(job->folder, sizeof(job->folder), "%s", folder);
	job->report = report;
	r = helper_start(&thread, run, job);
	if (r) {
		free(job);
		return vgpu_error_trace(r);
	}
	pthread_detach(thread);
	return 0;
}

int flight_file_start(const char *folder, struct flight_report *report)
{
	int r = -EBUSY;

	if (__atomic_add_fetch(&n_writers, 1, __ATOMIC_RELAXED) <= WRITERS_MAX)
		r = start(folder, report);
	if (!r)
		return 0;
	__atomic_sub_fetch(&n_writers, 1, __ATOMIC_RELAXED);
	free(report);
	return r == -EBUSY ? vgpu_error_origin(r) : vgpu_error_trace(r);
}
