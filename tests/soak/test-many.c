/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many guest processes, threads, and processes that others cannot see
 */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "test.h"

#define N_PROCESSES 64
#define N_SHOT_AT 24
#define WAIT_MS 60000

static struct pair pair;

struct process {
	pid_t pid;
	int out; /* its standard output */
};

static struct process processes[N_PROCESSES];

/* Starts a program that computes and checks; ROUNDS 0: until SIGTERM. */
static void start_process(struct process *process, const char *rounds, unsigned int seed)
{
	char seed_text[16];
	int fds[2];

	snprintf(seed_text, sizeof(seed_text), "%u", seed);
	check_eq(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL);
	process->pid = fork();
	check(process->pid >= 0);
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		dup2(fds[1], STDOUT_FILENO);
		execl(CHECKED, "checked", rounds, seed_text, "256", NULL);
		_exit(127);
	}
	close(fds[1]);
	process->out = fds[0];
}

/* Waits until the process has a context and computes. */
static void await_computing(const struct process *process)
{
	char text[64] = "";

	check(read(process->out, text, sizeof(text) - 1) > 0);
	check(strstr(text, "computing"));
}

/* Returns: its exit status, or 128 + signal. */
static int end_process(struct process *process, int signal_number)
{
	int status;

	if (signal_number)
		kill(process->pid, signal_number);
	check_eq(waitpid(process->pid, &status, 0), process->pid);
	close(process->out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void start(const char *vm_lines)
{
	pair_start(&pair, &(struct pair_options){ .vm_lines = vm_lines });
}

static void await_children(unsigned int n)
{
	for (int ms = 0; pair_count_children(&pair) != n; ms += 10) {
		if (ms > WAIT_MS)
			test_fail(__FILE__, __LINE__, "%u children, not %u",
				pair_count_children(&pair), n);
		usleep(10000);
	}
}

/* Ends vgpud; broker and warm worker are all it has left by then. */
static void stop(void)
{
	await_children(2);
	pair_stop(&pair);
}

static void start_processes(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		start_process(&processes[i], "0", i);
	for (unsigned int i = 0; i < n; i++)
		await_computing(&processes[i]);
}

/*
 * The resources that vgpud holds
 */

struct holdings {
	unsigned int n_processes; /* broker and workers */
	unsigned int n_fds;	  /* of keeper and broker */
	unsigned int n_memories;  /* of them: memory shared with guests, and ledgers */
};

static void count_fds(pid_t pid, struct holdings *holdings)
{
	char path[64], link[128];
	struct dirent *entry;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	/* It ended just now, or shows them to root alone. */
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = '\0';
		holdings->n_fds++;
		holdings->n_memories += !strncmp(link, "/memfd:", strlen("/memfd:"));
	}
	closedir(dir);
}

static struct holdings look(pid_t broker)
{
	struct holdings holdings = { .n_processes = pair_count_children(&pair) };

	count_fds(pair.pid, &holdings);
	count_fds(broker, &holdings);
	return holdings;
}

static bool is_same(const struct holdings *a, const struct holdings *b)
{
	return a->n_processes == b->n_processes && a->n_fds == b->n_fds &&
	       a->n_memories == b->n_memories;
}

/* The memory that they hold when they release no more. */
static struct holdings settle(pid_t broker)
{
	struct holdings last = {}, now;

	for (unsigned int n_alike = 0; n_alike < 10; last = now) {
		usleep(50000);
		now = look(broker);
		n_alike = is_same(&now, &last) ? n_alike + 1 : 0;
	}
	return last;
}

static void await_holdings(pid_t broker, const struct holdings *before)
{
	struct holdings now = look(broker);

	for (int ms = 0; !is_same(&now, before); ms += 10) {
		if (ms > WAIT_MS)
			test_fail(__FILE__, __LINE__,
				"%u processes, %u descriptors, %u memories; before: %u, "
				"%u, %u",
				now.n_processes, now.n_fds, now.n_memories,
				before->n_processes, before->n_fds, before->n_memories);
		usleep(10000);
		now = look(broker);
	}
}

/* No worker is kept warm: one that comes late would be counted as a leak. */
TEST_SECONDS(sixty_four_processes_compute_at_once_and_leave_nothing, 240)
{
	struct pair_session sessions[N_PROCESSES];
	struct holdings before;
	pid_t broker;

	pair_start(&pair, &(struct pair_options){
				  .vgpud_lines = "warm-workers = 0\n",
				  .vm_lines = "size = 128M\n",
			  });
	/* The first session creates resources that are kept. */
	start_process(&processes[0], "1", 1);
	check_eq(end_process(&processes[0], 0), 0);
	pair_wait_log(&pair, "session ended", 1);
	broker = pair_find_broker(&pair);
	before = settle(broker);

	start_processes(N_PROCESSES);
	check_eq(pair_count_log(&pair, "session opened"), N_PROCESSES + 1);
	check_eq(pair_count_log(&pair, "session ended"), 1);
	for (unsigned int i = 0; i < N_PROCESSES; i++)
		check_eq(end_process(&processes[i], SIGTERM), 0);
	for (unsigned int i = 0; i < N_PROCESSES; i++) {
		pair_read_session(&pair, i + 1, &sessions[i]);
		check_str(sessions[i].reason, "closed");
		check(sessions[i].launches > 0);
		/* A worker that served is never handed out again. */
		for (unsigned int j = 0; j < i; j++)
			check(sessions[i].worker != sessions[j].worker);
	}
	await_holdings(broker, &before);
	pair_stop(&pair);
}

TEST_SECONDS(processes_that_are_killed_harm_no_other, 240)
{
	start("size = 128M\n");
	start_processes(N_SHOT_AT);
	for (unsigned int i = 0; i < N_SHOT_AT; i += 3)
		check_eq(end_process(&processes[i], SIGKILL), 128 + SIGKILL);
	pair_wait_log(&pair, "session ended", (N_SHOT_AT + 2) / 3);
	/* The places of the dead are free again. */
	for (unsigned int i = 0; i < N_SHOT_AT; i += 3)
		start_process(&processes[i], "3", i);
	for (unsigned int i = 0; i < N_SHOT_AT; i++)
		check_eq(end_process(&processes[i], i % 3 ? SIGTERM : 0), 0);
	stop();
}

TEST(one_process_more_than_allowed_is_refused)
{
	start("size = 128M\nmax-processes = 2\n");
	start_processes(2);
	start_process(&processes[2], "1", 2);
	check_eq(end_process(&processes[2], 0), 2);
	check_eq(pair_count_log(&pair, "refused: max-processes"), 1);
	for (unsigned int i = 0; i < 2; i++)
		check_eq(end_process(&processes[i], SIGTERM), 0);
	stop();
}

/*
 * A stopped process
 */

/* Returns: how often the threads of a process began to wait. */
static unsigned long count_switches(pid_t pid)
{
	char command[160], text[32] = "";
	FILE *pipe;

	snprintf(command, sizeof(command),
		"cat /proc/%d/task/*/status | awk '/^voluntary/ { n += $2 } END { print "
		"n }'",
		(int)pid);
	pipe = popen(command, "r");
	check(pipe != NULL && fgets(text, sizeof(text), pipe) != NULL);
	pclose(pipe);
	return strtoul(text, NULL, 10);
}

static pid_t find_worker(unsigned int pid)
{
	char line[1024], text[64];
	FILE *file = fopen(pair.log, "re");
	int worker = 0;

	snprintf(text, sizeof(text), " pid=%u ", pid);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "session opened") && strstr(line, text))
			worker = atoi(strstr(line, "worker=") + strlen("worker="));
	fclose(file);
	check(worker > 0);
	return worker;
}

