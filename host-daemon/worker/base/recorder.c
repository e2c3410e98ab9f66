/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder: writes what a session does into a socket, see control/recording.h
 *
 * Each record is written at once, so that a worker which is killed has written the call
 * that it was in. A file of shared memory cannot be watched for writes of another
 * process, so changes are found by digests of small units, which are compared when
 * something is about to read them. A unit whose digest is not known yet has the digest 0,
 * which is that of zeros here: memory of a new session is empty.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "worker/base/graph-parts.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"

/* Parts of the arena that one call accesses; any further ones have no output. */
#define TOUCHED_MAX 8u
/* Images whose bytes were written. */
#define IMAGES_MAX 4096u
#define NO_REPLY UINT32_MAX
/* Graphs that a call names; it adds to the first one, or makes another. */
#define GRAPHS_MAX 4u

struct recorder {
	int fd;
	bool is_off; /* atomic */

	/* Guards all below but the atomic ones. */
	pthread_mutex_t lock;
	uint64_t *sums; /* of each unit of the shared memory */
	uint64_t n_units;
	uint64_t sum_of_zeros;		    /* of a unit; constant */
	uint8_t piece[RECORDING_PIECE_MAX]; /* memory that is being written */
	uint8_t (*images)[CONTROL_DIGEST_SIZE];
	uint32_t n_images;
	uint32_t notes; /* bits, by kind */
	struct graph_parts graphs;

	/* Of the dispatcher: the words as they were last written. */
	uint64_t *words;
	uint64_t *records;
	uint32_t n_faults;

	uint32_t n_words;   /* above the highest one in use; atomic */
	uint32_t n_records; /* the same; atomic */
	bool follows;	    /* atomic */
};

/* The call that this thread runs. */
static __thread struct {
	uint64_t number;
	bool keeps; /* memory, for work that is submitted later or waits */
	struct graph_part parts[TOUCHED_MAX];
	uint32_t n_parts;
	uint64_t graphs[GRAPHS_MAX]; /* that it names, in that order */
	uint32_t n_graphs;
	uint64_t made; /* the first graph that it has made, or 0 */
} running;

/* What the driver calls when a copy is complete. */
struct output {
	struct session *session;
	uint64_t number;
	struct graph_part part;
};

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	vgpu_close(recorder->fd);
	if (recorder->sums)
		munmap(recorder->sums, recorder->n_units * sizeof(*recorder->sums));
	graph_parts_deinit(&recorder->graphs);
	free(recorder->images);
	free(recorder->words);
	free(recorder->records);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder);
}

bool recorder_is_on(struct recorder *recorder)
{
	return recorder && !__atomic_load_n(&recorder->is_off, __ATOMIC_RELAXED);
}

/*
 * Records
 */

/* The reader sees the end of the file; with the lock. */
static void give_up_locked(struct recorder *recorder)
{
	__atomic_store_n(&recorder->is_off, true, __ATOMIC_RELAXED);
	recorder->fd = vgpu_close(recorder->fd);
	vgpu_log_info("the recording ends: nobody reads it any more");
}

static void skip(struct msghdr *message, size_t n)
{
	while (n && message->msg_iovlen) {
		struct iovec *part = message->msg_iov;
		const size_t size = n < part->iov_len ? n : part->iov_len;

		part->iov_base = (uint8_t *)part->iov_base + size;
		part->iov_len -= size;
		n -= size;
		if (part->iov_len)
			continue;
		message->msg_iov++;
		message->msg_iovlen--;
	}
}

