/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Packing single fields of a message
 *
 * The wire format is specified in the Protocol Buffers documentation ("Encoding"): a tag,
 * which is the field's number and the form of its value, then the value. proto3 does not
 * send a field that is zero or empty. With a constant number these functions become a few
 * instructions.
 *
 * Each writes at `out`, where there must be room, and returns the place after the field.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	VGPU_WIRE_VARINT = 0,
	VGPU_WIRE_FIXED64 = 1,
	VGPU_WIRE_BYTES = 2,
};

/* A tag and the longest number; tags of the numbers in use have one or two bytes. */
#define VGPU_FIELD_MAX 15u

static inline uint8_t *vgpu_put_varint(uint8_t *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*out++ = (uint8_t)(value | 0x80);
	*out++ = (uint8_t)value;
	return out;
}

static inline uint8_t *vgpu_put_tag(uint8_t *out, uint32_t number, uint32_t wire)
{
	return vgpu_put_varint(out, number << 3 | wire);
}

/* An int32 is sent with 64 bits, its sign extended. */
static inline uint8_t *vgpu_put_number(uint8_t *out, uint32_t number, uint64_t value)
{
	return value ? vgpu_put_varint(vgpu_put_tag(out, number, VGPU_WIRE_VARINT), value)
		     : out;
}

static inline uint8_t *vgpu_put_fixed64(uint8_t *out, uint32_t number, uint64_t value)
{
	if (!value)
		return out;
	out = vgpu_put_tag(out, number, VGPU_WIRE_FIXED64);
	memcpy(out, &value, sizeof(value));
	return out + sizeof(value);
}

/*
 * Copies bytes that were just written in words of eight: a wider load would stall until
 * all of them have left the store buffer, which also holds the earlier stores to the
 * ring, whose cache lines the other side has to give up first.
 */
static inline void vgpu_copy_words(uint8_t *out, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, data + i, sizeof(word));
		/* Keeps the compiler from making a call or vectors of it. */
		__asm__("" : "+r"(word));
		memcpy(out + i, &word, sizeof(word));
	}
}

/* The largest that is copied so. */
#define VGPU_WORDS_COPIED 256u

static inline uint8_t *vgpu_put_bytes(
	uint8_t *out, uint32_t number, const ProtobufCBinaryData *bytes)
{
	if (!bytes->len)
		return out;
	out = vgpu_put_varint(vgpu_put_tag(out, number, VGPU_WIRE_BYTES), bytes->len);
	if (bytes->len % sizeof(uint64_t) || bytes->len > VGPU_WORDS_COPIED)
		memcpy(out, bytes->data, bytes->len);
	else
		vgpu_copy_words(out, bytes->data, bytes->len);
	return out + bytes->len;
}

/* Generated for messages of numbers and bytes, by call id; for requests only where
 * packing reads no memory of the program. */
struct vgpu_packer {
	const ProtobufCMessageDescriptor *type; /* NULL: there is no packer */
	/* Returns: room that the packed message surely fits. */
	size_t (*bound)(const ProtobufCMessage *message);
	/* As vgpu_message_pack(). */
	size_t (*pack)(const ProtobufCMessage *message, uint8_t *out);
};

extern const struct vgpu_packer vgpu_request_packer[];
extern const struct vgpu_packer vgpu_reply_packer[];
