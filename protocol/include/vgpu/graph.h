/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graphs as they travel
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/launch.h"

/* Nodes or edges named in one request: what leaves room in a frame for the parameters of
 * a kernel. Of more the guest makes several requests. */
#define VGPU_GRAPH_LIST_MAX 1024u

/* Nodes and edges in one reply to vgpuGraphList, and nodes in one about a capture: what
 * fits a reply slot. */
#define VGPU_GRAPH_PAGE 75u
#define VGPU_CAPTURE_PAGE 100u

/* Bytes of a kernel's parameters in one reply. */
#define VGPU_GRAPH_PARAMS_PAGE 1500u

/* The list that vgpuGraphList returns. */
enum vgpu_graph_list {
	VGPU_GRAPH_NODES,
	VGPU_GRAPH_ROOTS,
	VGPU_GRAPH_EDGES,	 /* nodes are the origins, others the ends */
	VGPU_GRAPH_DEPENDENCIES, /* of a node */
	VGPU_GRAPH_DEPENDENTS,
	_VGPU_GRAPH_LIST_N,
};

/*
 * The parameters of a node, in the field `detail`, by the node's kind
 *
 *	kernel		struct vgpu_launch_dims, without flags
 *	memcpy		CUDA_MEMCPY3D, arrays being the guest's handles
 *	memset		CUDA_MEMSET_NODE_PARAMS
 *	batch memop	the flags, an unsigned int; the operations are in `params`
 *	graph		the ownership, an unsigned int
 *	conditional	struct vgpu_graph_conditional
 *	others		nothing
 *
 * A host node has the cookie of its function (vgpuCallbackNext).
 */
#define VGPU_GRAPH_DETAIL_MAX 256u

struct vgpu_graph_conditional {
	uint64_t handle;
	int32_t type;
	uint32_t n_bodies;
};

/* Graphs inside a conditional node: their handles fit the reply slot. */
#define VGPU_GRAPH_BODIES_MAX 128u

static_assert(sizeof(CUDA_MEMCPY3D) <= VGPU_GRAPH_DETAIL_MAX, "fits");
static_assert(sizeof(CUgraphEdgeData) == 8, "as long as a handle");

/*
 * Back-pressure. A small graph counts as one operation of its stream. Fewer launches of
 * large graphs may be in flight, so that their nodes are not many more than other
 * operations; but enough to keep the device busy. A mark follows each launch of a large
 * one.
 */
#define VGPU_GRAPH_LARGE_NODES 8u
#define VGPU_GRAPH_IN_FLIGHT_MIN 8u
#define VGPU_GRAPH_IN_FLIGHT_MAX 64u

static inline bool vgpu_graph_is_large(uint64_t n_nodes)
{
	return n_nodes >= VGPU_GRAPH_LARGE_NODES;
}

/* Launches of a large graph that may be in flight in a stream. */
static inline uint32_t vgpu_graph_in_flight(uint64_t n_nodes)
{
	uint64_t n = VGPU_GRAPH_IN_FLIGHT_MAX * VGPU_GRAPH_LARGE_NODES / n_nodes;

	return n < VGPU_GRAPH_IN_FLIGHT_MIN ? VGPU_GRAPH_IN_FLIGHT_MIN : (uint32_t)n;
}
