/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every message of the protocol
 *
 * Messages are filled through their descriptors, a different value in every field,
 * so this file knows none of them. The largest value of each field shows the bound
 * of the packed size; the generator's seeds show that Python and C agree.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "test.h"
#include "vgpu/frame.h"
#include "vgpu/g-calls.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/launch.h"
#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/ring-layout.h"
#include "vgpu/unpack.h"

#define REPEATED 3

static uint64_t numbers[REPEATED];
static uint8_t bytes[VGPU_FRAME_MAX];

static void set_number(void *member, ProtobufCType type, uint64_t value)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FLOAT:
		memcpy(member, &(uint32_t){ value }, sizeof(uint32_t));
		break;
	default:
		memcpy(member, &value, sizeof(value));
	}
}

static size_t size_of_number(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FLOAT:
		return sizeof(uint32_t);
	default:
		return sizeof(uint64_t);
	}
}

/* The number of elements of a repeated field. */
static size_t *count_of(
	const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
	return (size_t *)((char *)message + field->quantifier_offset);
}

/* Gives each field a value: its number plus `base`, or text of that length. */
static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *type, uint64_t base)
{
	ProtobufCMessage *message = calloc(1, type->sizeof_message);

	check(message);
	protobuf_c_message_init(type, message);
	for (unsigned int i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		void *member = (char *)message + field->offset;
		size_t size = size_of_number(field->type);

		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			for (int k = 0; k < REPEATED; k++) {
				void *number = (char *)numbers + k * size;

				set_number(number, field->type, base + k);
			}
			*count_of(field, message) = REPEATED;
			*(void **)member = numbers;
		} else if (field->type == PROTOBUF_C_TYPE_STRING) {
			*(char **)member = (char *)field->name;
		} else if (field->type == PROTOBUF_C_TYPE_BYTES) {
			*(ProtobufCBinaryData *)member =
				(ProtobufCBinaryData){ .len = 20, .data = bytes };
		} else {
			set_number(member, field->type, base + field->id);
		}
	}
	return message;
}

static void check_same_field(const ProtobufCFieldDescriptor *field,
	const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	const char *x = (const char *)a + field->offset;
	const char *y = (const char *)b + field->offset;
	size_t size = size_of_number(field->type);

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		check_eq(*count_of(field, b), REPEATED);
		check(!memcmp(*(void **)x, *(void **)y, REPEATED * size));
	} else if (field->type == PROTOBUF_C_TYPE_STRING) {
		check_str(*(char **)x, *(char **)y);
	} else if (field->type == PROTOBUF_C_TYPE_BYTES) {
		check_eq(((ProtobufCBinaryData *)y)->len, 20);
		check(!memcmp(((ProtobufCBinaryData *)y)->data, bytes, 20));
	} else {
		check(!memcmp(x, y, size));
	}
}

static void check_round_trip(const ProtobufCMessageDescriptor *type, size_t max)
{
	_Alignas(16) uint8_t packed[4096];
	ProtobufCMessage *message = fill(type, 1000), *back;
	size_t size = protobuf_c_message_get_packed_size(message);

	check(size <= sizeof(packed));
	check(size <= max);
	check_eq(protobuf_c_message_pack(message, packed), size);
	back = protobuf_c_message_unpack(type, NULL, size, packed);
	check(back);
	for (unsigned int i = 0; i < type->n_fields; i++)
		check_same_field(&type->fields[i], message, back);
	protobuf_c_message_free_unpacked(back, NULL);
	free(message);
}

TEST(every_request_comes_back_as_it_went)
{
	check(n_message_pairs > 50);
	for (size_t i = 0; i < n_message_pairs; i++)
		check_round_trip(message_pairs[i].request, VGPU_FRAME_MAX);
}

TEST(every_reply_comes_back_as_it_went)
{
	for (size_t i = 0; i < n_message_pairs; i++)
		check_round_trip(message_pairs[i].reply, VGPU_REPLY_MAX);
}

/* Frees nothing: what is unpacked here is freed as one. */
static void *take(void *data, size_t size)
{
	static _Alignas(16) uint8_t arena[1 << 16];
	size_t *used = data, at = *used;

	*used += (size + 15) & ~(size_t)15;
	return *used <= sizeof(arena) ? arena + at : NULL;
}

static void give_back(void *data, void *memory)
{
}

