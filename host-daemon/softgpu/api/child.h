/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Children: what kernels ask of the device runtime
 */

#include "api/api.h"
#include "exec/service.h"

/* Operations that kernels of a context have submitted and that are not complete: CUDA's
 * default for CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, and the most it may be. Each
 * takes up to 32 KiB of parameters. */
#define CHILD_PENDING_DEFAULT 2048u
#define CHILD_PENDING_MAX 16384u

/* Device memory of a context for the parameters of launches that are being made. */
#define CHILD_PARAMETERS_SIZE (8u << 20)

/* Streams, and events, of one grid: destroyed ones count, so that no number comes twice.
 * A grid of many blocks may have one of each in every block. */
#define CHILD_HANDLES_MAX 65536u

/* The hook; it runs in the thread that runs the block. */
int child_serve(const struct softgpu_launch *launch, struct softgpu_request *request);

/* child-copy.c: copies and fills, which are checked and submitted. */
int child_copy(const struct softgpu_launch *launch, struct softgpu_request *request);

/* child-query.c: what only reads. */
int child_query(const struct softgpu_launch *launch, struct softgpu_request *request);

/* Submits an operation to the stream with that handle. */
int child_submit(const struct softgpu_launch *launch,
	const struct softgpu_request *request, uint64_t stream,
	const struct sched_op *template);

/* Return: the kernel at that address, decoded; NULL with *errorp. */
CUfunction child_function(
	const struct softgpu_launch *launch, uint64_t address, int *errorp);
