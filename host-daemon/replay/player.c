/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Player: guest and vgpud for the worker of a replay
 *
 * Records are handled in the order of the file. A call is submitted once the memory that
 * it reads is written and the completion words have the values that they had when it was
 * made; the end of a call in the file is a wait for its end here. What the worker does
 * comes through its own recording, which is read whenever there is a wait.
 *
 * The file may be forged, and the worker may be compromised by it: both are read by
 * control/recording.c only. The memory that they share is written and read here, but no
 * decision depends on it except how long to wait.
 */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/flight-text.h"
#include "control/quota.h"
#include "replay/answers.h"
#include "replay/hold.h"
#include "replay/player.h"
#include "vgpu/cleanup.h"
#include "vgpu/cuda.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/ring.h"
#include "vgpu/wake.h"
#include "vgpud/clock.h"

/* Between two looks at memory that the device writes. */
#define LOOK_MS 1
/* For copies at the end, after which nothing more is expected of a driver. */
#define SETTLE_MS 2000
/* For drivers that do not say when kernels fail, and until words of a broken context are
 * not written any more. */
#define FAULT_MS 20
/* Before kernels run for a call that should not wait for them. */
#define HOLD_MS 200

struct player {
	struct recording *recording;
	const struct recording_header *header;
	const struct replay_options *options;
	struct findings *findings;
	struct player_result *result;
	struct program program;
	struct answers answers;
	int memory;
	uint8_t *base; /* of the shared memory, here */
	struct quota_page *quota;
	int quota_fd;
	int doorbell;
	struct vgpu_ring_producer producer;

	/* The worker's recording. */
	int stream;
	uint8_t *buffer; /* RECORDING_PAYLOAD_MAX and a record's head, twice */
	size_t n_buffered;
	bool has_header;
	struct recording_header its_header;
	bool is_over; /* it has ended */

	struct hold hold;
	uint64_t n_faults_all; /* of kernels, in the recording */
	uint64_t n_faults_due; /* of those, so far */
	bool lacks_faults;     /* some that were due do not occur */
	bool has_fault;	       /* a call has returned one in the recording */
	/* Calls that were made and have not ended in the recording. */
	uint64_t n_open;
};

#define BUFFER_SIZE (2 * (RECORDING_PAYLOAD_MAX + sizeof(struct recording_record)))

/* Ends the replay. Return: false. */
static __attribute__((__format__(__printf__, 3, 4))) bool fail(
	struct player *player, enum player_end end, const char *format, ...)
{
	struct player_result *result = player->result;
	va_list list;

	if (result->end != PLAYER_DONE)
		return false;
	result->end = end;
	va_start(list, format);
	vsnprintf(result->reason, sizeof(result->reason), format, list);
	va_end(list);
	return false;
}

static const char *last_call(const struct player *player)
{
	return findings_name(player->findings, player->result->number);
}

/*
 * What the worker does
 */

static bool take_item(struct player *player, const struct recording_item *item)
{
	struct recording_output output;
	struct recording_fault fault;
	struct recording_end end;

	if (item->type == RECORDING_END) {
		memcpy(&end, item->payload, sizeof(end));
		return findings_add_end(player->findings, &end) ||
		       fail(player, PLAYER_FAILED,
			       "the worker ends calls that were not made");
	}
	if (item->type == RECORDING_OUTPUT) {
		memcpy(&output, item->payload, sizeof(output));
		findings_add_output(player->findings, &output);
	}
	if (item->type == RECORDING_FAULT) {
		memcpy(&fault, item->payload, sizeof(fault));
		findings_add_fault(player->findings, &fault);
	}
	return true;
}

/* Takes the records that are complete. */
static bool take_items(struct player *player)
{
	struct recording its;
	struct recording_item item;
	int r = 0;

	its = (struct recording){ .bytes = player->buffer, .size = player->n_buffered };
	if (!player->has_header) {
		r = recording_open(
			&its, player->buffer, player->n_buffered, &player->its_header);
		player->has_header = !r;
	}
	while (!r) {
		r = recording_next(&its, &player->its_header, &item);
		if (!r && !take_item(player, &item))
			return false;
	}
	if (r == RECORDING_E_BROKEN)
		return fail(player, PLAYER_FAILED,
			"what the worker records is damaged: %s", its.reason);
	player->n_buffered -= its.at;
	memmove(player->buffer, player->buffer + its.at, player->n_buffered);
	return true;
}

