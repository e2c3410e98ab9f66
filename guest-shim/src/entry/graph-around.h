/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies of pageable memory that cannot be child graphs
 *
 * A body of a conditional node has no functions, and the node of an ordinary copy is
 * none of a graph. Such a copy is one of shadows (graph-shadow.h) to the host. They are
 * filled before a node of the outermost graph, and drained behind it: before and behind
 * the conditional node, or the copy itself. The functions that do so are nodes of the
 * graph only while an executable graph is made of it or updated from it, so the program
 * does not meet them. Copies around one node share the shadows of memory that they share,
 * so a copy finds what another one, or an earlier turn of a loop, has written.
 */

#include <stdbool.h>
#include <stddef.h>

#include "vgpu/cuda.h"

struct shim_edges;

/*
 * The shadows of some copies
 */

struct shim_shadows;

/* With one reference. */
CUresult shim_shadows_new(
	struct shim_shadows **shadowsp, const CUDA_MEMCPY3D *const *copies, size_t n);
struct shim_shadows *shim_shadows_ref(struct shim_shadows *shadows);
void shim_shadows_unref(void *shadows);

void shim_shadows_fill(void *shadows);
void shim_shadows_drain(void *shadows);

/* One of the copies as the device does it. */
CUDA_MEMCPY3D shim_shadows_copy(
	const struct shim_shadows *shadows, const CUDA_MEMCPY3D *copy);

/*
 * Nodes
 */

/* A node is of a graph, in case that its copy is to become such a one. */
void shim_graph_around_note(CUgraphNode node, CUgraph graph);

/* Return: whether a node is such a copy, with its parameters. */
bool shim_graph_around_find(CUgraphNode node, CUDA_MEMCPY3D *copy);

/* Return: whether a graph is a body, whose copies of pageable memory are such ones. */
bool shim_graph_around_is_for(CUgraph graph);

CUresult shim_graph_around_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const CUDA_MEMCPY3D *copy, CUcontext context);

/* A node of a copy becomes such a one, or has another one. Return: INVALID_VALUE if it
 * cannot. */
CUresult shim_graph_around_set(
	CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context);

/* It is an ordinary copy again, or destroyed, with what is inside it. */
void shim_graph_around_drop_node(CUgraphNode node);
void shim_graph_around_drop_graph(CUgraph graph);

/* Return: whether a graph has such copies: it is not copied. */
bool shim_graph_around_has(CUgraph graph);

/*
 * Around a graph that is read: nodes that it has meanwhile
 */

struct shim_graph_wrap {
	CUgraphNode *nodes;
	size_t n;
};

CUresult shim_graph_around_wrap(CUgraph graph, struct shim_graph_wrap *wrap);
void shim_graph_around_unwrap(struct shim_graph_wrap *wrap);
