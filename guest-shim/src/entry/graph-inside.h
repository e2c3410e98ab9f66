/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graphs inside nodes: bodies of conditional nodes, and child graphs
 *
 * The array of a conditional node's bodies is the library's, and the program may read it
 * as long as the node lives. A host has no query for it, so it is kept here, found by the
 * index of the node's handle, and used again for the next node of that index.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

/* Keeps what a new node of a graph was made of, with the handles of its bodies;
 * phGraph_out becomes the kept array. Return: false without memory. */
bool shim_graph_inside_keep(CUgraphNode node, CUgraph graph,
	CUDA_CONDITIONAL_NODE_PARAMS *params, const CUgraph *bodies);

/* Return: whether a graph is a body, with the graph around all conditional nodes that it
 * is inside of, and the outermost of these. */
bool shim_graph_inside_root(CUgraph graph, CUgraph *rootp, CUgraphNode *nodep);

/* Return: whether a node is a conditional one, with its parameters. */
bool shim_graph_inside_find(CUgraphNode node, CUDA_CONDITIONAL_NODE_PARAMS *params);

/* Makes room for shim_graph_inside_note() of a graph. Return: false without memory. */
bool shim_graph_inside_prepare(CUgraph graph);

/* A graph that the program learns of is inside a node. Return: false without memory. */
bool shim_graph_inside_note(CUgraph graph);

/* Return: whether a graph is known to be inside a node. */
bool shim_graph_is_inside(CUgraph graph);