static bool read_stream(struct player *player)
{
	const ssize_t n = recv(player->stream, player->buffer + player->n_buffered,
		BUFFER_SIZE - player->n_buffered, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		player->is_over = true;
		return true;
	}
	player->n_buffered += (size_t)n;
	return take_items(player);
}

static bool answer(struct player *player)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX], r;

	r = control_receive(player->program.control, &message, fds);
	if (!r)
		r = answers_reply(
			&player->answers, player->program.control, &message, fds);
	/* Its recording says so, too, and may have more. */
	if (r)
		player->is_over = true;
	return true;
}

/* Waits for the worker to do anything, for that time at most. Return: false at a
 * failure. */
static bool attend(struct player *player, int ms)
{
	struct pollfd pollers[] = {
		{ .fd = player->stream, .events = POLLIN },
		{ .fd = player->program.control, .events = POLLIN },
	};

	if (poll(pollers, 2, ms) < 0 && errno != EINTR)
		return fail(player, PLAYER_FAILED, "poll: %s", strerror(errno));
	if (pollers[0].revents && !read_stream(player))
		return false;
	return !pollers[1].revents || player->is_over || answer(player);
}

/* The worker has ended; reads what is left of its recording. */
static bool fail_ended(struct player *player)
{
	while (player->result->end == PLAYER_DONE && player->n_buffered < BUFFER_SIZE) {
		const ssize_t n =
			recv(player->stream, player->buffer + player->n_buffered,
				BUFFER_SIZE - player->n_buffered, 0);

		if (n <= 0)
			break;
		player->n_buffered += (size_t)n;
		take_items(player);
	}
	return fail(player, PLAYER_DIED, "the worker has ended at call #%llu, %s",
		(unsigned long long)player->result->number, last_call(player));
}

/* Whether a wait may go on. `untilp` is 0 at its start. */
static bool may_wait(struct player *player, int64_t *untilp, const char *what)
{
	const int64_t now = clock_now();

	if (!*untilp)
		*untilp = now + (int64_t)player->options->timeout_s * 1000;
	if (now < *untilp)
		return true;
	return fail(player, PLAYER_STUCK, "%s for %u s at call #%llu, %s", what,
		player->options->timeout_s, (unsigned long long)player->result->number,
		last_call(player));
}

/*
 * The guest
 */

static void write_memory(struct player *player, const struct recording_item *item)
{
	struct recording_memory memory;

	memcpy(&memory, item->payload, sizeof(memory));
	memcpy(player->base + memory.offset, item->payload + sizeof(memory),
		item->size - sizeof(memory));
}

/* What the recording has about a call behind its begin. */
struct ahead {
	int32_t result; /* CUDA_SUCCESS for one that ends after others have begun */
	uint64_t n_faults;
};

/* Writes the memory that a call reads: its records follow it. 0 is the next call. */
static struct ahead write_ahead(struct player *player, uint64_t number)
{
	unsigned int n_begins = number ? 0 : 1;
	struct recording ahead = *player->recording;
	struct ahead found = {};
	struct recording_item item;
	struct recording_end end;

	while (!recording_next(&ahead, player->header, &item)) {
		if (item.type == RECORDING_MEMORY)
			write_memory(player, &item);
		if (item.type == RECORDING_BEGIN && !n_begins--)
			break;
		found.n_faults += item.type == RECORDING_FAULT;
		if (item.type != RECORDING_END)
			continue;
		memcpy(&end, item.payload, sizeof(end));
		if (end.number == number) {
			found.result = end.result;
			break;
		}
	}
	return found;
}

/* Lets kernels run until they have broken that many contexts, as in the recording when
 * the next call was made. */
static bool wait_for_faults(struct player *player, uint64_t n)
{
	int64_t settled = clock_now() + SETTLE_MS, until = 0;

	hold_release(&player->hold);
	while (hold_faults(&player->hold) < n && !player->lacks_faults) {
		if (player->is_over)
			return fail_ended(player);
		if (hold_is_busy(&player->hold))
			settled = clock_now() + SETTLE_MS;
		/* A kernel that does not end, or none that could fail. */
		if (!may_wait(player, &until, "a kernel neither ends nor fails") ||
			!attend(player, LOOK_MS))
			return false;
		player->lacks_faults = clock_now() > settled;
	}
	if (n < player->n_faults_all && !player->lacks_faults)
		hold_again(&player->hold);
	else
		hold_want(&player->hold, false);
	return true;
}

