/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proc: files of /proc, see proc(5)
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "wire/proc.h"

/* Long enough for every line of interest. */
#define TEXT_SIZE 4096u

static bool read_text(uint32_t pid, const char *name, char text[TEXT_SIZE])
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* The name in field 2 may hold anything but ends at the last parenthesis. */
bool shim_proc_read_stat(uint32_t pid, struct shim_proc_stat *stat)
{
	char text[TEXT_SIZE], *field;

	*stat = (struct shim_proc_stat){};
	if (!read_text(pid, "stat", text))
		return false;
	field = strrchr(text, ')');
	for (int i = 3; field && i <= 22; i++) {
		field = strchr(field + 1, ' ');
		if (field && i == 3)
			stat->state = field[1];
		if (field && i == 20)
			stat->n_threads = strtoull(field, NULL, 10);
		if (field && i == 22)
			stat->start_time = strtoull(field, NULL, 10);
	}
	if (!field)
		*stat = (struct shim_proc_stat){};
	return field;
}

uint64_t shim_proc_pid_namespace(void)
{
	struct stat info;

	return stat("/proc/self/ns/pid", &info) ? 0 : info.st_ino;
}

/* The line has the pid in each namespace, from the reader's to the innermost. */
uint32_t shim_proc_inner_pid(uint32_t pid)
{
	char text[TEXT_SIZE], *line, *end;

	if (!read_text(pid, "status", text))
		return 0;
	line = strstr(text, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return 0;
	while (end[-1] >= '0' && end[-1] <= '9')
		end--;
	return (uint32_t)strtoul(end, NULL, 10);
}
