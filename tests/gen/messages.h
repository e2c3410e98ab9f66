/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All messages of the protocol (g-messages.c, generated)
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

struct message_pair {
	uint32_t call;
	const ProtobufCMessageDescriptor *request;
	const ProtobufCMessageDescriptor *reply;
};

extern const struct message_pair message_pairs[];
extern const size_t n_message_pairs;
