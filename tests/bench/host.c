/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private vgpud, on a separate processor
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define READY_MS 30000
#define END_MS 20000
#define STEP_MS 5

static void path_of(
	char *buffer, size_t size, const struct bench_host *host, const char *name)
{
	snprintf(buffer, size, "%s/%s", host->dir, name);
}

static bool wants_hugepages;

void bench_host_want_hugepages(void)
{
	wants_hugepages = true;
}

/* Room for a pinned gibibyte in addition to the memory that every process gets. */
static int write_config(const struct bench_host *host, const char *driver, int n_warm)
{
	char path[96];
	FILE *file;

	path_of(path, sizeof(path), host, "vgpud.conf");
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file,
		"[vgpud]\ndriver = %s\nsoftgpu-memory = 4G\nwarm-workers = %d\n"
		"allow-unprivileged = yes\n"
		"[vm bench]\ntransport = socket\nsocket = %s\nsize = 4G\n"
		"hugepages = %s\n",
		driver, n_warm, host->socket, wants_hugepages ? "transparent" : "no");
	return fclose(file) ? -errno : 0;
}

static void run(const struct bench_host *host, int cpu)
{
	char config[96], log[96];
	int fd;

	path_of(config, sizeof(config), host, "vgpud.conf");
	path_of(log, sizeof(log), host, "log");
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 ||
		bench_pin(cpu) < 0)
		_exit(126);
	execl(BENCH_VGPUD, "vgpud", "--config", config, NULL);
	fprintf(stderr, "%s: %s\n", BENCH_VGPUD, strerror(errno));
	_exit(127);
}

/* Whether the log has the line; prints the whole log if the line can no longer come. */
static bool is_ready(const struct bench_host *host, bool print)
{
	char path[96], line[512];
	bool ready = false;
	FILE *file;

	path_of(path, sizeof(path), host, "log");
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		ready = ready || strstr(line, "vgpud ready");
		if (print)
			fputs(line, stderr);
	}
	if (file)
		fclose(file);
	return ready;
}

int bench_host_start(struct bench_host *host, const char *driver, int cpu, int n_warm)
{
	strcpy(host->dir, "/tmp/vgpu-bench.XXXXXX");
	host->pid = 0;
	if (!mkdtemp(host->dir)) {
		host->dir[0] = '\0';
		fprintf(stderr, "vgpu-bench: no folder in /tmp: %s\n", strerror(errno));
		return -1;
	}
	path_of(host->socket, sizeof(host->socket), host, "socket");
	if (write_config(host, driver, n_warm) < 0)
		return -1;
	host->pid = bench_fork();
	if (!host->pid)
		run(host, cpu);
	for (int ms = 0; host->pid > 0 && ms < READY_MS; ms += STEP_MS) {
		if (is_ready(host, false)) {
			/* A program caches results of a host: the cache of another
			 * run must not be used. */
			setenv("XDG_RUNTIME_DIR", host->dir, 1);
			setenv("VGPU_SOCKET", host->socket, 1);
			return 0;
		}
		if (waitpid(host->pid, NULL, WNOHANG) == host->pid)
			host->pid = 0;
		usleep(STEP_MS * 1000);
	}
	fprintf(stderr, "vgpu-bench: no vgpud with driver %s:\n", driver);
	is_ready(host, true);
	return -1;
}

/* Asks it to end; one that does not is killed, and its workers with it. */
static void end(pid_t pid)
{
	kill(pid, SIGTERM);
	for (int ms = 0; ms < END_MS; ms += STEP_MS) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		usleep(STEP_MS * 1000);
	}
	fprintf(stderr, "vgpu-bench: vgpud does not end: killed\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int remove_one(const char *path, const struct stat *, int, struct FTW *)
{
	return remove(path);
}

void bench_host_stop(struct bench_host *host)
{
	if (host->pid > 0)
		end(host->pid);
	if (host->dir[0])
		nftw(host->dir, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}
