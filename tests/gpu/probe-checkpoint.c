/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: whether the driver checkpoints a process such as a worker is
 *
 * The subject is this program once more, with a context and registered memory.
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

typedef CUresult (*checkpoint_step)(int pid, void *arguments);

int probe_checkpoint_subject(void)
{
	CUcontext context;
	CUdeviceptr p;
	void *memory;

	memory = mmap(
		NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cuInit(0) || cuCtxCreate(&context, NULL, 0, 0) || cuMemAlloc(&p, 2 << 20) ||
		cuMemHostRegister(memory, 2 << 20, CU_MEMHOSTREGISTER_PORTABLE))
		return EXIT_FAILURE;
	if (write(STDOUT_FILENO, "", 1) != 1)
		return EXIT_FAILURE;
	pause();
	return EXIT_SUCCESS;
}

/* Returns: the pid of a subject that is ready, or -1. */
static pid_t start_subject(void)
{
	int fds[2];
	pid_t pid;
	char byte;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		execl("/proc/self/exe", "probe", "--checkpoint-subject", NULL);
		_exit(EXIT_FAILURE);
	}
	close(fds[1]);
	if (pid > 0 && read(fds[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(fds[0]);
	return pid;
}

static void run_steps(struct probe *probe, pid_t pid)
{
	static const char *const steps[] = { "Lock", "Checkpoint", "Restore", "Unlock" };
	/* Each step takes a pointer to a structure of at most this size; zeros are the
	 * documented defaults. */
	uint64_t arguments[32];
	checkpoint_step step;
	char symbol[64], name[64];
	double start;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		snprintf(symbol, sizeof(symbol), "cuCheckpointProcess%s", steps[i]);
		snprintf(name, sizeof(name), "checkpoint_%s", steps[i]);
		step = (checkpoint_step)probe_symbol(probe, symbol);
		if (!step) {
			probe_text(probe, name, "no such function");
			return;
		}
		memset(arguments, 0, sizeof(arguments));
		start = probe_now();
		if (!probe_ok(probe, name, step(pid, arguments)))
			return;
		probe_number(probe, name, (probe_now() - start) * 1e9, "ns");
	}
}

void probe_checkpoint(struct probe *probe)
{
	pid_t pid = start_subject();

	if (pid < 0) {
		probe_text(probe, "checkpoint", "the subject did not start");
		return;
	}
	run_steps(probe, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
