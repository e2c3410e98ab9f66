/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private vgpud, on a processor of its own
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define READY_MS 30000
#define STEP_MS 5

static void path_of(
	char *buffer, size_t size, const struct bench_host *host, const char *name)
{
	snprintf(buffer, size, "%s/%s", host->dir, name);
}

/* Room for a pinned gibibyte beside what every process gets. */
static int write_config(const struct bench_host *host, const char *driver)
{
	char path[96];
	FILE *file;

	path_of(path, sizeof(path), host, "vgpud.conf");
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file,
		"[vgpud]\ndriver = %s\nsoftgpu-memory = 4G\n"
		"[vm bench]\ntransport = socket\nsocket = %s\nsize = 4G\n",
		driver, host->socket);
	return fclose(file) ? -errno : 0;
}

static void run(const struct bench_host *host, int cpu)
{
	char config[96], log[96];
	int fd;

	path_of(config, sizeof(config), host, "vgpud.conf");
	path_of(log, sizeof(log), host, "log");
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || bench_pin(cpu) < 0)
		_exit(126);
	execl(BENCH_VGPUD, "vgpud", "--config", config, NULL);
	fprintf(stderr, "%s: %s\n", BENCH_VGPUD, strerror(errno));
	_exit(127);
}

/* Whether the log has the line; prints all of it if there is nothing to wait for. */
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

int bench_host_start(struct bench_host *host, const char *driver, int cpu)
{
	static const struct timespec step = { .tv_nsec = STEP_MS * 1000000l };

	strcpy(host->dir, "/tmp/vgpu-bench.XXXXXX");
	host->pid = 0;
	if (!mkdtemp(host->dir)) {
		host->dir[0] = '\0';
		fprintf(stderr, "vgpu-bench: no folder in /tmp: %s\n", strerror(errno));
		return -1;
	}
	path_of(host->socket, sizeof(host->socket), host, "socket");
	if (write_config(host, driver) < 0)
		return -1;
	host->pid = fork();
	if (!host->pid)
		run(host, cpu);
	for (int ms = 0; host->pid > 0 && ms < READY_MS; ms += STEP_MS) {
		if (is_ready(host, false))
			return 0;
		if (waitpid(host->pid, NULL, WNOHANG) == host->pid)
			host->pid = 0;
		nanosleep(&step, NULL);
	}
	fprintf(stderr, "vgpu-bench: no vgpud with driver %s:\n", driver);
	is_ready(host, true);
	return -1;
}

void bench_host_stop(struct bench_host *host)
{
	static const char *const names[] = { "vgpud.conf", "log", "socket" };
	char path[96];

	if (host->pid > 0) {
		kill(host->pid, SIGTERM);
		waitpid(host->pid, NULL, 0);
	}
	for (size_t i = 0; host->dir[0] && i < sizeof(names) / sizeof(names[0]); i++) {
		path_of(path, sizeof(path), host, names[i]);
		unlink(path);
	}
	if (host->dir[0])
		rmdir(host->dir);
}
