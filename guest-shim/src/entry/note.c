/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF note: which libcuda this is
 *
 * The release, the version of the CUDA API, the version of the protocol, and the revision
 * of the source. The host refuses a driver that carries the note, so that a worker whose
 * library path leads to this library never talks to itself.
 */

#include <assert.h>

#include "vgpu/note.h"
#include "vgpu/ring-layout.h"

#include "g-revision.h"

static_assert(VGPU_PROTOCOL_VERSION == 3u, "the text names the version");

VGPU_NOTE_DEFINE("libcuda " VGPU_VERSION " api 13.0 protocol 3 revision " REVISION);