/* Fields of number 2000 in each form of a value: a number, 8 bytes, a text, 4 bytes. */
static const char *const later_fields[] = { "\x80\x7d\x01",
	"\x81\x7d"
	"12345678",
	"\x82\x7d\x04more",
	"\x85\x7d"
	"1234" };

static void check_skips(const struct vgpu_unpacker *unpacker,
	const ProtobufCMessageDescriptor *type, const char *later)
{
	uint8_t packed[4096 + 16];
	ProtobufCMessage *message = fill(type, 1000), *back;
	size_t used = 0, size = protobuf_c_message_pack(message, packed);
	ProtobufCAllocator allocator = { take, give_back, &used };

	memcpy(packed + size, later, strlen(later));
	size += strlen(later);
	back = vgpu_unpack(unpacker, type, &allocator, size, packed);
	check(back);
	check_eq(back->n_unknown_fields, 1);
	for (unsigned int i = 0; i < type->n_fields; i++)
		check_same_field(&type->fields[i], message, back);
	free(message);
}

TEST(fields_of_a_later_release_are_skipped)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		const struct message_pair *pair = &message_pairs[i];

		for (size_t k = 0; k < sizeof(later_fields) / sizeof(char *); k++) {
			check_skips(&vgpu_request_unpacker[pair->call], pair->request,
				later_fields[k]);
			check_skips(&vgpu_reply_unpacker[pair->call], pair->reply,
				later_fields[k]);
		}
	}
}

TEST(no_number_packs_to_more_than_the_bound_of_its_request)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		const ProtobufCMessageDescriptor *type = message_pairs[i].request;
		ProtobufCMessage *message = fill(type, UINT64_MAX - 200);

		check(protobuf_c_message_get_packed_size(message) <=
			vgpu_call_request_max[message_pairs[i].call]);
		free(message);
	}
}

TEST(every_bound_leaves_room_in_a_frame)
{
	const size_t room = VGPU_FRAME_MAX - sizeof(struct vgpu_frame);

	for (size_t i = 0; i < _VGPU_CALL_N; i++)
		check(vgpu_call_request_max[i] <= room);
}

TEST(a_result_can_be_read_from_any_reply)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		const ProtobufCFieldDescriptor *field = message_pairs[i].reply->fields;

		check_eq(field->id, 1);
		check_str(field->name, "result");
		check_eq(field->type, PROTOBUF_C_TYPE_INT32);
	}
}

TEST(names_and_flags_are_those_of_the_description)
{
	check_str(vgpu_call_name(VGPU_CALL_cuMemAlloc_v2), "cuMemAlloc_v2");
	check_str(vgpu_call_name(_VGPU_CALL_N), "?");
	check_eq(vgpu_call_flags[VGPU_CALL_cuLaunchKernel],
		VGPU_CALL_F_REMOTED | VGPU_CALL_F_ASYNC | VGPU_CALL_F_STREAM_ORDERED |
			VGPU_CALL_F_CONTEXT | VGPU_CALL_F_IN_PLACE);
	check_eq(vgpu_call_flags[VGPU_CALL_cuStreamSynchronize],
		VGPU_CALL_F_REMOTED | VGPU_CALL_F_MAY_BLOCK | VGPU_CALL_F_CONTEXT |
			VGPU_CALL_F_IN_PLACE);
	check_eq(vgpu_call_flags[VGPU_CALL_cuGraphAddHostNode], 0);
	check_eq(vgpu_call_minor[VGPU_CALL_cuLaunchKernel], 0);
}

/* The folder of seeds is the value of SEEDS. */
TEST(every_seed_is_a_frame_whose_message_unpacks)
{
	const char *folder = getenv("SEEDS");

	if (!folder)
		test_skip("SEEDS is not set");
	for (size_t i = 0; i < n_message_pairs; i++) {
		_Alignas(16) uint8_t data[4096];
		const struct vgpu_frame *frame = (const void *)data;
		char path[4096];
		ProtobufCMessage *message;
		size_t size;
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", folder,
			vgpu_call_name(message_pairs[i].call));
		file = fopen(path, "rb");
		check(file);
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		check(size >= sizeof(*frame));
		check_eq(frame->size, size);
		check_eq(frame->call, message_pairs[i].call);
		check_eq(frame->flags & ~_VGPU_FRAME_FLAGS, 0);
		message = protobuf_c_message_unpack(message_pairs[i].request, NULL,
			size - sizeof(*frame), frame->body);
		check(message);
		check_eq(message->n_unknown_fields, 0);
		protobuf_c_message_free_unpacked(message, NULL);
	}
}

