/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of pageable memory that cannot be child graphs
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/handle.h"

#include "entry/graph-around.h"
#include "entry/graph-inside.h"
#include "entry/graph-node.h"
#include "entry/graph-shadow.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/callback.h"
#include "wire/lock.h"
#include "wire/table.h"

/*
 * The shadows of some copies
 */

struct shim_shadows {
	uint32_t n_refs; /* atomic */
	size_t n;
	struct shim_shadow shadows[]; /* by ascending address, and apart */
};

struct span {
	uint64_t first, end;
	bool is_written;
};

/* Adds the span of a side, if that is pageable. */
static CUresult add_span(struct span *spans, size_t *np, const CUDA_MEMCPY3D *copy,
	const struct shim_graph_side *side, bool is_written)
{
	struct shim_rows rows;
	CUresult result;
	uint64_t first;

	if (!shim_graph_side_is_pageable(side))
		return CUDA_SUCCESS;
	result = shim_graph_side_locate(side, copy, &rows);
	if (result != CUDA_SUCCESS)
		return result;
	first = (uint64_t)(uintptr_t)rows.memory;
	spans[(*np)++] = (struct span){
		.first = first,
		.end = first + shim_rows_span(&rows),
		.is_written = is_written,
	};
	return CUDA_SUCCESS;
}

static int compare(const void *a, const void *b)
{
	const struct span *one = a, *other = b;

	return one->first < other->first ? -1 : one->first > other->first;
}

/* Those that overlap become one. Return: how many are left. */
static size_t merge(struct span *spans, size_t n)
{
	size_t last = 0;

	qsort(spans, n, sizeof(*spans), compare);
	for (size_t i = 1; i < n; i++) {
		if (spans[i].first >= spans[last].end) {
			spans[++last] = spans[i];
			continue;
		}
		if (spans[last].end < spans[i].end)
			spans[last].end = spans[i].end;
		spans[last].is_written |= spans[i].is_written;
	}
	return n ? last + 1 : 0;
}

static CUresult make_shadows(
	struct shim_shadows **shadowsp, const struct span *spans, size_t n)
{
	struct shim_shadows *shadows =
		calloc(1, sizeof(*shadows) + n * sizeof(*shadows->shadows));
	CUresult result = CUDA_SUCCESS;

	if (!shadows)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shadows->n_refs = 1;
	for (; shadows->n < n && result == CUDA_SUCCESS; shadows->n++) {
		const struct span *span = &spans[shadows->n];
		const uint64_t size = span->end - span->first;
		const struct shim_rows rows = {
			.memory = (uint8_t *)(uintptr_t)span->first,
			.width = size,
			.height = 1,
			.depth = 1,
			.pitch = size,
			.layer = size,
		};

		result = shim_shadow_init(&shadows->shadows[shadows->n], &rows,
			span->is_written ? SHIM_SHADOW_WRITTEN : SHIM_SHADOW_READ);
	}
	if (result == CUDA_SUCCESS)
		*shadowsp = shadows;
	else
		shim_shadows_unref(shadows);
	return result;
}

CUresult shim_shadows_new(
	struct shim_shadows **shadowsp, const CUDA_MEMCPY3D *const *copies, size_t n)
{
	struct span *spans = calloc(2 * n, sizeof(*spans));
	CUresult result = CUDA_SUCCESS;
	size_t n_spans = 0;

	if (!spans)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		const struct shim_graph_side to = shim_graph_side_to(copies[i]);
		const struct shim_graph_side from = shim_graph_side_from(copies[i]);

		result = add_span(spans, &n_spans, copies[i], &to, true);
		if (result == CUDA_SUCCESS)
			result = add_span(spans, &n_spans, copies[i], &from, false);
	}
	if (result == CUDA_SUCCESS)
		result = make_shadows(shadowsp, spans, merge(spans, n_spans));
	free(spans);
	return result;
}

struct shim_shadows *shim_shadows_ref(struct shim_shadows *shadows)
{
	__atomic_fetch_add(&shadows->n_refs, 1, __ATOMIC_RELAXED);
	return shadows;
}

