/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program and checking its output
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "test.h"

#define VARIABLES_MAX 16

/* Preloading and late loading of an instrumented library is not what a sanitizer expects,
 * and its leak report is not about programs that end by themselves. */
#define SANITIZER_OPTIONS "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"

static void read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	check(file != NULL);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void redirect(const char *path, int to)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	close(fd);
}

void run_program(
	struct run *run, const char *const argv[], const char *const environment[])
{
	const char *all[VARIABLES_MAX] = { "PATH=/usr/local/bin:/usr/bin:/bin:/sbin" };
	char out[128], err[128];
	int n = 1, status;
	pid_t pid;

#ifdef __SANITIZE_ADDRESS__
	all[n++] = SANITIZER_OPTIONS;
#endif
	for (int i = 0; environment && environment[i]; i++) {
		check(n < VARIABLES_MAX - 1);
		all[n++] = environment[i];
	}
	snprintf(out, sizeof(out), "%s/out", test_tmpdir());
	snprintf(err, sizeof(err), "%s/err", test_tmpdir());
	fflush(NULL);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		redirect(out, STDOUT_FILENO);
		redirect(err, STDERR_FILENO);
		execvpe(argv[0], (char **)argv, (char **)all);
		_exit(127);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	read_file(out, run->out, sizeof(run->out));
	read_file(err, run->err, sizeof(run->err));
}

void run_successfully(
	struct run *run, const char *const argv[], const char *const environment[])
{
	run_program(run, argv, environment);
	if (run->status)
		test_fail(__FILE__, __LINE__, "%s ended with %d\n%s%s", argv[0],
			run->status, run->out, run->err);
}
