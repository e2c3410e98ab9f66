/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker log: the standard error of a worker
 *
 * Workers do not write to vgpud's log: a compromised worker could fill the disk or forge
 * lines. Each has a non-blocking pipe; here each line is made printable, charged to the
 * log budget of the worker's VM, and logged with the worker's name. The pipe of a worker
 * that exceeds the budget is read with pauses: it becomes full, and the worker drops its
 * lines.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker-log.h"
#include "broker/worker.h"
#include "vgpu/error.h"
#include "vgpud/clock.h"
#include "vgpud/container-of.h"

/* Bytes in a row, before other sources have their turn. */
#define WORKER_LOG_BATCH 16384
/* Pause after a worker has exceeded its budget. */
#define WORKER_LOG_REST_MS 100

static int handle_readable(struct loop_source *source);

/* Return: the level of a line of the worker's log, and the start of its text. */
static enum vgpu_log_level split(const char *line, const char **textp)
{
	char name[16];
	int n = 0, level;

	*textp = line;
	if (sscanf(line, "%*u.%*u vgpu-worker[%*d] %15[a-z]: %n", name, &n) != 1 || !n)
		return VGPU_LOG_WARNING;
	level = vgpu_log_level_from_string(name);
	if (level < VGPU_LOG_ERROR)
		return VGPU_LOG_WARNING;
	*textp = line + n;
	return level;
}

static bool take_log_line(const struct worker *worker)
{
	if (worker->channel)
		return account_take_log_line(worker->channel->vm->account);
	/* It has no guest yet. */
	return budget_take(&worker->broker->pool.log, clock_now());
}

static void write_line(struct worker_log *log)
{
	const struct worker *worker = log->worker;
	enum vgpu_log_level level;
	const char *text;

	log->line[log->n] = '\0';
	log->n = 0;
	level = split(log->line, &text);
	if (!vgpu_log_enabled(level))
		return;
	if (!take_log_line(worker)) {
		log->refused = true;
		return;
	}
	if (worker->channel)
		vgpu_log(level, "vm=%s channel=%u pid=%u worker=%d: %s",
			worker->channel->vm->config->name, worker->channel->index,
			worker->channel->record->pid, (int)worker->pid, text);
	else
		vgpu_log(level, "worker=%d: %s", (int)worker->pid, text);
}

static void take(struct worker_log *log, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n')
			write_line(log);
		else if (log->n < WORKER_LOG_LINE)
			log->line[log->n++] =
				bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
	}
}

/* Return: whether there may be more data. */
static bool read_some(struct worker_log *log)
{
	char bytes[4096];
	ssize_t n = read(log->fd, bytes, sizeof(bytes));

	if (n > 0)
		take(log, bytes, n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		loop_remove(&log->source);
	return n == (ssize_t)sizeof(bytes);
}

static int handle_rested(struct loop_timer *timer)
{
	struct worker_log *log = container_of(timer, struct worker_log, rest);

	return loop_add(
		&log->worker->broker->loop, &log->source, log->fd, handle_readable);
}

static int handle_readable(struct loop_source *source)
{
	struct worker_log *log = container_of(source, struct worker_log, source);

	log->refused = false;
	for (int n = 0; n < WORKER_LOG_BATCH && read_some(log); n += 4096)
		;
	if (!log->refused || !source->loop)
		return 0;
	loop_remove(source);
	loop_set_timer(&log->worker->broker->loop, &log->rest, WORKER_LOG_REST_MS,
		handle_rested);
	return 0;
}

int worker_log_init(struct worker_log *log, struct worker *worker, int fd)
{
	*log = (struct worker_log){ .worker = worker, .fd = fd };
	return loop_add(&worker->broker->loop, &log->source, fd, handle_readable);
}

void worker_log_deinit(struct worker_log *log)
{
	loop_remove(&log->source);
	loop_clear_timer(&log->rest);
	log->fd = vgpu_close(log->fd);
}

void worker_log_drain(struct worker_log *log)
{
	/* At most the size of a pipe: its child processes might still write. */
	for (int n = 0; n < 65536 && read_some(log); n += 4096)
		;
	if (log->n)
		write_line(log);
}
