/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what vgpud reads of a file that it shares with a worker
 *
 * The input is a list of pieces of that file, of which the rest is empty: entries of the
 * flight recorder, events and names of a trace, times of calls, faults. Any bytes may be
 * anywhere, as a worker that its guest has taken over can write them. Then vgpud reports
 * a fault and an end, or answers a client that asks for events or for times until there
 * are no more. Lines are printable, replies are ones that a client accepts, and each list
 * ends.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/ctl-stats.h"
#include "broker/ctl-trace.h"
#include "broker/flight.h"
#include "broker/session-line.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/call-times.h"
#include "control/ctl-message.h"
#include "control/flight-text.h"
#include "control/quota.h"
#include "control/trace.h"
#include "reader.h"
#include "vgpu/log.h"
#include "vgpu/ring-layout.h"

#define PIECES_MAX 64u
#define PIECE_MAX 256u
/* Requests of one list; the events of a full ring take 66. */
#define REQUESTS_MAX 100u
#define SESSION 7u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reader input;
static struct config *config;
static struct broker broker;
static struct account account;
static struct vm vm;
static struct ledger_channel record;
static struct worker worker;
static int quota_fd;
static uint8_t packed[4 * CTL_REPLY_MAX];

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition))                                                       \
			abort();                                                         \
	} while (0)

/* Instead of worker.c, which needs a loop. */
struct worker *worker_find(struct broker *of, uint64_t id)
{
	return of == &broker && id == worker.id ? &worker : NULL;
}

static void check_line(const char *line, size_t room)
{
	size_t n = 0;

	for (; line[n]; n++)
		need(line[n] >= ' ' && line[n] <= '~');
	need(n < room);
}

static bool take_line(enum vgpu_log_level level, const char *ident, const char *message)
{
	check_line(message, FLIGHT_LINE_MAX + 128);
	return true;
}

/* Once: files are emptied for each input. */
static void begin(void)
{
	static const char text[] =
		"[vgpud]\ndriver = null\n[vm a]\nsocket = /a\nsize = 2G\n";
	char *error;

	need(!config_new_from_text(&config, "config", text, &error));
	vgpu_log_init("fuzz", VGPU_LOG_INFO);
	vgpu_log_send_to(take_line);
	TAILQ_INIT(&broker.pool.workers);
	broker.config = config;
	broker.accounts = &account;
	vm.broker = &broker;
	vm.account = &account;
	vm.config = TAILQ_FIRST(&config->vms);
	vm.channels[0].vm = &vm;
	vm.channels[0].record = &record;
	vm.channels[0].worker = &worker;
	snprintf(record.comm, sizeof(record.comm), "program");
	worker.broker = &broker;
	worker.id = SESSION;
	worker.channel = &vm.channels[0];
	worker.stats = memfd_create("worker", MFD_CLOEXEC);
	quota_fd = memfd_create("quota", MFD_CLOEXEC);
	need(worker.stats >= 0 && quota_fd >= 0);
	TAILQ_INSERT_TAIL(&broker.pool.workers, &worker, entry);
}

/*
 * The file
 */

/* Where a piece begins: at an element of some list, and there mostly at its begin. */
static uint64_t pick_place(void)
{
	const uint64_t flight = WORKER_FLIGHT_OFF, trace = WORKER_TRACE_OFF;
	const uint16_t i = reader_u16(&input);
	const uint8_t inside = reader_u8(&input);

	switch (reader_below(&input, 10)) {
	case 0:
		return flight + inside;
	case 1:
	case 2:
		return flight + offsetof(struct flight, calls) +
		       i % FLIGHT_CALLS * sizeof(struct flight_call) + inside % 128;
	case 3:
		return flight + offsetof(struct flight, at_fault) +
		       i % FLIGHT_CALLS * sizeof(struct flight_call) + inside % 128;
	case 4:
		return flight + offsetof(struct flight, names) +
		       i % FLIGHT_NAMES * sizeof(struct flight_name) + inside;
	case 5:
		return trace + inside % 16;
	case 6:
		return trace + offsetof(struct trace, names) +
		       i % TRACE_NAMES * TRACE_NAME_SIZE + inside % 64;
	case 7:
		return trace + offsetof(struct trace, events) +
		       i % TRACE_EVENTS * sizeof(struct trace_event);
	case 8:
		return WORKER_TIMES_OFF + offsetof(struct call_times, by_dispatcher) +
		       i % (2 * CALL_TIMES_MAX) * sizeof(struct histogram) + inside;
	default:
		return inside % 8 ? i % WORKER_STATS_SIZE : WORKER_TIMES_OFF;
	}
}

static void fill_file(void)
{
	const uint32_t version = CALL_TIMES_VERSION;
	/* Some are of an earlier build. */
	const uint8_t cut = reader_below(&input, 16);
	const uint64_t sizes[] = { WORKER_STATS_SIZE, WORKER_TIMES_OFF + 4096,
		WORKER_FLIGHT_OFF + 4096, WORKER_TRACE_OFF };
	uint8_t bytes[PIECE_MAX];

	need(!ftruncate(quota_fd, 0) && !ftruncate(quota_fd, QUOTA_FILE_SIZE));
	need(!ftruncate(worker.stats, 0) && !ftruncate(worker.stats, WORKER_FILE_SIZE));
	need(pwrite(worker.stats, &version, sizeof(version), WORKER_TIMES_OFF) ==
		(ssize_t)sizeof(version));
	for (unsigned int i = reader_below(&input, PIECES_MAX); i; i--) {
		const uint64_t place = pick_place();
		const size_t n = reader_u8(&input) + 1u;

		reader_bytes(&input, bytes, n);
		need(pwrite(worker.stats, bytes, n, (off_t)place) == (ssize_t)n);
	}
	if (cut && cut <= sizeof(sizes) / sizeof(*sizes))
		need(!ftruncate(worker.stats, (off_t)sizes[cut - 1]));
}

