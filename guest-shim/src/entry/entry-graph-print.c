/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: a graph as text for Graphviz
 *
 * CUDA documents neither the text nor what each flag adds. Here a node's label is its
 * number, its kind and, of a kernel, the name; flags add parameters and handles, the
 * verbose one all of them.
 */

#include <stdio.h>
#include <stdlib.h>

#include "entry/graph-inside.h"
#include "process/shim.h"

/* The graph to be printed. */
struct picture {
	CUgraph graph;
	CUgraphNode *nodes;
	size_t n_nodes;
	CUgraphNode *from;
	CUgraphNode *to;
	CUgraphEdgeData *edges;
	size_t n_edges;
	unsigned int flags;
	FILE *file;
};

static const char *kind_name(CUgraphNodeType kind)
{
	switch (kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return "KERNEL";
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return "MEMCPY";
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return "MEMSET";
	case CU_GRAPH_NODE_TYPE_HOST:
		return "HOST";
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return "GRAPH";
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return "BATCH_MEM_OP";
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return "MEM_ALLOC";
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return "MEM_FREE";
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return "CONDITIONAL";
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return "EMPTY";
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return "EVENT_WAIT";
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return "EVENT_RECORD";
	default:
		return "NODE";
	}
}

static bool wants(const struct picture *picture, unsigned int flag)
{
	return picture->flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

/* In a quoted string: names are the program's. */
static void print_quoted(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', file);
		fputc(*text, file);
	}
}

static CUresult print_kernel(const struct picture *picture, CUgraphNode node)
{
	CUDA_KERNEL_NODE_PARAMS params = {};
	const char *name = NULL;
	CUresult result;

	result = shim_cuGraphKernelNodeGetParams_v2(node, &params);
	if (result != CUDA_SUCCESS)
		return result;
	result = params.func ? shim_cuFuncGetName(&name, params.func)
			     : shim_cuKernelGetName(&name, params.kern);
	if (result != CUDA_SUCCESS)
		return result;
	fputs("\\n", picture->file);
	print_quoted(picture->file, name);
	if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(picture->file,
			"\\ngrid (%u, %u, %u), block (%u, %u, %u)\\nshared memory %u",
			params.gridDimX, params.gridDimY, params.gridDimZ,
			params.blockDimX, params.blockDimY, params.blockDimZ,
			params.sharedMemBytes);
	return CUDA_SUCCESS;
}

static CUresult print_copy(const struct picture *picture, CUgraphNode node)
{
	CUDA_MEMCPY3D copy = {};
	CUresult result = CUDA_SUCCESS;

	if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		return result;
	result = shim_cuGraphMemcpyNodeGetParams(node, &copy);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\n%zu x %zu x %zu bytes", copy.WidthInBytes,
			copy.Height, copy.Depth);
	return result;
}

static CUresult print_fill(const struct picture *picture, CUgraphNode node)
{
	CUDA_MEMSET_NODE_PARAMS fill = {};
	CUresult result = CUDA_SUCCESS;

	if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		return result;
	result = shim_cuGraphMemsetNodeGetParams(node, &fill);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\n0x%llx: %zu x %zu of %u bytes, value %u",
			fill.dst, fill.width, fill.height, fill.elementSize, fill.value);
	return result;
}

static CUresult print_event(const struct picture *picture, CUgraphNode node, bool records)
{
	CUevent event = NULL;
	CUresult result = CUDA_SUCCESS;

	if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
		return result;
	result = records ? shim_cuGraphEventRecordNodeGetEvent(node, &event)
			 : shim_cuGraphEventWaitNodeGetEvent(node, &event);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\nevent %p", (void *)event);
	return result;
}

static CUresult print_host(const struct picture *picture, CUgraphNode node)
{
	CUDA_HOST_NODE_PARAMS host = {};
	CUresult result = CUDA_SUCCESS;

	if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
		return result;
	result = shim_cuGraphHostNodeGetParams(node, &host);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\nfunction %p (%p)", (void *)(uintptr_t)host.fn,
			host.userData);
	return result;
}

static CUresult print_batch(const struct picture *picture, CUgraphNode node)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {};
	CUresult result = CUDA_SUCCESS;

	if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS))
		return result;
	result = shim_cuGraphBatchMemOpNodeGetParams(node, &batch);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\n%u operations", batch.count);
	return result;
}

static CUresult print_child(const struct picture *picture, CUgraphNode node)
{
	CUgraph child = NULL;
	CUresult result;
	size_t n = 0;

	result = shim_cuGraphChildGraphNodeGetGraph(node, &child);
	if (result == CUDA_SUCCESS)
		result = shim_cuGraphGetNodes(child, NULL, &n);
	if (result == CUDA_SUCCESS)
		fprintf(picture->file, "\\n%zu nodes", n);
	return result;
}

