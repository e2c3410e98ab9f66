/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF note: which libcuda this is
 *
 * Owner "vGPU", type 1, and a text: the release, the version of the CUDA API, the version
 * of the protocol, and the revision of the source. The host refuses a driver that carries
 * it, so that a worker whose library path leads to this library never talks to itself.
 */

#include <assert.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

#include "g-revision.h"

#define NOTE_TEXT "libcuda " VGPU_VERSION " api 13.0 protocol 3 revision " REVISION

static_assert(VGPU_PROTOCOL_VERSION == 3u, "the text names the version");

struct note {
	uint32_t name_size;
	uint32_t text_size;
	uint32_t type;
	char name[8];
	char text[(sizeof(NOTE_TEXT) + 3) / 4 * 4];
};

__attribute__((__used__, __section__(".note.vgpu"),
	__aligned__(4))) static const struct note note = {
	.name_size = sizeof("vGPU"),
	.text_size = sizeof(NOTE_TEXT),
	.type = 1,
	.name = "vGPU",
	.text = NOTE_TEXT,
};