/*
 * Readers of it
 */

/* Whether a client accepts a reply. */
static void check_reply(const VgpuCtl__Reply *reply)
{
	const size_t size = vgpu_ctl__reply__get_packed_size(reply);
	const char *reason = NULL;
	VgpuCtl__Reply *copy;

	need(size <= CTL_REPLY_MAX);
	need(vgpu_ctl__reply__pack(reply, packed) == size);
	copy = ctl_reply_new(packed, size, &reason);
	need(copy);
	ctl_reply_freep(&copy);
}

/* As vgpuctl trace asks, from a number on that may be any. */
static void ask_for_events(void)
{
	VgpuCtl__Trace trace = VGPU_CTL__TRACE__INIT;
	unsigned int n = 0;
	bool more = true;

	trace.vm = (char *)vm.config->name;
	trace.session = SESSION;
	trace.after = reader_below(&input, 2) ? reader_u64(&input) : 0;
	trace.wants_names = reader_below(&input, 2);
	for (; more && n < REQUESTS_MAX; n++) {
		VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;
		uint64_t n_events;

		trace.ends = n % 2;
		ctl_trace_reply(&broker, &trace, &reply);
		check_reply(&reply);
		more = reply.result_case == VGPU_CTL__REPLY__RESULT_EVENTS;
		if (more) {
			n_events = reply.events->events.len / sizeof(struct trace_event);
			need(n_events <= TRACE_EVENTS);
			need(!n_events || reply.events->first > trace.after);
			need(n_events <= reply.events->last + 1 - reply.events->first);
			more = n_events != 0;
			trace.after = reply.events->first + n_events - 1;
		}
		ctl_trace_free(&reply);
	}
	need(!more);
}

/* As vgpuctl stats asks. */
static void ask_for_times(void)
{
	VgpuCtl__Stats stats = VGPU_CTL__STATS__INIT;
	unsigned int n = 0;
	bool more = true;

	stats.vm = (char *)vm.config->name;
	stats.after = reader_below(&input, 2) ? reader_u32(&input) : 0;
	for (; more && n < REQUESTS_MAX; n++) {
		VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

		ctl_stats_reply(&broker, &stats, &reply);
		check_reply(&reply);
		more = reply.result_case == VGPU_CTL__REPLY__RESULT_STATS &&
		       reply.stats->more;
		if (more) {
			need(reply.stats->next > stats.after);
			stats.after = reply.stats->next;
		}
		ctl_stats_free(&reply);
	}
	need(!more);
}

/* As at the end of a session, twice: it is added once. */
static void check_times(void)
{
	ask_for_times();
	for (unsigned int i = 0; i < 2; i++)
		vm_times_take(quota_fd, QUOTA_TIMES_OFF, worker.stats, WORKER_TIMES_OFF);
	ask_for_times();
}

static void read_recorder(void)
{
	struct flight_error error;
	struct worker_stats counters;
	char text[32];

	record.signal = reader_below(&input, 2) ? 11 : 0;
	flight_report_fault(&worker, (int32_t)reader_u32(&input));
	flight_report_end(&worker, VGPU_REASON_WORKER_DIED);
	flight_last_error(&worker, &error);
	check_line(flight_result(error.result, text), 128);
	session_line_read_stats(worker.stats, &counters);
}

/* All calls, of which the log has the last ones only. */
static void print_recorder(void)
{
	static struct flight flight;
	const struct flight_call *order[FLIGHT_CALLS];
	struct flight_call *call;
	struct flight_time now;
	char line[FLIGHT_LINE_MAX];
	size_t n;

	if (pread(worker.stats, &flight, sizeof(flight), WORKER_FLIGHT_OFF) !=
		(ssize_t)sizeof(flight))
		return;
	flight_time_now(&now);
	if (reader_below(&input, 2))
		now.ticks = reader_u64(&input);
	n = flight_order(flight.calls, order);
	need(n <= FLIGHT_CALLS);
	for (size_t i = 0; i < n; i++) {
		need(!i || order[i - 1]->number <= order[i]->number);
		/* Of its own, so that nothing behind it is read unseen. */
		call = malloc(sizeof(*call));
		need(call);
		*call = *order[i];
		flight_format(&flight, call, &now, line);
		free(call);
		check_line(line, FLIGHT_LINE_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!config)
		begin();
	account_init(&account, vm.config, 0);
	account.quota_fd = quota_fd;
	input = (struct reader){ .bytes = data, .size = size };
	fill_file();
	/* Times of calls are many numbers, and the slowest to read. */
	switch (reader_below(&input, 64)) {
	case 1:
		check_times();
		break;
	case 2 ... 20:
		ask_for_events();
		break;
	default:
		read_recorder();
		print_recorder();
	}
	return 0;
}
