/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: what protobuf-c packs and unpacks, in a fraction of its time
 *
 * Messages come from the other side: nothing is read beyond their end, and any that
 * differs from what these functions would have written is left to protobuf-c.
 */

#include <stdbool.h>
#include <string.h>

#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/unpack.h"

/* Tags of the numbers in use have one or two bytes. */
#define TAG_TWO_BYTES 0x4000u

static const void *member_of(
	const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return (const uint8_t *)message + field->offset;
}

/*
 * Packing
 */

size_t vgpu_message_bound(const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	size_t bound = 0;

	for (unsigned int i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		const ProtobufCBinaryData *bytes = member_of(message, field);

		bound += VGPU_FIELD_MAX;
		if (field->label != PROTOBUF_C_LABEL_NONE ||
			field->type == PROTOBUF_C_TYPE_STRING)
			return protobuf_c_message_get_packed_size(message);
		if (field->type == PROTOBUF_C_TYPE_BYTES)
			bound += bytes->len;
	}
	return bound;
}

/* Returns: the place after the field, or NULL for a field of another kind. Comparisons,
 * most frequent first, are faster than a jump table. */
static uint8_t *put_field(
	uint8_t *out, const ProtobufCFieldDescriptor *field, const void *member)
{
	if (field->label != PROTOBUF_C_LABEL_NONE)
		return NULL;
	if (field->type == PROTOBUF_C_TYPE_FIXED64)
		return vgpu_put_fixed64(out, field->id, *(const uint64_t *)member);
	if (field->type == PROTOBUF_C_TYPE_BYTES)
		return vgpu_put_bytes(out, field->id, member);
	if (field->type == PROTOBUF_C_TYPE_UINT32)
		return vgpu_put_number(out, field->id, *(const uint32_t *)member);
	/* A negative one is sent with 64 bits. */
	if (field->type == PROTOBUF_C_TYPE_INT32)
		return vgpu_put_number(
			out, field->id, (uint64_t) * (const int32_t *)member);
	if (field->type == PROTOBUF_C_TYPE_UINT64)
		return vgpu_put_number(out, field->id, *(const uint64_t *)member);
	return NULL;
}

size_t vgpu_message_pack(const ProtobufCMessage *message, uint8_t *out)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	uint8_t *end = out;

	for (unsigned int i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];

		end = put_field(end, field, member_of(message, field));
		if (!end)
			return protobuf_c_message_pack(message, out);
	}
	return (size_t)(end - out);
}

/*
 * Unpacking
 */

/* The unread rest. */
struct input {
	const uint8_t *data;
	const uint8_t *end;
};

static bool take_varint(struct input *input, uint64_t *valuep)
{
	const uint8_t *rest = vgpu_take_varint(input->data, input->end, valuep);

	if (!rest)
		return false;
	input->data = rest;
	return true;
}

static bool take_fixed64(struct input *input, uint64_t *valuep)
{
	if ((size_t)(input->end - input->data) < sizeof(*valuep))
		return false;
	memcpy(valuep, input->data, sizeof(*valuep));
	input->data += sizeof(*valuep);
	return true;
}

static bool take_bytes(
	struct input *input, ProtobufCAllocator *allocator, ProtobufCBinaryData *bytes)
{
	uint64_t size;

	if (!take_varint(input, &size) || !size ||
		size > (size_t)(input->end - input->data))
		return false;
	bytes->data = allocator->alloc(allocator->allocator_data, size);
	if (!bytes->data)
		return false;
	bytes->len = size;
	memcpy(bytes->data, input->data, size);
	input->data += size;
	return true;
}

static bool take_number(
	struct input *input, const ProtobufCFieldDescriptor *field, void *member)
{
	uint64_t value;

	if (!take_varint(input, &value))
		return false;
	if (field->type == PROTOBUF_C_TYPE_UINT64)
		*(uint64_t *)member = value;
	else if (field->type == PROTOBUF_C_TYPE_UINT32 ||
		 field->type == PROTOBUF_C_TYPE_INT32)
		*(uint32_t *)member = (uint32_t)value;
	else
		return false;
	return true;
}

static bool take_value(struct input *input, ProtobufCAllocator *allocator,
	const ProtobufCFieldDescriptor *field, uint32_t wire, void *member)
{
	if (field->label != PROTOBUF_C_LABEL_NONE)
		return false;
	if (wire == VGPU_WIRE_FIXED64)
		return field->type == PROTOBUF_C_TYPE_FIXED64 &&
		       take_fixed64(input, member);
	if (wire == VGPU_WIRE_BYTES)
		return field->type == PROTOBUF_C_TYPE_BYTES &&
		       take_bytes(input, allocator, member);
	return wire == VGPU_WIRE_VARINT && take_number(input, field, member);
}

/* Fields have to be in ascending order of their numbers, each once. */
static bool take_fields(
	struct input *input, ProtobufCAllocator *allocator, ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	unsigned int i = 0;

	for (; input->data < input->end; i++) {
		const ProtobufCFieldDescriptor *field;
		uint64_t tag;

		if (!take_varint(input, &tag) || tag >= TAG_TWO_BYTES)
			return false;
		while (i < type->n_fields && type->fields[i].id < tag >> 3)
			i++;
		if (i == type->n_fields)
			return false;
		field = &type->fields[i];
		if (field->id != tag >> 3 || !take_value(input, allocator, field, tag & 7,
						     (uint8_t *)message + field->offset))
			return false;
	}
	return true;
}

ProtobufCMessage *vgpu_message_unpack(const ProtobufCMessageDescriptor *type,
	ProtobufCAllocator *allocator, size_t size, const uint8_t *data)
{
	struct input input = { data, data + size };
	ProtobufCMessage *message;

	message = allocator->alloc(allocator->allocator_data, type->sizeof_message);
	if (!message)
		return NULL;
	type->message_init(message);
	if (take_fields(&input, allocator, message))
		return message;
	return protobuf_c_message_unpack(type, allocator, size, data);
}

ProtobufCMessage *vgpu_unpack(const struct vgpu_unpacker *unpacker,
	const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	size_t size, const uint8_t *data)
{
	ProtobufCMessage *message = NULL;

	if (unpacker->type == type)
		message = unpacker->unpack(allocator, size, data);
	return message ? message : vgpu_message_unpack(type, allocator, size, data);
}
