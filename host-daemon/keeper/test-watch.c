/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the broker still answers
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/watch.h"
#include "test.h"

/* Far more looks than a broker that hangs is given. */
#define MANY 1000

/* Judges one that looks like this at each look, after so many answers. Returns: after how
 * many looks it hangs, or 0. */
static int count_looks_after(uint64_t n_answers, char state, uint64_t ms_each)
{
	struct watch watch;
	uint64_t cpu_ms = 700;

	watch_begin(&watch, 1, 0);
	watch.answered = n_answers;
	for (int i = 1; i <= MANY; i++) {
		const struct watch_sight sight = { state, cpu_ms };

		if (watch_judge(&watch, &sight))
			return i;
		cpu_ms += ms_each;
	}
	return 0;
}

static int count_looks(char state, uint64_t ms_each)
{
	return count_looks_after(1, state, ms_each);
}

TEST(a_process_that_sleeps_or_is_stopped_with_an_unread_ping_hangs)
{
	check(count_looks('S', 0) > 1);
	check(count_looks('T', 0) > 1);
}

TEST(a_process_that_runs_continuously_hangs)
{
	check(count_looks('R', 400) > 1);
	/* On a busy machine the decision takes longer. */
	check(count_looks('R', 20) > count_looks('R', 400));
}

TEST(a_process_that_starts_may_run_longer)
{
	check(count_looks_after(0, 'R', 400) > 2 * count_looks('R', 400));
	check_eq(count_looks_after(0, 'S', 0), count_looks('S', 0));
}

TEST(a_process_without_processor_time_does_not_hang)
{
	check_eq(count_looks('R', 0), 0);
}

TEST(a_process_in_disk_sleep_or_in_a_debugger_does_not_hang)
{
	check_eq(count_looks('D', 0), 0);
	check_eq(count_looks('t', 0), 0);
	check_eq(count_looks('Z', 0), 0);
	/* Nor one of which nothing can be seen. */
	check_eq(count_looks(0, 0), 0);
}

TEST(looks_that_find_it_asleep_count_only_in_a_row)
{
	struct watch watch;

	watch_begin(&watch, 1, 0);
	for (int i = 0; i < MANY; i++) {
		const struct watch_sight sight = { i % 3 ? 'S' : 'R', 0 };

		check(!watch_judge(&watch, &sight));
	}
}

/* Looks at a child that answers or not, with a clock that runs as we like. */
static int look_at(pid_t pid, bool answers)
{
	struct watch watch;
	int64_t now = 5000;

	watch_begin(&watch, pid, now);
	for (int i = 1; i < 50; i++) {
		check(watch_timeout(&watch, now) > 0);
		check_eq(watch_look(&watch, now), WATCH_NOTHING);
		now += watch_timeout(&watch, now);
		switch (watch_look(&watch, now)) {
		case WATCH_PING:
			if (answers)
				watch_handle_answer(&watch, watch.asked);
			break;
		case WATCH_HUNG:
			return i;
		case WATCH_NOTHING:
			check(!answers);
			break;
		}
	}
	return 0;
}

TEST(a_stopped_process_is_seen_to_hang_and_one_that_answers_is_not)
{
	int status;
	pid_t pid = fork();

	check(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	check_eq(kill(pid, SIGSTOP), 0);
	check_eq(waitpid(pid, &status, WUNTRACED), pid);
	check(look_at(pid, false) > 3);
	check_eq(look_at(pid, true), 0);
	check_eq(kill(pid, SIGKILL), 0);
	check_eq(waitpid(pid, &status, 0), pid);
}

TEST(the_answer_to_an_older_ping_is_none)
{
	struct watch watch;

	watch_begin(&watch, 1, 0);
	watch.asked = 7;
	watch.answered = 6;
	watch_handle_answer(&watch, 6);
	check_eq(watch.answered, 6);
	watch_handle_answer(&watch, 7);
	check_eq(watch.answered, 7);
}