/*
 * vgpu/message.h compared with protobuf-c
 */

#define ARENA_SIZE (1u << 20)

static struct {
	size_t used;
	_Alignas(16) uint8_t memory[ARENA_SIZE];
} arena;

static void *arena_alloc(void *data, size_t size)
{
	uint8_t *memory = arena.memory + arena.used;

	if (size > ARENA_SIZE - arena.used)
		return NULL;
	arena.used += (size + 15) & ~(size_t)15;
	return memory;
}

static void arena_free(void *data, void *pointer)
{
}

static ProtobufCAllocator arena_allocator = { arena_alloc, arena_free, NULL };

static size_t check_same_pack(const ProtobufCMessage *message, uint8_t *packed)
{
	_Alignas(16) uint8_t ours[4096] = {};
	size_t size = protobuf_c_message_pack(message, packed);

	check(vgpu_message_bound(message) >= size);
	check_eq(vgpu_message_pack(message, ours), size);
	check(!memcmp(ours, packed, size));
	return size;
}

static void check_same_message(const ProtobufCMessageDescriptor *type,
	const ProtobufCMessage *message, const ProtobufCMessage *expected)
{
	_Alignas(16) uint8_t theirs[8192], ours[8192];
	size_t packed;

	check_eq(!message, !expected);
	if (!expected)
		return;
	check_eq(message->descriptor, type);
	check_eq(message->n_unknown_fields, expected->n_unknown_fields);
	packed = protobuf_c_message_get_packed_size(expected);
	check(packed <= sizeof(theirs));
	check_eq(protobuf_c_message_get_packed_size(message), packed);
	protobuf_c_message_pack(expected, theirs);
	protobuf_c_message_pack(message, ours);
	check(!memcmp(ours, theirs, packed));
}

/* The common result of all decoders for these bytes: a refusal, or a message that packs
 * to the same bytes. */
static void check_same_unpack(const ProtobufCMessageDescriptor *type,
	const struct vgpu_unpacker *unpacker, const uint8_t *data, size_t size)
{
	ProtobufCMessage *expected;

	arena.used = 0;
	expected = protobuf_c_message_unpack(type, &arena_allocator, size, data);
	check_same_message(
		type, vgpu_message_unpack(type, &arena_allocator, size, data), expected);
	check_same_message(type,
		vgpu_unpack(unpacker, type, &arena_allocator, size, data), expected);
}

/* Zeroes, small and large numbers, negative ones. */
static const uint64_t bases[] = { 0, 1, 100, 1000, 1ull << 31, UINT64_MAX - 200 };

#define N_BASES (sizeof(bases) / sizeof(bases[0]))

static void check_alike(
	const ProtobufCMessageDescriptor *type, const struct vgpu_unpacker *unpacker)
{
	_Alignas(16) uint8_t packed[4096];
	ProtobufCMessage *message = calloc(1, type->sizeof_message);

	protobuf_c_message_init(type, message);
	check_eq(check_same_pack(message, packed), 0);
	check_same_unpack(type, unpacker, packed, 0);
	free(message);
	for (size_t i = 0; i < N_BASES; i++) {
		message = fill(type, bases[i]);
		check_same_unpack(
			type, unpacker, packed, check_same_pack(message, packed));
		free(message);
	}
}

TEST(our_bytes_are_those_of_protobuf_c_for_every_message)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		check_alike(message_pairs[i].request,
			&vgpu_request_unpacker[message_pairs[i].call]);
		check_alike(message_pairs[i].reply,
			&vgpu_reply_unpacker[message_pairs[i].call]);
	}
}

static void check_packed(
	const struct vgpu_packer *packer, const ProtobufCMessage *message)
{
	_Alignas(16) uint8_t expected[4096], ours[4096] = {};
	size_t size = protobuf_c_message_pack(message, expected);

	check(packer->bound(message) >= size);
	check_eq(packer->pack(message, ours), size);
	check(!memcmp(ours, expected, size));
}

/* Returns: whether there is one. */
static bool check_packer(
	const struct vgpu_packer *packer, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *message;

	if (!packer->type)
		return false;
	check(packer->type == type);
	message = calloc(1, type->sizeof_message);
	protobuf_c_message_init(type, message);
	check_packed(packer, message);
	free(message);
	for (size_t k = 0; k < N_BASES; k++) {
		message = fill(type, bases[k]);
		check_packed(packer, message);
		free(message);
	}
	return true;
}

