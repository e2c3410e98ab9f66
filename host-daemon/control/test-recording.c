/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: what a reader accepts
 */

#include <stdlib.h>
#include <string.h>

#include "control/recording.h"
#include "test.h"
#include "vgpu/frame.h"
#include "vgpu/hello.h"
#include "vgpu/ring-layout.h"

#define SHM_SIZE (64ull << 20)

static uint8_t file[1 << 16];
static size_t size;
static struct recording_header header;

static void put(uint32_t type, const void *first, size_t first_size, const void *second,
	size_t second_size)
{
	const struct recording_record record = {
		.size = (uint32_t)(first_size + second_size),
		.type = type,
		.sum = recording_record_sum(type, first, first_size, second, second_size),
	};

	memcpy(file + size, &record, sizeof(record));
	size += sizeof(record);
	memcpy(file + size, first, first_size);
	size += first_size;
	if (second_size)
		memcpy(file + size, second, second_size);
	size += second_size;
}

static void begin(void)
{
	header = (struct recording_header){
		.magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.assign = {
			.shm_size = SHM_SIZE,
			.area_off = 2 << 20,
			.extents_off = 6 << 20,
			.first_extent = 1,
			.n_extents = 2,
			.window_base = 0x550000000000ull,
			.window_size = SHM_SIZE + VGPU_WINDOW_DEVICE_MIN,
		},
	};
	size = 0;
	put(RECORDING_HEADER, &header, sizeof(header), NULL, 0);
}

static void put_call(uint64_t number, uint32_t frame_size)
{
	const struct recording_call call = { .number = number };
	uint8_t bytes[64] = {};
	const struct vgpu_frame frame = { .size = frame_size, .call = 7 };

	memcpy(bytes, &frame, sizeof(frame));
	put(RECORDING_BEGIN, &call, sizeof(call), bytes, 32);
}

static void put_memory(uint64_t offset, size_t n)
{
	static const uint8_t bytes[RECORDING_UNIT];
	const struct recording_memory memory = { .offset = offset };

	put(RECORDING_MEMORY, &memory, sizeof(memory), bytes, n);
}

/* Reads a private copy of exactly that length, so that sanitizers see more. */
static int read_all(size_t n, struct recording_summary *summary)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct recording recording;
	int r;

	memcpy(copy, file, n);
	r = recording_open(&recording, copy, n, &header);
	if (!r)
		r = recording_summarise(&recording, &header, summary);
	free(copy);
	return r;
}

static void fill(void)
{
	const struct recording_end end = { .number = 1, .call = 7 };
	const struct recording_close close = { .reason = VGPU_REASON_PROTOCOL };

	begin();
	put_call(1, 32);
	put_memory(8 << 20, RECORDING_UNIT);
	put(RECORDING_END, &end, sizeof(end), NULL, 0);
	put(RECORDING_CLOSE, &close, sizeof(close), NULL, 0);
}

TEST(a_complete_file_is_read_to_its_end)
{
	struct recording_summary summary;

	fill();
	check_eq(read_all(size, &summary), RECORDING_E_END);
	check_eq(summary.n_calls, 1);
	check_eq(summary.n_ended, 1);
	check_eq(summary.memory, RECORDING_UNIT);
	check(summary.is_closed);
	check_eq(summary.close_reason, VGPU_REASON_PROTOCOL);
}

/* At the end of a record the file is only shorter; anywhere else it is cut. */
TEST(a_file_that_is_cut_anywhere_is_no_damage)
{
	struct recording_summary summary;
	unsigned int n_ends = 0, n_cuts = 0;

	fill();
	for (size_t n = 0; n <= size; n++) {
		const int r = read_all(n, &summary);

		check(r == RECORDING_E_END || r == RECORDING_E_CUT);
		n_ends += r == RECORDING_E_END;
		n_cuts += r == RECORDING_E_CUT;
	}
	/* After the header and each of the four. */
	check_eq(n_ends, 5);
	check_eq(n_cuts, size + 1 - 5);
}

