/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record: the verb that writes all calls of a process to a file
 *
 * The worker of that process writes into a socket, and this program what comes out of it
 * into the file, up to a limit. Whatever ends that, the guest goes on. A worker may be
 * compromised: its bytes are only looked at by control/recording.c, which trusts none.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/recording.h"
#include "ctl/client.h"
#include "ctl/output.h"
#include "ctl/seconds.h"
#include "vgpu/cleanup.h"
#include "vgpud/clock.h"
#include "vgpud/config.h"

/* Behind the name of the file until it is complete. */
#define PART ".part"
/* How often a vgpud that forgets is asked again, and the pause in between. */
#define ATTEMPTS 100u
#define PAUSE_US 100000

/* Why a recording has ended. */
enum record_end {
	RECORD_END_PROCESS,
	RECORD_END_WORKER,
	RECORD_END_SIZE,
	RECORD_END_SECONDS,
	RECORD_END_INTERRUPT,
	RECORD_END_FILE,
	RECORD_END_LOST, /* vgpud has forgotten it before it began */
};

struct record_run {
	struct client client;
	const struct ctl_options *options;
	const char *vm;
	const char *part;
	int file;
	int socket;
	uint64_t size;
	uint64_t size_max;
	unsigned int seconds; /* 0: no limit */
	enum record_end end;
	int error; /* with RECORD_END_FILE: an errno */
	struct recording_header header;
	struct recording_summary summary;
};

static volatile sig_atomic_t is_interrupted;

static void handle_signal(int number)
{
	(void)number;
	is_interrupted = 1;
}

/* Signals only arrive in wait_for_bytes(). */
static void catch_signals(sigset_t *before)
{
	const struct sigaction action = { .sa_handler = handle_signal };
	sigset_t set;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, before);
	sigdelset(before, SIGINT);
	sigdelset(before, SIGTERM);
}

/* Asks vgpud for the next process. */
static enum ctl_status ask(struct record_run *run, uint32_t pid)
{
	const struct ctl_options *options = run->options;
	VgpuCtl__Record record = VGPU_CTL__RECORD__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;
	VgpuCtl__Reply *reply;

	status = client_open(&run->client, options->socket);
	if (!status && !(run->client.hello->features & CTL_FEATURE_RECORD))
		status = ctl_fail(CTL_FAILED, "this vgpud is older and cannot record");
	if (!status) {
		record.vm = (char *)run->vm;
		record.pid = pid;
		record.command = (char *)(options->command ? options->command : "");
		request.verb_case = VGPU_CTL__REQUEST__VERB_RECORD;
		request.record = &record;
		status = client_ask(&run->client, &request, &reply);
		ctl_reply_freep(&reply);
	}
	run->socket = client_take_descriptor(&run->client);
	client_close(&run->client);
	if (!status && run->socket < 0)
		status = ctl_fail(CTL_FAILED, "vgpud's reply has no socket");
	return status;
}

/* Return: whether there are bytes, or the end; else the reason is set. */
static bool wait_for_bytes(struct record_run *run, int64_t until, const sigset_t *mask)
{
	struct pollfd poller = { .fd = run->socket, .events = POLLIN };
	struct timespec left;

	for (;;) {
		const int64_t ms = until - clock_now();
		int r;

		if (is_interrupted || (until && ms <= 0)) {
			run->end = is_interrupted ? RECORD_END_INTERRUPT
						  : RECORD_END_SECONDS;
			return false;
		}
		left = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
		r = ppoll(&poller, 1, until ? &left : NULL, mask);
		if (r > 0)
			return true;
	}
}

/* Return: whether all was written. */
static bool write_all(struct record_run *run, const uint8_t *bytes, size_t size)
{
	while (size) {
		const ssize_t n = write(run->file, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			run->end = RECORD_END_FILE;
			run->error = n ? errno : ENOSPC;
			return false;
		}
		bytes += n;
		size -= (size_t)n;
		run->size += (uint64_t)n;
	}
	return true;
}

/* Copies until something ends it. */
static void copy(struct record_run *run, const sigset_t *mask)
{
	static uint8_t buffer[256 << 10];
	int64_t until = 0;

	while (wait_for_bytes(run, until, mask)) {
		ssize_t n = read(run->socket, buffer, sizeof(buffer));

		if (n <= 0) {
			run->end = run->size ? RECORD_END_WORKER : RECORD_END_LOST;
			return;
		}
		/* The time begins with the process. */
		if (!run->size && run->seconds)
			until = clock_now() + (int64_t)run->seconds * 1000;
		if ((uint64_t)n > run->size_max - run->size) {
			run->end = RECORD_END_SIZE;
			write_all(run, buffer, run->size_max - run->size);
			return;
		}
		if (!write_all(run, buffer, (size_t)n))
			return;
	}
}

/* Waits for a process and records it. A vgpud that was replaced is asked again. */
static enum ctl_status record(struct record_run *run, uint32_t pid)
{
	unsigned int left = ATTEMPTS;
	enum ctl_status status;
	sigset_t mask;

	catch_signals(&mask);
	for (;;) {
		status = ask(run, pid);
		if (status)
			return status;
		if (left == ATTEMPTS)
			fprintf(stderr, "vgpuctl: waiting for the next process of %s\n",
				run->vm);
		copy(run, &mask);
		run->socket = vgpu_close(run->socket);
		if (run->end != RECORD_END_LOST)
			return CTL_OK;
		if (!left--)
			return ctl_fail(CTL_FAILED,
				"vgpud forgets the recording before it begins");
		usleep(PAUSE_US);
	}
}

/* Looks at what there is, and drops a record that is not complete. */
static enum ctl_status examine(struct record_run *run)
{
	struct recording recording;
	void *bytes;
	int r;

