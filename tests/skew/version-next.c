/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version: what a later release speaks, with a feature that this one does not have
 */

#include "vgpu/version.h"

#define FEATURE_NEXT (1ull << 62)

const struct vgpu_version vgpu_version = {
	.minor = VGPU_PROTOCOL_MINOR + 1,
	.features = VGPU_FEATURE_UNKNOWN_CALLS | FEATURE_NEXT,
};
