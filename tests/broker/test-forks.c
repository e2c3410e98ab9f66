/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests that fork: a thousand processes leave nothing, and no more than max-processes of
 * them have a session
 */

#include <dirent.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

#define N_CHANNELS 7
/* One after the other, in each channel. An extent that each of them left would fill the
 * memory of the machine many times. */
#define N_EACH 150
/* Connections that a section with max-processes = 4 may have. */
#define N_CONNECTIONS 20
#define N_OPEN 4

static struct pair pair;
static struct guest guest;

static unsigned int count_fds(pid_t pid)
{
	char folder[64];
	unsigned int n = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct use {
	unsigned int keeper_fds;
	unsigned int broker_fds;
	unsigned int children;
};

static struct use measure(void)
{
	return (struct use){
		.keeper_fds = count_fds(pair.pid),
		.broker_fds = count_fds(pair_find_broker(&pair)),
		.children = pair_count_children(&pair),
	};
}

static bool is_no_more(struct use first)
{
	const struct use last = measure();

	return last.keeper_fds <= first.keeper_fds &&
	       last.broker_fds <= first.broker_fds && last.children <= first.children;
}

static void wait_for_child(pid_t pid)
{
	int status;

	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
}

/* Processes of a machine whose memory all of them map. */
static void fork_in_channels(unsigned int n_each)
{
	pid_t pids[N_CHANNELS];

	for (unsigned int i = 0; i < N_CHANNELS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		for (unsigned int k = 0; k < n_each; k++) {
			guest_open(&guest, i, "app");
			guest_close(&guest, i);
		}
		fflush(NULL);
		_exit(0);
	}
	for (unsigned int i = 0; i < N_CHANNELS; i++)
		wait_for_child(pids[i]);
}

TEST_SECONDS(a_thousand_processes_of_a_machine_leave_nothing, 300)
{
	char section[256], path[160];
	struct use before;

	pair_needs_descriptors();
	snprintf(path, sizeof(path), "%s/qemu", test_tmpdir());
	snprintf(section, sizeof(section),
		"[vm qemu]\nsocket = %s\nsize = 512M\nmax-processes = %d\n"
		"process-rate = 1000\nlog-lines = 10000\n",
		path, N_CHANNELS);
	/* No worker is kept warm: one that comes late would be counted as a leak. */
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER,
				  .sections = section,
				  .vgpud_lines = "warm-workers = 0\n" });
	guest_connect_qemu(&guest, path);
	fork_in_channels(2);
	pair_wait_log(&pair, "session ended vm=qemu", 2 * N_CHANNELS);
	guest_wait_for(pair_count_children(&pair) == 1);
	before = measure();
	fork_in_channels(N_EACH);
	pair_wait_log(&pair, "session ended vm=qemu", (2 + N_EACH) * N_CHANNELS);
	guest_wait_for(is_no_more(before));
	/* All channels, and extents for each of them. */
	for (unsigned int i = 0; i < N_CHANNELS; i++)
		guest_open(&guest, i, "app");
	for (unsigned int i = 0; i < N_CHANNELS; i++)
		guest_close(&guest, i);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* A process that opens a session, says whether it has one, and keeps it until a pipe is
 * closed. */
static void hold(int said, int held)
{
	struct vgpu_channel_entry *entry;
	struct guest own;
	uint32_t state;
	char answer;

	guest_connect(&own, pair.socket);
	entry = guest_entry(&own, 0);
	guest_claim(&own, 0, "app");
	guest_ask(&own, 0, VGPU_CHANNEL_OPENING);
	do {
		usleep(1000);
		state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	} while (state == VGPU_CHANNEL_OPENING);
	answer = state == VGPU_CHANNEL_OPEN ? 'o'
		 : state == VGPU_CHANNEL_REFUSED && entry->reason == VGPU_REASON_PROCESSES
			 ? 'r'
			 : '?';
	check_eq(write(said, &answer, 1), 1);
	check_eq(read(held, &answer, 1), 0);
	guest_disconnect(&own);
	fflush(NULL);
	_exit(0);
}

TEST(of_many_processes_at_once_as_many_have_a_session_as_may)
{
	unsigned int n_open = 0, n_refused = 0;
	pid_t pids[N_CONNECTIONS];
	int said[2], held[2];
	char answer;

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = "max-processes = 4\nprocess-rate = 1000\n",
			  });
	for (unsigned int round = 0; round < 3; round++) {
		check_eq(pipe(said), 0);
		check_eq(pipe(held), 0);
		for (unsigned int i = 0; i < N_CONNECTIONS; i++) {
			pids[i] = fork();
			if (pids[i])
				continue;
			close(held[1]);
			hold(said[1], held[0]);
		}
		for (unsigned int i = 0; i < N_CONNECTIONS; i++) {
			check_eq(read(said[0], &answer, 1), 1);
			n_open += answer == 'o';
			n_refused += answer == 'r';
		}
		check_eq(n_open, (round + 1) * N_OPEN);
		check_eq(n_refused, (round + 1) * (N_CONNECTIONS - N_OPEN));
		close(held[0]);
		close(held[1]);
		close(said[0]);
		close(said[1]);
		for (unsigned int i = 0; i < N_CONNECTIONS; i++)
			wait_for_child(pids[i]);
		/* The next ones find place when these have ended. */
		pair_wait_log(&pair, "session ended vm=test", (round + 1) * N_OPEN);
	}
	pair_stop(&pair);
}
