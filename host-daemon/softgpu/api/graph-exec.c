/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs
 *
 * A graph is copied and flattened: a child graph or a body becomes its nodes between two
 * empty ones, a batch of operations one node for each. The scheduler's form can be
 * launched any number of times and costs one operation each time; it is only replaced
 * when it is changed while launches are in flight.
 */

#include <stdlib.h>

#include "api/graph.h"

/*
 * Building
 */

struct build {
	CUgraphExec exec;
	struct sched_graph *graph;
	struct sched_edge *edges;
	uint32_t n_nodes, n_edges;
	struct exec_error error;
};

static void build_size(CUgraph graph, size_t *n_nodesp, size_t *n_edgesp)
{
	CUgraphNode node;

	*n_edgesp += graph->n_edges;
	TAILQ_FOREACH(node, &graph->nodes, link) {
		++*n_nodesp;
		if (node->work.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
			*n_nodesp += node->work.batch.n - 1;
			*n_edgesp += node->work.batch.n - 1;
		}
		for (unsigned int i = 0; i < work_n_inside(&node->work); i++) {
			CUgraph inside = work_inside(&node->work)[i];

			/* The node is the beginning of a child, not of bodies. */
			*n_nodesp += node->work.type == CU_GRAPH_NODE_TYPE_GRAPH ? 1 : 2;
			/* Between its nodes and its ends, or from end to end. */
			*n_edgesp += 2 * inside->n_nodes + 1;
			build_size(inside, n_nodesp, n_edgesp);
		}
	}
}

static void build_edge(struct build *build, uint32_t from, uint32_t to)
{
	build->edges[build->n_edges++] = (struct sched_edge){ from, to };
}

/* All work of a graph is done in one context. */
static CUresult build_context(struct build *build, const struct graph_work *work)
{
	CUgraphExec exec = build->exec;
	uint64_t generation;
	CUcontext context;
	CUresult result;

	result = work_context(work, &context, &generation);
	if (result || !context)
		return result;
	if (exec->context && exec->context != context) {
		build->error.result = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	exec->context = context;
	exec->generation = generation;
	return CUDA_SUCCESS;
}

CUresult exec_prepare_node(const struct CUgraphExec_st *exec,
	const struct CUgraphNode_st *own, struct sched_node *node)
{
	CUresult result;

	result = work_prepare(&own->work, node);
	/* Otherwise that of the stream in which the graph is launched. */
	if (node->kind == SCHED_LAUNCH)
		node->op.grid.has_priority =
			exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	if (own->is_disabled)
		node->op.kind = SCHED_NOTHING;
	return result;
}

static CUresult build_graph(struct build *build, CUgraph graph);

/* The nodes of a graph behind a first one, and a last one behind them. */
static CUresult build_inside(
	struct build *build, CUgraph inside, uint32_t first, uint32_t *lastp)
{
	CUgraphNode each;
	CUresult result;

	result = build_graph(build, inside);
	if (result)
		return result;
	*lastp = build->n_nodes++;
	TAILQ_FOREACH(each, &inside->nodes, link) {
		if (!each->before.n)
			build_edge(build, first, each->first);
		if (!each->after.n)
			build_edge(build, each->last, *lastp);
	}
	if (!inside->n_nodes)
		build_edge(build, first, *lastp);
	return CUDA_SUCCESS;
}

static CUresult build_bodies(struct build *build, CUgraphNode node)
{
	const struct graph_conditional *conditional = &node->work.conditional;
	struct sched_node *nodes = build->graph->nodes;
	CUresult result = CUDA_SUCCESS;
	uint32_t first, last;

	for (unsigned int i = 0; i < conditional->n_bodies && !result; i++) {
		first = build->n_nodes++;
		nodes[first].is_body = true;
		nodes[node->first].op.choice.bodies[i] = first;
		result = build_inside(build, conditional->bodies[i], first, &last);
		if (!result)
			nodes[last].returns_to = node->first + 1;
	}
	return result;
}

/* One after the other. */
static CUresult build_batch(struct build *build, CUgraphNode node)
{
	const struct graph_batch *batch = &node->work.batch;
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < batch->n && !result; i++) {
		if (i) {
			build_edge(build, node->last, build->n_nodes);
			node->last = build->n_nodes++;
		}
		result = work_prepare_word(
			&batch->ops[i], &build->graph->nodes[node->last]);
	}
	return result;
}

