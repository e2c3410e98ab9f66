/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Version: what both sides of a session agree on in the hello
 *
 * The major version, VGPU_PROTOCOL_VERSION, has to be equal. Within it each side names
 * its minor version, and the lower of the two is in force: a guest makes no call and
 * relies on no field that was added later. A feature is a bit that the guest offers and
 * the host takes; it is in force if both have it. What may change in a minor version:
 * docs/compatibility.md.
 */

#include <stdint.h>

/* Grows with each addition to the protocol, and begins at 0 again with a new major one.
 */
#define VGPU_PROTOCOL_MINOR 1u

/* The host replies to calls that it does not know with CUDA_ERROR_NOT_SUPPORTED. A host
 * without it ends the session. */
#define VGPU_FEATURE_UNKNOWN_CALLS (1ull << 0)

struct vgpu_version {
	uint32_t minor;
	uint64_t features;
};

/* What this build has; in a file of its own, which tests replace. */
extern const struct vgpu_version vgpu_version;

/* Returns: what is in force between this side and the other one. */
static inline struct vgpu_version vgpu_version_agree(uint32_t minor, uint64_t features)
{
	return (struct vgpu_version){
		.minor = minor < vgpu_version.minor ? minor : vgpu_version.minor,
		.features = features & vgpu_version.features,
	};
}
