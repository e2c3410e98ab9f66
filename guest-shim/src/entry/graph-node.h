/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes of graphs, and the edges to them
 *
 * Several symbols of CUDA do the same to a node; here they come down to one description
 * of what a node does, and to three messages that carry it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/graph.h"

struct shim_callback;

/* The parameters of a node in a message. */
struct shim_node {
	CUgraphNodeType kind;
	CUcontext context;
	CUfunction function;
	CUkernel kernel;
	CUevent event;
	CUgraph child;
	CUgraph *bodies;  /* of a conditional node: where their handles go */
	uint64_t cookie;  /* of a function of the program, see process/callback.h */
	bool is_pageable; /* a copy with memory that the device cannot reach */
	uint32_t detail_size;
	uint32_t n_params; /* bytes in the thread's block of parameters */
	union {
		struct vgpu_launch_dims dims;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		unsigned int flags;
		struct vgpu_graph_conditional conditional;
	} detail;
};

/* Nodes that another one depends on. */
struct shim_edges {
	const CUgraphNode *nodes;
	const CUgraphEdgeData *data; /* NULL for ordinary edges */
	size_t n;
};

/* Each describes a node. Return: 0, or why there is no such node, NULL for one. The
 * parameters of a kernel and the operations of a batch are left in the thread's block, so
 * a description is good until the thread launches or describes another. A function of the
 * program is the node's from then on: a description is used once. */
CUresult shim_graph_node_kernel(
	struct shim_node *node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult shim_graph_node_copy(
	struct shim_node *node, const CUDA_MEMCPY3D *copy, CUcontext context);
CUresult shim_graph_node_fill(
	struct shim_node *node, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context);
CUresult shim_graph_node_event(
	struct shim_node *node, CUgraphNodeType kind, CUevent event);
/* A function with its cookie, for internal use. */
CUresult shim_graph_node_function(
	struct shim_node *node, const struct shim_callback *callback);
CUresult shim_graph_node_host(
	struct shim_node *node, const CUDA_HOST_NODE_PARAMS *params);
CUresult shim_graph_node_batch(
	struct shim_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
/* A copy of `child`, which must not allocate or free memory. */
CUresult shim_graph_node_child(struct shim_node *node, CUgraph child);
/* The child itself, which may. */
CUresult shim_graph_node_moved(struct shim_node *node, CUgraph child);
/* The caller reads the handles of the graphs inside it in `bodies`, which has room for
 * VGPU_GRAPH_BODIES_MAX. */
CUresult shim_graph_node_conditional(struct shim_node *node,
	const CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraph *bodies);
/* Any other kind, as newer symbols of CUDA have it. */
CUresult shim_graph_node_generic(struct shim_node *node, const CUgraphNodeParams *params);

/* As the host has them; for programs see graph-edit.h. */
CUresult shim_graph_node_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node);
CUresult shim_graph_node_set(CUgraphNode handle, const struct shim_node *node);
CUresult shim_graph_node_set_in_exec(
	CUgraphExec exec, CUgraphNode handle, const struct shim_node *node);

/*
 * Asks what a node does, in the words of a kind that it must be of. The pointers to a
 * kernel's parameters, and to the operations of a batch, stay good as long as the node,
 * and as its parameters.
 */
CUresult shim_graph_node_get_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *params);
CUresult shim_graph_node_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *copy);
CUresult shim_graph_node_get_fill(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *fill);
CUresult shim_graph_node_get_event(
	CUgraphNode handle, CUgraphNodeType kind, CUevent *eventp);
CUresult shim_graph_node_get_function(CUgraphNode handle, struct shim_callback *callback);
CUresult shim_graph_node_get_host(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params);
CUresult shim_graph_node_get_batch(
	CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *params);

/* Whether edges are all of the ordinary kind. */
bool shim_graph_edges_are_plain(const CUgraphEdgeData *data, size_t n);
