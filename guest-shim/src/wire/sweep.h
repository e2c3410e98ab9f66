/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sweep: report channels whose process is gone
 */

#include "wire/transport.h"

/* Writes the identity of this process into its entry, so that others can detect its
 * end. */
void shim_sweep_identify(struct vgpu_channel_entry *entry);

/* Looks at all channels once. Returns: how many it reported. */
unsigned int shim_sweep(struct shim_transport *transport);

/*
 * Starts a thread that sweeps once a second, where the transport is one on which the
 * host cannot see processes die. The transport must stay as it is from then on.
 */
void shim_sweep_start(struct shim_transport *transport);
