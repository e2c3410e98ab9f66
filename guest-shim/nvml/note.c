/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF note: which libnvidia-ml this is
 *
 * The release, the version of the protocol, and the revision of the source.
 */

#include <assert.h>

#include "vgpu/note.h"
#include "vgpu/ring-layout.h"

#include "g-revision.h"

static_assert(VGPU_PROTOCOL_VERSION == 3u, "the text names the version");

VGPU_NOTE_DEFINE("libnvidia-ml " VGPU_VERSION " protocol 3 revision " REVISION);