static void put_locked(struct recorder *recorder, uint32_t type, const void *first,
	size_t first_size, const void *second, size_t second_size)
{
	struct recording_record record = {
		.size = (uint32_t)(first_size + second_size),
		.type = type,
		.sum = recording_record_sum(type, first, first_size, second, second_size),
	};
	struct iovec parts[] = {
		{ &record, sizeof(record) },
		{ (void *)first, first_size },
		{ (void *)second, second_size },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	size_t left = sizeof(record) + first_size + second_size;

	while (left && !recorder->is_off) {
		const ssize_t n = sendmsg(recorder->fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			give_up_locked(recorder);
			return;
		}
		skip(&message, (size_t)n);
		left -= (size_t)n;
	}
}

static void put(struct recorder *recorder, uint32_t type, const void *first,
	size_t first_size, const void *second, size_t second_size)
{
	pthread_mutex_lock(&recorder->lock);
	put_locked(recorder, type, first, first_size, second, second_size);
	pthread_mutex_unlock(&recorder->lock);
}

/*
 * Memory
 */

/* 0 for zeros. */
static uint64_t sum_of_unit(const struct recorder *recorder, const uint8_t *bytes)
{
	return recording_sum(0, bytes, RECORDING_UNIT) ^ recorder->sum_of_zeros;
}

/* A private copy: the guest may write meanwhile, and the digest is that of the copy. */
static void scan_locked(struct session *session, uint64_t offset, uint64_t size)
{
	struct recorder *recorder = session->recorder;
	const uint8_t *base = (const uint8_t *)(uintptr_t)session->window.base;
	uint8_t *const piece = recorder->piece;
	const uint64_t end = (offset + size + RECORDING_UNIT - 1) / RECORDING_UNIT;
	struct recording_memory memory = {};
	size_t n = 0;

	for (uint64_t unit = offset / RECORDING_UNIT; unit < end; unit++) {
		uint8_t *copy = piece + n;
		uint64_t sum;

		memcpy(copy, base + unit * RECORDING_UNIT, RECORDING_UNIT);
		sum = sum_of_unit(recorder, copy);
		if (sum != recorder->sums[unit]) {
			recorder->sums[unit] = sum;
			if (!n)
				memory.offset = unit * RECORDING_UNIT;
			n += RECORDING_UNIT;
			if (n < sizeof(recorder->piece) && unit + 1 < end)
				continue;
		}
		if (n)
			put_locked(recorder, RECORDING_MEMORY, &memory, sizeof(memory),
				piece, n);
		n = 0;
	}
}

void recorder_scan(struct session *session, uint64_t offset, uint64_t size)
{
	struct recorder *recorder = session->recorder;

	if (!recorder_is_on(recorder) || !size ||
		!vgpu_range_within(offset, size, 0, recorder->n_units * RECORDING_UNIT))
		return;
	pthread_mutex_lock(&recorder->lock);
	scan_locked(session, offset, size);
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_touch(struct session *session, uint64_t address, uint64_t size)
{
	const struct graph_part part = { address - session->window.base, size };

	if (!recorder_is_on(session->recorder))
		return;
	recorder_scan(session, part.offset, size);
	if (running.keeps || session_is_capturing(session))
		recorder_follow_pointers(session->recorder);
	/* A look at one byte only asks where it is. */
	if (size > 1 && running.n_parts < TOUCHED_MAX)
		running.parts[running.n_parts++] = part;
}

bool recorder_follows_pointers(struct recorder *recorder)
{
	return __atomic_load_n(&recorder->follows, __ATOMIC_RELAXED);
}

void recorder_follow_pointers(struct recorder *recorder)
{
	__atomic_store_n(&recorder->follows, true, __ATOMIC_RELAXED);
}

/* What the device has written is no change of the guest: a replay writes it, too. */
static void learn_locked(struct session *session, const struct graph_part *part)
{
	const uint8_t *base = (const uint8_t *)(uintptr_t)session->window.base;
	const uint64_t end = (part->offset + part->size) / RECORDING_UNIT;

	for (uint64_t unit = (part->offset + RECORDING_UNIT - 1) / RECORDING_UNIT;
		unit < end; unit++)
		session->recorder->sums[unit] =
			sum_of_unit(session->recorder, base + unit * RECORDING_UNIT);
}

/* A host function: it makes no calls of the driver. */
static void write_output(void *data)
{
	_vgpu_cleanup_(vgpu_freep) struct output *output = data;
	struct session *session = output->session;
	const struct recording_output record = {
		.number = output->number,
		.offset = output->part.offset,
		.size = output->part.size,
		.digest = recording_sum(0,
			(const void *)(uintptr_t)(session->window.base +
						  output->part.offset),
			output->part.size),
	};

	pthread_mutex_lock(&session->recorder->lock);
	learn_locked(session, &output->part);
	put_locked(session->recorder, RECORDING_OUTPUT, &record, sizeof(record), NULL, 0);
	pthread_mutex_unlock(&session->recorder->lock);
}

static void queue_output(
	struct session *session, CUstream stream, const struct graph_part *part)
{
	struct output *output = malloc(sizeof(*output));

	if (!output)
		return;
	*output = (struct output){ session, running.number, *part };
	if (session->driver->table.cuLaunchHostFunc(stream, write_output, output) !=
		CUDA_SUCCESS)
		free(output);
}

void recorder_output(struct session *session, CUstream stream)
{
	if (!recorder_is_on(session->recorder) || session_is_capturing(session) ||
		!session->driver->table.cuLaunchHostFunc)
		return;
	for (uint32_t i = 0; i < running.n_parts; i++)
		queue_output(session, stream, &running.parts[i]);
	running.n_parts = 0;
}

/*
 * Graphs
 */

void recorder_name_graph(struct session *session, uint64_t handle)
{
	(void)session;
	if (running.n_graphs < GRAPHS_MAX)
		running.graphs[running.n_graphs++] = handle;
}

void recorder_make_graph(struct session *session, uint64_t handle)
{
	struct recorder *recorder = session->recorder;

	pthread_mutex_lock(&recorder->lock);
	graph_parts_make(&recorder->graphs, handle);
	pthread_mutex_unlock(&recorder->lock);
	if (!running.made)
		running.made = handle;
}

static struct graph_parts_object *need_parts(struct graph_parts *graphs, uint64_t handle)
{
	struct graph_parts_object *object = graph_parts_find(graphs, handle);

	return object ? object : graph_parts_make(graphs, handle);
}

/* What was captured is in the graph now. */
static void end_capture_locked(struct session *session, struct graph_parts *graphs)
{
	const uint64_t handles[] = { running.made, graphs->to_graph };
	struct graph_parts_object *object;

	for (uint32_t i = 0; i < 2; i++) {
		object = handles[i] ? need_parts(graphs, handles[i]) : NULL;
		if (object)
			graph_parts_join(object, &graphs->captured);
	}
	if (session_is_capturing(session))
		return;
	graphs->captured.n = 0;
	graphs->to_graph = 0;
}

/* A call that has succeeded: its graph gets the parts that it has named, and those of
 * other graphs. */
static void keep_parts_locked(struct session *session, uint32_t call)
{
	struct graph_parts *graphs = &session->recorder->graphs;
	const uint32_t first = running.made ? 0 : 1;
	const uint64_t handle = running.made ? running.made : running.graphs[0];
	struct graph_parts_object *object, *other;

	if (call == VGPU_CALL_cuStreamEndCapture) {
		end_capture_locked(session, graphs);
		return;
	}
	if (call == VGPU_CALL_cuStreamBeginCaptureToGraph && running.n_graphs) {
		graphs->to_graph = running.graphs[0];
		return;
	}
	if (!running.keeps && session_is_capturing(session))
		object = &graphs->captured;
	else if (running.keeps && (running.made || running.n_graphs))
		object = need_parts(graphs, handle);
	else
		return;
	for (uint32_t i = 0; object && i < running.n_parts; i++)
		graph_parts_add(object, &running.parts[i]);
	for (uint32_t i = first; object && i < running.n_graphs; i++) {
		other = graph_parts_find(graphs, running.graphs[i]);
		if (other)
			graph_parts_join(object, other);
	}
}

void recorder_graph_output(struct session *session, uint64_t handle, CUstream stream)
{
	struct recorder *recorder = session->recorder;
	struct graph_parts_object *object, copy = {};

	if (!recorder_is_on(recorder) || !session->driver->table.cuLaunchHostFunc)
		return;
	pthread_mutex_lock(&recorder->lock);
	object = graph_parts_find(&recorder->graphs, handle);
	if (object && session_is_capturing(session))
		graph_parts_join(&recorder->graphs.captured, object);
	else if (object)
		copy = *object;
	pthread_mutex_unlock(&recorder->lock);
	for (uint32_t i = 0; i < copy.n; i++)
		queue_output(session, stream, &copy.parts[i]);
}

/*
 * Words
 */

static void raise(uint32_t *p, uint32_t n)
{
	uint32_t seen = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (seen < n && !__atomic_compare_exchange_n(p, &seen, n, false,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void recorder_note_word(struct recorder *recorder, uint32_t offset)
{
	if (offset >= VGPU_RECORDS_OFF)
		raise(&recorder->n_records,
			(offset - VGPU_RECORDS_OFF) / sizeof(uint64_t) + 1);
	else
		raise(&recorder->n_words,
			(offset - VGPU_WORDS_OFF) / sizeof(struct vgpu_word) + 1);
}

/* Words that are collected for one record. */
struct words {
	struct recorder *recorder;
	struct recording_word list[256];
	uint32_t n;
};

static void write_words(struct words *words)
{
	if (words->n)
		put_locked(words->recorder, RECORDING_WORDS, NULL, 0, words->list,
			words->n * sizeof(*words->list));
	words->n = 0;
}

static void add_word(struct words *words, uint32_t offset, uint64_t value, bool is_short)
{
	if (words->n == sizeof(words->list) / sizeof(*words->list))
		write_words(words);
	words->list[words->n++] = (struct recording_word){ offset, is_short, value };
}

/* Looks at a row of words, `stride` bytes apart. */
static void look_at_row(struct words *words, struct session *session, uint64_t *known,
	uint32_t n, uint32_t offset, uint32_t stride)
{
	for (uint32_t i = 0; i < n; i++, offset += stride) {
		const uint64_t *word = (const uint64_t *)(void *)(session->area + offset);
		const uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);

		if (value == known[i])
			continue;
		known[i] = value;
		add_word(words, offset, value, false);
	}
}

static void look_at_words_locked(struct session *session)
{
	const uint32_t faults_off = offsetof(struct vgpu_channel_control, n_faults);
	struct recorder *recorder = session->recorder;
	struct words words = { .recorder = recorder };
	const uint32_t n_faults = __atomic_load_n(
		(const uint32_t *)(void *)(session->area + faults_off), __ATOMIC_RELAXED);

	look_at_row(&words, session, recorder->words,
		__atomic_load_n(&recorder->n_words, __ATOMIC_RELAXED), VGPU_WORDS_OFF,
		sizeof(struct vgpu_word));
	look_at_row(&words, session, recorder->records,
		__atomic_load_n(&recorder->n_records, __ATOMIC_RELAXED), VGPU_RECORDS_OFF,
		sizeof(uint64_t));
	if (n_faults != recorder->n_faults) {
		recorder->n_faults = n_faults;
		add_word(&words, faults_off, n_faults, true);
	}
	write_words(&words);
}

/*
 * Calls
 */

void recorder_take(
	struct session *session, uint64_t number, const struct vgpu_frame *frame)
{
	struct recorder *recorder = session->recorder;
	const struct recording_call call = { .number = number };

	if (!recorder_is_on(recorder))
		return;
	pthread_mutex_lock(&recorder->lock);
	look_at_words_locked(session);
	put_locked(recorder, RECORDING_BEGIN, &call, sizeof(call), frame, frame->size);
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_run(
	struct session *session, uint64_t number, const struct vgpu_frame *frame)
{
	const char *name = vgpu_call_name(frame->call);

	(void)session;
	running.number = number;
	running.n_parts = 0;
	running.n_graphs = 0;
	running.made = 0;
	running.keeps = !strncmp(name, "cuGraph", 7) ||
			!strncmp(name, "cuStreamWaitValue", 17) ||
			!strncmp(name, "cuStreamBatchMemOp", 18);
}

void recorder_end(struct session *session, uint64_t number,
	const struct vgpu_frame *frame, CUresult result, const void *reply,
	size_t reply_size)
{
	const struct recording_end end = {
		.number = number,
		.call = frame->call,
		.result = (int32_t)result,
		.reply_size = reply ? (uint32_t)reply_size : NO_REPLY,
		.digest = reply ? recording_sum(0, reply, reply_size) : 0,
	};

	if (!recorder_is_on(session->recorder))
		return;
	pthread_mutex_lock(&session->recorder->lock);
	if (result == CUDA_SUCCESS)
		keep_parts_locked(session, frame->call);
	put_locked(session->recorder, RECORDING_END, &end, sizeof(end), NULL, 0);
	pthread_mutex_unlock(&session->recorder->lock);
}

/*
 * What comes from vgpud
 */

static bool is_new_locked(
	struct recorder *recorder, const uint8_t digest[CONTROL_DIGEST_SIZE])
{
	for (uint32_t i = 0; i < recorder->n_images; i++)
		if (!memcmp(recorder->images[i], digest, CONTROL_DIGEST_SIZE))
			return false;
	if (recorder->n_images < IMAGES_MAX)
		memcpy(recorder->images[recorder->n_images++], digest,
			CONTROL_DIGEST_SIZE);
	return true;
}

void recorder_image(struct session *session, const uint8_t digest[CONTROL_DIGEST_SIZE],
	const void *bytes, uint64_t size)
{
	struct recorder *recorder = session->recorder;
	struct recording_image image = { .size = size };

	if (!recorder_is_on(recorder))
		return;
	memcpy(image.digest, digest, sizeof(image.digest));
	pthread_mutex_lock(&recorder->lock);
	if (is_new_locked(recorder, digest))
		for (; image.offset < size; image.offset += RECORDING_PIECE_MAX) {
			const uint64_t left = size - image.offset;

			put_locked(recorder, RECORDING_IMAGE, &image, sizeof(image),
				(const uint8_t *)bytes + image.offset,
				left < RECORDING_PIECE_MAX ? left : RECORDING_PIECE_MAX);
		}
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_answer(struct session *session, const struct control_message *message)
{
	if (recorder_is_on(session->recorder))
		put(session->recorder, RECORDING_ANSWER, message, sizeof(*message), NULL,
			0);
}

void recorder_note(struct session *session, enum recording_note_kind kind)
{
	struct recorder *recorder = session->recorder;
	const struct recording_note note = { .kind = kind };

	if (!recorder_is_on(recorder))
		return;
	pthread_mutex_lock(&recorder->lock);
	if (!(recorder->notes & 1u << kind))
		put_locked(recorder, RECORDING_NOTE, &note, sizeof(note), NULL, 0);
	recorder->notes |= 1u << kind;
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_fault(struct session *session, int result, const char *text)
{
	struct recording_fault fault = { .result = result };

	if (!recorder_is_on(session->recorder))
		return;
	/* Names in it come from the guest. */
	for (uint32_t i = 0; text[i] && i < sizeof(fault.text) - 1; i++)
		fault.text[i] = text[i] < ' ' || text[i] > '~' ? ' ' : text[i];
	put(session->recorder, RECORDING_FAULT, &fault, sizeof(fault), NULL, 0);
}

void recorder_close(struct session *session, uint32_t reason)
{
	const struct recording_close close = { .reason = reason };

	if (recorder_is_on(session->recorder))
		put(session->recorder, RECORDING_CLOSE, &close, sizeof(close), NULL, 0);
}

/*
 * Start
 */

int recorder_start(struct session *session, int fd, const struct recording_header *header)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder) {
		vgpu_close(fd);
		return vgpu_error_origin(-ENOMEM);
	}
	recorder->fd = fd;
	pthread_mutex_init(&recorder->lock, NULL);
	recorder->n_units = session->shm_size / RECORDING_UNIT;
	recorder->sum_of_zeros =
		recording_sum(0, (const uint8_t[RECORDING_UNIT]){}, RECORDING_UNIT);
	/* Pages appear where the guest has memory that is used. */
	recorder->sums = mmap(NULL, recorder->n_units * sizeof(*recorder->sums),
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);
	if (recorder->sums == MAP_FAILED)
		recorder->sums = NULL;
	recorder->images = calloc(IMAGES_MAX, sizeof(*recorder->images));
	recorder->words = calloc(VGPU_WORDS_MAX, sizeof(*recorder->words));
	recorder->records = calloc(VGPU_RECORDS_MAX, sizeof(*recorder->records));
	if (!recorder->sums || !recorder->images || !recorder->words ||
		!recorder->records) {
		recorder_free(recorder);
		return vgpu_error_origin(-ENOMEM);
	}
	put(recorder, RECORDING_HEADER, header, sizeof(*header), NULL, 0);
	session->recorder = recorder;
	return 0;
}
