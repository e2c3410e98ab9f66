/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processor time of a vgpud and of all processes below it, to the nanosecond
 *
 * Times that /proc/PID/stat has are multiples of a clock tick, which is coarser than
 * what an idle process uses in a second. Threads that ended are not in the sum: it is
 * for spans in which none does.
 */

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define PROCESSES_MAX 4096

struct process {
	int pid, parent;
	bool is_below;
};

struct processes {
	struct process process[PROCESSES_MAX];
	size_t n;
};

/* Returns: the parent of a process, 0 if it is gone. */
static int parent_of(int pid)
{
	char path[64], line[512] = "";
	int parent = 0;
	char *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	/* The name in parentheses may hold anything, parentheses too. */
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		sscanf(end + 1, " %*c %d", &parent);
	fclose(file);
	return parent;
}

static void read_processes(struct processes *all)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	all->n = 0;
	while (dir && (entry = readdir(dir)) && all->n < PROCESSES_MAX) {
		int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name)
								   : 0;

		if (pid)
			all->process[all->n++] =
				(struct process){ .pid = pid, .parent = parent_of(pid) };
	}
	if (dir)
		closedir(dir);
}

/* Returns: whether another one was found. */
static bool mark_children(struct processes *all, int parent)
{
	bool found = false;

	for (size_t i = 0; i < all->n; i++)
		if (all->process[i].parent == parent && !all->process[i].is_below)
			found = all->process[i].is_below = true;
	return found;
}

static double time_of(int pid)
{
	char path[64], name[sizeof(path) + 272];
	unsigned long long ns;
	struct dirent *entry;
	double sum = 0;
	FILE *file;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(name, sizeof(name), "%s/%s/schedstat", path, entry->d_name);
		file = fopen(name, "re");
		if (!file)
			continue;
		if (fscanf(file, "%llu", &ns) == 1)
			sum += ns;
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return sum;
}

double bench_host_cpu_time(const struct bench_host *host)
{
	static struct processes all;
	double sum = time_of(host->pid);
	bool more;

	read_processes(&all);
	more = mark_children(&all, host->pid);
	while (more) {
		more = false;
		for (size_t i = 0; i < all.n; i++)
			if (all.process[i].is_below)
				more = mark_children(&all, all.process[i].pid) || more;
	}
	for (size_t i = 0; i < all.n; i++)
		if (all.process[i].is_below)
			sum += time_of(all.process[i].pid);
	return sum;
}
