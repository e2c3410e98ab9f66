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

/* Its handle may be another node's then. */
static void release_condition(CUgraphNode node)
{
	struct sched_condition *condition;

	if (node->work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return;
	condition = node->work.conditional.condition;
	if (condition->user == node)
		condition->user = NULL;
}

static void node_free(CUgraphNode node)
{
	release_condition(node);
	work_deinit(&node->work);
	free(node->before.nodes);
	free(node->after.nodes);
	graph_object_free(&node->object);
}

/* How much a node is, with all that is inside it. */
struct weight {
	size_t n_all, n_conditionals;
	uint32_t depth;
};

static struct weight weight_of(const struct graph_work *work)
{
	bool is_conditional = work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
	unsigned int n = work_n_inside(work);
	/* The ends of each body. */
	struct weight weight = { 1 + (is_conditional ? 2 * n : 0), is_conditional, 0 };

	for (unsigned int i = 0; i < n; i++) {
		const struct CUgraph_st *inside =
			work_inside((struct graph_work *)work)[i];

		weight.n_all += inside->n_all;
		weight.n_conditionals += inside->n_conditionals;
		if (weight.depth <= inside->depth)
			weight.depth = inside->depth + 1;
	}
	return weight;
}

/* Return: whether a graph, and those that it is part of, have room. */
static bool has_room(const struct CUgraph_st *graph, const struct weight *weight)
{
	uint32_t depth = weight->depth;

	for (; graph; graph = graph->parent ? graph->parent->graph : NULL) {
		if (weight->n_all > GRAPH_NODES_MAX ||
			graph->n_all > GRAPH_NODES_MAX - weight->n_all ||
			depth > GRAPH_DEPTH_MAX)
			return false;
		depth += !!depth;
	}
	return true;
}

bool graph_has_room(CUgraph graph, CUgraph child)
{
	struct weight weight = {
		.n_all = 1 + (child ? child->n_all : 0),
		.depth = child ? child->depth + 1 : 0,
	};

	return has_room(graph, &weight);
}

static bool graph_count(CUgraph graph, const struct graph_work *work)
{
	struct weight weight = weight_of(work);
	uint32_t depth = weight.depth;

	if (!has_room(graph, &weight))
		return false;
	for (; graph; graph = graph->parent ? graph->parent->graph : NULL) {
		graph->n_all += weight.n_all;
		graph->n_conditionals += weight.n_conditionals;
		if (graph->depth < depth)
			graph->depth = depth;
		depth += !!depth;
	}
	return true;
}

static void graph_uncount(CUgraph graph, const struct graph_work *work)
{
	struct weight weight = weight_of(work);

	for (; graph; graph = graph->parent ? graph->parent->graph : NULL) {
		graph->n_all -= weight.n_all;
		graph->n_conditionals -= weight.n_conditionals;
	}
}

void graph_set_capture(CUgraph graph, struct capture *capture)
{
	graph->capture = capture;
	for (; graph; graph = graph->parent ? graph->parent->graph : NULL)
		graph->n_captures += capture ? 1 : -1;
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
	for (unsigned int i = 0; i < work_n_inside(&node->work); i++)
		work_inside(&node->work)[i]->parent = node;
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
		result = graph_check_body(graph, work);
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
	if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		work->conditional.condition->user = node;
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
	if (graph->instance)
		graph->instance->source = NULL;
	conditions_free(graph);
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

/* Return: 0 unless the graph belongs to a node, or a capture adds to it. */
static CUresult graph_check_free(CUgraph graph)
{
	if (graph_get(graph))
		return CUDA_ERROR_INVALID_VALUE;
	return graph->parent || graph->n_captures ? CUDA_ERROR_INVALID_VALUE
						  : CUDA_SUCCESS;
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
	if (!result && originalGraph->n_conditionals)
		result = CUDA_ERROR_NOT_SUPPORTED;
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

static bool is_captured(CUgraphNode node)
{
	for (unsigned int i = 0; i < work_n_inside(&node->work); i++)
		if (work_inside(&node->work)[i]->n_captures)
			return true;
	return false;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = graph_get_node(hNode);
	if (!result && (hNode->graph->capture || is_captured(hNode)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		graph_remove(hNode);
	return graph_leave(result);
}