void shim_shadows_unref(void *data)
{
	struct shim_shadows *shadows = data;

	if (!shadows || __atomic_sub_fetch(&shadows->n_refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < shadows->n; i++)
		shim_shadow_deinit(&shadows->shadows[i]);
	free(shadows);
}

void shim_shadows_fill(void *data)
{
	struct shim_shadows *shadows = data;

	for (size_t i = 0; i < shadows->n; i++)
		shim_shadow_fill(&shadows->shadows[i]);
}

void shim_shadows_drain(void *data)
{
	struct shim_shadows *shadows = data;

	for (size_t i = 0; i < shadows->n; i++)
		shim_shadow_drain(&shadows->shadows[i]);
}

/* The place of a side in its shadow. Return: NULL if it has none. */
static void *place(const struct shim_shadows *shadows, const CUDA_MEMCPY3D *copy,
	const struct shim_graph_side *side, struct shim_rows *rows)
{
	if (!shim_graph_side_is_pageable(side) ||
		shim_graph_side_locate(side, copy, rows) != CUDA_SUCCESS)
		return NULL;
	for (size_t i = 0; i < shadows->n; i++) {
		const struct shim_shadow *shadow = &shadows->shadows[i];
		uint64_t off = (uint64_t)(rows->memory - shadow->rows.memory);

		if (off < shadow->rows.width)
			return shadow->pinned + off;
	}
	return NULL;
}

CUDA_MEMCPY3D shim_shadows_copy(
	const struct shim_shadows *shadows, const CUDA_MEMCPY3D *copy)
{
	const struct shim_graph_side to = shim_graph_side_to(copy);
	const struct shim_graph_side from = shim_graph_side_from(copy);
	CUDA_MEMCPY3D done = *copy;
	struct shim_rows rows;
	void *memory;

	memory = place(shadows, copy, &to, &rows);
	if (memory)
		shim_graph_side_replace_to(
			&done, memory, rows.pitch, rows.layer / rows.pitch);
	memory = place(shadows, copy, &from, &rows);
	if (memory)
		shim_graph_side_replace_from(
			&done, memory, rows.pitch, rows.layer / rows.pitch);
	return done;
}

/*
 * Nodes
 */

struct around {
	struct around *next;
	CUgraphNode node;
	CUgraph graph;	    /* the outermost one */
	CUgraphNode anchor; /* of that graph: the node itself, or a conditional one */
	CUDA_MEMCPY3D copy; /* the program's */
	CUcontext context;
	struct shim_shadows *shadows; /* that the node copies now: a reference */
};

static struct {
	struct shim_lock lock;
	struct around *first;
	uint32_t n;
	/* Nodes that were noted, by their index, and their graphs. */
	struct shim_table nodes, graphs;
} all;

static uint32_t index_of(const void *handle)
{
	return vgpu_handle_index((uint64_t)(uintptr_t)handle);
}

void shim_graph_around_note(CUgraphNode node, CUgraph graph)
{
	SHIM_LOCKED(&all.lock);
	/* Without memory it is not noted, and its copy stays an ordinary one. */
	if (shim_table_set(&all.nodes, index_of(node), NULL) &&
		shim_table_set(&all.graphs, index_of(node), graph))
		shim_table_set(&all.nodes, index_of(node), node);
}

/* Return: the graph of a node, or NULL. */
static CUgraph graph_of(CUgraphNode node)
{
	SHIM_LOCKED(&all.lock);
	return shim_table_get(&all.nodes, index_of(node)) == node
		       ? shim_table_get(&all.graphs, index_of(node))
		       : NULL;
}

/* With the lock. Return: the link to what is known of a node. */
static struct around **find(CUgraphNode node)
{
	struct around **link = &all.first;

	while (*link && (*link)->node != node)
		link = &(*link)->next;
	return link;
}

/* With the lock. */
static void drop(struct around **link)
{
	struct around *around = *link;

	*link = around->next;
	shim_shadows_unref(around->shadows);
	free(around);
	all.n--;
}

bool shim_graph_around_find(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
	const struct around *around;

	SHIM_LOCKED(&all.lock);
	around = *find(node);
	if (around)
		*copy = around->copy;
	return around;
}

void shim_graph_around_drop_node(CUgraphNode node)
{
	struct around **link = &all.first;

	SHIM_LOCKED(&all.lock);
	while (*link)
		if ((*link)->node == node || (*link)->anchor == node)
			drop(link);
		else
			link = &(*link)->next;
}

void shim_graph_around_drop_graph(CUgraph graph)
{
	struct around **link = &all.first;

	SHIM_LOCKED(&all.lock);
	while (*link)
		if ((*link)->graph == graph)
			drop(link);
		else
			link = &(*link)->next;
}

bool shim_graph_around_has(CUgraph graph)
{
	const struct around *around;

	SHIM_LOCKED(&all.lock);
	for (around = all.first; around; around = around->next)
		if (around->graph == graph)
			return true;
	return false;
}

/* Takes the place of what was known of the node. */
static CUresult keep(const struct around *given)
{
	struct around *around = malloc(sizeof(*around));
	struct around **link;

	if (!around)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*around = *given;
	shim_lock(&all.lock);
	link = find(given->node);
	if (*link)
		drop(link);
	around->next = all.first;
	all.first = around;
	all.n++;
	shim_unlock(&all.lock);
	return CUDA_SUCCESS;
}

bool shim_graph_around_is_for(CUgraph graph)
{
	CUgraphNode anchor;
	CUgraph outermost;

	return shim_graph_inside_root(graph, &outermost, &anchor);
}

/* Describes the copy of one node alone. */
static CUresult describe(struct shim_node *node, struct around *around)
{
	const CUDA_MEMCPY3D *given = &around->copy;
	CUDA_MEMCPY3D copy;
	CUresult result;

	result = shim_shadows_new(&around->shadows, &given, 1);
	if (result != CUDA_SUCCESS)
		return result;
	copy = shim_shadows_copy(around->shadows, given);
	return shim_graph_node_copy(node, &copy, around->context);
}

CUresult shim_graph_around_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct around around = { .copy = *copy, .context = context };
	struct shim_node node;
	CUresult result;

	if (!shim_graph_inside_root(graph, &around.graph, &around.anchor))
		return CUDA_ERROR_INVALID_VALUE;
	result = describe(&node, &around);
	if (result == CUDA_SUCCESS)
		result = shim_graph_node_add(&around.node, graph, after, &node);
	if (result == CUDA_SUCCESS) {
		result = keep(&around);
		if (result != CUDA_SUCCESS)
			shim_remote_cuGraphDestroyNode(around.node);
	}
	if (result != CUDA_SUCCESS) {
		shim_shadows_unref(around.shadows);
		return result;
	}
	shim_graph_around_note(around.node, graph);
	*addedp = around.node;
	return CUDA_SUCCESS;
}

