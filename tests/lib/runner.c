/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test runner
 *
 * Each test runs in a forked child that leads its own process group and is a
 * subreaper, so that processes a test starts and forgets come to light: the
 * child counts its descriptors and its children before and after the test.
 *
 * Stdout is for the Test Anything Protocol alone, which Meson reads: what a test prints
 * there goes to stderr.
 */

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define EXIT_SKIP 77
#define REASON_SIZE 256

extern const struct test __start_test_section[], __stop_test_section[];

static char *skip_reason; /* shared with the processes of a test */
static char tmpdir[64];
static pid_t tmpdir_owner;

void test_fail(const char *file, int line, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(EXIT_FAILURE);
}

void test_skip(const char *format, ...)
{
	char reason[REASON_SIZE];
	va_list ap;

	va_start(ap, format);
	vsnprintf(reason, sizeof(reason), format, ap);
	va_end(ap);
	for (char *c = reason; *c; c++)
		if (*c == '\n')
			*c = ' ';
	fprintf(stderr, "skipped: %s\n", reason);
	fflush(NULL);
	if (skip_reason)
		memcpy(skip_reason, reason, sizeof(reason));
	_exit(EXIT_SKIP);
}

void test_skip_emulated(const char *lack)
{
	const char *emulator = getenv("MESON_EXE_WRAPPER");

	if (emulator && *emulator)
		test_skip("an emulator runs this program, and %s", lack);
}

static int remove_entry(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

const char *test_tmpdir(void)
{
	if (tmpdir_owner != getpid()) {
		snprintf(tmpdir, sizeof(tmpdir), "/tmp/vgpu-test-%d-XXXXXX", getpid());
		if (!mkdtemp(tmpdir))
			test_fail(__FILE__, __LINE__, "mkdtemp: %s", strerror(errno));
		tmpdir_owner = getpid();
	}
	return tmpdir;
}

/* Removes what test processes of that pid left in /tmp: only the parent survives a
 * test that failed. */
static void remove_tmpdir_of(pid_t pid)
{
	struct dirent *entry;
	char prefix[32], path[512];
	DIR *dir = opendir("/tmp");

	snprintf(prefix, sizeof(prefix), "vgpu-test-%d-", pid);
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		snprintf(path, sizeof(path), "/tmp/%s", entry->d_name);
		nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (dir)
		closedir(dir);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void print_fds(void)
{
	char link[64], target[256];
	ssize_t n;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		if (n > 0)
			fprintf(stderr, "  fd %d -> %.*s\n", fd, (int)n, target);
	}
}

/* Return: whether there is a child; it is named. */
static bool has_child(const struct test *test)
{
	siginfo_t info = { .si_pid = 0 };
	char path[64], name[32] = "";
	FILE *file;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", info.si_pid);
	file = info.si_pid ? fopen(path, "re") : NULL;
	if (file) {
		if (fscanf(file, "%31s", name) != 1)
			*name = '\0';
		fclose(file);
	}
	fprintf(stderr, "%s leaves a process behind (%s%s%s)\n", test->name,
		info.si_pid ? "ended, not reaped" : "still running", *name ? ": " : "",
		name);
	return true;
}

static void run_in_child(const struct test *test)
{
	int n_fds;

	dup2(STDERR_FILENO, STDOUT_FILENO);
	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(test->seconds);
	n_fds = count_fds();
	test->run();
	if (count_fds() != n_fds && !&test_keeps_descriptors) {
		fprintf(stderr, "%s leaves descriptors open: %d before, %d after\n",
			test->name, n_fds, count_fds());
		print_fds();
		_exit(EXIT_FAILURE);
	}
	if (has_child(test))
		_exit(EXIT_FAILURE);
	fflush(NULL);
	/* exit(), so that the leak checker of a sanitizer build has its say */
	exit(EXIT_SUCCESS);
}

/* Prints the case of that number. Returns: 0 passed or skipped, 1 failed. */
static int run_test(const struct test *test, int number)
{
	struct timespec start, end;
	bool passed, skipped;
	int status = 0;
	pid_t pid;

	fflush(NULL);
	skip_reason[0] = '\0';
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		printf("not ok %d - %s\n", number, test->name);
		return 1;
	}
	if (!pid)
		run_in_child(test);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	clock_gettime(CLOCK_MONOTONIC, &end);
	kill(-pid, SIGKILL);
	remove_tmpdir_of(pid);

	skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP;
	passed = skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: %s\n", test->name,
			WTERMSIG(status) == SIGALRM ? "took longer than its time limit"
						    : strsignal(WTERMSIG(status)));
	if (!passed)
		fprintf(stderr, "%s failed\n", test->name);
	printf("%s %d - %s", passed ? "ok" : "not ok", number, test->name);
	if (skipped)
		printf(" # SKIP %s", skip_reason);
	printf("\n# %.2f s\n",
		(end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9);
	fflush(stdout);
	return !passed;
}

static bool wanted(const struct test *test, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], test->name))
			return true;
	return argc == 0;
}

static int run_tests(int argc, char **argv)
{
	int n_tests = 0, n_done = 0, n_failed = 0;
	const struct test *test;

	for (test = __start_test_section; test < __stop_test_section; test++)
		n_tests += wanted(test, argc, argv);
	skip_reason = mmap(NULL, REASON_SIZE, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skip_reason == MAP_FAILED) {
		perror("mmap");
		return EXIT_FAILURE;
	}
	printf("TAP version 13\n1..%d\n", n_tests);
	for (test = __start_test_section; test < __stop_test_section; test++)
		if (wanted(test, argc, argv))
			n_failed += run_test(test, ++n_done);
	if (!n_tests || (argc && n_tests < argc))
		fprintf(stderr, "there are %d tests of these names\n", n_tests);
	return n_failed || !n_tests || n_tests < argc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	bool no_fork = argc > 2 && !strcmp(argv[1], "--no-fork");
	bool list = argc > 1 && !strcmp(argv[1], "--list");

	argc -= 1 + no_fork;
	argv += 1 + no_fork;
	if (!list && !no_fork)
		return run_tests(argc, argv);
	for (const struct test *test = __start_test_section; test < __stop_test_section;
		test++) {
		if (list)
			puts(test->name);
		else if (wanted(test, argc, argv))
			test->run();
	}
	return EXIT_SUCCESS;
}