static CUresult build_node(struct build *build, CUgraphNode node)
{
	CUresult result;

	node->first = node->last = build->n_nodes++;
	for (size_t i = 0; i < node->before.n; i++)
		build_edge(build, node->before.nodes[i]->last, node->first);
	result = build_context(build, &node->work);
	if (!result && node->work.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		result = build_batch(build, node);
	else if (!result)
		result = exec_prepare_node(
			build->exec, node, &build->graph->nodes[node->first]);
	if (!result && node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = build_inside(build, node->work.child, node->first, &node->last);
	if (!result && node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = build_bodies(build, node);
	if (result && !build->error.node)
		build->error.node = node;
	return result;
}

/* Nodes get their numbers in an order in which they could run one by one. */
static CUresult build_graph(struct build *build, CUgraph graph)
{
	CUgraphNode node, *ready = calloc(graph->n_nodes + 1, sizeof(CUgraphNode));
	CUresult result = CUDA_SUCCESS;
	size_t n = 0;

	if (!ready)
		return CUDA_ERROR_OUT_OF_MEMORY;
	TAILQ_FOREACH(node, &graph->nodes, link) {
		node->n_left = node->before.n;
		if (!node->n_left)
			ready[n++] = node;
	}
	for (size_t i = 0; i < n && !result; i++) {
		result = build_node(build, ready[i]);
		for (size_t j = 0; j < ready[i]->after.n; j++)
			if (!--ready[i]->after.nodes[j]->n_left)
				ready[n++] = ready[i]->after.nodes[j];
	}
	free(ready);
	if (!result && n != graph->n_nodes) {
		result = CUDA_ERROR_INVALID_VALUE;
		build->error.result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		TAILQ_FOREACH(build->error.node, &graph->nodes, link)
			if (build->error.node->n_left)
				break;
	}
	return result;
}

static bool kinds_have_memory(uint32_t kinds)
{
	return kinds & (1u << SCHED_COPY | 1u << SCHED_FILL | 1u << SCHED_WRITE |
			       1u << SCHED_WAIT_VALUE);
}

CUresult exec_build(CUgraphExec exec, struct exec_error *error)
{
	struct build build = {
		.exec = exec,
		.error.result = CUDA_GRAPH_INSTANTIATE_ERROR,
	};
	uint64_t ends = memory_ends(&softgpu_device.memory);
	uint64_t unloads = __atomic_load_n(&softgpu_device.n_unloads, __ATOMIC_ACQUIRE);
	size_t n_nodes = 0, n_edges = 0;
	CUresult result;

	build_size(exec->graph, &n_nodes, &n_edges);
	build.edges = calloc(n_edges + 1, sizeof(*build.edges));
	if (!build.edges || n_edges > UINT32_MAX / 2 ||
		sched_graph_new(
			&build.graph, &softgpu_device.sched, n_nodes, exec->sched))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		result = build_graph(&build, exec->graph);
	if (!result)
		result = users_keep(&build.graph->keep, exec->graph);
	if (!result && sched_graph_finish(build.graph, build.edges, build.n_edges))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	free(build.edges);
	*error = build.error;
	if (result) {
		sched_graph_unref(build.graph);
		return result;
	}
	sched_graph_unref(exec->sched);
	exec->sched = build.graph;
	exec->memory_ends = ends;
	exec->n_unloads = unloads;
	exec->has_memory = kinds_have_memory(build.graph->kinds);
	return CUDA_SUCCESS;
}

/*
 * Nodes by their handles
 */

static void exec_list(CUgraphExec exec, CUgraph graph)
{
	CUgraphNode node;

	TAILQ_FOREACH(node, &graph->nodes, link) {
		exec->nodes[exec->n_nodes++] = node;
		for (unsigned int i = 0; i < work_n_inside(&node->work); i++)
			exec_list(exec, work_inside(&node->work)[i]);
	}
}

static int compare_origins(const void *a, const void *b)
{
	const struct CUgraphNode_st *one = *(const CUgraphNode *)a;
	const struct CUgraphNode_st *other = *(const CUgraphNode *)b;

	return one->origin < other->origin ? -1 : one->origin > other->origin;
}

/* Shell's, for nodes are almost in order. qsort() asks the system how much memory there
 * is, which a worker may not. */
static void sort_by_origin(CUgraphNode *nodes, size_t n)
{
	for (size_t gap = n / 2; gap; gap /= 2)
		for (size_t i = gap; i < n; i++) {
			CUgraphNode node = nodes[i];
			size_t j = i;

			for (; j >= gap && nodes[j - gap]->origin > node->origin;
				j -= gap)
				nodes[j] = nodes[j - gap];
			nodes[j] = node;
		}
}

static CUresult exec_index(CUgraphExec exec)
{
	exec->nodes = calloc(exec->graph->n_all + 1, sizeof(CUgraphNode));
	if (!exec->nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec_list(exec, exec->graph);
	sort_by_origin(exec->nodes, exec->n_nodes);
	return CUDA_SUCCESS;
}

CUresult exec_find(CUgraphNode *ownp, CUgraphExec exec, CUgraphNode node)
{
	struct CUgraphNode_st key;
	CUgraphNode wanted = &key, *found;

	if (!object_is(exec, OBJECT_GRAPH_EXEC) || graph_get_node(node))
		return CUDA_ERROR_INVALID_VALUE;
	key.origin = node->id;
	found = bsearch(&wanted, exec->nodes, exec->n_nodes, sizeof(CUgraphNode),
		compare_origins);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	*ownp = *found;
	return CUDA_SUCCESS;
}

/* The node of a graph that a copy was made of. */
static CUgraphNode graph_find_origin(CUgraph graph, uint64_t origin)
{
	CUgraphNode node, found = NULL;

	TAILQ_FOREACH(node, &graph->nodes, link) {
		if (node->id == origin)
			return node;
		for (unsigned int i = 0; i < work_n_inside(&node->work) && !found; i++)
			found = graph_find_origin(work_inside(&node->work)[i], origin);
		if (found)
			return found;
	}
	return NULL;
}

/*
 * Life
 */

static void exec_free(CUgraphExec exec)
{
	sched_graph_unref(exec->sched);
	if (exec->source)
		exec->source->instance = NULL;
	if (exec->graph)
		graph_free(exec->graph);
	free(exec->nodes);
	object_leave(&exec->object);
	object_unref(&exec->object);
}

/* Return: 0 if the graph may have an executable graph, and one more. */
static CUresult exec_check_graph(
	CUgraph graph, unsigned long long flags, struct exec_error *error)
{
	if (graph_get(graph) || graph->is_moved || graph_is_body(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
		device_explain("softgpu's kernels cannot launch graphs; those of a host "
			       "with a GPU can");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (graph_has_unused_condition(graph)) {
		error->result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Two would have one value of each condition. */
	return graph->instance ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult exec_make(CUgraphExec exec, CUgraph graph, struct exec_error *error)
{
	CUresult result;

	result = graph_copy(&exec->graph, graph, false);
	if (!result)
		result = exec_index(exec);
	if (!result)
		result = exec_build(exec, error);
	if (!result && object_enter(&exec->object))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (error->node)
		error->node = graph_find_origin(graph, error->node->origin);
	return result;
}

/* With the lock. */
static CUresult exec_new(CUgraphExec *execp, CUgraph graph, unsigned long long flags,
	struct exec_error *error)
{
	CUgraphExec exec;
	CUresult result;

	*error = (struct exec_error){ .result = CUDA_GRAPH_INSTANTIATE_ERROR };
	if (!execp)
		return CUDA_ERROR_INVALID_VALUE;
	result = exec_check_graph(graph, flags, error);
	if (result)
		return result;
	exec = object_new(OBJECT_GRAPH_EXEC, sizeof(*exec), NULL);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->flags = flags;
	result = exec_make(exec, graph, error);
	if (result) {
		exec_free(exec);
		return result;
	}
	if (graph->n_conditionals) {
		exec->source = graph;
		graph->instance = exec;
	}
	error->result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	*execp = exec;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	API_CALL;
	/* Uploading takes a stream, which cuGraphInstantiateWithParams() has. */
	const unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
					 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
					 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	struct exec_error error;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (flags & ~known)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	return graph_leave(exec_new(phGraphExec, hGraph, flags, &error));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	API_CALL;
	struct exec_error error;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = exec_new(phGraphExec, hGraph, 0, &error);
	if (phErrorNode)
		*phErrorNode = error.node;
	if (logBuffer && bufferSize)
		*logBuffer = '\0';
	return graph_leave(result);
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	return cuGraphInstantiate_v2(
		phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	API_CALL;
	const unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
					 CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
					 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
					 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	struct sched_stream *stream;
	struct exec_error error;
	CUresult result;

	if (!instantiateParams || instantiateParams->flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
		result = stream_get(instantiateParams->hUploadStream, &stream);
		if (result)
			return result;
	}
	result = graph_enter();
	if (result)
		return result;
	result = exec_new(phGraphExec, hGraph, instantiateParams->flags, &error);
	instantiateParams->result_out = error.result;
	/* With this result there is none (CUDA manual). */
	instantiateParams->hErrNode_out =
		error.result == CUDA_GRAPH_INSTANTIATE_ERROR ? NULL : error.node;
	return graph_leave(result);
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (!object_is(hGraphExec, OBJECT_GRAPH_EXEC) || !flags)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	*flags = hGraphExec->flags;
	return graph_leave(CUDA_SUCCESS);
}

/* Launches that are under way keep what they need. */
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (!object_is(hGraphExec, OBJECT_GRAPH_EXEC))
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	exec_free(hGraphExec);
	return graph_leave(CUDA_SUCCESS);
}
