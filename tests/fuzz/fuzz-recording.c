/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what vgpu-replay reads of a recording that is forged
 *
 * The input is a list of records, plausible up to a few bytes, with checksums that are
 * mostly right; some inputs are a file as it stands. The file is summarised, read record
 * by record, and read in parts as they come from a worker. Ends and outputs are compared
 * with ones that differ where the input says so, and a worker makes requests that are
 * answered from the file. What a record says is within the memory, the area or the image
 * of the header; each count agrees with one of this file; lines are printable; no
 * descriptor is left.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/recording.h"
#include "reader.h"
#include "replay/answers.h"
#include "replay/findings.h"
#include "vgpu/cleanup.h"
#include "vgpu/frame.h"
#include "vgpu/hello.h"
#include "vgpu/ring-layout.h"

#define SHM_SIZE (64ull << 20)
#define RECORDS_MAX 48u
#define BYTES_MAX 256u
#define REQUESTS_MAX 8u
#define LINES_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reader input;
static uint8_t file[64 << 10];
static size_t file_size;

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition))                                                       \
			abort();                                                         \
	} while (0)

/*
 * The file
 */

/* Overwrites a few bytes of a payload, one time in four. */
static void lie(void *bytes, size_t size)
{
	uint8_t few[8];
	size_t at;

	if (reader_below(&input, 4) || !size)
		return;
	at = reader_u16(&input) % size;
	reader_bytes(&input, few, sizeof(few));
	memcpy((uint8_t *)bytes + at, few,
		size - at < sizeof(few) ? size - at : sizeof(few));
}

/* A record with any number of bytes from the input behind its fixed part. */
static void put(uint32_t type, void *fixed, size_t fixed_size, size_t n_bytes)
{
	struct recording_record record = { .type = type };
	uint8_t *payload = file + file_size + sizeof(record);
	uint8_t lies;

	if (sizeof(record) + fixed_size + n_bytes > sizeof(file) - file_size)
		return;
	lie(fixed, fixed_size);
	memcpy(payload, fixed, fixed_size);
	reader_bytes(&input, payload + fixed_size, n_bytes);
	record.size = (uint32_t)(fixed_size + n_bytes);
	record.sum = recording_record_sum(
		type, payload, fixed_size, payload + fixed_size, n_bytes);
	lies = reader_u8(&input);
	if (lies == 1)
		record.sum++;
	if (lies == 2)
		record.size = reader_u32(&input);
	if (lies == 3)
		record.type = reader_u8(&input);
	memcpy(file + file_size, &record, sizeof(record));
	file_size += sizeof(record) + fixed_size + n_bytes;
}

static void put_header(void)
{
	struct recording_header header = {
		.magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.release = "1",
		.driver = "softgpu",
		.is_softgpu = 1,
		.assign = {
			.shm_size = SHM_SIZE,
			.area_off = VGPU_EXTENT_SIZE,
			.extents_off = VGPU_EXTENT_SIZE + VGPU_AREA_SIZE,
			.first_extent = 1,
			.n_extents = 2,
			.window_base = 0x550000000000ull,
			.window_size = SHM_SIZE + VGPU_WINDOW_DEVICE_MIN,
			.guest_comm = "program",
		},
	};

	put(RECORDING_HEADER, &header, sizeof(header), 0);
}

/* The frame's head is fixed here, for it has the size. */
static void put_call(uint64_t number)
{
	const size_t n = reader_below(&input, 64);
	const struct vgpu_frame frame = {
		.size = (uint32_t)(sizeof(frame) + n),
		.call = reader_u16(&input) % 1024,
		.lane = reader_below(&input, 4),
	};
	uint8_t fixed[sizeof(struct recording_call) + sizeof(frame)];

	memcpy(fixed, &number, sizeof(number));
	memcpy(fixed + sizeof(number), &frame, sizeof(frame));
	put(RECORDING_BEGIN, fixed, sizeof(fixed), n);
}

static void put_end(uint64_t number)
{
	struct recording_end end = {
		.number = number,
		.call = reader_u16(&input) % 1024,
		.result = reader_u8(&input),
		.reply_size = reader_u8(&input),
		.digest = reader_u8(&input),
	};

	put(RECORDING_END, &end, sizeof(end), 0);
}

static void put_memory(void)
{
	struct recording_memory memory = {
		.offset = (uint64_t)reader_u16(&input) << 10,
	};

	put(RECORDING_MEMORY, &memory, sizeof(memory), reader_u8(&input) + 1u);
}