/* When a call returned the fault of a kernel, the kernel had met it. Drivers that do not
 * say when that is have time for it. */
static bool wait_before(struct player *player, const struct ahead *ahead)
{
	const bool has_fault = flight_is_fault(ahead->result);
	const bool is_first = has_fault && !player->has_fault;
	const uint64_t n = player->n_faults_due + (has_fault ? ahead->n_faults : 0);

	player->has_fault |= has_fault;
	if (player->n_faults_all)
		return hold_faults(&player->hold) >= n || wait_for_faults(player, n);
	return !is_first || attend(player, FAULT_MS);
}

/* Words only grow. */
static bool has_word(const struct player *player, const struct recording_word *word)
{
	const uint8_t *at = player->base + player->header->assign.area_off + word->offset;

	if (word->is_short)
		return __atomic_load_n((const uint32_t *)(const void *)at,
			       __ATOMIC_ACQUIRE) >= word->value;
	return word->offset % 8 || __atomic_load_n((const uint64_t *)(const void *)at,
					   __ATOMIC_ACQUIRE) >= word->value;
}

/* Whether there is nothing that could write a word of a context that is broken: then the
 * guest has written it itself, when it gave back what that context had used. */
static bool is_of_guest(
	struct player *player, const struct recording_word *word, int64_t since)
{
	return player->has_fault && word->offset >= VGPU_WORDS_OFF &&
	       !hold_is_busy(&player->hold) &&
	       (player->lacks_faults ||
		       hold_faults(&player->hold) >= player->n_faults_due) &&
	       clock_now() - since > FAULT_MS;
}

static void write_word(struct player *player, const struct recording_word *word)
{
	uint8_t *at = player->base + player->header->assign.area_off + word->offset;

	if (word->is_short)
		__atomic_store_n(
			(uint32_t *)(void *)at, (uint32_t)word->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)(void *)at, word->value, __ATOMIC_RELEASE);
}

static bool wait_for_words(struct player *player, const struct recording_item *item)
{
	const int64_t since = clock_now(), settled = since + SETTLE_MS;
	struct recording_word word;
	bool is_written = false;
	int64_t until = 0;

	for (uint32_t at = 0; at < item->size; at += sizeof(word)) {
		memcpy(&word, item->payload + at, sizeof(word));
		while (!has_word(player, &word)) {
			hold_release(&player->hold);
			/* The counter of faults: a driver may have none. */
			if (word.is_short &&
				!wait_for_faults(player, player->n_faults_due))
				return false;
			if (word.is_short && player->lacks_faults)
				break;
			if (is_of_guest(player, &word, since)) {
				write_word(player, &word);
				break;
			}
			if (player->is_over)
				return fail_ended(player);
			if (!may_wait(player, &until, "the device completes nothing") ||
				!attend(player, LOOK_MS))
				return false;
			/* It waits for memory that the guest wrote before the next call,
			 * instead of the other way round. */
			if (!is_written && clock_now() > settled) {
				write_ahead(player, 0);
				is_written = true;
			}
		}
	}
	hold_again(&player->hold);
	return true;
}

static bool submit(struct player *player, const struct vgpu_frame *frame)
{
	struct vgpu_frame *place;
	int64_t until = 0;

	for (;;) {
		place = vgpu_ring_reserve(&player->producer, frame->size);
		if (place)
			break;
		hold_release(&player->hold);
		if (player->is_over)
			return fail_ended(player);
		if (!may_wait(player, &until, "the worker takes no call") ||
			!attend(player, LOOK_MS))
			return false;
	}
	memcpy(place, frame, frame->size);
	vgpu_ring_commit(&player->producer, frame->size);
	if (vgpu_ring_is_asleep(&player->producer))
		vgpu_wake_eventfd(player->doorbell);
	return true;
}

static void note_open(struct player_result *result, uint64_t number)
{
	if (result->n_open < PLAYER_OPEN_MAX)
		result->open[result->n_open++] = (struct player_open){ .number = number };
}

