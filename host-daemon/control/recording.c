/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: what one guest process asked of its worker, as a file
 */

#include <string.h>

#include "control/recording.h"
#include "vgpu/checked.h"
#include "vgpu/frame.h"
#include "vgpu/hello.h"
#include "vgpu/ring-layout.h"

/* Odd, with bits all over: a product spreads each bit of the word upwards, and the shift
 * brings them down again. */
#define SUM_FACTOR 0x9e3779b97f4a7c15ull

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * SUM_FACTOR;
	return sum ^ (sum >> 29);
}

uint64_t recording_sum(uint64_t sum, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t word;

	/* The length counts: zeros at the end make a difference. */
	sum = mix(sum, size);
	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = mix(sum, word);
	}
	word = 0;
	/* Without bytes there may be no address either. */
	if (size)
		memcpy(&word, at, size);
	return mix(sum, word);
}

uint64_t recording_record_sum(uint32_t type, const void *first, size_t first_size,
	const void *second, size_t second_size)
{
	return recording_sum(
		recording_sum(mix(type, 0), first, first_size), second, second_size);
}

/* Where the payload has a fixed part and any number of bytes. */
static size_t fixed_size(uint32_t type)
{
	switch (type) {
	case RECORDING_HEADER:
		return sizeof(struct recording_header);
	case RECORDING_BEGIN:
		return sizeof(struct recording_call);
	case RECORDING_END:
		return sizeof(struct recording_end);
	case RECORDING_MEMORY:
		return sizeof(struct recording_memory);
	case RECORDING_OUTPUT:
		return sizeof(struct recording_output);
	case RECORDING_WORDS:
		return 0;
	case RECORDING_IMAGE:
		return sizeof(struct recording_image);
	case RECORDING_ANSWER:
		return sizeof(struct control_message);
	case RECORDING_NOTE:
		return sizeof(struct recording_note);
	case RECORDING_FAULT:
		return sizeof(struct recording_fault);
	default:
		return sizeof(struct recording_close);
	}
}

static bool has_bytes(uint32_t type)
{
	return type == RECORDING_BEGIN || type == RECORDING_MEMORY ||
	       type == RECORDING_WORDS || type == RECORDING_IMAGE;
}

static int break_off(struct recording *recording, const char *reason)
{
	recording->reason = reason;
	return RECORDING_E_BROKEN;
}

/* Gets a record with the right sum. */
static int take(struct recording *recording, struct recording_item *item)
{
	const size_t left = recording->size - recording->at;
	const uint8_t *at = recording->bytes + recording->at;
	struct recording_record record;

	if (!left)
		return RECORDING_E_END;
	if (left < sizeof(record))
		return RECORDING_E_CUT;
	memcpy(&record, at, sizeof(record));
	if (record.type == _RECORDING_NONE || record.type >= _RECORDING_N)
		return break_off(recording, "a record is of no known kind");
	if (record.size > RECORDING_PAYLOAD_MAX)
		return break_off(recording, "a record is too long");
	if (record.size < fixed_size(record.type) ||
		(!has_bytes(record.type) && record.size != fixed_size(record.type)))
		return break_off(recording, "a record has a wrong length");
	if (record.size > left - sizeof(record))
		return RECORDING_E_CUT;
	*item = (struct recording_item){
		.type = record.type,
		.size = record.size,
		.payload = at + sizeof(record),
		.at = recording->at,
	};
	if (recording_record_sum(record.type, item->payload, fixed_size(record.type),
		    item->payload + fixed_size(record.type),
		    record.size - fixed_size(record.type)) != record.sum)
		return break_off(recording, "a record does not match its checksum");
	recording->at += sizeof(record) + record.size;
	return 0;
}

static bool is_text(const char *text, size_t size)
{
	const size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return length < size;
}

bool recording_has_extents(
	const struct recording_header *header, uint32_t first, uint32_t n)
{
	const struct control_assign *assign = &header->assign;

	return vgpu_range_within(
		first, n, 0, (assign->shm_size - assign->extents_off) / VGPU_EXTENT_SIZE);
}

static bool is_sane(const struct recording_header *header)
{
	const struct control_assign *assign = &header->assign;

	return is_text(header->release, sizeof(header->release)) &&
	       is_text(header->driver, sizeof(header->driver)) &&
	       is_text(header->device, sizeof(header->device)) &&
	       is_text(header->name, sizeof(header->name)) &&
	       is_text(header->check, sizeof(header->check)) &&
	       is_text(assign->vm, sizeof(assign->vm)) &&
	       is_text(assign->guest_comm, sizeof(assign->guest_comm)) &&
	       /* So that sums with it do not overflow. */
	       assign->shm_size < 1ull << 47 &&
	       vgpu_window_is_sane(
		       assign->window_base, assign->window_size, assign->shm_size) &&
	       /* Memory of records is in the extents, so none is written to the ring. */
	       vgpu_range_within(
		       assign->area_off, VGPU_AREA_SIZE, 0, assign->extents_off) &&
	       assign->extents_off <= assign->shm_size &&
	       !(assign->area_off % VGPU_EXTENT_SIZE) &&
	       !(assign->extents_off % VGPU_EXTENT_SIZE) &&
	       recording_has_extents(header, assign->first_extent, assign->n_extents);
}