/* Where the copy of a node is filled and drained. Return: false if that is nowhere. */
static bool locate(struct around *around)
{
	CUgraph graph = graph_of(around->node);

	if (!graph)
		return false;
	if (shim_graph_inside_root(graph, &around->graph, &around->anchor))
		return true;
	around->graph = graph;
	around->anchor = around->node;
	/* Child graphs are read with the graphs around them. */
	return !shim_graph_is_inside(graph);
}

CUresult shim_graph_around_set(
	CUgraphNode handle, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct around around = { .node = handle, .copy = *copy, .context = context };
	struct shim_node node;
	CUresult result;

	if (!locate(&around))
		return CUDA_ERROR_INVALID_VALUE;
	result = describe(&node, &around);
	if (result == CUDA_SUCCESS)
		result = shim_graph_node_set(handle, &node);
	if (result == CUDA_SUCCESS)
		result = keep(&around);
	if (result != CUDA_SUCCESS)
		shim_shadows_unref(around.shadows);
	return result;
}

/*
 * Around a graph that is read
 */

/* Nodes that are filled and drained around one of them. */
struct group {
	struct around *arounds; /* copies, without references */
	size_t n;
	struct shim_shadows *shadows;
};

/* Copies what is known of a graph. Return: false without memory. */
static bool collect(CUgraph graph, struct group *group)
{
	const struct around *around;

	SHIM_LOCKED(&all.lock);
	*group = (struct group){};
	group->arounds = calloc(all.n + 1, sizeof(*group->arounds));
	if (!group->arounds)
		return false;
	for (around = all.first; around; around = around->next)
		if (around->graph == graph)
			group->arounds[group->n++] = *around;
	return true;
}

