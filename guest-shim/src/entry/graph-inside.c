/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs inside nodes: bodies of conditional nodes, and child graphs
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/graph.h"
#include "vgpu/handle.h"

#include "entry/graph-inside.h"
#include "wire/lock.h"
#include "wire/table.h"

struct conditional {
	CUgraphNode node;
	CUgraph graph;
	CUDA_CONDITIONAL_NODE_PARAMS params;
	CUgraph bodies[VGPU_GRAPH_BODIES_MAX];
};

static struct {
	struct shim_lock lock;
	struct shim_table conditionals;
	struct shim_table graphs; /* the handles themselves */
	struct shim_table owners; /* of bodies: their conditional nodes */
} inside;

static uint32_t index_of(const void *handle)
{
	return vgpu_handle_index((uint64_t)(uintptr_t)handle);
}

/* With the lock. */
static struct conditional *get_entry(uint32_t index)
{
	struct conditional *entry = shim_table_get(&inside.conditionals, index);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (entry && !shim_table_set(&inside.conditionals, index, entry)) {
		free(entry);
		return NULL;
	}
	return entry;
}

static bool keep(CUgraphNode node, CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS *params,
	const CUgraph *bodies)
{
	struct conditional *entry;

	SHIM_LOCKED(&inside.lock);
	entry = get_entry(index_of(node));
	if (!entry)
		return false;
	memcpy(entry->bodies, bodies, params->size * sizeof(*bodies));
	params->phGraph_out = entry->bodies;
	entry->params = *params;
	entry->node = node;
	entry->graph = graph;
	for (unsigned int i = 0; i < params->size; i++)
		if (!shim_table_set(&inside.owners, index_of(bodies[i]), entry))
			return false;
	return true;
}

bool shim_graph_inside_keep(CUgraphNode node, CUgraph graph,
	CUDA_CONDITIONAL_NODE_PARAMS *params, const CUgraph *bodies)
{
	for (unsigned int i = 0; i < params->size; i++)
		if (!shim_graph_inside_note(bodies[i]))
			return false;
	return keep(node, graph, params, bodies);
}

bool shim_graph_inside_find(CUgraphNode node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	const struct conditional *entry;

	SHIM_LOCKED(&inside.lock);
	entry = shim_table_get(&inside.conditionals, index_of(node));
	if (!entry || entry->node != node)
		return false;
	*params = entry->params;
	return true;
}

/* With the lock. Return: the conditional node of a body, or NULL. */
static const struct conditional *find_owner(CUgraph body)
{
	const struct conditional *owner =
		body ? shim_table_get(&inside.owners, index_of(body)) : NULL;

	for (unsigned int i = 0; owner && i < owner->params.size; i++)
		if (owner->bodies[i] == body)
			return owner;
	return NULL;
}

bool shim_graph_inside_root(CUgraph graph, CUgraph *rootp, CUgraphNode *nodep)
{
	const struct conditional *owner, *outermost = NULL;

	SHIM_LOCKED(&inside.lock);
	while ((owner = find_owner(graph))) {
		outermost = owner;
		graph = owner->graph;
	}
	if (!outermost)
		return false;
	*rootp = outermost->graph;
	*nodep = outermost->node;
	return true;
}

bool shim_graph_inside_prepare(CUgraph graph)
{
	SHIM_LOCKED(&inside.lock);
	return shim_table_get(&inside.graphs, index_of(graph)) ||
	       shim_table_set(&inside.graphs, index_of(graph), NULL);
}

bool shim_graph_inside_note(CUgraph graph)
{
	SHIM_LOCKED(&inside.lock);
	return shim_table_set(&inside.graphs, index_of(graph), graph);
}

bool shim_graph_is_inside(CUgraph graph)
{
	return graph && shim_table_get(&inside.graphs, index_of(graph)) == graph;
}
