/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No reply of a later release's worker is packed by a generated function, so all of them
 * pass vgpu_message_pack()
 */

#include "vgpu/g-calls.h"
#include "vgpu/pack.h"

const struct vgpu_packer vgpu_reply_packer[_VGPU_CALL_N];
