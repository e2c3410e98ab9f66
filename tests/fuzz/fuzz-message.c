/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: messages of all calls
 *
 * The input is the number of a call and a body. protobuf-c, vgpu_message_unpack() and the
 * generated function have to decode it alike: not at all, or to messages that pack to the
 * same bytes, also by vgpu_message_pack().
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "vgpu/frame.h"
#include "vgpu/message.h"
#include "vgpu/unpack.h"

/* Room for the largest body unpacked thrice, and packed again. */
#define ARENA_SIZE (1u << 24)
#define PACKED_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(16) uint8_t arena[ARENA_SIZE];
static size_t arena_used;

static void *arena_alloc(void *data, size_t size)
{
	uint8_t *memory = arena + arena_used;

	if (size > ARENA_SIZE - arena_used)
		abort();
	arena_used += (size + 15) & ~(size_t)15;
	return memory;
}

static void arena_free(void *data, void *pointer)
{
}

static ProtobufCAllocator allocator = { arena_alloc, arena_free, NULL };

static void promise(bool kept)
{
	if (!kept)
		abort();
}

static void compare(const ProtobufCMessage *message, const ProtobufCMessage *expected)
{
	static uint8_t theirs[PACKED_MAX], ours[PACKED_MAX];
	size_t packed = protobuf_c_message_get_packed_size(expected);

	promise(message->descriptor == expected->descriptor);
	promise(message->n_unknown_fields == expected->n_unknown_fields);
	promise(protobuf_c_message_get_packed_size(message) == packed);
	promise(packed <= PACKED_MAX);
	protobuf_c_message_pack(expected, theirs);
	protobuf_c_message_pack(message, ours);
	promise(!memcmp(ours, theirs, packed));
	if (message->n_unknown_fields)
		return;
	promise(vgpu_message_bound(message) >= packed);
	promise(vgpu_message_pack(message, ours) == packed);
	promise(!memcmp(ours, theirs, packed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *type;
	const struct vgpu_unpacker *unpacker;
	ProtobufCMessage *message, *generated, *expected;
	uint16_t call;

	if (size < sizeof(call) || size > VGPU_FRAME_MAX)
		return 0;
	memcpy(&call, data, sizeof(call));
	data += sizeof(call);
	size -= sizeof(call);
	type = message_pairs[call % n_message_pairs].request;
	arena_used = 0;
	expected = protobuf_c_message_unpack(type, &allocator, size, data);
	message = vgpu_message_unpack(type, &allocator, size, data);
	unpacker = &vgpu_request_unpacker[message_pairs[call % n_message_pairs].call];
	generated = vgpu_unpack(unpacker, type, &allocator, size, data);
	promise(!message == !expected);
	promise(!generated == !expected);
	if (!expected)
		return 0;
	compare(message, expected);
	compare(generated, expected);
	return 0;
}