TEST(a_changed_byte_is_seen)
{
	struct recording_summary summary;

	fill();
	for (size_t i = 0; i < size; i++) {
		file[i] ^= 0x40;
		check(read_all(size, &summary) != RECORDING_E_END);
		file[i] ^= 0x40;
	}
	check_eq(read_all(size, &summary), RECORDING_E_END);
}

TEST(another_version_is_refused_whatever_follows)
{
	struct recording recording;
	const uint32_t version = RECORDING_VERSION + 1;

	fill();
	memcpy(file + sizeof(struct recording_record) + 8, &version, sizeof(version));
	check_eq(recording_open(&recording, file, size, &header), RECORDING_E_BROKEN);
	check(strstr(recording.reason, "of another version"));
	file[sizeof(struct recording_record)] = 'X';
	check_eq(recording_open(&recording, file, size, &header), RECORDING_E_BROKEN);
	check(strstr(recording.reason, "not a recording"));
}

TEST(lengths_and_places_are_checked_although_the_sums_are_right)
{
	struct recording_summary summary;
	struct recording_record record;
	struct recording_word word = { .offset = VGPU_AREA_SIZE };
	struct recording_fault fault = { .text = "a\nb" };

	begin();
	put_call(1, 33);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	begin();
	put_memory(SHM_SIZE - RECORDING_UNIT + 1, RECORDING_UNIT);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	/* Memory of vgpud and of the channel. */
	begin();
	put_memory(2 << 20, RECORDING_UNIT);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	begin();
	put_memory(UINT64_MAX - 8, RECORDING_UNIT);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	begin();
	put(RECORDING_WORDS, &word, 0, &word, sizeof(word));
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	/* Text is printed. */
	begin();
	put(RECORDING_FAULT, &fault, sizeof(fault), NULL, 0);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);
	begin();
	fault.text[1] = ' ';
	put(RECORDING_FAULT, &fault, sizeof(fault), NULL, 0);
	check_eq(read_all(size, &summary), RECORDING_E_END);
	check_eq(summary.n_faults, 1);
	begin();
	memset(fault.text, 'a', sizeof(fault.text));
	put(RECORDING_FAULT, &fault, sizeof(fault), NULL, 0);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	begin();
	put(RECORDING_HEADER, &header, sizeof(header), NULL, 0);
	check_eq(read_all(size, &summary), RECORDING_E_BROKEN);

	begin();
	record =
		(struct recording_record){ .size = UINT32_MAX, .type = RECORDING_MEMORY };
	memcpy(file + size, &record, sizeof(record));
	check_eq(read_all(size + sizeof(record), &summary), RECORDING_E_BROKEN);

	begin();
	record = (struct recording_record){ .size = 8, .type = _RECORDING_N };
	memcpy(file + size, &record, sizeof(record));
	check_eq(read_all(size + sizeof(record), &summary), RECORDING_E_BROKEN);
}

TEST(a_header_that_makes_no_sense_is_refused)
{
	struct recording recording;

	begin();
	header.assign.n_extents = 1000;
	size = 0;
	put(RECORDING_HEADER, &header, sizeof(header), NULL, 0);
	check_eq(recording_open(&recording, file, size, &header), RECORDING_E_BROKEN);

	begin();
	header.assign.shm_size = UINT64_MAX;
	size = 0;
	put(RECORDING_HEADER, &header, sizeof(header), NULL, 0);
	check_eq(recording_open(&recording, file, size, &header), RECORDING_E_BROKEN);

	begin();
	memset(header.driver, '\n', sizeof(header.driver));
	size = 0;
	put(RECORDING_HEADER, &header, sizeof(header), NULL, 0);
	check_eq(recording_open(&recording, file, size, &header), RECORDING_E_BROKEN);
}
