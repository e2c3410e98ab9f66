/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Guest: doctor --guest, of a machine as its host sees it, or of this machine
 */

#include "control/ctl-message.h"
#include "ctl/ctl.h"
#include "vgpu/finding.h"

/* Adds what the host sees of a machine. */
void guest_look(struct vgpu_findings *found, const VgpuCtl__Details *details);

/* Of that machine, or NULL: executes vgpu-doctor, for the machine that it runs on. */
enum ctl_status guest_doctor(const struct ctl_options *options, const char *vm);
