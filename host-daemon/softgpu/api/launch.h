/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launches: what is asked for, wherever it was said, and what becomes of it
 */

#include "api/api.h"

struct launch {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_size;
	bool is_cooperative;
	bool has_priority; /* of its own, not the stream's */
	int priority;	   /* as it was asked for */
	CUstream stream;
	/*
	 * Recorded by the launch, or NULL. A device may record them as soon as all blocks
	 * have said so, or have begun; here it happens when they have ended.
	 */
	CUevent events[2];
};

/* The limits of the device, and of this function. */
CUresult launch_check(CUfunction function, const struct launch *launch);

/* Copies the parameters, given in one of the two ways, to a block of the kernel's. */
CUresult launch_params(CUfunction function, void **params, void **extra, uint8_t *to);

/* All of the grid but where its parameters lie. */
void launch_describe(
	struct sched_grid *grid, CUfunction function, const struct launch *launch);

/* Return: 0 for a cluster of one block, which is the only one that there is. */
CUresult launch_cluster(unsigned int x, unsigned int y, unsigned int z);

/* Return: 0 for an attribute that is carried out or that is only a hint. */
CUresult launch_attribute(struct launch *launch, const CUlaunchAttribute *attribute);