TEST(a_stopped_process_is_not_dead_and_costs_nothing)
{
	struct process *process = &processes[0];
	unsigned long before;
	pid_t worker;

	start("size = 128M\n");
	start_process(process, "0", 1);
	await_computing(process);
	worker = find_worker(process->pid);
	check_eq(kill(process->pid, SIGSTOP), 0);
	/* Work in flight completes first; a worker that polled continuously
	 * would do so thousands of times each second. */
	do {
		before = count_switches(worker);
		usleep(1000000);
	} while (count_switches(worker) - before >= 50);
	check_eq(pair_count_log(&pair, "session ended"), 0);
	check_eq(kill(process->pid, SIGCONT), 0);
	check_eq(end_process(process, SIGTERM), 0);
	stop();
}

/*
 * An endless kernel
 */

TEST(an_endless_kernel_ends_with_its_process_and_affects_no_other)
{
	struct pair_session session;
	pid_t pid;

	start("size = 128M\n");
	start_process(&processes[0], "endless", 0);
	await_computing(&processes[0]);
	start_process(&processes[1], "5", 1);
	check_eq(end_process(&processes[1], 0), 0);
	pid = processes[0].pid;
	pair_wait_log(&pair, "session ended", 1);
	check_eq(pair_count_log(&pair, "session ended"), 1);
	check_eq(end_process(&processes[0], SIGKILL), 128 + SIGKILL);
	pair_read_session(&pair, 1, &session);
	check_eq(session.pid, pid);
	stop();
}

