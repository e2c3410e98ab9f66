/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes and edges
 */

#include <stdlib.h>

#include "api/graph.h"

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

CUresult graph_enter(void)
{
	CUresult result;

	result = device_check();
	if (!result)
		pthread_mutex_lock(&graph_lock);
	return result;
}

CUresult graph_leave(CUresult result)
{
	pthread_mutex_unlock(&graph_lock);
	return result;
}

uint64_t graph_walk(void)
{
	static uint64_t walks;

	return ++walks;
}

CUresult graph_get(CUgraph graph)
{
	return object_is(graph, OBJECT_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_get_node(CUgraphNode node)
{
	return object_is(node, OBJECT_GRAPH_NODE) ? CUDA_SUCCESS
						  : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_list_add(struct graph_list *list, CUgraphNode node)
{
	size_t n = list->n_max ? 2 * list->n_max : 4;
	CUgraphNode *nodes;

	if (list->n == list->n_max) {
		nodes = reallocarray(list->nodes, n, sizeof(CUgraphNode));
		if (!nodes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		list->nodes = nodes;
		list->n_max = n;
	}
	list->nodes[list->n++] = node;
	return CUDA_SUCCESS;
}

static bool list_has(const struct graph_list *list, const struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->nodes[i] == node)
			return true;
	return false;
}

/* Later ones move up: the order of edges is visible to programs. */
static void list_remove(struct graph_list *list, const struct CUgraphNode_st *node)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->nodes[i] != node)
			list->nodes[n++] = list->nodes[i];
	list->n = n;
}

/* Hidden objects have no handle. */
static void *graph_object(bool is_shown, enum object_kind kind, size_t size)
{
	struct object *object = object_new(kind, size, NULL);

	if (object && is_shown && object_enter(object)) {
		object_unref(object);
		return NULL;
	}
	return object;
}

/* No call holds it beyond the lock. */
static void graph_object_free(struct object *object)
{
	object_leave(object);
	object_unref(object);
}

/*
 * Nodes
 */

static void node_free(CUgraphNode node)
{
	work_deinit(&node->work);
	free(node->before.nodes);
	free(node->after.nodes);
	graph_object_free(&node->object);
}

bool graph_has_room(CUgraph graph, CUgraph child)
{
	size_t n = 1 + (child ? child->n_all : 0);
	uint32_t depth = child ? child->depth + 1 : 0;

	for (; graph; graph = graph->parent ? graph->parent->graph : NULL) {
		if (graph->n_all + n > GRAPH_NODES_MAX || depth > GRAPH_DEPTH_MAX)
			return false;
		depth += !!child;
	}
	return true;
}

/* Return: whether a graph, and those that it is part of, have room for a node. */
static bool graph_count(CUgraph graph, const struct graph_work *work)
{
	bool is_child = work->type == CU_GRAPH_NODE_TYPE_GRAPH;
	size_t n = 1 + (is_child ? work->child->n_all : 0);
	uint32_t depth;
	CUgraph each;

	if (!graph_has_room(graph, is_child ? work->child : NULL))
		return false;
	depth = is_child ? work->child->depth + 1 : 0;
	for (each = graph; each; each = each->parent ? each->parent->graph : NULL) {
		each->n_all += n;
		if (each->depth < depth)
			each->depth = depth;
		depth += is_child;
	}
	return true;
}

static void graph_uncount(CUgraph graph, const struct graph_work *work)
{
	size_t n = 1;

	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		n += work->child->n_all;
	for (; graph; graph = graph->parent ? graph->parent->graph : NULL)
		graph->n_all -= n;
}

/* Takes the work over if it succeeds. */
static CUresult node_new(CUgraphNode *nodep, CUgraph graph, struct graph_work *work)
{
	static uint64_t ids;
	CUgraphNode node;

	if (!graph_count(graph, work))
		return CUDA_ERROR_OUT_OF_MEMORY;
	node = graph_object(graph->is_shown, OBJECT_GRAPH_NODE, sizeof(*node));
	if (!node) {
		graph_uncount(graph, work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->graph = graph;
	node->id = ++ids;
	node->work = *work;
	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		work->child->parent = node;
	TAILQ_INSERT_TAIL(&graph->nodes, node, link);
	graph->n_nodes++;
	*nodep = node;
	return CUDA_SUCCESS;
}

CUresult graph_connect(CUgraphNode from, CUgraphNode to)
{
	CUresult result;

	result = graph_list_add(&from->after, to);
	if (result)
		return result;
	result = graph_list_add(&to->before, from);
	if (result)
		from->after.n--;
	else
		from->graph->n_edges++;
	return result;
}

void graph_disconnect(CUgraphNode from, CUgraphNode to)
{
	list_remove(&from->after, to);
	list_remove(&to->before, from);
	from->graph->n_edges--;
}

bool graph_is_connected(
	const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
	return from->after.n < to->before.n ? list_has(&from->after, to)
					    : list_has(&to->before, from);
}

/* Nothing knows the node any more, which keeps its work. */
static void node_detach(CUgraphNode node)
{
	CUgraph graph = node->graph;

	while (node->before.n)
		graph_disconnect(node->before.nodes[node->before.n - 1], node);
	while (node->after.n)
		graph_disconnect(node, node->after.nodes[node->after.n - 1]);
	TAILQ_REMOVE(&graph->nodes, node, link);
	graph->n_nodes--;
	graph_uncount(graph, &node->work);
}

void graph_remove(CUgraphNode node)
{
	node_detach(node);
	node_free(node);
}

CUresult graph_check_nodes(CUgraph graph, const CUgraphNode *nodes, size_t n)
{
	uint64_t walk = graph_walk();

	if (n && !nodes)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (graph_get_node(nodes[i]) || nodes[i]->graph != graph ||
			nodes[i]->seen == walk)
			return CUDA_ERROR_INVALID_VALUE;
		nodes[i]->seen = walk;
	}
	return CUDA_SUCCESS;
}

CUresult graph_add(CUgraphNode *nodep, CUgraph graph, const CUgraphNode *before,
	size_t n_before, struct graph_work *work)
{
	static const struct graph_work nothing = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphNode node;
	CUresult result;

	result = graph_check_nodes(graph, before, n_before);
	if (!result)
		result = node_new(&node, graph, work);
	if (result)
		return result;
	for (size_t i = 0; i < n_before && !result; i++)
		result = graph_connect(before[i], node);
	if (result) {
		node_detach(node);
		node->work = nothing;
		node_free(node);
		return result;
	}
	*nodep = node;
	return CUDA_SUCCESS;
}

/*
 * Graphs
 */

CUresult graph_new(CUgraph *graphp, bool is_shown)
{
	CUgraph graph = graph_object(is_shown, OBJECT_GRAPH, sizeof(*graph));

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->is_shown = is_shown;
	TAILQ_INIT(&graph->nodes);
	STAILQ_INIT(&graph->users);
	*graphp = graph;
	return CUDA_SUCCESS;
}

void graph_free(CUgraph graph)
{
	CUgraphNode node;

	while ((node = TAILQ_FIRST(&graph->nodes))) {
		TAILQ_REMOVE(&graph->nodes, node, link);
		node_free(node);
	}
	users_free(&graph->users);
	graph_object_free(&graph->object);
}

static CUresult graph_copy_node(CUgraph to, CUgraphNode from)
{
	struct graph_work work;
	CUgraphNode node;
	CUresult result;

	result = work_clone(&work, &from->work, to->is_shown);
	if (result)
		return result;
	result = node_new(&node, to, &work);
	if (result) {
		work_deinit(&work);
		return result;
	}
	node->origin = from->id;
	from->pair = node;
	return CUDA_SUCCESS;
}

CUresult graph_copy(CUgraph *graphp, CUgraph from, bool is_shown)
{
	CUgraphNode node;
	CUgraph to;
	CUresult result;

	result = graph_new(&to, is_shown);
	if (result)
		return result;
	result = users_copy(&to->users, &from->users);
	TAILQ_FOREACH(node, &from->nodes, link)
		if (!result)
			result = graph_copy_node(to, node);
	/* Edges of a node keep their order on either side. */
	TAILQ_FOREACH(node, &from->nodes, link) {
		for (size_t i = 0; i < node->before.n && !result; i++)
			result = graph_list_add(
				&node->pair->before, node->before.nodes[i]->pair);
		for (size_t i = 0; i < node->after.n && !result; i++)
			result = graph_list_add(
				&node->pair->after, node->after.nodes[i]->pair);
	}
	to->n_edges = from->n_edges;
	if (result)
		graph_free(to);
	else
		*graphp = to;
	return result;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (!phGraph || flags)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	return graph_leave(graph_new(phGraph, true));
}

/* Return: 0 unless the graph belongs to a node or to a capture. */
static CUresult graph_check_free(CUgraph graph)
{
	if (graph_get(graph))
		return CUDA_ERROR_INVALID_VALUE;
	return graph->parent || graph->capture ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_check_free(hGraph);
	if (!result)
		graph_free(hGraph);
	return graph_leave(result);
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get(originalGraph);
	if (!result)
		result = phGraphClone ? graph_copy(phGraphClone, originalGraph, true)
				      : CUDA_ERROR_INVALID_VALUE;
	return graph_leave(result);
}

CUresult cuGraphNodeFindInClone(
	CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	API_CALL;
	CUgraphNode node = NULL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get(hClonedGraph);
	if (!result)
		result = graph_get_node(hOriginalNode);
	if (!result && phNode)
		TAILQ_FOREACH(node, &hClonedGraph->nodes, link)
			if (node->origin == hOriginalNode->id)
				break;
	if (node)
		*phNode = node;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	return graph_leave(result);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get_node(hNode);
	if (!result && hNode->graph->capture)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		graph_remove(hNode);
	return graph_leave(result);
}