static void put_output(uint64_t number)
{
	struct recording_output output = {
		.number = number,
		.offset = (uint64_t)reader_below(&input, 4) << 20,
		.size = reader_below(&input, 4),
		.digest = reader_below(&input, 4),
	};

	put(RECORDING_OUTPUT, &output, sizeof(output), 0);
}

static void put_words(void)
{
	struct recording_word words[4] = {};
	const unsigned int n = reader_below(&input, 5);

	for (unsigned int i = 0; i < n; i++)
		words[i] = (struct recording_word){
			.offset = (uint32_t)reader_u16(&input) * 64,
			.is_short = reader_below(&input, 2),
			.value = reader_u8(&input),
		};
	put(RECORDING_WORDS, words, n * sizeof(*words), 0);
}

/* Pieces of few images, mostly the next one of the last image. */
static void put_image(uint64_t *offset)
{
	const size_t n = reader_u8(&input) + 1u;
	struct recording_image image = {
		.digest = { reader_below(&input, 8) % 6 },
		.size = (uint64_t)(reader_below(&input, 4) + 1) * 128,
	};

	if (reader_below(&input, 4))
		image.offset = *offset;
	*offset = image.offset + n;
	put(RECORDING_IMAGE, &image, sizeof(image), n);
}

static void put_answer(void)
{
	struct control_message message = {};

	if (reader_below(&input, 2)) {
		message.type = CONTROL_GRANT;
		message.grant = (struct control_grant){
			.first_extent = reader_below(&input, 32),
			.n_extents = reader_below(&input, 32),
			.cookie = reader_below(&input, 4),
		};
	} else {
		message.type = CONTROL_SHARED;
		message.share.size = reader_u8(&input);
		message.share.cookie = reader_below(&input, 4);
	}
	put(RECORDING_ANSWER, &message, sizeof(message), 0);
}

static void put_note(void)
{
	struct recording_note note = { .kind = reader_below(&input, 4) };

	put(RECORDING_NOTE, &note, sizeof(note), 0);
}

static void put_fault(void)
{
	struct recording_fault fault = {
		.result = reader_below(&input, 2) ? 700 : reader_u16(&input),
		.text = "illegal address",
	};

	put(RECORDING_FAULT, &fault, sizeof(fault), 0);
}

static void put_close(void)
{
	struct recording_close close = { .reason = reader_u8(&input) };

	put(RECORDING_CLOSE, &close, sizeof(close), 0);
}

static void make_file(void)
{
	uint64_t n_calls = 0, image_offset = 0;
	unsigned int n = reader_below(&input, RECORDS_MAX);

	file_size = 0;
	put_header();
	for (; n; n--)
		switch (reader_below(&input, 16)) {
		case 0 ... 2:
			put_call(++n_calls);
			break;
		case 3 ... 5:
			put_end(n_calls - reader_below(&input, 4));
			break;
		case 6:
		case 7:
			put_memory();
			break;
		case 8 ... 10:
			put_output(n_calls - reader_below(&input, 2));
			break;
		case 11:
			put_words();
			break;
		case 12:
		case 13:
			put_image(&image_offset);
			break;
		case 14:
			put_answer();
			break;
		default:
			switch (reader_below(&input, 4)) {
			case 0:
				put_close();
				break;
			case 1:
				put_fault();
				break;
			default:
				put_note();
			}
		}
	/* A few end within a record. */
	if (!reader_below(&input, 8))
		file_size -= reader_u8(&input) % file_size;
}

static void take_file(void)
{
	file_size = input.size < sizeof(file) ? input.size : sizeof(file);
	reader_bytes(&input, file, file_size);
}

/*
 * Records
 */

static void check_text(const char *text, size_t room)
{
	size_t n = 0;

	for (; n < room && text[n]; n++)
		need(text[n] >= ' ' && text[n] <= '~');
	need(n < room);
}

static void check_header(const struct recording_header *header)
{
	const struct control_assign *assign = &header->assign;

	check_text(header->release, sizeof(header->release));
	check_text(header->driver, sizeof(header->driver));
	check_text(header->device, sizeof(header->device));
	check_text(header->name, sizeof(header->name));
	check_text(header->check, sizeof(header->check));
	check_text(assign->vm, sizeof(assign->vm));
	check_text(assign->guest_comm, sizeof(assign->guest_comm));
	need(assign->shm_size < 1ull << 47);
	need(assign->area_off <= assign->extents_off);
	need(assign->extents_off - assign->area_off >= VGPU_AREA_SIZE);
	need(assign->extents_off <= assign->shm_size);
	need((uint64_t)assign->first_extent + assign->n_extents <=
		(assign->shm_size - assign->extents_off) / VGPU_EXTENT_SIZE);
}

