/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private vgpud for one test
 */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "test.h"

/* Far beyond what a loaded machine needs; the test's own limit is the real one. */
#define PAIR_WAIT_MS 30000
#define PAIR_STEP_MS 5

static void pause_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000l }, NULL);
}

static const char *vgpud_path(void)
{
	const char *path = getenv("VGPU_TEST_VGPUD");

	return path ? path : PAIR_VGPUD;
}

static void write_config(const struct pair *pair, const struct pair_options *options)
{
	const char *transport = options->transport ? options->transport : "socket";
	FILE *file = fopen(pair->config, "w");

	check(file != NULL);
	fprintf(file, "[vgpud]\ndriver = %s\n",
		options->driver ? options->driver : "soft");
	if (options->worker)
		fprintf(file, "worker = %s\n", options->worker);
	if (options->vgpud_lines)
		fputs(options->vgpud_lines, file);
	fprintf(file, "[vm test]\ntransport = %s\n", transport);
	if (strcmp(transport, "plain"))
		fprintf(file, "socket = %s\n", pair->socket);
	if (options->vm_lines)
		fputs(options->vm_lines, file);
	if (options->sections)
		fputs(options->sections, file);
	check_eq(fclose(file), 0);
}

void pair_spawn(struct pair *pair, const struct pair_options *options)
{
	static const struct pair_options defaults;
	int fd;

	memset(pair, 0, sizeof(*pair));
	snprintf(pair->dir, sizeof(pair->dir), "%s", test_tmpdir());
	snprintf(pair->socket, sizeof(pair->socket), "%s/socket", pair->dir);
	snprintf(pair->config, sizeof(pair->config), "%s/vgpud.conf", pair->dir);
	snprintf(pair->log, sizeof(pair->log), "%s/vgpud.log", pair->dir);
	write_config(pair, options ? options : &defaults);

	fflush(NULL);
	pair->pid = fork();
	check(pair->pid >= 0);
	if (pair->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(pair->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	/* A level of the caller's could hide the lines that tests read. */
	unsetenv("VGPUD_LOG");
	if (options && options->before_fn)
		options->before_fn();
	execl(vgpud_path(), "vgpud", "--config", pair->config,
		options ? options->argument : NULL, NULL);
	perror(vgpud_path());
	_exit(127);
}

/* Whether vgpud is still there; if not, it is reaped. */
static bool is_alive(struct pair *pair)
{
	if (pair->pid && waitpid(pair->pid, NULL, WNOHANG) == pair->pid)
		pair->pid = 0;
	return pair->pid != 0;
}

void pair_start(struct pair *pair, const struct pair_options *options)
{
	pair_spawn(pair, options);
	for (int ms = 0; !pair_count_log(pair, "vgpud ready"); ms += PAIR_STEP_MS) {
		if (!is_alive(pair) || ms > PAIR_WAIT_MS) {
			pair_print_log(pair);
			test_fail(__FILE__, __LINE__, "vgpud does not get ready");
		}
		pause_ms(PAIR_STEP_MS);
	}
	check_eq(setenv("VGPU_SOCKET", pair->socket, 1), 0);
	/* Nothing is remembered outside of the test. */
	check_eq(setenv("XDG_RUNTIME_DIR", pair->dir, 1), 0);
}

int pair_wait_exit(struct pair *pair)
{
	int status = 0;

	check_eq(waitpid(pair->pid, &status, 0), pair->pid);
	pair->pid = 0;
	return status;
}

void pair_stop(struct pair *pair)
{
	char path[160];
	int status;

	check_eq(kill(pair->pid, SIGTERM), 0);
	status = pair_wait_exit(pair);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		pair_print_log(pair);
		test_fail(__FILE__, __LINE__, "vgpud ended with status %#x", status);
	}
	/* Whichever of its processes said so: only the first one's exit status is seen.
	 */
	if (pair_count_log(pair, "Sanitizer") || pair_count_log(pair, "runtime error:")) {
		pair_print_log(pair);
		test_fail(
			__FILE__, __LINE__, "a sanitizer complains in vgpud or a worker");
	}
	/* The test process is a subreaper: a forgotten worker would be its child now, and
	 * the runner would see it. */
	check(access(pair->socket, F_OK) < 0);
	snprintf(path, sizeof(path), "%s.lock", pair->socket);
	check(access(path, F_OK) < 0);
	unsetenv("VGPU_SOCKET");
}

/* Calls fn with each line; stops when it returns true. Returns: whether it did. */
static bool each_line(const struct pair *pair,
	bool (*fn)(const char *line, void *userdata), void *userdata)
{
	FILE *file = fopen(pair->log, "re");
	char line[4096];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strchr(line, '\n') && fn(line, userdata);
	if (file)
		fclose(file);
	return found;
}

struct counting {
	const char *text;
	unsigned int n;
};

static bool count_line(const char *line, void *userdata)
{
	struct counting *counting = userdata;

	counting->n += strstr(line, counting->text) != NULL;
	return false;
}

unsigned int pair_count_log(const struct pair *pair, const char *text)
{
	struct counting counting = { .text = text };

	each_line(pair, count_line, &counting);
	return counting.n;
}

void pair_wait_log(const struct pair *pair, const char *text, unsigned int n)
{
	for (int ms = 0; pair_count_log(pair, text) < n; ms += PAIR_STEP_MS) {
		if (ms > PAIR_WAIT_MS) {
			pair_print_log(pair);
			test_fail(__FILE__, __LINE__, "the log never has %u × \"%s\"", n,
				text);
		}
		pause_ms(PAIR_STEP_MS);
	}
}

struct searching {
	unsigned int n_before;
	char line[4096];
};

static bool find_session(const char *line, void *userdata)
{
	struct searching *searching = userdata;
	const char *start = strstr(line, "session ended vm=");

	if (!start || searching->n_before--)
		return false;
	snprintf(searching->line, sizeof(searching->line), "%s", start);
	return true;
}

void pair_read_session(
	const struct pair *pair, unsigned int n, struct pair_session *session)
{
	struct searching searching = { .n_before = n };
	int n_fields;

	pair_wait_log(pair, "session ended vm=", n + 1);
	check(each_line(pair, find_session, &searching));
	memset(session, 0, sizeof(*session));
	n_fields = sscanf(searching.line,
		"session ended vm=%63s channel=%u pid=%u launches=%" SCNu64
		" copies_h2d=%" SCNu64 " copies_d2h=%" SCNu64 " copies_d2d=%" SCNu64
		" memsets=%" SCNu64 " bytes_h2d=%" SCNu64 " bytes_d2h=%" SCNu64
		" calls=%" SCNu64 " refused_async=%" SCNu64 " slow_calls=%" SCNu64
		" images_sent=%" SCNu64 " images_found=%" SCNu64 " image_bytes=%" SCNu64
		" worker=%d reason=%31s",
		session->vm, &session->channel, &session->pid, &session->launches,
		&session->copies_h2d, &session->copies_d2h, &session->copies_d2d,
		&session->memsets, &session->bytes_h2d, &session->bytes_d2h,
		&session->calls, &session->refused_async, &session->slow_calls,
		&session->images_sent, &session->images_found, &session->image_bytes,
		&session->worker, session->reason);
	check_eq(n_fields, 18);
}

static bool print_line(const char *line, void *userdata)
{
	fprintf(stderr, "  vgpud: %s", line);
	return false;
}

void pair_print_log(const struct pair *pair)
{
	each_line(pair, print_line, NULL);
}

/* Returns: the parent of a process, or 0. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *end;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	/* The name may hold anything, the last ')' ends it. */
	end = strrchr(text, ')');
	return end && strlen(end) > 4 ? atoi(end + 4) : 0;
}