static const char *choice_name(CUgraphConditionalNodeType type)
{
	switch (type) {
	case CU_GRAPH_COND_TYPE_IF:
		return "IF";
	case CU_GRAPH_COND_TYPE_WHILE:
		return "WHILE";
	default:
		return "SWITCH";
	}
}

static CUresult print_conditional(const struct picture *picture, CUgraphNode node)
{
	CUDA_CONDITIONAL_NODE_PARAMS params = {};
	CUresult result = CUDA_SUCCESS;
	size_t n;

	if (!shim_graph_inside_find(node, &params))
		return CUDA_ERROR_INVALID_VALUE;
	fprintf(picture->file, "\\n%s", choice_name(params.type));
	for (unsigned int i = 0; i < params.size && result == CUDA_SUCCESS; i++) {
		result = shim_cuGraphGetNodes(params.phGraph_out[i], NULL, &n);
		if (result == CUDA_SUCCESS)
			fprintf(picture->file, "\\nbody %u: %zu nodes", i, n);
	}
	if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
		fprintf(picture->file, "\\nhandle 0x%llx",
			(unsigned long long)params.handle);
	return result;
}

static CUresult print_node(const struct picture *picture, size_t i)
{
	CUgraphNodeType kind = CU_GRAPH_NODE_TYPE_EMPTY;
	CUgraphNode node = picture->nodes[i];
	CUresult result;

	result = shim_cuGraphNodeGetType(node, &kind);
	if (result != CUDA_SUCCESS)
		return result;
	fprintf(picture->file, "\tn%p [label=\"%zu\\n%s", (void *)node, i,
		kind_name(kind));
	if (kind == CU_GRAPH_NODE_TYPE_KERNEL)
		result = print_kernel(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_MEMCPY)
		result = print_copy(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_MEMSET)
		result = print_fill(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_HOST)
		result = print_host(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_GRAPH)
		result = print_child(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = print_conditional(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		result = print_batch(picture, node);
	else if (kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
		 kind == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		result = print_event(
			picture, node, kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(picture->file, "\\n%p", (void *)node);
	fputs("\"];\n", picture->file);
	return result;
}

static void print_edge(const struct picture *picture, size_t i)
{
	const CUgraphEdgeData *edge = &picture->edges[i];

	fprintf(picture->file, "\tn%p -> n%p", (void *)picture->from[i],
		(void *)picture->to[i]);
	if (edge->from_port || edge->to_port || edge->type)
		fprintf(picture->file, " [label=\"ports %u, %u; type %u\"]",
			edge->from_port, edge->to_port, edge->type);
	fputs(";\n", picture->file);
}

static CUresult print(const struct picture *picture)
{
	CUresult result = CUDA_SUCCESS;

	fprintf(picture->file, "digraph \"graph_%p\" {\n\tnode [shape=box];\n",
		(void *)picture->graph);
	for (size_t i = 0; i < picture->n_nodes && result == CUDA_SUCCESS; i++)
		result = print_node(picture, i);
	for (size_t i = 0; i < picture->n_edges; i++)
		print_edge(picture, i);
	fputs("}\n", picture->file);
	return result;
}

/* Nodes and edges, of which no more than at the first look are taken. */
static CUresult look(struct picture *picture)
{
	CUresult result;

	result = shim_cuGraphGetNodes(picture->graph, NULL, &picture->n_nodes);
	if (result == CUDA_SUCCESS)
		result = shim_cuGraphGetEdges_v2(
			picture->graph, NULL, NULL, NULL, &picture->n_edges);
	if (result != CUDA_SUCCESS)
		return result;
	picture->nodes = calloc(picture->n_nodes + 1, sizeof(*picture->nodes));
	picture->from = calloc(picture->n_edges + 1, sizeof(*picture->from));
	picture->to = calloc(picture->n_edges + 1, sizeof(*picture->to));
	picture->edges = calloc(picture->n_edges + 1, sizeof(*picture->edges));
	if (!picture->nodes || !picture->from || !picture->to || !picture->edges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_cuGraphGetNodes(picture->graph, picture->nodes, &picture->n_nodes);
	if (result != CUDA_SUCCESS)
		return result;
	return shim_cuGraphGetEdges_v2(picture->graph, picture->from, picture->to,
		picture->edges, &picture->n_edges);
}

static CUresult write_file(struct picture *picture, const char *path)
{
	CUresult result;
	bool is_whole;

	picture->file = fopen(path, "we");
	if (!picture->file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	result = print(picture);
	is_whole = !ferror(picture->file);
	if (fclose(picture->file) || !is_whole)
		return result == CUDA_SUCCESS ? CUDA_ERROR_OPERATING_SYSTEM : result;
	return result;
}

CUresult shim_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct picture picture = { .graph = hGraph, .flags = flags };
	CUresult result;

	SHIM_CHECK_READY();
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	result = look(&picture);
	if (result == CUDA_SUCCESS)
		result = write_file(&picture, path);
	free(picture.nodes);
	free(picture.from);
	free(picture.to);
	free(picture.edges);
	return result;
}