static void check_call(const struct recording_item *item)
{
	const size_t start = sizeof(struct recording_call);
	struct vgpu_frame frame;

	need(item->size >= start + sizeof(frame));
	need(item->size - start <= VGPU_FRAME_MAX);
	memcpy(&frame, item->payload + start, sizeof(frame));
	need(frame.size == item->size - start);
	need(frame.lane < VGPU_SLOTS_MAX);
}

/* As it is written when it is replayed. */
static void check_memory(
	const struct recording_header *header, const struct recording_item *item)
{
	struct recording_memory memory;

	need(item->size > sizeof(memory));
	memcpy(&memory, item->payload, sizeof(memory));
	need(memory.offset >= header->assign.extents_off);
	need(memory.offset <= header->assign.shm_size);
	need(item->size - sizeof(memory) <= header->assign.shm_size - memory.offset);
}

static void check_words(const struct recording_item *item)
{
	struct recording_word word;

	need(!(item->size % sizeof(word)));
	for (size_t at = 0; at < item->size; at += sizeof(word)) {
		memcpy(&word, item->payload + at, sizeof(word));
		need(word.offset % 4 == 0);
		need((uint64_t)word.offset + 8 <= VGPU_AREA_SIZE);
	}
}

static void check_fault(const struct recording_item *item)
{
	struct recording_fault fault;

	need(item->size == sizeof(fault));
	memcpy(&fault, item->payload, sizeof(fault));
	check_text(fault.text, sizeof(fault.text));
}

static void check_image(const struct recording_item *item)
{
	struct recording_image image;

	need(item->size > sizeof(image));
	memcpy(&image, item->payload, sizeof(image));
	need(image.size <= CONTROL_IMAGE_SIZE_MAX && image.offset <= image.size);
	need(item->size - sizeof(image) <= image.size - image.offset);
}

static void check_item(
	const struct recording_header *header, const struct recording_item *item)
{
	/* All of it can be read. */
	(void)recording_sum(0, item->payload, item->size);
	need(item->type > RECORDING_HEADER && item->type < _RECORDING_N);
	switch (item->type) {
	case RECORDING_BEGIN:
		check_call(item);
		break;
	case RECORDING_END:
		need(item->size == sizeof(struct recording_end));
		break;
	case RECORDING_MEMORY:
		check_memory(header, item);
		break;
	case RECORDING_OUTPUT:
		need(item->size == sizeof(struct recording_output));
		break;
	case RECORDING_WORDS:
		check_words(item);
		break;
	case RECORDING_IMAGE:
		check_image(item);
		break;
	case RECORDING_ANSWER:
		need(item->size == sizeof(struct control_message));
		break;
	case RECORDING_NOTE:
		need(item->size == sizeof(struct recording_note));
		break;
	case RECORDING_FAULT:
		check_fault(item);
		break;
	default:
		need(item->size == sizeof(struct recording_close));
	}
}

/* Its reason is printed. */
static void check_end(const struct recording *recording, int r)
{
	need(r == RECORDING_E_END || r == RECORDING_E_CUT || r == RECORDING_E_BROKEN);
	need((r == RECORDING_E_BROKEN) == !!recording->reason);
	need(recording->at <= recording->size);
	need(r != RECORDING_E_END || recording->at == recording->size);
	if (recording->reason)
		check_text(recording->reason, 256);
}

static void check_summary(const struct recording *start,
	const struct recording_header *header, const unsigned int *counts, int end)
{
	struct recording recording = *start;
	struct recording_summary summary;

	need(recording_summarise(&recording, header, &summary) == end);
	need(summary.n_calls == counts[RECORDING_BEGIN]);
	need(summary.n_ended == counts[RECORDING_END]);
	need(summary.n_outputs == counts[RECORDING_OUTPUT]);
	need(summary.n_faults == counts[RECORDING_FAULT]);
	need(summary.memory <= recording.size);
	need(summary.is_closed == !!counts[RECORDING_CLOSE]);
	need(counts[RECORDING_NOTE] || !(summary.is_uncovered || summary.is_overlapping));
}

/* As from a socket: each part is read as far as its records are complete. Return: the
 * number of records. */