static void forget_open(struct player_result *result, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < result->n_open && result->open[i].number != number; i++)
		;
	if (i == result->n_open)
		return;
	result->n_open--;
	memmove(&result->open[i], &result->open[i + 1],
		(result->n_open - i) * sizeof(result->open[0]));
}

static bool begin(struct player *player, const struct recording_item *item)
{
	const size_t start = sizeof(struct recording_call);
	_Alignas(16) uint8_t bytes[VGPU_FRAME_MAX];
	const struct vgpu_frame *frame = (const struct vgpu_frame *)(void *)bytes;
	struct recording_call call;
	struct ahead ahead;

	memcpy(&call, item->payload, start);
	memcpy(bytes, item->payload + start, item->size - start);
	/* The worker counts, too. */
	if (call.number != player->result->n_calls + 1)
		return fail(player, PLAYER_BROKEN, "call #%llu follows call #%llu",
			(unsigned long long)call.number,
			(unsigned long long)player->result->n_calls);
	player->result->number = call.number;
	findings_begin(player->findings, call.number, frame->call);
	ahead = write_ahead(player, call.number);
	if (!wait_before(player, &ahead) || !submit(player, frame))
		return false;
	hold_again(&player->hold);
	player->result->n_calls++;
	player->n_open++;
	if (!findings_is_of_time(frame->call))
		note_open(player->result, call.number);
	return true;
}

static bool may_block(const struct recording_end *end)
{
	return end->call < _VGPU_CALL_N &&
	       vgpu_call_flags[end->call] & VGPU_CALL_F_MAY_BLOCK;
}

static bool end(struct player *player, const struct recording_item *item)
{
	const int64_t since = clock_now();
	struct recording_end end;
	int64_t until = 0;

	memcpy(&end, item->payload, sizeof(end));
	if (!end.number || end.number > player->result->n_calls || !player->n_open)
		return fail(player, PLAYER_BROKEN, "a call ends that was not made");
	while (!findings_has_end(player->findings, end.number)) {
		if (player->is_over)
			return fail_ended(player);
		if (vgpu_ring_is_missed(player->producer.control))
			vgpu_wake_eventfd(player->doorbell);
		/* Only calls that wait for the device need it. */
		if (may_block(&end) || clock_now() - since > HOLD_MS)
			hold_release(&player->hold);
		if (!may_wait(player, &until, "a call does not return") ||
			!attend(player, 20))
			return false;
	}
	hold_again(&player->hold);
	findings_expect_end(player->findings, &end);
	player->n_open--;
	forget_open(player->result, end.number);
	return true;
}

static bool expect_output(struct player *player, const struct recording_item *item)
{
	struct recording_output output;

	memcpy(&output, item->payload, sizeof(output));
	findings_expect_output(player->findings, &output);
	return true;
}

static void expect_fault(struct player *player, const struct recording_item *item)
{
	struct recording_fault fault;

	memcpy(&fault, item->payload, sizeof(fault));
	findings_expect_fault(player->findings, &fault);
	player->n_faults_due++;
}

static void note(struct player *player, const struct recording_item *item)
{
	struct recording_note note;

	memcpy(&note, item->payload, sizeof(note));
	player->result->summary.is_uncovered |= note.kind == RECORDING_NOTE_UNCOVERED;
	player->result->summary.is_overlapping |= note.kind == RECORDING_NOTE_OVERLAP;
}

static bool handle(struct player *player, const struct recording_item *item)
{
	struct recording_close close;

	switch (item->type) {
	case RECORDING_BEGIN:
		return begin(player, item);
	case RECORDING_END:
		return end(player, item);
	case RECORDING_MEMORY:
		/* Mostly written already, see write_ahead(); the guest changes nothing
		 * while a call reads it. */
		write_memory(player, item);
		return true;
	case RECORDING_OUTPUT:
		return expect_output(player, item);
	case RECORDING_WORDS:
		return wait_for_words(player, item);
	case RECORDING_FAULT:
		expect_fault(player, item);
		return true;
	case RECORDING_NOTE:
		note(player, item);
		return true;
	case RECORDING_CLOSE:
		memcpy(&close, item->payload, sizeof(close));
		player->result->is_closed = true;
		player->result->summary.close_reason = close.reason;
		return true;
	default:
		/* Images and answers were read before. */
		return true;
	}
}

/* Waits for copies that are under way, and for the worker's end if the session ended by
 * itself. */
