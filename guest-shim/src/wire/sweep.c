/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep: reports channels whose process has ended
 *
 * Through sysfs the host does not learn that a process of the guest was killed. So live
 * processes report dead ones: each when it opens a channel, and a thread in each once a
 * second. A process counts as ended only if that is certain: its pid does not exist, or
 * belongs to a process with another start time, or to a zombie without threads; or the
 * entry is of another boot of the guest. A stopped process is alive, and a process in
 * another pid namespace is left to the processes of that namespace.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#include "wire/proc.h"
#include "wire/sweep.h"

#define SWEEP_SECONDS 1

/* The part of an entry that identifies its process. */
struct identity {
	uint32_t pid;
	uint64_t pid_namespace;
	uint64_t start_time;
	uint8_t boot_id[16];
};

static void read_boot_id(uint8_t boot_id[16])
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[40] = "";
	int digits = 0;

	memset(boot_id, 0, 16);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	for (const char *c = text; *c && digits < 32; c++) {
		char digit[2] = { *c };

		if (*c == '-' || *c == '\n')
			continue;
		boot_id[digits / 2] =
			(uint8_t)(boot_id[digits / 2] << 4 | strtoul(digit, NULL, 16));
		digits++;
	}
}

static void identify(struct identity *identity)
{
	struct shim_proc_stat stat = {};

	*identity = (struct identity){ .pid = (uint32_t)getpid() };
	identity->pid_namespace = shim_proc_pid_namespace();
	shim_proc_read_stat(identity->pid, &stat);
	identity->start_time = stat.start_time;
	read_boot_id(identity->boot_id);
}

void shim_sweep_identify(struct vgpu_channel_entry *entry)
{
	struct identity self;

	identify(&self);
	entry->pid = self.pid;
	entry->pid_namespace = self.pid_namespace;
	entry->start_time = self.start_time;
	memcpy(entry->boot_id, self.boot_id, sizeof(entry->boot_id));
}

static bool is_gone(const struct identity *other, const struct identity *self)
{
	struct shim_proc_stat stat;

	if (memcmp(other->boot_id, self->boot_id, sizeof(self->boot_id)))
		return true;
	if (other->pid_namespace != self->pid_namespace || !other->pid_namespace ||
		!other->start_time)
		return false;
	if (kill((pid_t)other->pid, 0) && errno == ESRCH)
		return true;
	/* Unreadable though it exists: /proc may hide the processes of others. */
	if (!shim_proc_read_stat(other->pid, &stat))
		return false;
	/* Threads may outlive the first one, which is then a zombie among them. */
	return stat.start_time != other->start_time ||
	       (stat.state == 'Z' && stat.n_threads <= 1);
}

static struct identity read_identity(const struct vgpu_channel_entry *entry)
{
	struct identity identity = {
		.pid = entry->pid,
		.pid_namespace = entry->pid_namespace,
		.start_time = entry->start_time,
	};

	memcpy(identity.boot_id, entry->boot_id, sizeof(identity.boot_id));
	return identity;
}

static bool same_process(const struct identity *a, const struct identity *b)
{
	return a->pid == b->pid && a->pid_namespace == b->pid_namespace &&
	       a->start_time == b->start_time &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

/* Another process may take the entry over meanwhile: its identity is read again before
 * the step, which succeeds only from the state seen first. */
static bool report_if_gone(struct vgpu_channel_entry *entry, const struct identity *self)
{
	/* Partner: the release store of OPENING, after the hello was filled in. */
	uint32_t state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	struct identity other, again;

	if (state != VGPU_CHANNEL_OPENING && state != VGPU_CHANNEL_OPEN &&
		state != VGPU_CHANNEL_REFUSED && state != VGPU_CHANNEL_DEAD)
		return false;
	other = read_identity(entry);
	if (!is_gone(&other, self))
		return false;
	again = read_identity(entry);
	return same_process(&other, &again) &&
	       __atomic_compare_exchange_n(&entry->state, &state, VGPU_CHANNEL_CLOSING,
		       false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* One process alone on its transport: the host sees its socket close. A kernel driver
 * tells the host of each end. */
static bool is_alone(const struct shim_transport *transport)
{
	return transport->ops->offer || transport->header->n_channels == 1;
}

unsigned int shim_sweep(struct shim_transport *transport)
{
	struct vgpu_channel_entry *table = shim_transport_table(transport);
	unsigned int n_reported = 0;
	struct identity self;

	if (is_alone(transport))
		return 0;
	identify(&self);
	for (uint32_t i = 0; i < transport->header->n_channels; i++) {
		if (!report_if_gone(&table[i], &self))
			continue;
		vgpu_log_info("the process %u of channel %u is gone", table[i].pid, i);
		n_reported++;
	}
	if (n_reported)
		transport->ops->doorbell(transport, VGPU_DOORBELL_CONTROL);
	return n_reported;
}

static __attribute__((__noreturn__)) void *sweep_for_ever(void *userdata)
{
	for (;;) {
		sleep(SWEEP_SECONDS);
		shim_sweep(userdata);
	}
}

void shim_sweep_start(struct shim_transport *transport)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	if (is_alone(transport))
		return;
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attributes, sweep_for_ever, transport);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (r)
		vgpu_log_warning(
			"nobody will report processes that are killed: %s", strerror(r));
}
