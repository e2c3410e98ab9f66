/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder: what it writes, as a reader of recordings finds it
 */

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/recorder.h"

#define FILE_MAX (4u << 20)

static struct fixture fixture;
static struct session *const session = &fixture.session;
static uint64_t arena_off; /* of the first byte granted, in the shared memory */

/* The other end, which a thread reads. */
static uint8_t file[FILE_MAX];
static size_t file_size;
static int reader_fd;
static pthread_t reader;

static struct recording recording;
static struct recording_header header;
static struct recording_item item;

static void *read_file(void *data)
{
	ssize_t n;

	(void)data;
	while ((n = read(reader_fd, file + file_size, FILE_MAX - file_size)) > 0)
		file_size += (size_t)n;
	return NULL;
}

static void begin(void)
{
	int pair[2];

	fixture_init(&fixture);
	arena_off = fixture.arena - fixture.window.base;
	header = (struct recording_header){
		.magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.assign = {
			.shm_size = FIXTURE_SHM_SIZE,
			.area_off = FIXTURE_AREA_OFF,
			.extents_off = FIXTURE_EXTENTS_OFF,
			.first_extent = FIXTURE_FIRST_EXTENT,
			.n_extents = FIXTURE_N_EXTENTS,
			.window_base = fixture.window.base,
			.window_size = fixture.window.size,
		},
	};
	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	file_size = 0;
	reader_fd = pair[1];
	check_eq(pthread_create(&reader, NULL, read_file, NULL), 0);
	check_eq(recorder_start(session, pair[0], &header), 0);
	check(recorder_is_on(session->recorder));
}

/* Ends the recording and begins to read it. */
static void finish(void)
{
	recorder_free(session->recorder);
	session->recorder = NULL;
	pthread_join(reader, NULL);
	close(reader_fd);
	check(file_size < FILE_MAX);
	check_eq(recording_open(&recording, file, file_size, &header), 0);
}

/* The next record is of that type. */
static void next(uint32_t type)
{
	check_eq(recording_next(&recording, &header, &item), 0);
	check_eq(item.type, type);
}

static void end(void)
{
	check_eq(recording_next(&recording, &header, &item), RECORDING_E_END);
	fixture_deinit(&fixture);
}

#define FRAME_OF(_call)                                                                  \
	{                                                                                \
		.size = sizeof(struct vgpu_frame), .call = (_call)                       \
	}

static void scan(uint64_t offset, uint64_t size)
{
	recorder_scan(session, arena_off + offset, size);
}

static uint8_t *arena(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)fixture.arena + offset;
}

/* The next record is memory from there on. Return: its bytes. */
static const uint8_t *next_memory(uint64_t offset, size_t size)
{
	struct recording_memory memory;

	next(RECORDING_MEMORY);
	memcpy(&memory, item.payload, sizeof(memory));
	check_eq(memory.offset, arena_off + offset);
	check_eq(item.size, sizeof(memory) + size);
	return item.payload + sizeof(memory);
}

