/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doctor: whether programs in this virtual machine can use the vGPU
 *
 * Each look adds findings about one subject, and leaves what later looks need. Files of
 * the system are those below a root, which is not this system's in tests, and where an
 * image of a guest is examined.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "vgpu/finding.h"

#define DOCTOR_GROUPS_MAX 256
/* The host may have to start its driver, and an emulated machine is slow. */
#define DOCTOR_SECONDS 180u

struct doctor {
	const char *root; /* "" for this system */
	struct vgpu_findings found;

	/* The user who asks. */
	uid_t uid;
	gid_t groups[DOCTOR_GROUPS_MAX];
	unsigned int n_groups;

	/* How long the calls of a library may take. */
	unsigned int seconds;

	/* Whether the PCI devices were looked at, and none can be ours. */
	bool has_no_device;

	/* The transport of the way to the host, NULL: there is none; and whether vgpud is
	 * alive at its end. */
	const char *transport;
	bool is_reached;

	/* The file that should be libcuda.so.1 for programs, and whether it is ours;
	 * empty: none. */
	char libcuda[PATH_MAX];
	bool is_ours;
};

/* The user of this process, and its groups. */
void doctor_init(struct doctor *doctor, const char *root);
void doctor_deinit(struct doctor *doctor);

/* All looks of this system, or those that make sense for an image below the root. */
void doctor_look(struct doctor *doctor);

/* PCI devices: ours, foreign ones, none. */
void doctor_look_at_devices(struct doctor *doctor);
/* The kernel's driver, and what prevents loading it. */
void doctor_look_at_driver(struct doctor *doctor);
/* Whether the user is in the group of the device, now or after the next login. */
void doctor_look_at_group(struct doctor *doctor);
/* Opens the way that programs would, and looks at the host behind it. */
void doctor_look_at_way(struct doctor *doctor);
/* Which files the loader gives to programs, and who put others before ours. */
void doctor_look_at_libraries(struct doctor *doctor);
/* Calls of libcuda.so.1, a kernel, and calls of libnvidia-ml.so.1. */
void doctor_look_at_calls(struct doctor *doctor);
void doctor_look_at_nvml(struct doctor *doctor);
