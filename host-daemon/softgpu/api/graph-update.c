/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of executable graphs
 *
 * A change applies to later launches. While launches are in flight, the scheduler keeps
 * what they run and gets a copy of the graph; otherwise the one node is changed in place.
 * The CUDA manual lists what may change for each call: never the shape of a graph or of a
 * box, the context of a node, or the kinds of memory of a copy.
 */

#include <stdlib.h>
#include <string.h>

#include "api/graph.h"

/*
 * One node
 */

static bool copy_is_linear(const CUDA_MEMCPY3D *copy)
{
	return copy->Height == 1 && copy->Depth == 1;
}

static bool copy_is_alike(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b)
{
	if (a->srcMemoryType != b->srcMemoryType || a->dstMemoryType != b->dstMemoryType)
		return false;
	return (copy_is_linear(a) && copy_is_linear(b)) ||
	       (a->WidthInBytes == b->WidthInBytes && a->Height == b->Height &&
		       a->Depth == b->Depth);
}

/* Rectangles keep their shape, and rows stay rows. */
static bool fill_is_alike(
	const CUDA_MEMSET_NODE_PARAMS *a, const CUDA_MEMSET_NODE_PARAMS *b)
{
	if (a->height != b->height)
		return false;
	return a->height == 1 || (a->width == b->width && a->pitch == b->pitch &&
					 a->elementSize == b->elementSize);
}

/* Addresses, values and comparisons may change (CUDA manual,
 * cuGraphExecBatchMemOpNodeSetParams()). */
static bool batch_is_alike(const struct graph_batch *a, const struct graph_batch *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned int i = 0; i < a->n; i++)
		if (a->ops[i].operation != b->ops[i].operation)
			return false;
	return true;
}