TEST(generated_packers_write_the_bytes_of_protobuf_c)
{
	unsigned int n_requests = 0, n_replies = 0;

	for (size_t i = 0; i < n_message_pairs; i++) {
		n_requests += check_packer(&vgpu_request_packer[message_pairs[i].call],
			message_pairs[i].request);
		n_replies += check_packer(&vgpu_reply_packer[message_pairs[i].call],
			message_pairs[i].reply);
	}
	check(n_requests > 100);
	check(n_replies > 100);
	check(vgpu_request_packer[VGPU_CALL_cuLaunchKernel].type);
	check(vgpu_request_unpacker[VGPU_CALL_cuLaunchKernel].type);
}

/* The generated decoders read these without the fallback, which would hide a useless
 * decoder. */
TEST(generated_unpackers_leave_nothing_that_was_packed_to_others)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		const struct vgpu_unpacker *unpacker =
			&vgpu_request_unpacker[message_pairs[i].call];
		_Alignas(16) uint8_t packed[4096];
		ProtobufCMessage *message;
		size_t size;

		if (!unpacker->type)
			continue;
		check(unpacker->type == message_pairs[i].request);
		arena.used = 0;
		message = fill(unpacker->type, UINT64_MAX - 200);
		size = protobuf_c_message_pack(message, packed);
		check(unpacker->unpack(&arena_allocator, size, packed));
		free(message);
	}
}

TEST(a_launch_of_nine_pointers_takes_two_cache_lines)
{
	Vgpu__CuLaunchKernelRequest request = VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;
	struct vgpu_launch_dims dims = { .axis = { { 9, 128 }, { 1, 1 }, { 1, 1 } } };

	request.f = UINT64_MAX;
	request.h_stream = UINT64_MAX;
	request.dims =
		(ProtobufCBinaryData){ vgpu_launch_dims_size(&dims), (uint8_t *)&dims };
	request.params = (ProtobufCBinaryData){ 9 * sizeof(uint64_t), bytes };
	check_eq(vgpu_frame_padded(
			 (uint32_t)(sizeof(struct vgpu_frame) +
				    protobuf_c_message_get_packed_size(&request.base))),
		2 * VGPU_CACHE_LINE);
}

/* Every truncation, every byte replaced; sanitizers detect reads beyond the end. */
static void check_damaged(const ProtobufCMessageDescriptor *type,
	const struct vgpu_unpacker *unpacker, const uint8_t *packed, size_t size)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

	for (size_t i = 0; i < size; i++) {
		uint8_t *copy = malloc(i ? i : 1);

		memcpy(copy, packed, i);
		check_same_unpack(type, unpacker, copy, i);
		free(copy);
		copy = malloc(size);
		for (size_t k = 0; k < sizeof(values); k++) {
			memcpy(copy, packed, size);
			copy[i] = values[k];
			check_same_unpack(type, unpacker, copy, size);
		}
		free(copy);
	}
}

static void check_all_damaged(
	const ProtobufCMessageDescriptor *type, const struct vgpu_unpacker *unpacker)
{
	_Alignas(16) uint8_t packed[4096];
	ProtobufCMessage *message = fill(type, 1000);

	check_damaged(type, unpacker, packed, protobuf_c_message_pack(message, packed));
	free(message);
}

TEST(damaged_messages_are_judged_as_protobuf_c_judges_them)
{
	for (size_t i = 0; i < n_message_pairs; i++) {
		check_all_damaged(message_pairs[i].request,
			&vgpu_request_unpacker[message_pairs[i].call]);
		check_all_damaged(message_pairs[i].reply,
			&vgpu_reply_unpacker[message_pairs[i].call]);
	}
}

/* Twice the same field, and in any other order: the last one counts. */
TEST(fields_in_another_order_are_read_as_protobuf_c_reads_them)
{
	_Alignas(16) uint8_t packed[8192];

	for (size_t i = 0; i < n_message_pairs; i++) {
		const ProtobufCMessageDescriptor *type = message_pairs[i].request;
		ProtobufCMessage *one = fill(type, 1000), *two = fill(type, 5);
		size_t size = protobuf_c_message_pack(one, packed);

		size += protobuf_c_message_pack(two, packed + size);
		check_same_unpack(type, &vgpu_request_unpacker[message_pairs[i].call],
			packed, size);
		free(one);
		free(two);
	}
}