TEST(a_kernel_that_never_ends_is_cut_off_by_policy_and_only_its_process_suffers)
{
	pair_start(&pair, &(struct pair_options){
				  .vgpud_lines = "softgpu-kernel-timeout = 4\n",
				  .vm_lines = "size = 128M\n",
			  });
	start_process(&processes[1], "0", 1);
	await_computing(&processes[1]);
	start_process(&processes[0], "endless", 0);
	await_computing(&processes[0]);
	/* Its own call fails; it was not killed. */
	check_eq(end_process(&processes[0], 0), 2);
	check_eq(end_process(&processes[1], SIGTERM), 0);
	stop();
}

/*
 * Processes in a container
 */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

/* Separate namespaces, also for a user who is not root. Returns: whether it has them. */
static bool enter_container(void)
{
	uid_t uid = getuid();
	char text[64];

	if (unshare(CLONE_NEWNS | CLONE_NEWPID) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
		return false;
	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", (unsigned int)uid);
	write_text("/proc/self/uid_map", text);
	return true;
}

/* In separate namespaces: a root that has the socket at another place, and is read-only
 * to the program otherwise. */
static void __attribute__((__noreturn__)) run_contained(const char *root)
{
	char path[256];
	int fd, status;
	pid_t pid;

	if (!enter_container())
		_exit(77);
	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	snprintf(path, sizeof(path), "%s/gpu.sock", root);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || fd < 0 ||
		mount(pair.socket, path, NULL, MS_BIND, NULL) < 0)
		_exit(77);
	snprintf(path, sizeof(path), "%s/all", root);
	mkdir(path, 0700);
	if (mount("/", path, NULL, MS_BIND | MS_REC, NULL) < 0)
		_exit(77);
	snprintf(path, sizeof(path), "%s/all%s/gpu.sock", root, root);
	/* A later mount is not visible through an earlier bind. */
	close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	if (mount(pair.socket, path, NULL, MS_BIND, NULL) < 0)
		_exit(77);
	snprintf(path, sizeof(path), "%s/all", root);
	if (chroot(path) < 0 || chdir("/") < 0 || mount("proc", "/proc", "proc", 0, NULL))
		_exit(77);
	snprintf(path, sizeof(path), "%s/gpu.sock", root);
	setenv("VGPU_SOCKET", path, 1);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	execl(CHECKED, "checked", "5", "1", "256", NULL);
	_exit(127);
}

TEST(a_process_in_a_container_computes_and_is_known_by_the_hosts_pid)
{
	struct pair_session session;
	struct process outside;
	int status;
	pid_t pid;

	start("size = 128M\n");
	start_process(&outside, "0", 2);
	await_computing(&outside);
	fflush(NULL);
	pid = fork();
	if (!pid)
		run_contained(pair.dir);
	check_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		end_process(&outside, SIGTERM);
		stop();
		test_skip("no namespaces can be made here");
	}
	check_eq(status, 0);
	pair_read_session(&pair, 0, &session);
	/* Its own getpid() is 1; the host's view of it is another. */
	check(session.pid > 1);
	check_str(session.reason, "closed");
	check_eq(end_process(&outside, SIGTERM), 0);
	stop();
}
