/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Resources: multiprocessors of a device, and descriptors of sets of them
 */

#include "api/api.h"

/* Fills in the resource for a set; NULL: all of the device. */
CUresult resource_get(CUdevice device, const struct sched_sms *sms,
	CUdevResource *resource, CUdevResourceType type);

/* Return: whether there is such a descriptor, for that device. */
bool resource_desc_get(CUdevResourceDesc desc, CUdevice device, struct sched_sms *sms);