static unsigned int read_in_parts(const uint8_t *bytes, size_t size, int end)
{
	size_t from = 0, until = 0;
	struct recording_header header;
	bool has_header = false;
	unsigned int n = 0;
	int r = RECORDING_E_CUT;

	while (until < size && r != RECORDING_E_BROKEN) {
		struct recording part;
		struct recording_item item;
		uint8_t *copy;

		until += reader_u16(&input) % 1024 + 1u;
		until = until < size ? until : size;
		copy = malloc(until - from);
		need(copy);
		memcpy(copy, bytes + from, until - from);
		part = (struct recording){ .bytes = copy, .size = until - from };
		r = 0;
		if (!has_header) {
			r = recording_open(&part, copy, until - from, &header);
			has_header = !r;
		}
		while (!r) {
			r = recording_next(&part, &header, &item);
			n += !r;
		}
		check_end(&part, r);
		from += part.at;
		free(copy);
	}
	need(!has_header || r == end);
	return n;
}

/*
 * Findings
 */

struct expected {
	uint64_t n_ends; /* compared or ignored */
	uint64_t n_different;
	bool is_exact; /* n_different is the number of all differences */
};

/* What the worker of the replay has written, before the recording is compared with it. */
static void compare_end(struct findings *findings, const struct recording_item *item,
	struct expected *expected)
{
	struct recording_end end, found;
	uint64_t n_ignored = findings->n_ignored;

	memcpy(&end, item->payload, sizeof(end));
	/* Without it vgpu-replay waits. */
	if (findings_has_end(findings, end.number))
		expected->is_exact = false;
	found = end;
	lie(&found, sizeof(found));
	if (!findings_add_end(findings, &found)) {
		need(findings->n_ends == FINDINGS_PENDING_MAX);
		if (!findings_has_end(findings, end.number))
			return;
	}
	if (!findings_has_end(findings, end.number)) {
		need(found.number != end.number);
		return;
	}
	expected->n_ends++;
	findings_expect_end(findings, &end);
	if (findings->n_ignored == n_ignored)
		expected->n_different +=
			found.result != end.result || found.call != end.call ||
			found.reply_size != end.reply_size || found.digest != end.digest;
}

static void compare_output(struct findings *findings, const struct recording_item *item,
	struct expected *expected)
{
	const uint8_t how = reader_below(&input, 4);
	struct recording_output output, found;

	memcpy(&output, item->payload, sizeof(output));
	found = output;
	lie(&found, sizeof(found));
	/* Copies complete before or after their records, or never. */
	if (how < 2)
		findings_add_output(findings, &found);
	findings_expect_output(findings, &output);
	if (how == 2)
		findings_add_output(findings, &found);
	expected->is_exact = false;
}

/* Lines are whole and printable, and no more of them than are asked for. */
static void check_lines(const char *text, size_t size, const struct findings *findings)
{
	const uint64_t n_max = findings->is_quiet ? 0 : findings->n_lines_max;
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++) {
		need(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
		n += text[i] == '\n';
	}
	need(!size || text[size - 1] == '\n');
	need(n == (findings->n_different < n_max ? findings->n_different : n_max));
}

static void check_findings(struct findings *findings, const struct expected *expected)
{
	findings_give_up(findings);
	need(!findings_wait(findings));
	need(findings->n_compared + findings->n_ignored == expected->n_ends);
	need(!expected->is_exact || findings->n_different == expected->n_different);
	/* A call's number may be 0 in a forged file. */
	need(findings->n_different || !findings->first);
}

/*
 * Requests of a worker
 */

static void make_request(struct control_message *message)
{
	static const uint32_t types[] = { CONTROL_WANT, CONTROL_FIND, CONTROL_FILE,
		CONTROL_SHARE, CONTROL_TAKE, CONTROL_DROP, CONTROL_LEAVE };

	*message = (struct control_message){
		.type = types[reader_below(&input, sizeof(types) / sizeof(*types))],
	};
	switch (message->type) {
	case CONTROL_WANT:
		message->want.n_extents = reader_u8(&input);
		message->want.cookie = reader_below(&input, 4);
		break;
	case CONTROL_SHARE:
	case CONTROL_TAKE:
		message->share.size = reader_u8(&input);
		message->share.cookie = reader_below(&input, 4);
		message->n_fds =
			message->type == CONTROL_SHARE && reader_below(&input, 2);
		break;
	default:
		message->image.digest[0] = reader_below(&input, 8) % 6;
		message->image.size = reader_u16(&input);
	}
	lie(message->bytes, sizeof(message->bytes));
}

