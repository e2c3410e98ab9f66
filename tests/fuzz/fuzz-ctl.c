/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: messages of vgpuctl and vgpud
 *
 * The first byte of the input is the kind of the message, the rest is the packet. A
 * message that is accepted keeps all limits, and is accepted again after it was packed,
 * unless it has unknown fields: protobuf-c accepts the number 0 in three bytes, and packs
 * it in one, which it refuses.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "control/ctl-message.h"

/* Packed again, a message has no more bytes than before, or a few times as many where
 * its packet had numbers of fewer bytes than they need. */
#define PACKED_MAX (4u * CTL_REPLY_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t packed[PACKED_MAX];

static void promise(bool kept)
{
	if (!kept)
		abort();
}

static size_t pack(const ProtobufCMessage *message)
{
	const size_t size = protobuf_c_message_get_packed_size(message);

	promise(size <= PACKED_MAX);
	promise(protobuf_c_message_pack(message, packed) == size);
	return size;
}

static bool has_unknown(const ProtobufCMessage *message);

/* Whether a field is a message, or has messages, with unknown fields. */
static bool is_with_unknown(
	const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const uint8_t *member = (const uint8_t *)message + field->offset;
	const uint8_t *quantifier = (const uint8_t *)message + field->quantifier_offset;

	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return false;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
		*(const uint32_t *)quantifier != field->id)
		return false;
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return has_unknown(*(const ProtobufCMessage *const *)member);
	for (size_t i = 0; i < *(const size_t *)quantifier; i++)
		if (has_unknown((*(const ProtobufCMessage *const *const *)member)[i]))
			return true;
	return false;
}

static bool has_unknown(const ProtobufCMessage *message)
{
	if (!message)
		return false;
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++)
		if (is_with_unknown(message, &message->descriptor->fields[i]))
			return true;
	return message->n_unknown_fields;
}

static void check_line(const char *text, size_t size_max)
{
	promise(strlen(text) <= size_max);
	for (; *text; text++)
		promise((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_settings(size_t n, VgpuCtl__Setting **settings)
{
	promise(n <= CTL_SETTINGS_MAX);
	for (size_t i = 0; i < n; i++) {
		check_line(settings[i]->key, 63);
		check_line(settings[i]->value, CTL_VALUE_MAX);
	}
}

static void try_request(const uint8_t *data, size_t size)
{
	const char *reason;
	VgpuCtl__Request *request = ctl_request_new(data, size, &reason), *again;

	promise((request == NULL) == (reason != NULL));
	if (!request)
		return;
	promise(size <= CTL_REQUEST_MAX);
	if (request->verb_case == VGPU_CTL__REQUEST__VERB_SET) {
		check_line(request->set->vm, 63);
		check_settings(request->set->n_settings, request->set->settings);
	}
	if (request->verb_case == VGPU_CTL__REQUEST__VERB_ADD)
		promise(strlen(request->add->text) <= CTL_TEXT_MAX);
	size = pack(&request->base);
	again = size <= CTL_REQUEST_MAX ? ctl_request_new(packed, size, &reason) : NULL;
	promise(size > CTL_REQUEST_MAX || again || has_unknown(&request->base));
	promise(!again || again->verb_case == request->verb_case);
	ctl_request_freep(&again);
	ctl_request_freep(&request);
}

static void try_reply(const uint8_t *data, size_t size)
{
	const char *reason;
	VgpuCtl__Reply *reply = ctl_reply_new(data, size, &reason), *again;

	promise((reply == NULL) == (reason != NULL));
	if (!reply)
		return;
	promise(strlen(reply->reason) <= CTL_TEXT_MAX);
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_LIST)
		promise(reply->list->n_vms <= CTL_VMS_MAX);
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_SHOW) {
		promise(reply->show->vm && reply->show->n_sessions <= CTL_SESSIONS_MAX);
		check_settings(reply->show->n_settings, reply->show->settings);
	}
	size = pack(&reply->base);
	again = size <= CTL_REPLY_MAX ? ctl_reply_new(packed, size, &reason) : NULL;
	promise(size > CTL_REPLY_MAX || again || has_unknown(&reply->base));
	ctl_reply_freep(&again);
	ctl_reply_freep(&reply);
}

static void try_hello(const uint8_t *data, size_t size)
{
	const char *reason;
	VgpuCtl__Hello *hello = ctl_hello_new(data, size, &reason);

	promise((hello == NULL) == (reason != NULL));
	if (!hello)
		return;
	check_line(hello->release, CTL_VALUE_MAX);
	check_line(hello->reason, CTL_VALUE_MAX);
	check_line(hello->config, CTL_TEXT_MAX);
	ctl_hello_freep(&hello);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (*data == 'r')
		try_request(data + 1, size - 1);
	else if (*data == 'a')
		try_reply(data + 1, size - 1);
	else
		try_hello(data + 1, size - 1);
	return 0;
}
