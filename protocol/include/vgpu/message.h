/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages: packing and unpacking of protobuf messages in a fraction of protobuf-c's time
 *
 * Nearly all messages consist of plain numbers and bytes, one of each field, in
 * the order of their numbers. These functions go through such a message once, guided by
 * protobuf-c's own descriptor of it; for any other they call protobuf-c. The bytes, and
 * the messages read from them, are the same either way.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Returns: room that the packed message surely fits. */
size_t vgpu_message_bound(const ProtobufCMessage *message);

/* As protobuf_c_message_pack(). Return: the packed size. */
size_t vgpu_message_pack(const ProtobufCMessage *message, uint8_t *out);

/*
 * Like protobuf_c_message_unpack(), with an allocator that frees all memory at once: for
 * a message that turns out not to be plain some allocations are not freed separately.
 */
ProtobufCMessage *vgpu_message_unpack(const ProtobufCMessageDescriptor *type,
	ProtobufCAllocator *allocator, size_t size, const uint8_t *data);