int recording_open(struct recording *recording, const void *bytes, size_t size,
	struct recording_header *header)
{
	const size_t start = sizeof(struct recording_record);
	struct recording_item item;
	uint32_t version;
	int r;

	*recording = (struct recording){ .bytes = bytes, .size = size };
	/* Both are told first: what else a file of another version has is not known. */
	if (size < start + 12)
		return RECORDING_E_CUT;
	if (memcmp(recording->bytes + start, RECORDING_MAGIC, sizeof(RECORDING_MAGIC)))
		return break_off(recording, "it is not a recording");
	memcpy(&version, recording->bytes + start + 8, sizeof(version));
	if (version != RECORDING_VERSION)
		return break_off(recording,
			"it is of another version, which a vgpu-replay of the release "
			"that recorded it can read");
	r = take(recording, &item);
	if (r)
		return r;
	if (item.type != RECORDING_HEADER)
		return break_off(recording, "it does not begin with a header");
	memcpy(header, item.payload, sizeof(*header));
	return is_sane(header) ? 0 : break_off(recording, "its header makes no sense");
}

static bool is_frame(const struct recording_item *item)
{
	const size_t start = sizeof(struct recording_call);
	struct vgpu_frame frame;

	if (item->size - start < sizeof(frame) || item->size - start > VGPU_FRAME_MAX)
		return false;
	memcpy(&frame, item->payload + start, sizeof(frame));
	return frame.size == item->size - start && frame.call != VGPU_CALL_PAD &&
	       frame.lane < VGPU_SLOTS_MAX;
}

static bool is_memory(
	const struct recording_item *item, const struct recording_header *header)
{
	const size_t start = sizeof(struct recording_memory);
	struct recording_memory memory;

	memcpy(&memory, item->payload, start);
	/* Where vgpud and the channel have theirs is no memory of the guest. */
	return item->size > start && memory.offset >= header->assign.extents_off &&
	       vgpu_range_within(
		       memory.offset, item->size - start, 0, header->assign.shm_size);
}

static bool are_words(const struct recording_item *item)
{
	struct recording_word word;

	if (item->size % sizeof(word))
		return false;
	for (uint32_t at = 0; at < item->size; at += sizeof(word)) {
		memcpy(&word, item->payload + at, sizeof(word));
		if (word.offset > VGPU_AREA_SIZE - 8 || word.offset % 4)
			return false;
	}
	return true;
}

static bool is_image(const struct recording_item *item)
{
	struct recording_image image;

	memcpy(&image, item->payload, sizeof(image));
	return item->size > sizeof(image) && image.size <= CONTROL_IMAGE_SIZE_MAX &&
	       vgpu_range_within(image.offset, item->size - sizeof(image), 0, image.size);
}

/* For a terminal. */
static bool is_fault(const struct recording_item *item)
{
	struct recording_fault fault;

	memcpy(&fault, item->payload, sizeof(fault));
	return is_text(fault.text, sizeof(fault.text));
}

int recording_next(struct recording *recording, const struct recording_header *header,
	struct recording_item *item)
{
	int r;

	r = take(recording, item);
	if (r)
		return r;
	if (item->type == RECORDING_HEADER)
		return break_off(recording, "it has a second header");
	if (item->type == RECORDING_BEGIN && !is_frame(item))
		return break_off(recording, "a call has no frame that a guest can send");
	if (item->type == RECORDING_MEMORY && !is_memory(item, header))
		return break_off(recording, "it has memory that the guest did not have");
	if (item->type == RECORDING_WORDS && !are_words(item))
		return break_off(recording, "it has words where there are none");
	if (item->type == RECORDING_IMAGE && !is_image(item))
		return break_off(recording, "it has a piece of no image");
	if (item->type == RECORDING_FAULT && !is_fault(item))
		return break_off(recording, "it has a fault that is no text");
	return 0;
}

static void note(struct recording_summary *summary, const struct recording_item *item)
{
	struct recording_close close;
	struct recording_note note;

	switch (item->type) {
	case RECORDING_BEGIN:
		summary->n_calls++;
		break;
	case RECORDING_END:
		summary->n_ended++;
		break;
	case RECORDING_OUTPUT:
		summary->n_outputs++;
		break;
	case RECORDING_MEMORY:
		summary->memory += item->size - sizeof(struct recording_memory);
		break;
	case RECORDING_FAULT:
		summary->n_faults++;
		break;
	case RECORDING_NOTE:
		memcpy(&note, item->payload, sizeof(note));
		summary->is_uncovered |= note.kind == RECORDING_NOTE_UNCOVERED;
		summary->is_overlapping |= note.kind == RECORDING_NOTE_OVERLAP;
		break;
	case RECORDING_CLOSE:
		memcpy(&close, item->payload, sizeof(close));
		summary->is_closed = true;
		summary->close_reason = close.reason;
		break;
	}
}

int recording_summarise(struct recording *recording,
	const struct recording_header *header, struct recording_summary *summary)
{
	struct recording_item item;
	int r;

	*summary = (struct recording_summary){};
	while (!(r = recording_next(recording, header, &item)))
		note(summary, &item);
	return r;
}
