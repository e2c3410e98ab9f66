/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that answer, crash, hang and write without end
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/child.h"
#include "doctor/test-files.h"

#define SECONDS 50

static void answer(int out, const void *data)
{
	dprintf(out, "name one\nnames none\nname two %s\n", (const char *)data);
	fputs("complaint\n", stderr);
}

TEST(what_a_child_writes_is_read_by_key)
{
	struct probe probe;
	const char *at = NULL;
	char value[16];

	check_eq(probe_call(&probe, answer, "three", SECONDS), 0);
	check_eq(probe.status, 0);
	check(!probe.is_late);
	check_str(probe.errors, "complaint\n");
	check(!strncmp(probe_next(&probe, "name", &at), "one\n", 4));
	check(!strncmp(probe_next(&probe, "name", &at), "two three\n", 10));
	check(!probe_next(&probe, "name", &at));
	check(probe_get(&probe, "name", value, sizeof(value)));
	check_str(value, "two three");
	check(!probe_get(&probe, "nam", value, sizeof(value)));
	check_str(value, "");
	probe_deinit(&probe);
}

static void crash(int out, const void *data)
{
	dprintf(out, "step here\n");
	raise(SIGKILL);
}

static void hang(int out, const void *data)
{
	dprintf(out, "step here\n");
	close(out);
	for (;;)
		pause();
}

static void leave(int out, const void *data)
{
	dprintf(out, "step here\n");
	exit(3);
}

static void fail(int out, const void *data)
{
	dprintf(out, "step here\nfailed here: WHY (7)\n");
}

static void fail_with_reason(int out, const void *data)
{
	fail(out, data);
	fputs("1.000001 libcuda[7] error: cuInit fails with X (7): it is bad: mend it\n",
		stderr);
}

static void finish(int out, const void *data)
{
	dprintf(out, "step done\n");
}

static void check_child(void (*function)(int out, const void *data), const char *text,
	const char *advice, unsigned int seconds)
{
	struct doctor doctor;
	struct probe probe;

	doctor_init(&doctor, "");
	doctor.seconds = seconds;
	check(!child_run(&doctor, &probe, "subject", function));
	probe_deinit(&probe);
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_FAIL, text, advice);
	doctor_deinit(&doctor);
}

TEST(each_end_of_a_child_is_named)
{
	struct doctor doctor;
	struct probe probe;

	check_child(crash, "died in here by signal 9", "report", SECONDS);
	check_child(hang, "here does not return within 1 seconds", "load", 1);
	check_child(leave, "ended in here, with status 3", "report", SECONDS);
	check_child(fail, "here: WHY (7)", "log of vgpud", SECONDS);
	check_child(fail_with_reason, "here: WHY (7); it is bad", "mend it", SECONDS);
	doctor_init(&doctor, "");
	check(child_run(&doctor, &probe, "subject", finish));
	check_eq(doctor.found.n, 0);
	probe_deinit(&probe);
	doctor_deinit(&doctor);
}

static void flood(int out, const void *data)
{
	static const char zeros[4096];

	dprintf(out, "first line\n");
	for (int i = 0; i < 1000; i++)
		if (write(out, zeros, sizeof(zeros)) < 0 ||
			write(STDERR_FILENO, "x", 1) < 0)
			exit(1);
}

TEST(a_child_that_writes_too_much_is_cut)
{
	struct probe probe;
	char value[16];

	check_eq(probe_call(&probe, flood, NULL, SECONDS), 0);
	check_eq(probe.status, 0);
	check(probe_get(&probe, "first", value, sizeof(value)));
	check_str(value, "line");
	check_eq(strlen(probe.errors), 1000);
	probe_deinit(&probe);
}

TEST(a_program_is_run_without_the_libraries_of_the_user)
{
	const char *const arguments[] = { "sh", "-c",
		"echo \"[$LD_LIBRARY_PATH$LD_PRELOAD$LC_ALL]\"", NULL };
	const char *const wrong[] = { "no-such-program", NULL };
	struct probe probe;

	check_eq(setenv("LD_LIBRARY_PATH", "/nonexistent", 1), 0);
	check(probe_run(&probe, arguments, SECONDS));
	check_str(probe.output, "[C]\n");
	probe_deinit(&probe);
	check(!probe_run(&probe, wrong, SECONDS));
	check_eq(WEXITSTATUS(probe.status), 127);
	probe_deinit(&probe);
}
