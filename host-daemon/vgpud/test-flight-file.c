/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of last calls
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/g-calls.h"
#include "vgpud/flight-file.h"

static char folder[] = "/tmp/vgpu-flight-XXXXXX";
static struct flight_report report;

static void begin(void)
{
	strcpy(folder, "/tmp/vgpu-flight-XXXXXX");
	check(mkdtemp(folder));
	memset(&report, 0, sizeof(report));
	strcpy(report.vm, "one");
	strcpy(report.comm, "python3");
	strcpy(report.reason, "a context broke");
	strcpy(report.kind, "fault");
	report.channel = 3;
	report.guest_pid = 77;
	report.worker = 99;
	report.worker_id = 5;
	report.date = 1000000000;
	report.time = (struct flight_time){ 2000000, 3000000000 };
}

static void path_of(const char *name, char path[200])
{
	snprintf(path, 200, "%s/%s", folder, name);
}

static size_t count(const char *prefix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t n = 0;

	check(dir);
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, prefix, strlen(prefix));
	closedir(dir);
	return n;
}

static void end(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	check(dir);
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	check_eq(rmdir(folder), 0);
}

TEST(a_file_has_the_process_and_its_calls)
{
	char path[200], text[2048];
	struct stat stat;
	size_t n;
	FILE *file;

	begin();
	report.flight.calls[8] =
		(struct flight_call){ .number = 8, .call = VGPU_CALL_cuCtxSynchronize };
	report.flight.at_fault[7] = (struct flight_call){
		.number = 7,
		.call = VGPU_CALL_cuLaunchKernel,
		.result = FLIGHT_RUNNING,
	};
	report.flight.error_ns = 1000000000;
	report.flight.error_call = VGPU_CALL_cuCtxSynchronize;
	report.flight.error_result = 700;
	report.is_of_fault = true;
	check_eq(flight_file_write(folder, &report), 0);
	path_of("one@20010909T014640Z-000005-fault.txt", path);
	file = fopen(path, "r");
	check(file);
	check(!fstat(fileno(file), &stat));
	check_eq(stat.st_mode & 07777, 0640);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	check_str(text, "vm=one channel=3 pid=77 comm=python3 worker=99\n"
			"time: 2001-09-09T01:46:40Z\n"
			"reason: a context broke\n"
			"last error: CUDA_ERROR_ILLEGAL_ADDRESS in cuCtxSynchronize, "
			"2.000000 s ago\n"
			"calls: 1\n\n"
			"#7 - lane 0: cuLaunchKernel() has not returned\n");
	end();
}

TEST(a_vm_keeps_its_last_files_and_takes_none_of_another)
{
	char path[200];

	begin();
	for (uint32_t i = 0; i < FLIGHT_FILES_MAX + 5; i++) {
		report.date++;
		check_eq(flight_file_write(folder, &report), 0);
	}
	strcpy(report.vm, "one-more");
	check_eq(flight_file_write(folder, &report), 0);
	strcpy(report.vm, "on");
	check_eq(flight_file_write(folder, &report), 0);
	check_eq(count("one@"), FLIGHT_FILES_MAX);
	check_eq(count("one-more@"), 1);
	check_eq(count("on@"), 1);
	/* The first five are those that are missing. */
	path_of("one@20010909T014645Z-000005-fault.txt", path);
	check_eq(access(path, F_OK), -1);
	path_of("one@20010909T014646Z-000005-fault.txt", path);
	check_eq(access(path, F_OK), 0);
	end();
}

TEST(a_file_that_cannot_be_written_leaves_none)
{
	char path[200];

	begin();
	path_of("none", path);
	check_eq(flight_file_write(path, &report), -ENOENT);
	/* A link of another user in the place of the file is not followed. */
	path_of("one@20010909T014640Z-000005-fault.txt.part", path);
	check_eq(symlink("/dev/null", path), 0);
	check_eq(flight_file_write(folder, &report), -EEXIST);
	check_eq(count("one@"), 1);
	end();
}

TEST(a_thread_writes_the_file)
{
	struct flight_report *copy = malloc(sizeof(*copy));

	begin();
	check(copy);
	*copy = report;
	check_eq(flight_file_start(folder, copy), 0);
	while (!count("one@20010909T014640Z-000005-fault.txt") || count("one@") != 1)
		usleep(1000);
	end();
}
