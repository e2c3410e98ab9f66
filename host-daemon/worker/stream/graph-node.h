/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes of graphs, translated from the guest's parameters to the driver's
 *
 * Three messages describe a node by the same fields. They are checked like the call that
 * the node represents: sizes of parameters, ranges, arrays.
 */

#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/call.h"

/* The fields that the messages share. */
struct graph_node_description {
	int32_t kind;
	uint64_t context;
	uint64_t function;
	uint64_t kernel;
	uint64_t event;
	uint64_t child;
	uint64_t cookie;
	ProtobufCBinaryData detail;
	ProtobufCBinaryData params;
};

#define GRAPH_NODE_DESCRIPTION(_request)                                                 \
	{                                                                                \
		.kind = (_request)->kind, .context = (_request)->node_context,           \
		.function = (_request)->function, .kernel = (_request)->kernel,          \
		.event = (_request)->event, .child = (_request)->child,                  \
		.cookie = (_request)->cookie, .detail = (_request)->detail,              \
		.params = (_request)->params,                                            \
	}

/* The parameters for the driver. */
struct graph_node {
	int32_t kind;
	CUcontext context;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host; /* userData is the token of a new function */
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
	CUevent event;
	CUgraph child;
	CUgraphChildGraphNodeOwnership ownership; /* of the child */
	CUDA_CONDITIONAL_NODE_PARAMS conditional;
	/* The parameters of a kernel, pointed at by kernel.extra. */
	size_t params_size;
	void *extra[5];
};

/*
 * Checks a description and looks up its handles. If it succeeds, the caller either gives
 * the node to the driver or calls graph_node_drop().
 *
 * *node must not be moved while it is used: it contains pointers to itself. Return:
 * CUDA_ERROR_NOT_SUPPORTED for kinds that are not remoted.
 */
CUresult graph_node_take(struct call *call, const struct graph_node_description *given,
	struct graph_node *node);

/* The same for a conditional node, which belongs to a graph from the beginning. */
CUresult graph_node_take_conditional(struct call *call,
	const struct graph_node_description *given, const struct object *graph,
	struct graph_node *node);

/* The driver did not take the node. */
void graph_node_drop(struct call *call, const struct graph_node *node);
