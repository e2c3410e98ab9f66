/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launches: what is asked for, wherever it was said, and what becomes of it
 */

#include "api/api.h"

struct launch {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3];   /* as it was asked for; all 0: it was not */
	uint32_t preferred[3]; /* another shape of clusters, which a device may prefer */
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

/*
 * The shape of the clusters of a launch, by its attribute or by its kernel; all 0 where
 * neither has one.
 *
 * Return: 0, or CUDA_ERROR_INVALID_CLUSTER_SIZE for one that the kernel cannot have.
 */
CUresult launch_cluster(
	CUfunction function, const struct launch *launch, uint32_t cluster[3]);

/* Return: 0 for an attribute that is carried out or that is only a hint. */
CUresult launch_attribute(struct launch *launch, const CUlaunchAttribute *attribute);