static bool settle(struct player *player)
{
	const uint32_t reason = player->result->summary.close_reason;
	const bool ends = player->result->is_closed && reason != VGPU_REASON_NONE &&
			  reason != VGPU_REASON_SHUTDOWN;
	int64_t until = clock_now() + SETTLE_MS;

	if (!wait_before(player, &(struct ahead){}))
		return false;
	hold_want(&player->hold, false);
	while (!player->is_over && clock_now() < until &&
		(findings_wait(player->findings) || ends))
		if (!attend(player, LOOK_MS))
			return false;
	findings_give_up(player->findings);
	if (ends && !player->is_over)
		findings_differ(player->findings, player->result->number,
			"%s: the session goes on, and ended when it was recorded",
			last_call(player));
	return true;
}

/* Return: whether a call has not returned yet. */
static bool look_at_open(struct player *player)
{
	struct player_result *result = player->result;
	bool are_open = false;

	for (uint32_t i = 0; i < result->n_open; i++) {
		struct player_open *open = &result->open[i];

		open->returns =
			findings_get_end(player->findings, open->number, &open->result);
		are_open |= !open->returns;
	}
	return are_open;
}

/* A file without its end is that of a worker that was killed, or of a recording that was
 * stopped: the calls in it may end the worker of the replay, too. */
static bool wait_for_open_calls(struct player *player)
{
	const int64_t until = clock_now() + SETTLE_MS;

	hold_want(&player->hold, false);
	while (look_at_open(player) && !player->is_over && clock_now() < until)
		if (!attend(player, LOOK_MS))
			return false;
	return !player->is_over || fail_ended(player);
}

static void play(struct player *player)
{
	struct recording_item item;
	int r;

	while (!(r = recording_next(player->recording, player->header, &item)))
		if (!handle(player, &item))
			return;
	if (r == RECORDING_E_BROKEN) {
		fail(player, PLAYER_BROKEN, "%s", player->recording->reason);
		return;
	}
	if (!player->result->is_closed && !wait_for_open_calls(player))
		return;
	settle(player);
}

/*
 * Start and end
 */

static int make_memory(struct player *player)
{
	const struct control_assign *assign = &player->header->assign;

	player->memory = memfd_create("vgpu-replay-memory", MFD_CLOEXEC);
	player->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (player->memory < 0 || player->doorbell < 0 ||
		ftruncate(player->memory, (off_t)assign->shm_size) < 0)
		return vgpu_error_origin(-errno);
	player->base = mmap(NULL, assign->shm_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, player->memory, 0);
	if (player->base == MAP_FAILED) {
		player->base = NULL;
		return vgpu_error_origin(-errno);
	}
	player->buffer = malloc(BUFFER_SIZE);
	return player->buffer ? 0 : vgpu_error_origin(-ENOMEM);
}

static int make_quota(struct player *player)
{
	struct quota_limits limits;
	int fd, r;

	r = quota_make(&player->quota_fd);
	if (r)
		return vgpu_error_trace(r);
	fd = player->quota_fd;
	r = quota_map(&player->quota, fd);
	if (r)
		return vgpu_error_trace(r);
	quota_open(player->quota, 1);
	quota_set_limit(player->quota, player->header->quota);
	quota_set_shared(player->quota, player->header->quota_others);
	memcpy(limits.values, player->header->limits, sizeof(limits.values));
	/* It changes no result. */
	limits.values[QUOTA_COPY_BANDWIDTH] = 0;
	quota_set_limits(player->quota, &limits);
	return 0;
}

/* Kernels are held if there are faults, before the worker is told to work. */
static int make_hold(struct player *player)
{
	struct recording_summary summary;
	struct recording all = *player->recording;
	int r;

	r = hold_init(&player->hold, player->program.stats);
	if (r)
		return vgpu_error_trace(r);
	recording_summarise(&all, player->header, &summary);
	player->n_faults_all = summary.n_faults;
	hold_want(&player->hold, summary.n_faults);
	return 0;
}

/* Gives the worker one end of a pair of sockets, and keeps the other. */
static int send_record(struct player *player)
{
	const struct control_message message = { .type = CONTROL_RECORD, .n_fds = 1 };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return vgpu_error_origin(-errno);
	player->stream = pair[1];
	r = control_send(player->program.control, &message, &pair[0]);
	close(pair[0]);
	return r;
}