	if (!run->size)
		return ctl_fail(CTL_FAILED, "no process has begun: nothing is recorded");
	bytes = mmap(NULL, run->size, PROT_READ, MAP_SHARED, run->file, 0);
	if (bytes == MAP_FAILED)
		return output_unwritten(run->part, -errno);
	r = recording_open(&recording, bytes, run->size, &run->header);
	if (!r)
		r = recording_summarise(&recording, &run->header, &run->summary);
	munmap(bytes, run->size);
	if (r == RECORDING_E_BROKEN)
		return ctl_fail(CTL_FAILED, "the worker wrote no recording: %s",
			recording.reason);
	if (!run->header.version)
		return ctl_fail(CTL_FAILED, "the file has no room for a header");
	if (r == RECORDING_E_CUT && ftruncate(run->file, (off_t)recording.at) < 0)
		return output_unwritten(run->part, -errno);
	if (r == RECORDING_E_CUT)
		run->size = recording.at;
	if (run->end == RECORD_END_WORKER && run->summary.is_closed)
		run->end = RECORD_END_PROCESS;
	return CTL_OK;
}

static const char *end_word(const struct record_run *run)
{
	static const char *const words[] = {
		[RECORD_END_PROCESS] = "process",
		[RECORD_END_WORKER] = "worker",
		[RECORD_END_SIZE] = "size",
		[RECORD_END_SECONDS] = "seconds",
		[RECORD_END_INTERRUPT] = "interrupt",
		[RECORD_END_FILE] = "file",
	};

	return words[run->end];
}

static const char *end_sentence(const struct record_run *run)
{
	static const char *const sentences[] = {
		[RECORD_END_PROCESS] = "to its end",
		[RECORD_END_WORKER] = "until its worker was killed, or gave up because "
				      "nobody read",
		[RECORD_END_SIZE] = "until the file had the size of --size; the process "
				    "goes on",
		[RECORD_END_SECONDS] = "until the time of --seconds was over; the "
				       "process goes on",
		[RECORD_END_INTERRUPT] = "until the interrupt; the process goes on",
		[RECORD_END_FILE] = "until the file could not be written; the process "
				    "goes on",
	};

	return sentences[run->end];
}

static enum ctl_status report(const struct record_run *run)
{
	const struct control_assign *assign = &run->header.assign;
	const struct recording_summary *summary = &run->summary;

	if (run->options->is_json)
		return output_json(json_pack("{s:s,s:s,s:o,s:o,s:o,s:s,s:b,s:b}", "file",
			run->options->output, "name", assign->guest_comm, "process",
			output_number(assign->guest_pid), "calls",
			output_number(summary->n_calls), "bytes",
			output_number(run->size), "end", end_word(run), "uncovered",
			summary->is_uncovered, "overlapping", summary->is_overlapping));
	printf("%s: %" PRIu64 " calls of %s, process %u, %s; %" PRIu64 " bytes\n",
		run->options->output, summary->n_calls, assign->guest_comm,
		assign->guest_pid, end_sentence(run), run->size);
	if (summary->is_uncovered)
		puts("kernels may have read memory of the host that is not recorded: it "
		     "is too much");
	if (summary->is_overlapping)
		puts("calls of several threads ran at the same time: a replay may differ "
		     "there");
	return output_end(CTL_OK);
}

static enum ctl_status open_file(struct record_run *run)
{
	run->file = open(run->part,
		O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	/* Of a file that exists the mode is another one. */
	if (run->file < 0 || fchmod(run->file, 0600) < 0)
		return output_unwritten(run->part, -errno);
	return CTL_OK;
}

static enum ctl_status record_to_file(struct record_run *run, uint32_t pid)
{
	enum ctl_status status = open_file(run);

	if (!status)
		status = record(run, pid);
	if (!status)
		status = examine(run);
	if (!status && rename(run->part, run->options->output) < 0)
		status = output_unwritten(run->options->output, -errno);
	if (status && run->file >= 0)
		unlink(run->part);
	vgpu_close(run->file);
	if (!status)
		status = report(run);
	if (!status && run->end == RECORD_END_FILE)
		status = output_unwritten(run->options->output, -run->error);
	return status;
}

static enum ctl_status parse_pid(const char *text, uint32_t *pidp)
{
	char *end;
	unsigned long pid;

	*pidp = 0;
	if (!text)
		return CTL_OK;
	errno = 0;
	pid = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || !pid || pid > INT32_MAX)
		return ctl_fail(CTL_USAGE, "'%s' is no process", text);
	*pidp = (uint32_t)pid;
	return CTL_OK;
}

enum ctl_status ctl_record(const struct ctl_options *options, char **arguments)
{
	_vgpu_cleanup_(vgpu_freep) char *part = NULL;
	struct record_run run = {
		.client = CLIENT_NULL,
		.options = options,
		.vm = arguments[0],
		.file = -1,
		.socket = -1,
	};
	enum ctl_status status;
	uint32_t pid;

	if (!options->output)
		return ctl_fail(CTL_USAGE, "record needs --output FILE");
	if (options->seconds &&
		(seconds_parse(options->seconds, &run.seconds) || !run.seconds))
		return ctl_fail(CTL_USAGE,
			"'%s' is not a number of seconds, which is from 1 to a day",
			options->seconds);
	if (config_parse_size(
		    options->size ? options->size : CTL_RECORD, &run.size_max) ||
		!run.size_max)
		return ctl_fail(CTL_USAGE, "'%s' is not a size", options->size);
	status = parse_pid(options->process, &pid);
	if (status)
		return status;
	if (asprintf(&part, "%s" PART, options->output) < 0) {
		part = NULL;
		return ctl_fail(CTL_FAILED, "there is no memory");
	}
	run.part = part;
	return output_end(record_to_file(&run, pid));
}
