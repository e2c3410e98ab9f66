/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graphs: the worker's entries
 *
 * Nodes have their graph as parent and are removed with it, and so have the graphs inside
 * child graph nodes. Nodes created by a capture
 * get an entry when the guest first gets their handle. Entries are found by the driver's
 * pointer, which a driver may reuse: an object that is known to be new replaces a stale
 * entry. Graphs belong to no context.
 *
 * The handle of a condition is the driver's own value, which the guest gives to kernels;
 * a conditional node names only one that has an entry, whose parent is the graph that it
 * was created for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/graph.h"
#include "worker/base/call.h"
#include "worker/base/objects.h"

/* A node. */
struct graph_entry {
	struct object object;
	/* Of a conditional node: the driver's array, which lives as long as the node. */
	CUgraph *bodies;
	uint32_t n_bodies;
};

/* A function that was set in an executable graph. */
struct graph_exec_function {
	CUgraphNode node;
	void *token;
	uint64_t since; /* launches before */
};

/* An executable graph. */
struct graph_exec {
	struct object object;
	uint64_t n_nodes;    /* constant once the guest has its handle */
	uint64_t n_launches; /* atomic */
	bool is_copied;	     /* a capture has a copy of it; atomic */
	/* destroy_lock */
	struct graph_exec_function *functions;
	uint32_t n_functions;
};

/* Memory of all lists of a session at a time: more than two million edges. Nodes count as
 * objects once the guest has their handles, but the number of nodes and edges of a
 * capture is unlimited. */
#define GRAPH_LISTS_MAX (64ull << 20)

/* Graphs in graphs. */
#define GRAPH_DEPTH_MAX 64u

/* Nodes or edges as the driver lists them. */
struct graph_list {
	size_t n;
	uint64_t size; /* charged while the list is held */
	CUgraphNode *nodes;
	CUgraphNode *others;	/* the ends of edges */
	CUgraphEdgeData *edges; /* NULL for nodes */
	void *memory;
};

/* A list of the guest's handles, as driver objects; in the call's memory. */
struct graph_names {
	size_t n;
	CUgraphNode *nodes;
	CUgraphEdgeData *edges; /* NULL: all are ordinary */
};

/* The handle of a graph, which the guest may have already. */
CUresult graph_keep(struct call *call, CUgraph graph, uint64_t *handlep);

/* The handle of a graph, node or executable graph that the driver has just created. */
CUresult graph_keep_new(struct call *call, enum vgpu_handle_kind kind, void *driver,
	const struct object *parent, uint64_t *handlep);

/* The handles of a conditional node that the driver has just created and of the graphs
 * inside it, with destroy_lock. */
CUresult graph_keep_conditional(struct call *call, CUgraphNode node,
	const CUDA_CONDITIONAL_NODE_PARAMS *params, const struct object *graph,
	uint64_t *handlep, ProtobufCBinaryData *bodies);

/* Return: whether a graph is the other, or one around it. */
bool graph_is_around(const struct object *graph, const struct object *other);

/* Notes the driver's value of a new condition. */
CUresult graph_keep_condition(
	struct call *call, uint64_t value, const struct object *graph);

/* Return: whether there is such a condition, of this graph or of one around it. */
bool graph_has_condition(struct call *call, uint64_t value, const struct object *graph);

/* The handle of a node that the driver lists in this graph. */
CUresult graph_keep_node(struct call *call, CUgraphNode node, const struct object *graph,
	uint64_t *handlep);

/* The handle of a node that may not belong to this graph: 0 then. */
CUresult graph_find_node(struct call *call, CUgraphNode node, const struct object *graph,
	uint64_t *handlep);

/* The driver has destroyed a graph: its handle and those of its nodes are invalid. */
void graph_forget(struct session *session, CUgraph graph);
void graph_forget_handle(struct session *session, uint64_t handle);

/*
 * Lists nodes or edges.
 *
 * @driver:	the graph or node of the list
 *
 * Return: CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY beyond GRAPH_LISTS_MAX.
 */
CUresult graph_list_take(struct call *call, enum vgpu_graph_list list, void *driver,
	struct graph_list *taken);
void graph_list_free(struct session *session, struct graph_list *taken);

/* Counts the nodes of a graph, including those inside them, with destroy_lock. */
CUresult graph_count(struct call *call, CUgraph graph, uint64_t *np);

/*
 * Functions that are set in an executable graph, with destroy_lock; they are retired
 * without it. graph_exec_make_room() comes before the driver's call.
 */
CUresult graph_exec_make_room(struct call *call, struct graph_exec *exec);
void graph_exec_set_function(
	struct call *call, struct graph_exec *exec, CUgraphNode node, void *token);
void graph_exec_take_functions(struct graph_exec *exec, struct graph_exec *taken);
void graph_exec_retire_functions(struct session *session, struct graph_exec *taken);

/*
 * Resolves a list of node handles, and their edge data: none, or one for each.
 *
 * Return: CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE for counts that differ or
 * exceed VGPU_GRAPH_LIST_MAX.
 */
CUresult graph_names_take(struct call *call, const ProtobufCBinaryData *handles,
	const ProtobufCBinaryData *edges, struct graph_names *names);