/* Return: whether a node of an exec can do the one instead of the other. */
static bool work_fits(const struct graph_work *old, const struct graph_work *new)
{
	uint64_t old_generation, new_generation;
	CUcontext old_context, new_context;

	if (work_context(old, &old_context, &old_generation) ||
		work_context(new, &new_context, &new_generation) ||
		old_context != new_context || old_generation != new_generation)
		return false;
	switch (new->type) {
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return batch_is_alike(&old->batch, &new->batch);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return old->conditional.type == new->conditional.type &&
		       old->conditional.n_bodies == new->conditional.n_bodies;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy_is_alike(&old->copy.copy, &new->copy.copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_is_alike(&old->fill.fill, &new->fill.fill);
	default:
		return true;
	}
}

/* The same of a call for that node alone, which copies of boxes and rectangles are not
 * for: cuGraphExecMemcpyNodeSetParams() in the CUDA manual. */
static bool work_fits_alone(const struct graph_work *old, const struct graph_work *new)
{
	if (old->type != new->type || !work_fits(old, new))
		return false;
	return old->type != CU_GRAPH_NODE_TYPE_MEMCPY ||
	       (copy_is_linear(&old->copy.copy) && copy_is_linear(&new->copy.copy));
}

/* The exec's own node has changed, and the scheduler's is to follow. Return: 0, or why it
 * stays as it was. */
static CUresult exec_refresh(CUgraphExec exec, CUgraphNode own)
{
	struct sched_node *node, next = { 0 };
	struct sched_graph *copy;
	CUresult result;

	result = exec_prepare_node(exec, own, &next);
	if (!result && sched_graph_is_busy(exec->sched)) {
		if (sched_graph_copy(&copy, exec->sched)) {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			sched_graph_unref(exec->sched);
			exec->sched = copy;
		}
	}
	if (result) {
		if (next.kind == SCHED_LAUNCH)
			free(next.op.grid.long_params);
		return result;
	}
	node = &exec->sched->nodes[own->first];
	if (node->kind == SCHED_LAUNCH)
		free(node->op.grid.long_params);
	node->op = next.op;
	node->event = next.event;
	if (node->kind == SCHED_LAUNCH && !node->op.grid.long_params)
		node->op.grid.launch.params = node->op.grid.params;
	return CUDA_SUCCESS;
}

/* With the lock, which it releases: work that was made, or r why it was not. */
static CUresult exec_set(
	CUgraphExec exec, CUgraphNode handle, struct graph_work *work, CUresult result)
{
	struct exec_error error;
	struct graph_work old;
	CUgraphNode own;

	if (result)
		return graph_leave(result);
	result = exec_find(&own, exec, handle);
	if (!result && !work_fits_alone(&own->work, work))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && work->type == CU_GRAPH_NODE_TYPE_KERNEL)
		result = kernel_copy_attributes(&work->kernel, &own->work.kernel);
	if (result) {
		work_deinit(work);
		return graph_leave(result);
	}
	old = own->work;
	own->work = *work;
	/* A batch has several nodes of the scheduler. */
	if (work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		result = exec_build(exec, &error);
	else
		result = exec_refresh(exec, own);
	if (result)
		own->work = old;
	work_deinit(result ? work : &old);
	return graph_leave(result);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result
		      : exec_set(
				hGraphExec, hNode, &work, work_kernel(&work, nodeParams));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	API_CALL;
	CUDA_KERNEL_NODE_PARAMS params = { 0 };

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	/* New nodes are at the end. */
	memcpy(&params, nodeParams, sizeof(*nodeParams));
	return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result
		      : exec_set(hGraphExec, hNode, &work,
				work_copy(&work, copyParams, ctx));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return exec_set(hGraphExec, hNode, &work, work_fill(&work, memsetParams, ctx));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result
		      : exec_set(hGraphExec, hNode, &work, work_host(&work, nodeParams));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result
		      : exec_set(hGraphExec, hNode, &work, work_batch(&work, nodeParams));
}

CUresult cuGraphExecEventRecordNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return exec_set(hGraphExec, hNode, &work,
		work_event(&work, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return exec_set(hGraphExec, hNode, &work,
		work_event(&work, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

static bool node_has_switch(const struct CUgraphNode_st *own)
{
	return own->work.type == CU_GRAPH_NODE_TYPE_KERNEL ||
	       own->work.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
	       own->work.type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	API_CALL;
	CUgraphNode own;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = exec_find(&own, hGraphExec, hNode);
	if (!result && !node_has_switch(own))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result || own->is_disabled == !isEnabled)
		return graph_leave(result);
	own->is_disabled = !isEnabled;
	result = exec_refresh(hGraphExec, own);
	if (result)
		own->is_disabled = !own->is_disabled;
	return graph_leave(result);
}

CUresult cuGraphNodeGetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	API_CALL;
	CUgraphNode own;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = exec_find(&own, hGraphExec, hNode);
	if (!result && (!node_has_switch(own) || !isEnabled))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*isEnabled = !own->is_disabled;
	return graph_leave(result);
}

/*
 * Whole graphs
 *
 * Nodes are paired from the ends of the graph on, along their edges: the order of the
 * ends, and of the edges of each node, determines the pairs.
 */

struct update {
	CUgraphExecUpdateResultInfo *info;
	bool has_priorities;	 /* that no kernel may change */
	struct graph_list pairs; /* the new graph's, whose pair is the exec's */
	STAILQ_HEAD(, update_users) users;
};

/* What a graph of the exec is to keep from now on, or kept before. */
struct update_users {
	CUgraph own;
	struct user_refs users;
	STAILQ_ENTRY(update_users) link;
};

static CUresult update_fail(struct update *update, CUgraphExecUpdateResult result,
	CUgraphNode node, CUgraphNode from)
{
	*update->info = (CUgraphExecUpdateResultInfo){ result, node, from };
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult pair(struct update *update, CUgraphNode own, CUgraphNode new,
	uint64_t walk, CUgraphNode after)
{
	if (own->seen != walk && new->seen != walk) {
		own->seen = new->seen = walk;
		own->pair = new;
		new->pair = own;
		return graph_list_add(&update->pairs, new);
	}
	if (own->seen == walk && new->seen == walk && own->pair == new)
		return CUDA_SUCCESS;
	return update_fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, after,
		after == new ? NULL : new);
}

static CUgraphNode next_end(CUgraphNode node)
{
	while (node && node->after.n)
		node = TAILQ_NEXT(node, link);
	return node;
}

static CUresult pair_ends(struct update *update, CUgraph own, CUgraph new, uint64_t walk)
{
	CUgraphNode one = next_end(TAILQ_FIRST(&own->nodes));
	CUgraphNode other = next_end(TAILQ_FIRST(&new->nodes));
	CUresult result = CUDA_SUCCESS;

	for (; one && other && !result; one = next_end(TAILQ_NEXT(one, link)),
					other = next_end(TAILQ_NEXT(other, link)))
		result = pair(update, one, other, walk, other);
	if (!result && (one || other))
		result = update_fail(
			update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other, NULL);
	return result;
}

static CUresult pair_graphs(struct update *update, CUgraph own, CUgraph new);

/* As it was asked for, before it is clamped (CUDA manual, cuGraphExecUpdate()). */
static int priority_of(const struct graph_kernel *kernel)
{
	for (size_t i = 0; i < kernel->n_attributes; i++)
		if (kernel->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			return kernel->attributes[i].value.priority;
	return 0;
}

static CUgraphExecUpdateResult check_kernels(const struct update *update,
	const struct graph_kernel *own, const struct graph_kernel *new)
{
	if (own->launch.is_cooperative != new->launch.is_cooperative ||
		(update->has_priorities && priority_of(own) != priority_of(new)))
		return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Of a node by itself. */
static CUgraphExecUpdateResult check_works(const struct update *update,
	const struct graph_work *own, const struct graph_work *new)
{
	if (own->type != new->type)
		return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	/* A kernel's context is all that must be the same. */
	if (!work_fits(own, new))
		return own->type == CU_GRAPH_NODE_TYPE_KERNEL
			       ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
			       : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	return own->type == CU_GRAPH_NODE_TYPE_KERNEL
		       ? check_kernels(update, &own->kernel, &new->kernel)
		       : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult check_pair(struct update *update, CUgraphNode own, CUgraphNode new)
{
	CUgraphExecUpdateResult difference = check_works(update, &own->work, &new->work);
	CUresult result = CUDA_SUCCESS;

	if (difference != CU_GRAPH_EXEC_UPDATE_SUCCESS)
		return update_fail(update, difference, new, NULL);
	for (unsigned int i = 0; i < work_n_inside(&own->work) && !result; i++)
		result = pair_graphs(
			update, work_inside(&own->work)[i], work_inside(&new->work)[i]);
	return result;
}

/* Copies the references of a graph to objects of the program. */
static CUresult pair_users(struct update *update, CUgraph own, CUgraph new)
{
	struct update_users *users = calloc(1, sizeof(*users));

	if (!users)
		return CUDA_ERROR_OUT_OF_MEMORY;
	users->own = own;
	STAILQ_INIT(&users->users);
	STAILQ_INSERT_TAIL(&update->users, users, link);
	return users_copy(&users->users, &new->users);
}

static CUresult pair_graphs(struct update *update, CUgraph own, CUgraph new)
{
	uint64_t walk = graph_walk();
	size_t first = update->pairs.n;
	CUresult result;

	result = pair_users(update, own, new);
	if (result)
		return result;
	if (own->n_nodes != new->n_nodes)
		return update_fail(
			update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
	result = pair_ends(update, own, new, walk);
	for (size_t i = first; i < update->pairs.n && !result; i++) {
		CUgraphNode node = update->pairs.nodes[i];

		if (node->before.n != node->pair->before.n)
			result = update_fail(update,
				CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, NULL);
		for (size_t j = 0; j < node->before.n && !result; j++)
			result = pair(update, node->pair->before.nodes[j],
				node->before.nodes[j], walk, node);
	}
	/* Those on a cycle come before no end. */
	if (!result && update->pairs.n - first != new->n_nodes)
		result = update_fail(
			update, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
	/* Children add pairs of their own, which are checked when they are reached. */
	for (size_t i = first, n = update->pairs.n; i < n && !result; i++)
		result = check_pair(
			update, update->pairs.nodes[i]->pair, update->pairs.nodes[i]);
	return result;
}

/* The condition alone: with the parameters of its kernels an executable graph takes over
 * the handles that these set. */
static void copy_condition(struct graph_work *work, const struct graph_work *from)
{
	*work = *from;
	work->conditional.n_bodies = 0;
	work->conditional.block = NULL;
	sched_condition_ref(work->conditional.condition);
}

/* Copies the work of the new graph's nodes; nodes inside nodes are copied one by one. */
static CUresult update_copy_works(const struct update *update, struct graph_work *works)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < update->pairs.n; i++)
		works[i].type = CU_GRAPH_NODE_TYPE_EMPTY;
	for (size_t i = 0; i < update->pairs.n && !result; i++) {
		const struct graph_work *from = &update->pairs.nodes[i]->work;

		if (from->type == CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		if (from->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			copy_condition(&works[i], from);
			continue;
		}
		result = work_clone(&works[i], from, false);
		if (result)
			works[i].type = CU_GRAPH_NODE_TYPE_EMPTY;
	}
	return result;
}

/* Between the nodes of the exec and what waits to take the place, or did before. */
static void update_swap_works(const struct update *update, struct graph_work *works)
{
	for (size_t i = 0; i < update->pairs.n; i++) {
		CUgraphNode own = update->pairs.nodes[i]->pair;
		struct graph_work work = own->work;

		if (work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		if (work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			own->work.conditional.condition = works[i].conditional.condition;
			works[i].conditional.condition = work.conditional.condition;
			continue;
		}
		own->work = works[i];
		works[i] = work;
	}
}

/* The same of what graphs keep. */
static void update_swap_users(struct update *update)
{
	struct update_users *users;
	struct user_refs before;

	STAILQ_INIT(&before);
	STAILQ_FOREACH(users, &update->users, link) {
		STAILQ_CONCAT(&before, &users->own->users);
		STAILQ_CONCAT(&users->own->users, &users->users);
		STAILQ_CONCAT(&users->users, &before);
	}
}

static void update_init(struct update *update, CUgraphExecUpdateResultInfo *info)
{
	*update = (struct update){ .info = info };
	STAILQ_INIT(&update->users);
}

static void update_deinit(struct update *update)
{
	struct update_users *users;

	free(update->pairs.nodes);
	while ((users = STAILQ_FIRST(&update->users))) {
		STAILQ_REMOVE_HEAD(&update->users, link);
		users_free(&users->users);
		free(users);
	}
}

/* Gives each node of the exec a copy of the work of its pair, and back what it had if
 * that cannot be run. */
static CUresult update_apply(CUgraphExec exec, struct update *update)
{
	struct graph_work *works = calloc(update->pairs.n + 1, sizeof(*works));
	struct exec_error error = { .node = NULL };
	CUresult result;

	if (!works)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = update_copy_works(update, works);
	if (!result) {
		update_swap_works(update, works);
		update_swap_users(update);
		result = exec_build(exec, &error);
		if (result) {
			update_swap_works(update, works);
			update_swap_users(update);
		}
	}
	for (size_t i = 0; i < update->pairs.n; i++)
		work_deinit(&works[i]);
	free(works);
	if (error.node)
		return update_fail(update, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
			error.node->pair, NULL);
	return result;
}

CUresult cuGraphExecUpdate_v2(
	CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	API_CALL;
	struct update update;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	if (!resultInfo)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	*resultInfo = (CUgraphExecUpdateResultInfo){ CU_GRAPH_EXEC_UPDATE_ERROR };
	if (!object_is(hGraphExec, OBJECT_GRAPH_EXEC) || graph_get(hGraph) ||
		hGraph->is_moved)
		return graph_leave(CUDA_ERROR_INVALID_VALUE);
	resultInfo->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	update_init(&update, resultInfo);
	update.has_priorities =
		hGraphExec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	result = pair_graphs(&update, hGraphExec->graph, hGraph);
	if (!result)
		result = update_apply(hGraphExec, &update);
	update_deinit(&update);
	if (result && !resultInfo->result)
		resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	return graph_leave(result);
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
	CUgraphNode *hErrorNode_out, CUgraphExecUpdateResult *updateResult_out)
{
	API_CALL;
	CUgraphExecUpdateResultInfo info = { 0 };
	CUresult result;

	if (!updateResult_out)
		return CUDA_ERROR_INVALID_VALUE;
	result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	*updateResult_out = info.result;
	return result;
}

/*
 * Children and nodes of any kind
 */

CUresult cuGraphExecChildGraphNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	API_CALL;
	CUgraphExecUpdateResultInfo info = { 0 };
	struct update update;
	CUgraphNode own;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	update_init(&update, &info);
	result = exec_find(&own, hGraphExec, hNode);
	if (!result && own->work.type != CU_GRAPH_NODE_TYPE_GRAPH)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = graph_get(childGraph);
	if (!result)
		result = pair_graphs(&update, own->work.child, childGraph);
	if (!result)
		result = update_apply(hGraphExec, &update);
	update_deinit(&update);
	/* This call has no result code for the difference. */
	if (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
		result = CUDA_ERROR_INVALID_VALUE;
	return graph_leave(result);
}

CUresult cuGraphExecNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphExecChildGraphNodeSetParams(
			hGraphExec, hNode, nodeParams->graph.graph);
	result = graph_enter();
	return result ? result
		      : exec_set(hGraphExec, hNode, &work, work_any(&work, nodeParams));
}
