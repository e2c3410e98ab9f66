/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: graphs, their nodes and edges
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/graph-around.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "g-remote.h"
#include "process/call.h"

/* Where a list is to go. Any of the arrays may be NULL. */
struct destination {
	CUgraphNode *nodes;
	CUgraphNode *others;
	CUgraphEdgeData *edges;
	size_t room;
	bool has_unplain_edges;
};

static CUresult take_page(
	const Vgpu__VgpuGraphListReply *reply, uint64_t first, struct destination *to)
{
	size_t n = reply->nodes.len / sizeof(*to->nodes);
	const CUgraphEdgeData *edges = (const CUgraphEdgeData *)reply->edges.data;

	if (first + n > to->room)
		n = to->room - first;
	if ((to->others && reply->others.len < n * sizeof(*to->others)) ||
		(edges && reply->edges.len < n * sizeof(*edges)))
		return CUDA_ERROR_UNKNOWN;
	memcpy(to->nodes + first, reply->nodes.data, n * sizeof(*to->nodes));
	if (to->others)
		memcpy(to->others + first, reply->others.data, n * sizeof(*to->others));
	if (to->edges && edges)
		memcpy(to->edges + first, edges, n * sizeof(*edges));
	else if (to->edges)
		memset(to->edges + first, 0, n * sizeof(*edges));
	if (edges && !shim_graph_edges_are_plain(edges, n))
		to->has_unplain_edges = true;
	return CUDA_SUCCESS;
}

/* With no room, only counts. */
static CUresult fetch(
	Vgpu__VgpuGraphListRequest *request, struct destination *to, size_t *n_totalp)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuGraphList);
	const Vgpu__VgpuGraphListReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	do {
		result = shim_call_sync(&call, &request->base,
			&vgpu__vgpu_graph_list_reply__descriptor, &message);
		if (result != CUDA_SUCCESS)
			return result;
		reply = (const Vgpu__VgpuGraphListReply *)message;
		*n_totalp = reply->n_total;
		if (!to->nodes || !reply->nodes.len)
			return CUDA_SUCCESS;
		result = take_page(reply, request->first, to);
		request->first += reply->nodes.len / sizeof(*to->nodes);
	} while (result == CUDA_SUCCESS && request->first < *n_totalp &&
		 request->first < to->room);
	return result;
}

/* As all these calls have it: *np is the room, then how many there are; what is left of
 * the room is cleared. */
static CUresult list(
	Vgpu__VgpuGraphListRequest *request, struct destination *to, size_t *np)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuGraphList);
	const bool has_room = to->nodes;
	size_t n_total = 0;
	CUresult result;

	if (!np)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	to->room = *np;
	if (to->nodes && !to->room)
		to->nodes = NULL;
	result = fetch(request, to, &n_total);
	if (result != CUDA_SUCCESS)
		return result;
	if (to->has_unplain_edges && !to->edges)
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = n_total; to->nodes && i < to->room; i++) {
		to->nodes[i] = NULL;
		if (to->others)
			to->others[i] = NULL;
		if (to->edges)
			to->edges[i] = (CUgraphEdgeData){};
	}
	*np = has_room && n_total > to->room ? to->room : n_total;
	return CUDA_SUCCESS;
}

static CUresult list_of_graph(
	enum vgpu_graph_list what, CUgraph graph, struct destination *to, size_t *np)
{
	Vgpu__VgpuGraphListRequest request = VGPU__VGPU_GRAPH_LIST_REQUEST__INIT;

	request.list = what;
	request.graph = (uint64_t)(uintptr_t)graph;
	return list(&request, to, np);
}

static CUresult list_of_node(
	enum vgpu_graph_list what, CUgraphNode node, struct destination *to, size_t *np)
{
	Vgpu__VgpuGraphListRequest request = VGPU__VGPU_GRAPH_LIST_REQUEST__INIT;

	request.list = what;
	request.node = (uint64_t)(uintptr_t)node;
	return list(&request, to, np);
}

CUresult shim_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	struct destination to = { .nodes = nodes };
	CUresult result;

	result = list_of_graph(VGPU_GRAPH_NODES, hGraph, &to, numNodes);
	for (size_t i = 0; result == CUDA_SUCCESS && nodes && i < *numNodes; i++)
		shim_graph_around_note(nodes[i], hGraph);
	return result;
}

CUresult shim_cuGraphGetRootNodes(
	CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	struct destination to = { .nodes = rootNodes };

	return list_of_graph(VGPU_GRAPH_ROOTS, hGraph, &to, numRootNodes);
}

CUresult shim_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edgeData, size_t *numEdges)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuGraphList);
	struct destination destination = {
		.nodes = from,
		.others = to,
		.edges = edgeData,
	};

	if (!from != !to || (!from && edgeData))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	return list_of_graph(VGPU_GRAPH_EDGES, hGraph, &destination, numEdges);
}

CUresult shim_cuGraphGetEdges(
	CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return shim_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult shim_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
	CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	struct destination to = { .nodes = dependencies, .edges = edgeData };

	return list_of_node(VGPU_GRAPH_DEPENDENCIES, hNode, &to, numDependencies);
}

