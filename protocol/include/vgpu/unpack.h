/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Unpacking single fields of a message
 *
 * For messages as vgpu/pack.h writes them: fields in ascending order of their numbers,
 * each at most once, none empty. Each function consumes its field if it is next, and
 * returns the rest: the same place if another field is next, or if the field is damaged
 * or extends beyond `end`. So a caller that has tried all fields has read the whole
 * message if it has reached `end`, and otherwise leaves it to vgpu_message_unpack().
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vgpu/pack.h"

/* A varint. Return: the place after it, or NULL. */
static inline const uint8_t *vgpu_take_varint(
	const uint8_t *in, const uint8_t *end, uint64_t *valuep)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64 && in < end; shift += 7) {
		uint8_t byte = *in++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*valuep = value;
			return in;
		}
	}
	return NULL;
}

/* Inlined always: their locals then need neither memory nor a guard of the stack. */
#define VGPU_TAKE static inline __attribute__((__always_inline__)) const uint8_t *

/* Returns: the size of the tag where the field comes next, else 0. */
static inline size_t vgpu_tag_of(
	const uint8_t *in, const uint8_t *end, uint32_t number, uint32_t wire)
{
	const uint32_t tag = number << 3 | wire;

	if (tag < 0x80)
		return in < end && in[0] == tag;
	return end - in >= 2 && in[0] == (uint8_t)(tag | 0x80) && in[1] == tag >> 7 ? 2
										    : 0;
}

VGPU_TAKE vgpu_take_number(
	const uint8_t *in, const uint8_t *end, uint32_t number, uint64_t *valuep)
{
	size_t tag = vgpu_tag_of(in, end, number, VGPU_WIRE_VARINT);
	const uint8_t *rest = tag ? vgpu_take_varint(in + tag, end, valuep) : NULL;

	return rest ? rest : in;
}

VGPU_TAKE vgpu_take_fixed64(
	const uint8_t *in, const uint8_t *end, uint32_t number, uint64_t *valuep)
{
	size_t tag = vgpu_tag_of(in, end, number, VGPU_WIRE_FIXED64);

	if (!tag || (size_t)(end - in) < tag + sizeof(*valuep))
		return in;
	memcpy(valuep, in + tag, sizeof(*valuep));
	return in + tag + sizeof(*valuep);
}

/* The bytes stay where they are: not aligned, and there as long as the message. */
VGPU_TAKE vgpu_take_bytes(const uint8_t *in, const uint8_t *end, uint32_t number,
	ProtobufCBinaryData *bytes)
{
	size_t tag = vgpu_tag_of(in, end, number, VGPU_WIRE_BYTES);
	const uint8_t *data = in + tag;
	uint64_t size = 0;

	/* Nearly always the size has one byte. */
	if (tag && data < end && *data < 0x80)
		size = *data++;
	else if (!tag || !(data = vgpu_take_varint(data, end, &size)))
		return in;
	if (!size || size > (size_t)(end - data))
		return in;
	bytes->len = size;
	bytes->data = (uint8_t *)data;
	return data + size;
}

/* Generated for messages of numbers and bytes, by call id. */
struct vgpu_unpacker {
	const ProtobufCMessageDescriptor *type; /* NULL: there is no unpacker */
	/* Returns: the message, or NULL if vgpu_message_unpack() has to decide. Its bytes
	 * point into `data`. */
	ProtobufCMessage *(*unpack)(
		ProtobufCAllocator *allocator, size_t size, const uint8_t *data);
};

extern const struct vgpu_unpacker vgpu_request_unpacker[];
extern const struct vgpu_unpacker vgpu_reply_unpacker[];

/* As vgpu_message_unpack(), by that unpacker if it is one for the type. Either way what
 * was unpacked may point into `data`. */
ProtobufCMessage *vgpu_unpack(const struct vgpu_unpacker *unpacker,
	const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	size_t size, const uint8_t *data);