/* Nodes may have been destroyed with one that they were inside of. */
static void drop_destroyed(struct group *group)
{
	size_t n = 0;

	for (size_t i = 0; i < group->n; i++) {
		CUgraphNode node = group->arounds[i].node;
		CUgraphNodeType type;

		if (shim_remote_cuGraphNodeGetType(node, &type) == CUDA_SUCCESS)
			group->arounds[n++] = group->arounds[i];
		else
			shim_graph_around_drop_node(node);
	}
	group->n = n;
}

/* Puts the nodes with an anchor first. Return: how many these are. */
static size_t partition(struct around *arounds, size_t n, CUgraphNode anchor)
{
	size_t n_same = 0;

	for (size_t i = 0; i < n; i++)
		if (arounds[i].anchor == anchor) {
			struct around around = arounds[i];

			arounds[i] = arounds[n_same];
			arounds[n_same++] = around;
		}
	return n_same;
}

static CUresult group_shadows(struct group *group)
{
	const CUDA_MEMCPY3D **copies = calloc(group->n, sizeof(*copies));
	CUresult result;

	if (!copies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < group->n; i++)
		copies[i] = &group->arounds[i].copy;
	result = shim_shadows_new(&group->shadows, copies, group->n);
	free(copies);
	return result;
}

/* The nodes copy the shadows of their group from now on. */
static CUresult use_shadows(const struct group *group)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < group->n && result == CUDA_SUCCESS; i++) {
		struct around around = group->arounds[i];
		const CUDA_MEMCPY3D copy =
			shim_shadows_copy(group->shadows, &around.copy);
		struct shim_node node;

		result = shim_graph_node_copy(&node, &copy, around.context);
		if (result == CUDA_SUCCESS)
			result = shim_graph_node_set(around.node, &node);
		if (result != CUDA_SUCCESS)
			break;
		around.shadows = shim_shadows_ref(group->shadows);
		result = keep(&around);
		if (result != CUDA_SUCCESS)
			shim_shadows_unref(around.shadows);
	}
	return result;
}

/* Adds a function to a graph, and notes it. */
static CUresult add_function(CUgraph graph, const struct shim_edges *after,
	CUhostFn function, struct shim_shadows *shadows, struct shim_graph_wrap *wrap)
{
	const struct shim_callback callback = {
		.kind = SHIM_CALLBACK_OF_GRAPH,
		.host_function = function,
		.data = shim_shadows_ref(shadows),
		.released = shim_shadows_unref,
	};
	struct shim_node node;
	CUresult result;

	result = shim_graph_node_function(&node, &callback);
	if (result == CUDA_SUCCESS)
		result = shim_graph_node_add(&wrap->nodes[wrap->n], graph, after, &node);
	if (result == CUDA_SUCCESS)
		wrap->n++;
	else
		shim_shadows_unref(shadows);
	return result;
}

/* Nodes before or behind another one, as CUDA's calls list them. */
typedef CUresult neighbours_fn(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *np);

static CUresult get_neighbours(
	neighbours_fn *list, CUgraphNode node, CUgraphNode **nodesp, size_t *np)
{
	CUgraphEdgeData *edges = NULL;
	CUresult result;

	*nodesp = NULL;
	result = list(node, NULL, NULL, np);
	if (result != CUDA_SUCCESS)
		return result;
	*nodesp = calloc(*np + 1, sizeof(**nodesp));
	edges = calloc(*np + 1, sizeof(*edges));
	result = *nodesp && edges ? list(node, *nodesp, edges, np)
				  : CUDA_ERROR_OUT_OF_MEMORY;
	free(edges);
	return result;
}