static int send_assign(struct player *player)
{
	struct control_message message = {
		.type = CONTROL_ASSIGN,
		.n_fds = 3,
		.assign = player->header->assign,
	};
	const int fds[] = { player->memory, player->quota_fd, player->doorbell };

	message.assign.flags = 0;
	message.assign.quota_slot = 1;
	message.greeting.version = CONTROL_VERSION;
	return control_send(player->program.control, &message, fds);
}

/* Waits for one message of the worker. Return: its reason, or VGPU_REASON_WORKER_DIED. */
static uint32_t hear(struct player *player, uint32_t type)
{
	const int ms = (int)player->options->timeout_s * 1000;
	struct pollfd poller = { .fd = player->program.control, .events = POLLIN };
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	if (poll(&poller, 1, ms) <= 0 ||
		control_receive(player->program.control, &message, fds))
		return VGPU_REASON_WORKER_DIED;
	for (uint32_t i = 0; i < message.n_fds; i++)
		vgpu_close(fds[i]);
	if (message.type != type)
		return VGPU_REASON_WORKER_DIED;
	if (type == CONTROL_READY && message.greeting.version != CONTROL_VERSION)
		return VGPU_REASON_VERSION;
	return type == CONTROL_READY ? message.ready.reason : message.opened.reason;
}

static bool fail_start(struct player *player, uint32_t reason)
{
	switch (reason) {
	case VGPU_REASON_NO_DEVICE:
	case VGPU_REASON_NO_DRIVER:
		return fail(player, PLAYER_NO_START, "the driver has no device");
	case VGPU_REASON_WINDOW:
		return fail(player, PLAYER_NO_START,
			"the addresses of the recording are not free in the worker");
	case VGPU_REASON_VERSION:
		return fail(player, PLAYER_NO_START,
			"the worker program is of another release than vgpu-replay");
	default:
		return fail(player, PLAYER_NO_START, "the worker does not start");
	}
}

static bool open_session(struct player *player)
{
	uint32_t reason = hear(player, CONTROL_READY);

	if (reason)
		return fail_start(player, reason);
	if (send_record(player) || send_assign(player))
		return fail_start(player, VGPU_REASON_WORKER_DIED);
	reason = hear(player, CONTROL_OPENED);
	if (reason)
		return fail_start(player, reason);
	vgpu_ring_producer_init(
		&player->producer, player->base + player->header->assign.area_off);
	return true;
}

/* Ends the worker, which may be stuck in a kernel. */
static void stop(struct player *player)
{
	const struct control_message message = { .type = CONTROL_STOP };

	if (player->program.pid <= 0)
		return;
	if (player->result->end == PLAYER_STUCK || player->result->end == PLAYER_FAILED)
		kill(player->program.pid, SIGKILL);
	else
		control_send(player->program.control, &message, NULL);
	player->stream = vgpu_close(player->stream);
	player->result->status = program_end(&player->program);
}

static void deinit(struct player *player)
{
	answers_deinit(&player->answers);
	hold_deinit(&player->hold);
	if (player->base)
		munmap(player->base, player->header->assign.shm_size);
	quota_unmap(player->quota);
	vgpu_close(player->quota_fd);
	vgpu_close(player->memory);
	vgpu_close(player->doorbell);
	vgpu_close(player->stream);
	free(player->buffer);
}

void player_play(struct recording *recording, const struct recording_header *header,
	const struct config *paths, const struct replay_options *options,
	struct findings *findings, struct player_result *result)
{
	struct player player = {
		.recording = recording,
		.header = header,
		.options = options,
		.findings = findings,
		.result = result,
		.program = PROGRAM_NULL,
		.memory = -1,
		.quota_fd = -1,
		.doorbell = -1,
		.stream = -1,
	};
	int r;

	*result = (struct player_result){ .end = PLAYER_DONE };
	r = answers_read(&player.answers, *recording, header);
	if (!r)
		r = make_memory(&player);
	if (!r)
		r = make_quota(&player);
	if (!r)
		r = program_start(&player.program, paths, header, options);
	if (!r)
		r = make_hold(&player);
	if (r)
		fail(&player, PLAYER_FAILED, "%s", strerror(-r));
	else if (open_session(&player))
		play(&player);
	stop(&player);
	findings_tell_faults(findings);
	deinit(&player);
}
