/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep: which channels are reported, and which must not be
 */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vgpu/log.h"

#include "test.h"
#include "wire/sweep.h"

static unsigned int n_rings;

static void ring(struct shim_transport *transport, uint32_t number)
{
	check_eq(number, VGPU_DOORBELL_CONTROL);
	n_rings++;
}

static const struct shim_transport_ops ops = { .name = "test", .doorbell = ring };

/* Header and table, as at the start of the shared memory. */
static union {
	struct vgpu_shm_header header;
	uint8_t bytes[VGPU_SHM_TABLE_OFF + 4 * sizeof(struct vgpu_channel_entry)];
} memory;

static struct shim_transport transport = { .ops = &ops, .header = &memory.header };

static struct vgpu_channel_entry *entry_in(uint32_t state)
{
	struct vgpu_channel_entry *entry = shim_transport_table(&transport);

	memory.header.n_channels = 4;
	shim_sweep_identify(entry);
	entry->state = state;
	return entry;
}

/* The child of a test: ends at a command. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

/* The entry of a child, as the child itself would write it. */
static struct vgpu_channel_entry *entry_of(pid_t *pidp)
{
	struct vgpu_channel_entry *entry = entry_in(VGPU_CHANNEL_OPEN);
	int pipe_fds[2];

	test_skip_emulated("gives each process another start time than others see");
	check(!pipe(pipe_fds));
	*pidp = fork();
	if (!*pidp) {
		shim_sweep_identify(entry);
		if (write(pipe_fds[1], entry, sizeof(*entry)) != sizeof(*entry))
			_exit(1);
		pause();
		_exit(0);
	}
	check_eq(read(pipe_fds[0], entry, sizeof(*entry)), sizeof(*entry));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	check_eq(entry->pid, *pidp);
	return entry;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(living_process_is_not_reported)
{
	struct vgpu_channel_entry *entry = entry_in(VGPU_CHANNEL_OPEN);

	check_eq(shim_sweep(&transport), 0);
	check_eq(entry->state, VGPU_CHANNEL_OPEN);
	check_eq(n_rings, 0);
}

TEST(killed_process_is_reported_once)
{
	struct vgpu_channel_entry *entry;
	pid_t pid;

	entry = entry_of(&pid);
	check_eq(shim_sweep(&transport), 0);
	end_child(pid);
	check_eq(shim_sweep(&transport), 1);
	check_eq(entry->state, VGPU_CHANNEL_CLOSING);
	check_eq(n_rings, 1);
	check_eq(shim_sweep(&transport), 0);
}

TEST(zombie_is_reported)
{
	siginfo_t info;
	pid_t pid;

	entry_of(&pid);
	kill(pid, SIGKILL);
	check(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	check_eq(shim_sweep(&transport), 1);
	end_child(pid);
}

TEST(stopped_process_is_not_reported)
{
	siginfo_t info;
	pid_t pid;

	entry_of(&pid);
	kill(pid, SIGSTOP);
	check(!waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT));
	check_eq(shim_sweep(&transport), 0);
	end_child(pid);
}

TEST(reused_pid_is_detected_by_its_start_time)
{
	struct vgpu_channel_entry *entry = entry_in(VGPU_CHANNEL_OPEN);
	pid_t pid = start_child();

	entry->pid = (uint32_t)pid;
	entry->start_time -= 1;
	check_eq(shim_sweep(&transport), 1);
	end_child(pid);
}

TEST(process_of_another_boot_is_reported_whatever_its_pid)
{
	struct vgpu_channel_entry *entry = entry_in(VGPU_CHANNEL_DEAD);

	entry->boot_id[3] ^= 1;
	check_eq(shim_sweep(&transport), 1);
	check_eq(entry->state, VGPU_CHANNEL_CLOSING);
}

TEST(process_of_another_pid_namespace_is_not_reported)
{
	struct vgpu_channel_entry *entry;
	pid_t pid;

	entry = entry_of(&pid);
	end_child(pid);
	entry->pid_namespace += 1;
	check_eq(shim_sweep(&transport), 0);
}

TEST(entry_without_a_finished_hello_is_not_reported)
{
	static const uint32_t states[] = { VGPU_CHANNEL_FREE, VGPU_CHANNEL_CLAIMED,
		VGPU_CHANNEL_CLOSING };

	for (unsigned int i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct vgpu_channel_entry *entry = entry_in(states[i]);

		entry->boot_id[0] ^= 1;
		check_eq(shim_sweep(&transport), 0);
		check_eq(entry->state, states[i]);
	}
}