/* Behind all that the anchor waits for, and before it. */
static CUresult add_fill(CUgraph graph, CUgraphNode anchor, struct group *group,
	struct shim_graph_wrap *wrap)
{
	struct shim_edges after = {};
	CUgraphNode *nodes;
	CUresult result;

	result = get_neighbours(
		shim_cuGraphNodeGetDependencies_v2, anchor, &nodes, &after.n);
	after.nodes = nodes;
	if (result == CUDA_SUCCESS)
		result = add_function(
			graph, &after, shim_shadows_fill, group->shadows, wrap);
	free(nodes);
	return result == CUDA_SUCCESS
		       ? shim_cuGraphAddDependencies_v2(
				 graph, &wrap->nodes[wrap->n - 1], &anchor, NULL, 1)
		       : result;
}

/* Behind the anchor, and before all that waits for it. */
static CUresult add_drain(CUgraph graph, CUgraphNode anchor, struct group *group,
	struct shim_graph_wrap *wrap)
{
	const struct shim_edges after = { .nodes = &anchor, .n = 1 };
	CUgraphNode *nodes;
	CUresult result;
	size_t n;

	result = get_neighbours(shim_cuGraphNodeGetDependentNodes_v2, anchor, &nodes, &n);
	if (result == CUDA_SUCCESS)
		result = add_function(
			graph, &after, shim_shadows_drain, group->shadows, wrap);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = shim_cuGraphAddDependencies_v2(
			graph, &wrap->nodes[wrap->n - 1], &nodes[i], NULL, 1);
	free(nodes);
	return result;
}

static CUresult wrap_group(
	CUgraph graph, struct group *group, struct shim_graph_wrap *wrap)
{
	CUgraphNode anchor = group->arounds[0].anchor;
	CUresult result;

	result = group_shadows(group);
	if (result != CUDA_SUCCESS)
		return result;
	result = use_shadows(group);
	if (result == CUDA_SUCCESS)
		result = add_fill(graph, anchor, group, wrap);
	if (result == CUDA_SUCCESS)
		result = add_drain(graph, anchor, group, wrap);
	shim_shadows_unref(group->shadows);
	return result;
}

/* In the order of the graph's nodes, so that graphs of one shape get one shape. */
static CUresult wrap_all(
	CUgraph graph, const struct group *whole, struct shim_graph_wrap *wrap)
{
	CUresult result = CUDA_SUCCESS;
	CUgraphNode *nodes;
	size_t n = 0, done = 0;

	result = shim_cuGraphGetNodes(graph, NULL, &n);
	nodes = calloc(n + 1, sizeof(*nodes));
	if (result == CUDA_SUCCESS)
		result = nodes ? shim_cuGraphGetNodes(graph, nodes, &n)
			       : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n && done < whole->n && result == CUDA_SUCCESS; i++) {
		struct group group = {
			.arounds = whole->arounds + done,
			.n = partition(whole->arounds + done, whole->n - done, nodes[i]),
		};

		if (group.n)
			result = wrap_group(graph, &group, wrap);
		done += group.n;
	}
	free(nodes);
	return result;
}

CUresult shim_graph_around_wrap(CUgraph graph, struct shim_graph_wrap *wrap)
{
	struct group whole;
	CUresult result;

	*wrap = (struct shim_graph_wrap){};
	if (!shim_graph_around_has(graph))
		return CUDA_SUCCESS;
	if (!collect(graph, &whole))
		return CUDA_ERROR_OUT_OF_MEMORY;
	drop_destroyed(&whole);
	wrap->nodes = calloc(2 * whole.n + 1, sizeof(*wrap->nodes));
	result = wrap->nodes ? wrap_all(graph, &whole, wrap) : CUDA_ERROR_OUT_OF_MEMORY;
	free(whole.arounds);
	if (result != CUDA_SUCCESS)
		shim_graph_around_unwrap(wrap);
	return result;
}

void shim_graph_around_unwrap(struct shim_graph_wrap *wrap)
{
	while (wrap->n)
		shim_remote_cuGraphDestroyNode(wrap->nodes[--wrap->n]);
	free(wrap->nodes);
	*wrap = (struct shim_graph_wrap){};
}