TEST(calls_have_their_frames_results_and_digests_of_replies)
{
	static const char reply[] = "a reply";
	const struct vgpu_frame frame = FRAME_OF(VGPU_CALL_cuMemAlloc_v2);
	struct recording_call call;
	struct recording_end ended;

	begin();
	recorder_take(session, 1, &frame);
	recorder_run(session, 1, &frame);
	recorder_end(session, 1, &frame, CUDA_ERROR_OUT_OF_MEMORY, reply, sizeof(reply));
	recorder_end(session, 2, &frame, CUDA_SUCCESS, NULL, 0);
	recorder_close(session, VGPU_REASON_PROTOCOL);
	finish();
	next(RECORDING_BEGIN);
	memcpy(&call, item.payload, sizeof(call));
	check_eq(call.number, 1);
	check_eq(item.size, sizeof(call) + sizeof(frame));
	check(!memcmp(item.payload + sizeof(call), &frame, sizeof(frame)));
	next(RECORDING_END);
	memcpy(&ended, item.payload, sizeof(ended));
	check_eq(ended.number, 1);
	check_eq(ended.call, VGPU_CALL_cuMemAlloc_v2);
	check_eq(ended.result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(ended.reply_size, sizeof(reply));
	check_eq(ended.digest, recording_sum(0, reply, sizeof(reply)));
	next(RECORDING_END);
	memcpy(&ended, item.payload, sizeof(ended));
	check_eq(ended.reply_size, UINT32_MAX);
	next(RECORDING_CLOSE);
	end();
}

TEST(memory_is_written_where_it_has_changed)
{
	begin();
	/* Zeros are what it has at first. */
	scan(0, 4096);
	memset(arena(RECORDING_UNIT), 7, 2 * RECORDING_UNIT);
	scan(0, 4096);
	/* Not again. */
	scan(0, 4096);
	/* One byte, which is the unit that it is in. */
	*arena(RECORDING_UNIT + 5) = 8;
	scan(RECORDING_UNIT + 9, 1);
	*arena(0) = 9;
	scan(RECORDING_UNIT, RECORDING_UNIT);
	scan(0, 1);
	/* Back to zeros. */
	*arena(0) = 0;
	scan(0, 1);
	finish();
	check_eq(next_memory(RECORDING_UNIT, 2 * RECORDING_UNIT)[0], 7);
	check_eq(next_memory(RECORDING_UNIT, RECORDING_UNIT)[5], 8);
	check_eq(next_memory(0, RECORDING_UNIT)[0], 9);
	check_eq(next_memory(0, RECORDING_UNIT)[0], 0);
	end();
}

TEST(large_memory_is_written_in_pieces)
{
	begin();
	memset(arena(0), 3, RECORDING_PIECE_MAX + RECORDING_UNIT);
	scan(0, 2 * RECORDING_PIECE_MAX);
	finish();
	check_eq(next_memory(0, RECORDING_PIECE_MAX)[100], 3);
	next_memory(RECORDING_PIECE_MAX, RECORDING_UNIT);
	end();
}

TEST(addresses_outside_of_the_shared_memory_are_not_looked_at)
{
	begin();
	recorder_scan(session, FIXTURE_SHM_SIZE, 1);
	recorder_scan(session, FIXTURE_SHM_SIZE - 1, 2);
	recorder_scan(session, UINT64_MAX, 2);
	recorder_scan(session, arena_off, UINT64_MAX);
	recorder_scan(session, arena_off, 0);
	recorder_touch(session, fixture.window.base - 8, 16);
	finish();
	end();
}

static CUhostFn host_fn;
static void *host_data;

/* It is called later, when the work before it is complete. */
static CUresult launch_host_func(CUstream stream, CUhostFn fn, void *data)
{
	(void)stream;
	host_fn = fn;
	host_data = data;
	return CUDA_SUCCESS;
}

TEST(what_the_device_writes_is_an_output_and_no_change)
{
	const struct vgpu_frame frame = FRAME_OF(VGPU_CALL_cuMemcpyDtoHAsync_v2);
	uint8_t bytes[2 * RECORDING_UNIT];
	struct recording_output output;

	begin();
	fixture.driver.table.cuLaunchHostFunc = launch_host_func;
	recorder_run(session, 5, &frame);
	recorder_touch(session, fixture.arena, sizeof(bytes));
	recorder_output(session, NULL);
	check(host_fn != NULL);
	memset(bytes, 6, sizeof(bytes));
	memcpy(arena(0), bytes, sizeof(bytes));
	host_fn(host_data);
	scan(0, sizeof(bytes));
	/* A look at one byte is none, nor is what a call before this one has touched. */
	host_fn = NULL;
	recorder_touch(session, fixture.arena, 1);
	recorder_output(session, NULL);
	recorder_touch(session, fixture.arena, 2);
	recorder_run(session, 6, &frame);
	recorder_output(session, NULL);
	check(host_fn == NULL);
	finish();
	next(RECORDING_OUTPUT);
	memcpy(&output, item.payload, sizeof(output));
	check_eq(output.number, 5);
	check_eq(output.offset, arena_off);
	check_eq(output.size, sizeof(bytes));
	check_eq(output.digest, recording_sum(0, bytes, sizeof(bytes)));
	end();
}

TEST(work_that_keeps_memory_makes_launches_read_any)
{
	const struct vgpu_frame copy = FRAME_OF(VGPU_CALL_cuMemcpyHtoDAsync_v2);
	const struct vgpu_frame graph = FRAME_OF(VGPU_CALL_cuGraphLaunch);

	begin();
	recorder_run(session, 1, &copy);
	recorder_touch(session, fixture.arena, 8);
	check(!recorder_follows_pointers(session->recorder));
	recorder_run(session, 2, &graph);
	recorder_touch(session, fixture.arena, 8);
	check(recorder_follows_pointers(session->recorder));
	finish();
	end();
}

static void set_word(uint32_t offset, uint64_t value)
{
	__atomic_store_n(
		(uint64_t *)(void *)(session->area + offset), value, __ATOMIC_RELAXED);
}

TEST(words_are_written_before_the_next_call_if_they_have_changed)
{
	const uint32_t second = VGPU_WORDS_OFF + sizeof(struct vgpu_word);
	const uint32_t record = VGPU_RECORDS_OFF + 3 * sizeof(uint64_t);
	const struct vgpu_frame frame = FRAME_OF(VGPU_CALL_cuCtxSynchronize);
	struct recording_word words[3];
	const uint32_t faults = offsetof(struct vgpu_channel_control, n_faults);

	begin();
	/* One that no work writes is not looked at. */
	set_word(second + sizeof(struct vgpu_word), 9);
	recorder_note_word(session->recorder, second);
	recorder_note_word(session->recorder, record);
	set_word(second, 5);
	set_word(record, 6);
	*(uint32_t *)(void *)(session->area + faults) = 2;
	recorder_take(session, 1, &frame);
	recorder_take(session, 2, &frame);
	set_word(second, 7);
	recorder_take(session, 3, &frame);
	finish();
	next(RECORDING_WORDS);
	check_eq(item.size, sizeof(words));
	memcpy(words, item.payload, sizeof(words));
	check_eq(words[0].offset, second);
	check_eq(words[0].value, 5);
	check_eq(words[0].is_short, 0);
	check_eq(words[1].offset, record);
	check_eq(words[1].value, 6);
	check_eq(words[2].offset, faults);
	check_eq(words[2].value, 2);
	check_eq(words[2].is_short, 1);
	next(RECORDING_BEGIN);
	next(RECORDING_BEGIN);
	next(RECORDING_WORDS);
	memcpy(words, item.payload, sizeof(*words));
	check_eq(item.size, sizeof(*words));
	check_eq(words[0].value, 7);
	next(RECORDING_BEGIN);
	end();
}

TEST(an_image_and_a_note_are_written_once)
{
	static uint8_t bytes[RECORDING_PIECE_MAX + 100];
	const uint8_t digest[CONTROL_DIGEST_SIZE] = { 1 },
		      other[CONTROL_DIGEST_SIZE] = {};
	const struct control_message answer = {
		.type = CONTROL_GRANT,
		.grant.n_extents = 3,
	};
	struct recording_image image;

	begin();
	recorder_image(session, digest, bytes, sizeof(bytes));
	recorder_image(session, digest, bytes, sizeof(bytes));
	recorder_image(session, other, bytes, 1);
	for (int i = 0; i < 2; i++) {
		recorder_note(session, RECORDING_NOTE_OVERLAP);
		recorder_note(session, RECORDING_NOTE_UNCOVERED);
	}
	recorder_answer(session, &answer);
	finish();
	for (uint64_t offset = 0; offset < sizeof(bytes); offset += RECORDING_PIECE_MAX) {
		next(RECORDING_IMAGE);
		memcpy(&image, item.payload, sizeof(image));
		check_eq(image.size, sizeof(bytes));
		check_eq(image.offset, offset);
		check_eq(item.size - sizeof(image), offset ? 100 : RECORDING_PIECE_MAX);
	}
	next(RECORDING_IMAGE);
	next(RECORDING_NOTE);
	next(RECORDING_NOTE);
	next(RECORDING_ANSWER);
	check(!memcmp(item.payload, &answer, sizeof(answer)));
	end();
}

TEST(a_reader_that_is_gone_ends_the_recording_alone)
{
	const struct vgpu_frame frame = FRAME_OF(VGPU_CALL_cuCtxSynchronize);
	int pair[2];

	fixture_init(&fixture);
	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	check_eq(recorder_start(session, pair[0], &header), 0);
	close(pair[1]);
	/* No signal, and no error: the session goes on. */
	recorder_take(session, 1, &frame);
	check(!recorder_is_on(session->recorder));
	recorder_run(session, 1, &frame);
	recorder_touch(session, fixture.arena, 8);
	recorder_output(session, NULL);
	recorder_end(session, 1, &frame, CUDA_SUCCESS, NULL, 0);
	recorder_note(session, RECORDING_NOTE_OVERLAP);
	recorder_close(session, VGPU_REASON_NONE);
	check(!recorder_is_on(session->recorder));
	recorder_free(session->recorder);
	session->recorder = NULL;
	check(!recorder_is_on(NULL));
	fixture_deinit(&fixture);
}
