/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exports of a program with its own protobuf-c (of another version) and logging: if
 * libcuda binds to any of them, the program dies
 */

#include <stdlib.h>

#define TRAP(_name)                                                                      \
	void _name(void);                                                                \
	__attribute__((__visibility__("default"))) void _name(void)                      \
	{                                                                                \
		abort();                                                                 \
	}                                                                                \
	struct require_semicolon_

TRAP(protobuf_c_message_pack);
TRAP(protobuf_c_message_unpack);
TRAP(protobuf_c_message_get_packed_size);
TRAP(protobuf_c_message_init_generic);
TRAP(protobuf_c_message_check);
TRAP(protobuf_c_version);
TRAP(vgpu_log);
TRAP(vgpu_log_init);
TRAP(vgpu_ring_reserve);
TRAP(vgpu_ring_commit);
TRAP(shim_open);
