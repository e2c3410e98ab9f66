/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version: what this build speaks
 *
 * Copies of all programs that are linked with another version test that releases work
 * together, see tests/skew.
 */

#include "vgpu/version.h"

const struct vgpu_version vgpu_version = {
	.minor = VGPU_PROTOCOL_MINOR,
	.features = VGPU_FEATURE_UNKNOWN_CALLS,
};
