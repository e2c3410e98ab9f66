/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes of graphs
 *
 * A handle belongs to the graph that it was created for, and to one conditional node in
 * that graph or inside it. The graph and all its executable graphs have references to the
 * condition, since a graph may be destroyed before these.
 *
 * Bodies are graphs of the program whose parent is the node. What they may contain is
 * checked when a node is added to one: kernels, copies, fills, empty nodes, conditional
 * ones and children of such nodes (CUDA manual, CUDA_CONDITIONAL_NODE_PARAMS).
 */

#include <stdlib.h>

#include "api/graph.h"

/*
 * Handles
 */

static CUresult find_context(CUcontext *contextp, CUcontext context)
{
	if (!context)
		return context_current(contextp);
	if (!object_hold(context, OBJECT_CONTEXT) || !context_is_active(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*contextp = context;
	return CUDA_SUCCESS;
}

static CUresult handle_new(CUgraphConditionalHandle *handlep, CUgraph graph,
	CUcontext context, unsigned int value, unsigned int flags)
{
	struct sched_condition *condition;
	CUresult result;

	if (!handlep || flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	result = graph_get(graph);
	if (!result)
		result = find_context(&context, context);
	if (result)
		return result;
	if (sched_condition_new(&condition, &context->sched, value,
		    flags & CU_GRAPH_COND_ASSIGN_DEFAULT))
		return CUDA_ERROR_OUT_OF_MEMORY;
	condition->owner = graph;
	condition->next = graph->conditions;
	graph->conditions = condition;
	*handlep = sched_condition_handle(condition);
	return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out,
	CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue,
	unsigned int flags)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	return result ? result
		      : graph_leave(handle_new(
				pHandle_out, hGraph, ctx, defaultLaunchValue, flags));
}

void conditions_free(CUgraph graph)
{
	struct sched_condition *condition;

	while ((condition = graph->conditions)) {
		graph->conditions = condition->next;
		condition->owner = NULL;
		sched_condition_unref(condition);
	}
}

bool graph_has_unused_condition(CUgraph graph)
{
	const struct sched_condition *condition;
	CUgraphNode node;

	for (condition = graph->conditions; condition; condition = condition->next)
		if (!condition->user)
			return true;
	TAILQ_FOREACH(node, &graph->nodes, link)
		for (unsigned int i = 0; i < work_n_inside(&node->work); i++)
			if (graph_has_unused_condition(work_inside(&node->work)[i]))
				return true;
	return false;
}

/*
 * Nodes
 */

bool graph_is_within(const struct CUgraph_st *graph, const struct CUgraph_st *other)
{
	while (graph && graph != other)
		graph = graph->parent ? graph->parent->graph : NULL;
	return graph;
}

static CUresult check_params(const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	bool is_legal = params->size;

	if (params->type == CU_GRAPH_COND_TYPE_IF)
		is_legal &= params->size <= 2;
	else if (params->type == CU_GRAPH_COND_TYPE_WHILE)
		is_legal &= params->size == 1;
	else
		is_legal &= params->type == CU_GRAPH_COND_TYPE_SWITCH;
	if (!is_legal)
		return CUDA_ERROR_INVALID_VALUE;
	return params->size <= CONDITIONAL_BODIES_MAX ? CUDA_SUCCESS
						      : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult list_alloc(struct graph_conditional *conditional, unsigned int n)
{
	size_t header = (sizeof(struct object) + 15) / 16 * 16;
	uint8_t *block = object_new(OBJECT_NONE, header + n * sizeof(CUgraph), NULL);

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	conditional->block = (struct object *)block;
	conditional->bodies = (CUgraph *)(block + header);
	return CUDA_SUCCESS;
}

static CUresult make_bodies(struct graph_conditional *conditional, unsigned int n)
{
	CUresult result;

	result = list_alloc(conditional, n);
	while (!result && conditional->n_bodies < n) {
		result = graph_new(&conditional->bodies[conditional->n_bodies], true);
		conditional->n_bodies += !result;
	}
	return result;
}

CUresult work_conditional(struct graph_work *work, CUgraph graph,
	const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	struct sched_condition *condition = sched_condition_find(params->handle);
	CUcontext context;
	CUresult result;

	result = graph_get(graph);
	if (!result)
		result = check_params(params);
	if (!result)
		result = find_context(&context, params->ctx);
	if (result)
		return result;
	if (!condition || !condition->owner || condition->user ||
		!graph_is_within(graph, condition->owner) ||
		condition->context != &context->sched)
		return CUDA_ERROR_INVALID_VALUE;
	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {
			.context = context,
			.generation = context_generation(context),
			.condition = sched_condition_ref(condition),
			.type = params->type,
		},
	};
	result = make_bodies(&work->conditional, params->size);
	if (result)
		work_deinit(work);
	return result;
}

CUresult conditional_clone(struct graph_conditional *conditional, bool is_shown)
{
	const struct graph_conditional from = *conditional;
	CUresult result;

	sched_condition_ref(conditional->condition);
	conditional->block = NULL;
	conditional->n_bodies = 0;
	result = list_alloc(conditional, from.n_bodies);
	while (!result && conditional->n_bodies < from.n_bodies) {
		result = graph_copy(&conditional->bodies[conditional->n_bodies],
			from.bodies[conditional->n_bodies], is_shown);
		conditional->n_bodies += !result;
	}
	if (result)
		conditional_deinit(conditional);
	return result;
}

void conditional_deinit(struct graph_conditional *conditional)
{
	while (conditional->n_bodies)
		graph_free(conditional->bodies[--conditional->n_bodies]);
	if (conditional->block)
		object_unref(conditional->block);
	sched_condition_unref(conditional->condition);
}

/*
 * Bodies
 */

static bool fits_body(const struct graph_work *work)
{
	CUgraphNode node;

	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return true;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		TAILQ_FOREACH(node, &work->child->nodes, link)
			if (!fits_body(&node->work))
				return false;
		return true;
	default:
		return false;
	}
}

bool graph_is_body(const struct CUgraph_st *graph)
{
	for (; graph->parent; graph = graph->parent->graph)
		if (graph->parent->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return true;
	return false;
}

CUresult graph_check_body(const struct CUgraph_st *graph, const struct graph_work *work)
{
	return !graph_is_body(graph) || fits_body(work) ? CUDA_SUCCESS
							: CUDA_ERROR_NOT_SUPPORTED;
}

/* What the scheduler chooses by; the first nodes of bodies are for the caller to fill
 * in. */
CUresult conditional_prepare(
	const struct graph_conditional *conditional, struct sched_node *node)
{
	uint32_t *bodies = calloc(conditional->n_bodies, sizeof(*bodies));

	if (!bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->kind = SCHED_CHOICE;
	node->op.choice = (struct sched_choice){
		.condition = sched_condition_ref(conditional->condition),
		.kind = (enum sched_choice_kind)conditional->type,
		.n_bodies = conditional->n_bodies,
		.bodies = bodies,
	};
	return CUDA_SUCCESS;
}
