/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc tells of a process
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "wire/proc.h"

TEST(a_process_is_described_whatever_its_name)
{
	struct shim_proc_stat own;

	test_skip_emulated("the start time in /proc");
	check_eq(prctl(PR_SET_NAME, ") Z 1 (2 "), 0);
	check(shim_proc_read_stat((uint32_t)getpid(), &own));
	check_eq(own.state, 'R');
	check_eq(own.n_threads, 1);
	check(own.start_time > 0);
}

TEST(a_child_starts_no_earlier_than_its_parent)
{
	struct shim_proc_stat own, other;
	pid_t pid;

	test_skip_emulated("the start time in /proc");
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	check(shim_proc_read_stat((uint32_t)getpid(), &own));
	check(shim_proc_read_stat((uint32_t)pid, &other));
	check(other.start_time >= own.start_time);
	check_eq(kill(pid, SIGKILL), 0);
	check_eq(waitpid(pid, NULL, 0), pid);
	check(!shim_proc_read_stat((uint32_t)pid, &other));
	check_eq(other.start_time, 0);
	check_eq(shim_proc_inner_pid((uint32_t)pid), 0);
}

TEST(the_innermost_pid_is_the_one_that_the_process_sees)
{
	check_eq(shim_proc_inner_pid((uint32_t)getpid()), getpid());
	check(shim_proc_pid_namespace() != 0);
}