static void check_answer(const struct recording_header *header,
	const struct control_message *request, const struct control_message *answer,
	const int *fds)
{
	struct stat stat;

	switch (request->type) {
	case CONTROL_WANT:
		need(answer->type == CONTROL_GRANT);
		need(answer->grant.cookie == request->want.cookie);
		need(!answer->n_fds);
		need(answer->grant.error ||
			recording_has_extents(header, answer->grant.first_extent,
				answer->grant.n_extents));
		break;
	case CONTROL_FIND:
		need(answer->type == CONTROL_IMAGE);
		need(answer->n_fds == !!answer->image.size);
		need(!answer->n_fds ||
			(!fstat(fds[0], &stat) &&
				stat.st_size == (off_t)answer->image.size));
		break;
	case CONTROL_FILE:
		need(answer->type == CONTROL_IMAGE && !answer->n_fds);
		break;
	default:
		need(answer->type == CONTROL_SHARED);
		need(answer->share.cookie == request->share.cookie);
		need(answer->n_fds == (answer->share.size && !request->n_fds));
		need(request->type != CONTROL_TAKE || !answer->share.size);
	}
}

static void ask(
	struct answers *answers, const struct recording_header *header, const int pair[2])
{
	int fds[CONTROL_FDS_MAX] = { -1, -1, -1, -1 };
	struct control_message request, answer;

	make_request(&request);
	if (request.n_fds) {
		fds[0] = dup(pair[0]);
		need(fds[0] >= 0);
	}
	need(!answers_reply(answers, pair[0], &request, fds));
	if (request.type == CONTROL_DROP || request.type == CONTROL_LEAVE) {
		need(control_receive(pair[1], &answer, fds) == CONTROL_E_AGAIN);
		return;
	}
	need(!control_receive(pair[1], &answer, fds));
	check_answer(header, &request, &answer, fds);
	for (uint32_t i = 0; i < answer.n_fds; i++)
		vgpu_close(fds[i]);
}

static void answer_requests(
	const struct recording *start, const struct recording_header *header)
{
	const unsigned int n = reader_below(&input, REQUESTS_MAX);
	struct answers answers;
	int pair[2], r;

	r = answers_read(&answers, *start, header);
	need(!r || r == -E2BIG);
	if (r)
		return;
	need(answers.n_messages <= ANSWERS_MAX && answers.n_images <= ANSWERS_IMAGES_MAX);
	need(!socketpair(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	for (unsigned int i = 0; i < n; i++)
		ask(&answers, header, pair);
	close(pair[0]);
	close(pair[1]);
	answers_deinit(&answers);
}

/*
 * All of it
 */

static void walk(const struct recording *start, const struct recording_header *header,
	struct findings *findings)
{
	struct recording recording = *start;
	struct expected expected = { .is_exact = true };
	unsigned int counts[_RECORDING_N] = {}, n = 0;
	struct recording_item item;
	size_t end_of_last = recording.at;
	int r;

	for (; !(r = recording_next(&recording, header, &item)); n++) {
		need(item.at == end_of_last);
		end_of_last = recording.at;
		check_item(header, &item);
		counts[item.type]++;
		if (item.type == RECORDING_BEGIN)
			findings_begin(
				findings, counts[RECORDING_BEGIN], reader_u16(&input));
		else if (item.type == RECORDING_END)
			compare_end(findings, &item, &expected);
		else if (item.type == RECORDING_OUTPUT)
			compare_output(findings, &item, &expected);
	}
	check_end(&recording, r);
	check_summary(start, header, counts, r);
	check_findings(findings, &expected);
	if (recording.size > start->at)
		need(read_in_parts(start->bytes, start->size, r) == n);
}

/* Lines go to memory. */
static void replay(const struct recording *start, const struct recording_header *header)
{
	struct findings findings = {
		.n_lines_max = reader_below(&input, LINES_MAX),
		.is_quiet = !reader_below(&input, 8),
	};
	FILE *kept = stdout;
	char *text = NULL;
	size_t size = 0;

	stdout = open_memstream(&text, &size);
	need(stdout);
	walk(start, header, &findings);
	fclose(stdout);
	stdout = kept;
	check_lines(text, size, &findings);
	free(text);
}

/* Whether descriptors were left is seen by the lowest one that is free. */
static int lowest_free(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	need(fd >= 0);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording_header header;
	struct recording recording;
	uint8_t *copy;
	int fd, r;

	fd = lowest_free();
	input = (struct reader){ .bytes = data, .size = size };
	if (reader_below(&input, 16))
		make_file();
	else
		take_file();
	/* Of its own size, so that nothing behind it is read unseen. */
	copy = malloc(file_size ? file_size : 1);
	need(copy);
	memcpy(copy, file, file_size);
	r = recording_open(&recording, copy, file_size, &header);
	if (r) {
		need(r != RECORDING_E_END);
		check_end(&recording, r);
	} else {
		check_header(&header);
		replay(&recording, &header);
		answer_requests(&recording, &header);
	}
	free(copy);
	need(lowest_free() == fd);
	return 0;
}