CUresult shim_cuGraphNodeGetDependencies(
	CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return shim_cuGraphNodeGetDependencies_v2(
		hNode, dependencies, NULL, numDependencies);
}

CUresult shim_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode,
	CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	struct destination to = { .nodes = dependentNodes, .edges = edgeData };

	return list_of_node(VGPU_GRAPH_DEPENDENTS, hNode, &to, numDependentNodes);
}

CUresult shim_cuGraphNodeGetDependentNodes(
	CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return shim_cuGraphNodeGetDependentNodes_v2(
		hNode, dependentNodes, NULL, numDependentNodes);
}

/*
 * Edges
 */

bool shim_graph_edges_are_plain(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData plain;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &plain, sizeof(plain)))
			return false;
	return true;
}

/* As many edges as a message takes. */
struct piece {
	CUgraph graph;
	const CUgraphNode *from;
	const CUgraphNode *to;
	const CUgraphEdgeData *data; /* NULL for ordinary ones */
	size_t n;
};

/* Both messages name their fields alike. */
#define SET_PIECE(_request, _piece)                                                      \
	do {                                                                             \
		size_t size_ = (_piece)->n * sizeof(CUgraphNode);                        \
		(_request)->h_graph = (uint64_t)(uintptr_t)(_piece)->graph;              \
		(_request)->from_list.data = (uint8_t *)(_piece)->from;                  \
		(_request)->from_list.len = size_;                                       \
		(_request)->to_list.data = (uint8_t *)(_piece)->to;                      \
		(_request)->to_list.len = size_;                                         \
		(_request)->edges.data = (uint8_t *)(_piece)->data;                      \
		(_request)->edges.len =                                                  \
			(_piece)->data ? (_piece)->n * sizeof(CUgraphEdgeData) : 0;      \
	} while (0)

static CUresult send_added(const struct piece *piece)
{
	Vgpu__CuGraphAddDependenciesV2Request request =
		VGPU__CU_GRAPH_ADD_DEPENDENCIES_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphAddDependencies_v2);

	SET_PIECE(&request, piece);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_add_dependencies_v2_reply__descriptor, NULL);
}

static CUresult send_removed(const struct piece *piece)
{
	Vgpu__CuGraphRemoveDependenciesV2Request request =
		VGPU__CU_GRAPH_REMOVE_DEPENDENCIES_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphRemoveDependencies_v2);

	SET_PIECE(&request, piece);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_remove_dependencies_v2_reply__descriptor, NULL);
}

/* Sends all edges, in pieces; also none, for the graph may be at fault. */
static CUresult send_edges(
	const struct piece *all, CUresult (*send)(const struct piece *piece))
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphAddDependencies_v2);
	struct piece piece = *all;
	size_t left = all->n;
	CUresult result;

	if (all->n && (!all->from || !all->to))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shim_graph_edges_are_plain(all->data, all->n))
		piece.data = NULL;
	do {
		piece.n = left < VGPU_GRAPH_LIST_MAX ? left : VGPU_GRAPH_LIST_MAX;
		result = send(&piece);
		piece.from += piece.n;
		piece.to += piece.n;
		if (piece.data)
			piece.data += piece.n;
		left -= piece.n;
	} while (result == CUDA_SUCCESS && left);
	return result;
}

CUresult shim_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	const struct piece all = { hGraph, from, to, edgeData, numDependencies };

	return send_edges(&all, send_added);
}

CUresult shim_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, size_t numDependencies)
{
	return shim_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult shim_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	const struct piece all = { hGraph, from, to, edgeData, numDependencies };

	return send_edges(&all, send_removed);
}

CUresult shim_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, size_t numDependencies)
{
	return shim_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

/*
 * Graphs themselves; what they allocate has one owner
 */

CUresult shim_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	return shim_graph_memory_has(originalGraph) ||
			       shim_graph_around_has(originalGraph)
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : shim_remote_cuGraphClone(phGraphClone, originalGraph);
}

CUresult shim_cuGraphDestroy(CUgraph hGraph)
{
	CUresult result = shim_remote_cuGraphDestroy(hGraph);

	if (result == CUDA_SUCCESS) {
		shim_graph_memory_drop_graph(hGraph);
		shim_graph_around_drop_graph(hGraph);
	}
	return result;
}

CUresult shim_cuGraphDestroyNode(CUgraphNode hNode)
{
	CUgraphNodeType type;
	CUresult result;
	CUgraph child;

	if (shim_graph_memory_type(hNode, &type) ||
		(shim_graph_memory_has_any() &&
			shim_remote_cuGraphChildGraphNodeGetGraph(hNode, &child) ==
				CUDA_SUCCESS &&
			shim_graph_memory_was_moved(child)))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = shim_remote_cuGraphDestroyNode(hNode);
	if (result == CUDA_SUCCESS)
		shim_graph_around_drop_node(hNode);
	return result;
}
