/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages: what protobuf-c packs and unpacks, in a fraction of its time
 *
 * Nearly all that travels are messages of plain numbers and bytes, one of each field, in
 * the order of their numbers. These functions go through such a message once, guided by
 * protobuf-c's own descriptor of it; for any other they call protobuf-c. The bytes are
 * the same either way, and so is what is read from them.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Returns: room that the packed message surely fits. */
size_t vgpu_message_bound(const ProtobufCMessage *message);

/* As protobuf_c_message_pack(). Return: the packed size. */
size_t vgpu_message_pack(const ProtobufCMessage *message, uint8_t *out);

/*
 * Like protobuf_c_message_unpack(), with an allocator that frees all memory at once: a
 * message that turns out not to be plain leaves allocations behind.
 */
ProtobufCMessage *vgpu_message_unpack(const ProtobufCMessageDescriptor *type,
	ProtobufCAllocator *allocator, size_t size, const uint8_t *data);
