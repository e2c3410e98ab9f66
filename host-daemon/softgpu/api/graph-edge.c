/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: questions about nodes, and edges that are added and removed
 *
 * All edges mean the same: a node begins when those before it have ended. Edges that
 * would let it begin earlier are refused. The older forms of these calls cannot say what
 * an edge means, which is no loss here.
 */

#include <string.h>

#include "api/graph.h"

bool graph_edges_are_plain(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData plain;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &plain, sizeof(plain)))
			return false;
	return true;
}

/* The part of a list that fits the program's array; the rest of the array is cleared. */
struct answer {
	CUgraphNode *nodes; /* NULL: it wants to know how many there are */
	CUgraphNode *others;
	CUgraphEdgeData *data;
	size_t n_max, n;
};

static void answer_add(struct answer *answer, CUgraphNode node, CUgraphNode other)
{
	if (answer->nodes && answer->n < answer->n_max) {
		answer->nodes[answer->n] = node;
		if (answer->others)
			answer->others[answer->n] = other;
	} else if (answer->nodes) {
		return;
	}
	answer->n++;
}

static void answer_end(struct answer *answer, size_t *np)
{
	*np = answer->n;
	if (!answer->nodes)
		return;
	for (size_t i = answer->n; i < answer->n_max; i++) {
		answer->nodes[i] = NULL;
		if (answer->others)
			answer->others[i] = NULL;
	}
	if (answer->data)
		memset(answer->data, 0, answer->n_max * sizeof(*answer->data));
}

static CUresult graph_list(
	CUgraph graph, CUgraphNode *nodes, size_t *np, bool roots_alone)
{
	struct answer answer = { .nodes = nodes };
	CUgraphNode node;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (graph_get(graph) || !np)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	answer.n_max = *np;
	TAILQ_FOREACH(node, &graph->nodes, link)
		if (!roots_alone || !node->before.n)
			answer_add(&answer, node, NULL);
	answer_end(&answer, np);
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	API_CALL;

	return graph_list(hGraph, nodes, numNodes, false);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	API_CALL;

	return graph_list(hGraph, rootNodes, numRootNodes, true);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edgeData, size_t *numEdges)
{
	API_CALL;
	struct answer answer = { .nodes = from, .others = to, .data = edgeData };
	CUgraphNode node;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (graph_get(hGraph) || !numEdges || !from != !to || (edgeData && !from))
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	answer.n_max = *numEdges;
	TAILQ_FOREACH(node, &hGraph->nodes, link)
		for (size_t i = 0; i < node->after.n; i++)
			answer_add(&answer, node, node->after.nodes[i]);
	answer_end(&answer, numEdges);
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphGetEdges(
	CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult node_list(CUgraphNode node, bool before, CUgraphNode *nodes,
	CUgraphEdgeData *data, size_t *np)
{
	struct answer answer = { .nodes = nodes, .data = data };
	const struct graph_list *list;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (graph_get_node(node) || !np || (data && !nodes))
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	answer.n_max = *np;
	list = before ? &node->before : &node->after;
	for (size_t i = 0; i < list->n; i++)
		answer_add(&answer, list->nodes[i], NULL);
	answer_end(&answer, np);
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
	CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	API_CALL;

	return node_list(hNode, true, dependencies, edgeData, numDependencies);
}

CUresult cuGraphNodeGetDependencies(
	CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	API_CALL;

	return node_list(hNode, true, dependencies, NULL, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
	CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	API_CALL;

	return node_list(hNode, false, dependentNodes, edgeData, numDependentNodes);
}

CUresult cuGraphNodeGetDependentNodes(
	CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	API_CALL;

	return node_list(hNode, false, dependentNodes, NULL, numDependentNodes);
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (graph_get_node(hNode) || !type)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	*type = hNode->work.type;
	return graph_leave(CUDA_SUCCESS);
}

/* Cycles are found when a graph is made executable. */
static CUresult edge_add(CUgraph graph, CUgraphNode from, CUgraphNode to)
{
	if (graph_get_node(from) || graph_get_node(to) || from == to ||
		from->graph != graph || to->graph != graph ||
		graph_is_connected(from, to))
		return CUDA_ERROR_INVALID_VALUE;
	return graph_connect(from, to);
}

static CUresult edge_remove(CUgraph graph, CUgraphNode from, CUgraphNode to)
{
	if (graph_get_node(from) || graph_get_node(to) || from->graph != graph ||
		to->graph != graph || !graph_is_connected(from, to))
		return CUDA_ERROR_INVALID_VALUE;
	graph_disconnect(from, to);
	return CUDA_SUCCESS;
}

/* All or none. */
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	API_CALL;
	size_t n = 0;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get(hGraph);
	if (!result && numDependencies && (!from || !to))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && !graph_edges_are_plain(edgeData, numDependencies))
		result = CUDA_ERROR_NOT_SUPPORTED;
	while (!result && n < numDependencies) {
		result = edge_add(hGraph, from[n], to[n]);
		if (!result)
			n++;
	}
	while (result && n--)
		graph_disconnect(from[n], to[n]);
	return graph_leave(result);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get(hGraph);
	if (!result && (hGraph->capture || (numDependencies && (!from || !to)) ||
			       !graph_edges_are_plain(edgeData, numDependencies)))
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && !result; i++)
		result = edge_remove(hGraph, from[i], to[i]);
	return graph_leave(result);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}
