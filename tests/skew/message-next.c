/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replies of a later release's worker, which have one more field each
 */

#define vgpu_message_pack pack_known
/* The file itself, with a function under another name. */
#include "../../protocol/src/message.c"
#undef vgpu_message_pack

#include "later-field.h"
#include "vgpu/ring-layout.h"

size_t vgpu_message_pack(const ProtobufCMessage *message, uint8_t *out);

size_t vgpu_message_pack(const ProtobufCMessage *message, uint8_t *out)
{
	size_t size = pack_known(message, out);

	if (size + LATER_FIELD_SIZE > VGPU_REPLY_MAX)
		return size;
	later_field_put(out + size);
	return size + LATER_FIELD_SIZE;
}
