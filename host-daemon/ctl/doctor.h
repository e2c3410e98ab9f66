/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doctor: whether a host has what vgpud and its virtual machines need
 */

#include "vgpu/finding.h"
#include "vgpud/config.h"

struct doctor {
	const char *root; /* of the files that are looked at, "" for this host's */
	const struct config *config; /* NULL: there is none */
	unsigned int pid;	     /* of vgpud, 0: it does not run */
	struct vgpu_findings found;
};

/* Each looks at one subject, and adds at least one finding. */
void doctor_look_at_kvm(struct doctor *doctor);
void doctor_look_at_io_uring(struct doctor *doctor);
void doctor_look_at_driver(struct doctor *doctor);
void doctor_look_at_memory(struct doctor *doctor);
void doctor_look_at_groups(struct doctor *doctor);
void doctor_look_at_hugepages(struct doctor *doctor);
void doctor_look_at_files(struct doctor *doctor);
void doctor_look_at_programs(struct doctor *doctor);
