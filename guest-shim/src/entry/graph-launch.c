/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that became ones of pageable memory in an executable graph
 */

#include <stdlib.h>

#include "entry/callback.h"
#include "entry/graph-around.h"
#include "entry/graph-launch.h"
#include "entry/graph-node.h"
#include "g-remote.h"
#include "wait/capture.h"
#include "wire/lock.h"

struct entry {
	struct entry *next;
	CUgraphExec exec;
	CUgraphNode node;
	struct shim_shadows *shadows; /* a reference */
};

/* Of one launch: what it fills and drains. */
struct shim_graph_launch {
	uint32_t n_refs; /* atomic */
	size_t n;
	struct shim_shadows *shadows[]; /* references */
};

static struct {
	struct shim_lock lock;
	struct entry *first;
	uint32_t n; /* atomic: most programs have none, and pay nothing */
} all;

static bool has_any(void)
{
	return __atomic_load_n(&all.n, __ATOMIC_RELAXED);
}

/* Drops those of an executable graph: of one node, or NULL: all. */
static void drop(CUgraphExec exec, CUgraphNode node)
{
	struct entry **link = &all.first;

	SHIM_LOCKED(&all.lock);
	while (*link) {
		struct entry *entry = *link;

		if (entry->exec != exec || (node && entry->node != node)) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		shim_shadows_unref(entry->shadows);
		free(entry);
		__atomic_fetch_sub(&all.n, 1, __ATOMIC_RELAXED);
	}
}

void shim_graph_launch_drop_node(CUgraphExec exec, CUgraphNode node)
{
	drop(exec, node);
}

void shim_graph_launch_drop(CUgraphExec exec)
{
	drop(exec, NULL);
}

static void keep(struct entry *entry)
{
	SHIM_LOCKED(&all.lock);
	entry->next = all.first;
	all.first = entry;
	__atomic_fetch_add(&all.n, 1, __ATOMIC_RELAXED);
}

static CUresult set(
	const struct entry *entry, const CUDA_MEMCPY3D *given, CUcontext context)
{
	const CUDA_MEMCPY3D copy = shim_shadows_copy(entry->shadows, given);
	struct shim_node node;
	CUresult result;

	result = shim_graph_node_copy(&node, &copy, context);
	return result == CUDA_SUCCESS
		       ? shim_graph_node_set_in_exec(entry->exec, entry->node, &node)
		       : result;
}

CUresult shim_graph_launch_set(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct entry *entry;
	CUgraphNodeType type;
	CUresult result;

	if (shim_remote_cuGraphNodeGetType(node, &type) != CUDA_SUCCESS ||
		type != CU_GRAPH_NODE_TYPE_MEMCPY)
		return CUDA_ERROR_INVALID_VALUE;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry->exec = exec;
	entry->node = node;
	result = shim_shadows_new(&entry->shadows, &copy, 1);
	if (result == CUDA_SUCCESS)
		result = set(entry, copy, context);
	if (result == CUDA_SUCCESS) {
		shim_graph_launch_drop_node(exec, node);
		keep(entry);
		return CUDA_SUCCESS;
	}
	shim_shadows_unref(entry->shadows);
	free(entry);
	return result;
}

/*
 * Launches
 */

static void release(void *data)
{
	struct shim_graph_launch *launch = data;

	if (__atomic_sub_fetch(&launch->n_refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < launch->n; i++)
		shim_shadows_unref(launch->shadows[i]);
	free(launch);
}

static void fill(void *data)
{
	struct shim_graph_launch *launch = data;

	for (size_t i = 0; i < launch->n; i++)
		shim_shadows_fill(launch->shadows[i]);
	release(launch);
}

static void drain(void *data)
{
	struct shim_graph_launch *launch = data;

	for (size_t i = 0; i < launch->n; i++)
		shim_shadows_drain(launch->shadows[i]);
	release(launch);
}

/* With one reference. Return: NULL without memory. */
static struct shim_graph_launch *collect(CUgraphExec exec)
{
	struct shim_graph_launch *launch;
	struct entry *entry;

	SHIM_LOCKED(&all.lock);
	launch = calloc(1, sizeof(*launch) + all.n * sizeof(*launch->shadows));
	if (!launch)
		return NULL;
	launch->n_refs = 1;
	for (entry = all.first; entry; entry = entry->next)
		if (entry->exec == exec)
			launch->shadows[launch->n++] = shim_shadows_ref(entry->shadows);
	return launch;
}

/* A function of the stream has a reference of its own. */
static CUresult send(CUstream stream, CUhostFn function, struct shim_graph_launch *launch)
{
	__atomic_fetch_add(&launch->n_refs, 1, __ATOMIC_RELAXED);
	return shim_callback_launch(stream, function, release, launch);
}

CUresult shim_graph_launch_begin(
	CUgraphExec exec, CUstream stream, struct shim_graph_launch **launchp)
{
	struct shim_graph_launch *launch;
	CUresult result;

	*launchp = NULL;
	if (!has_any())
		return CUDA_SUCCESS;
	launch = collect(exec);
	if (!launch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!launch->n) {
		release(launch);
		return CUDA_SUCCESS;
	}
	/* Its functions would be of one replay only. */
	result = shim_capture_is_active(stream) ? CUDA_ERROR_NOT_SUPPORTED
						: send(stream, fill, launch);
	if (result == CUDA_SUCCESS)
		*launchp = launch;
	else
		release(launch);
	return result;
}

CUresult shim_graph_launch_end(
	CUstream stream, struct shim_graph_launch *launch, CUresult launched)
{
	CUresult result = launched;

	if (!launch)
		return launched;
	if (launched == CUDA_SUCCESS)
		result = send(stream, drain, launch);
	release(launch);
	return result;
}
