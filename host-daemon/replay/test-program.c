/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: how the worker of a replay is started, with a script in its place
 */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "replay/program.h"
#include "test.h"

static char path[256], text[4096];

/* Writes its arguments, each with a blank behind it, into its file of counters, lists its
 * descriptors, and waits for the end of its control socket. */
static void write_script(void)
{
	FILE *script;

	snprintf(path, sizeof(path), "%s/worker", test_tmpdir());
	script = fopen(path, "w");
	check(script);
	fputs("#!/bin/sh\n"
	      "for word in \"$@\"; do printf '%s ' \"$word\" >&4; done\n"
	      "for fd in 3 4 5 6 7 8 9; do\n"
	      "	[ -e /proc/$$/fd/$fd ] && printf 'fd%s ' $fd >&4\n"
	      "done\n"
	      "printf 'end ' >&4\n"
	      "cat <&3 >/dev/null\n"
	      "exit 5\n",
		script);
	check_eq(fclose(script), 0);
	check_eq(chmod(path, 0700), 0);
}

/* Return: the status of the worker, whose text is there then. */
static int run(
	const struct recording_header *header, const struct replay_options *options)
{
	const struct config paths = {
		.worker = path,
		.softgpu = (char *)"/soft",
		.null_driver = (char *)"/null",
	};
	struct program program;

	write_script();
	check_eq(program_start(&program, &paths, header, options), 0);
	check(program.pid > 0);
	memset(text, 0, sizeof(text));
	while (!strstr(text, "end ")) {
		check(pread(program.stats, text, sizeof(text) - 1, 0) >= 0);
		usleep(1000);
	}
	return program_end(&program);
}

TEST(a_worker_is_started_as_vgpud_starts_it)
{
	const int status = run(&(struct recording_header){ .is_softgpu = 1 },
		&(struct replay_options){});

	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 5);
	check_str(text,
		"--control 3 --stats 4 --log-level warning --driver soft --softgpu /soft "
		"--null-driver /null fd3 fd4 end ");
}

TEST(softgpu_is_what_it_was)
{
	const struct recording_header header = {
		.is_softgpu = 1,
		.cc = 121,
		.name = "a name",
		.check = "yes",
		.memory = UINT64_MAX,
		.n_softgpus = 8,
		.timeout_ms = 1000,
		.n_threads = 3,
		.schedule = SOFTGPU_CONFIG_FAIR,
	};

	run(&header, &(struct replay_options){});
	check(strstr(text,
		"--softgpu-cc 12.1 --softgpu-name a name --softgpu-check yes "
		"--softgpu-memory 18446744073709551615 --softgpu-devices 8 "
		"--softgpu-timeout 1000 --softgpu-threads 3 --softgpu-schedule fair "));
	/* The command line comes first. */
	run(&header, &(struct replay_options){
			     .driver = "/other",
			     .softgpu_threads = "7",
			     .is_verbose = true,
			     .is_unprivileged = true,
		     });
	check(strstr(text, "--log-level info --driver /other "));
	check(strstr(text, "--allow-unprivileged yes "));
	check(strstr(text, "--softgpu-threads 7 "));
	check(!strstr(text, "--softgpu-threads 3 "));
}

TEST(another_driver_is_chosen_by_the_worker)
{
	run(&(struct recording_header){}, &(struct replay_options){});
	check(strstr(text, "--driver auto "));
}

TEST(a_worker_that_there_is_not_ends_at_once)
{
	const struct config paths = {
		.worker = (char *)"/nowhere/worker",
		.softgpu = (char *)"/soft",
		.null_driver = (char *)"/null",
	};
	struct program program;
	char byte;
	int status;

	check_eq(program_start(&program, &paths, &(struct recording_header){},
			 &(struct replay_options){}),
		0);
	/* Its end of the socket is nobody's. */
	check_eq(recv(program.control, &byte, 1, 0), 0);
	status = program_end(&program);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 127);
	check_eq(program_end(&program), 0);
}