unsigned int pair_count_children(const struct pair *pair)
{
	struct dirent *entry;
	unsigned int n = 0;
	pid_t pid;
	DIR *dir;

	dir = opendir("/proc");
	check(dir != NULL);
	while ((entry = readdir(dir)))
		for (pid = atoi(entry->d_name); pid > 1; pid = parent_of(pid))
			if (parent_of(pid) == pair->pid) {
				n++;
				break;
			}
	closedir(dir);
	return n;
}

/* Whether a process has that name, which is that of its first thread. */
static bool has_name(pid_t pid, const char *name)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = '\0';
	fclose(file);
	return !strcmp(text, name);
}

static pid_t look_for_broker(const struct pair *pair)
{
	struct dirent *entry;
	pid_t broker = 0;
	DIR *dir;

	dir = opendir("/proc");
	check(dir != NULL);
	while (!broker && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 1 && parent_of(pid) == pair->pid &&
			has_name(pid, "vgpud-broker"))
			broker = pid;
	}
	closedir(dir);
	return broker;
}

pid_t pair_find_broker(const struct pair *pair)
{
	pid_t broker = 0;

	for (int waited = 0; !broker && waited < PAIR_WAIT_MS; waited += PAIR_STEP_MS) {
		broker = look_for_broker(pair);
		if (!broker)
			pause_ms(PAIR_STEP_MS);
	}
	check(broker > 0);
	return broker;
}

void pair_needs_descriptors(void)
{
	if (geteuid())
		test_skip("only root can see the descriptors of vgpud");
}
