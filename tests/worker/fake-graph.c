/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake driver: graphs and captures of streams
 *
 * A foreign handle fails the test, and so does foreign memory or a foreign parameter
 * block of a kernel. Other invalid arguments are refused, as a driver does. Places are
 * reused at once, so a caller that keeps a stale handle finds another object.
 */

#include <string.h>

#include "driver/driver.h"
#include "fake-driver.h"
#include "fake-objects.h"

#define N_GRAPHS 32u
#define N_NODES 512u
#define N_EDGES 1024u
#define N_EXECS 32u
#define N_CAPTURES 8u

struct fake_graph {
	bool is_live;
	bool is_captured; /* in use by one call: no other may end or use it */
	bool is_child;
};

struct fake_node {
	struct fake_graph *graph; /* NULL: free */
	CUgraphNodeType kind;
	CUDA_KERNEL_NODE_PARAMS kernel;
	uint8_t params[FAKE_PARAM_SIZE];
	void *pointers[FAKE_PARAMS];
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUevent event;
	CUDA_HOST_NODE_PARAMS host;
	CUstreamBatchMemOpParams ops[256];
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
	struct fake_graph *child;
};

struct fake_edge {
	struct fake_node *from, *to; /* NULL: free */
	CUgraphEdgeData data;
};

struct fake_exec {
	bool is_live;
};

struct fake_capture {
	CUstream stream; /* NULL: free */
	struct fake_graph *graph;
	bool is_to_graph;
	cuuint64_t id;
};

static struct {
	struct fake_graph graphs[N_GRAPHS];
	struct fake_node nodes[N_NODES];
	struct fake_edge edges[N_EDGES];
	struct fake_exec execs[N_EXECS];
	struct fake_capture captures[N_CAPTURES];
	cuuint64_t last_id;
	CUstreamCaptureMode mode;
	/* The driver's answer about a capture, valid until the next query. */
	CUgraphNode told[N_NODES];
} state;

/* Whether it is one of n places of that size. */
static bool is_place(const void *handle, const void *first, size_t n, size_t size)
{
	uintptr_t at = (uintptr_t)handle, start = (uintptr_t)first;

	return at >= start && at - start < n * size && !((at - start) % size);
}

static struct fake_graph *use_graph(CUgraph handle)
{
	struct fake_graph *graph = (struct fake_graph *)handle;

	if (!is_place(graph, state.graphs, N_GRAPHS, sizeof(*graph)) || !graph->is_live)
		fake_broken("a graph that is not mine");
	return graph;
}

void fake_use_graph(CUgraph handle)
{
	use_graph(handle);
}

static struct fake_node *use_node(CUgraphNode handle)
{
	struct fake_node *node = (struct fake_node *)handle;

	if (!is_place(node, state.nodes, N_NODES, sizeof(*node)) || !node->graph)
		fake_broken("a node that is not mine");
	return node;
}

static struct fake_exec *use_exec(CUgraphExec handle)
{
	struct fake_exec *exec = (struct fake_exec *)handle;

	if (!is_place(exec, state.execs, N_EXECS, sizeof(*exec)) || !exec->is_live)
		fake_broken("an executable graph that is not mine");
	return exec;
}

static struct fake_capture *find_capture(CUstream stream)
{
	struct fake_capture *capture = state.captures;

	fake_use_stream(stream);
	while (capture < state.captures + N_CAPTURES && capture->stream != stream)
		capture++;
	return stream && capture < state.captures + N_CAPTURES ? capture : NULL;
}

/*
 * Graphs and edges
 */

static struct fake_graph *make_graph(void)
{
	for (uint32_t i = 0; i < N_GRAPHS; i++)
		if (!state.graphs[i].is_live) {
			state.graphs[i] = (struct fake_graph){ .is_live = true };
			return &state.graphs[i];
		}
	return NULL;
}

static void end_graph(struct fake_graph *graph);

static void end_node(struct fake_node *node)
{
	if (node->child)
		end_graph(node->child);
	for (uint32_t i = 0; i < N_EDGES; i++)
		if (state.edges[i].from == node || state.edges[i].to == node)
			state.edges[i].from = NULL;
	node->graph = NULL;
}

static void end_graph(struct fake_graph *graph)
{
	for (uint32_t i = 0; i < N_NODES; i++)
		if (state.nodes[i].graph == graph)
			end_node(&state.nodes[i]);
	fake_users_forget_graph((CUgraph)graph);
	graph->is_live = false;
}

static CUresult fake_graph_create(CUgraph *graph, unsigned int flags)
{
	*graph = (CUgraph)make_graph();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_graph_destroy(CUgraph handle)
{
	struct fake_graph *graph = use_graph(handle);

	if (graph->is_captured || graph->is_child)
		return CUDA_ERROR_ILLEGAL_STATE;
	end_graph(graph);
	return CUDA_SUCCESS;
}

static struct fake_node *make_node(struct fake_graph *graph, CUgraphNodeType kind)
{
	for (uint32_t i = 0; i < N_NODES; i++)
		if (!state.nodes[i].graph) {
			state.nodes[i] =
				(struct fake_node){ .graph = graph, .kind = kind };
			return &state.nodes[i];
		}
	return NULL;
}

/* What is in a child is of no matter here. */
static struct fake_graph *make_child(void)
{
	struct fake_graph *child = make_graph();

	if (child)
		child->is_child = true;
	return child;
}

static CUresult fake_graph_clone(CUgraph *clonep, CUgraph original)
{
	struct fake_graph *graph = use_graph(original), *clone = make_graph();
	struct fake_node *copy;

	if (!clone)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (fake_users_copy(original, (CUgraph)clone) != CUDA_SUCCESS) {
		end_graph(clone);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint32_t i = 0; i < N_NODES; i++) {
		if (state.nodes[i].graph != graph)
			continue;
		copy = make_node(clone, state.nodes[i].kind);
		if (!copy) {
			end_graph(clone);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		*copy = state.nodes[i];
		copy->graph = clone;
		if (copy->child)
			copy->child = make_child();
	}
	*clonep = (CUgraph)clone;
	return CUDA_SUCCESS;
}

/* The first of its kind; which one is of no matter here. */
static CUresult fake_find_in_clone(
	CUgraphNode *found, CUgraphNode original, CUgraph clone)
{
	struct fake_node *node = use_node(original);
	struct fake_graph *graph = use_graph(clone);

	for (uint32_t i = 0; i < N_NODES; i++)
		if (state.nodes[i].graph == graph && state.nodes[i].kind == node->kind) {
			*found = (CUgraphNode)&state.nodes[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_edge(struct fake_graph *graph, CUgraphNode from, CUgraphNode to,
	const CUgraphEdgeData *data)
{
	struct fake_edge made = { .from = use_node(from), .to = use_node(to) };

	if (made.from->graph != graph || made.to->graph != graph || made.from == made.to)
		return CUDA_ERROR_INVALID_VALUE;
	if (data)
		made.data = *data;
	for (uint32_t i = 0; i < N_EDGES; i++)
		if (!state.edges[i].from) {
			state.edges[i] = made;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_add_edges(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	CUresult result = CUDA_SUCCESS;

	use_graph(graph);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = add_edge(
			use_graph(graph), from[i], to[i], data ? &data[i] : NULL);
	return result;
}

static CUresult fake_remove_edges(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	use_graph(graph);
	for (size_t i = 0; i < n; i++) {
		struct fake_node *start = use_node(from[i]), *end = use_node(to[i]);

		for (uint32_t k = 0; k < N_EDGES; k++)
			if (state.edges[k].from == start && state.edges[k].to == end)
				state.edges[k].from = NULL;
	}
	return CUDA_SUCCESS;
}

/*
 * Lists: with no room, how many there are
 */

struct list {
	size_t n, room;
	CUgraphNode *nodes, *others;
	CUgraphEdgeData *data;
};

static void tell(struct list *list, struct fake_node *node, struct fake_node *other,
	const CUgraphEdgeData *data)
{
	if (list->nodes && list->n < list->room) {
		list->nodes[list->n] = (CUgraphNode)node;
		if (list->others)
			list->others[list->n] = (CUgraphNode)other;
		if (list->data)
			list->data[list->n] = *data;
	}
	list->n++;
}

static CUresult finish(const struct list *list, size_t *np)
{
	*np = list->nodes && list->n > list->room ? list->room : list->n;
	return CUDA_SUCCESS;
}

static CUresult fake_nodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
	struct fake_graph *graph = use_graph(handle);
	struct list list = { .room = *n, .nodes = nodes };

	for (uint32_t i = 0; i < N_NODES; i++)
		if (state.nodes[i].graph == graph)
			tell(&list, &state.nodes[i], NULL, NULL);
	return finish(&list, n);
}

static CUresult fake_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *data, size_t *n)
{
	struct list list = { .room = *n, .nodes = from, .others = to, .data = data };
	struct fake_graph *graph = use_graph(handle);

	for (uint32_t i = 0; i < N_EDGES; i++)
		if (state.edges[i].from && state.edges[i].from->graph == graph)
			tell(&list, state.edges[i].from, state.edges[i].to,
				&state.edges[i].data);
	return finish(&list, n);
}

static CUresult fake_dependencies(
	CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *n)
{
	struct list list = { .room = *n, .nodes = nodes, .data = data };
	struct fake_node *node = use_node(handle);

	for (uint32_t i = 0; i < N_EDGES; i++)
		if (state.edges[i].from && state.edges[i].to == node)
			tell(&list, state.edges[i].from, NULL, &state.edges[i].data);
	return finish(&list, n);
}

static CUresult fake_dependents(
	CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *n)
{
	struct list list = { .room = *n, .nodes = nodes, .data = data };
	struct fake_node *node = use_node(handle);

	for (uint32_t i = 0; i < N_EDGES; i++)
		if (state.edges[i].from == node)
			tell(&list, state.edges[i].to, NULL, &state.edges[i].data);
	return finish(&list, n);
}

/*
 * Nodes
 */

static CUresult add_node(CUgraphNode *added, CUgraph handle, CUgraphNodeType kind,
	const CUgraphNode *after, size_t n)
{
	struct fake_graph *graph = use_graph(handle);
	CUresult result = CUDA_SUCCESS;
	struct fake_node *node;

	for (size_t i = 0; i < n; i++)
		if (use_node(after[i])->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	node = make_node(graph, kind);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = add_edge(graph, after[i], (CUgraphNode)node, NULL);
	if (result != CUDA_SUCCESS)
		end_node(node);
	*added = (CUgraphNode)node;
	return result;
}

static CUresult fake_destroy_node(CUgraphNode node)
{
	end_node(use_node(node));
	return CUDA_SUCCESS;
}

static CUresult fake_node_type(CUgraphNode node, CUgraphNodeType *kind)
{
	*kind = use_node(node)->kind;
	return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	struct fake_node *node = use_node(handle);

	fake_use_launch(
		kernel->func ? kernel->func : (CUfunction)kernel->kern, kernel->extra);
	if (kernel->ctx)
		fake_use(kernel->ctx, FAKE_CONTEXT);
	if (node->kind != CU_GRAPH_NODE_TYPE_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	node->kernel = *kernel;
	node->kernel.extra = NULL;
	node->kernel.kernelParams = node->pointers;
	memcpy(node->params, kernel->extra[1], sizeof(node->params));
	return CUDA_SUCCESS;
}

static CUresult fake_add_kernel(CUgraphNode *added, CUgraph graph,
	const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	CUresult result = add_node(added, graph, CU_GRAPH_NODE_TYPE_KERNEL, after, n);

	return result == CUDA_SUCCESS ? set_kernel(*added, kernel) : result;
}

static CUresult fake_get_kernel_node(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *kernel)
{
	struct fake_node *node = use_node(handle);
	const struct fake_object *function;

	if (node->kind != CU_GRAPH_NODE_TYPE_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	/* Its module was unloaded while in use, which must not happen. */
	function = (const void *)(node->kernel.func ? (void *)node->kernel.func
						    : (void *)node->kernel.kern);
	if (function->kind != FAKE_FUNCTION && function->kind != FAKE_KERNEL)
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < FAKE_PARAMS; i++)
		node->pointers[i] = node->params + (i ? 8 + (i - 1) * 4 : 0);
	*kernel = node->kernel;
	return CUDA_SUCCESS;
}

static CUresult set_copy(CUgraphNode handle, const CUDA_MEMCPY3D *copy)
{
	struct fake_node *node = use_node(handle);

	fake_use_box(copy);
	node->copy = *copy;
	return node->kind == CU_GRAPH_NODE_TYPE_MEMCPY ? CUDA_SUCCESS
						       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_add_copy(CUgraphNode *added, CUgraph graph, const CUgraphNode *after,
	size_t n, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	CUresult result = add_node(added, graph, CU_GRAPH_NODE_TYPE_MEMCPY, after, n);

	if (context)
		fake_use(context, FAKE_CONTEXT);
	return result == CUDA_SUCCESS ? set_copy(*added, copy) : result;
}

static CUresult fake_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
	*copy = use_node(handle)->copy;
	return CUDA_SUCCESS;
}

static CUresult set_fill(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	struct fake_node *node = use_node(handle);

	if (fill->width && fill->height)
		fake_use_memory(fill->dst, fill->pitch * (fill->height - 1) +
						   fill->width * fill->elementSize);
	node->fill = *fill;
	return node->kind == CU_GRAPH_NODE_TYPE_MEMSET ? CUDA_SUCCESS
						       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_add_fill(CUgraphNode *added, CUgraph graph, const CUgraphNode *after,
	size_t n, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	CUresult result = add_node(added, graph, CU_GRAPH_NODE_TYPE_MEMSET, after, n);

	if (context)
		fake_use(context, FAKE_CONTEXT);
	return result == CUDA_SUCCESS ? set_fill(*added, fill) : result;
}

static CUresult fake_get_fill(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *fill)
{
	*fill = use_node(handle)->fill;
	return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphNode handle, CUevent event)
{
	struct fake_node *node = use_node(handle);

	fake_use(event, FAKE_EVENT);
	node->event = event;
	return CUDA_SUCCESS;
}

static CUresult fake_add_record(CUgraphNode *added, CUgraph graph,
	const CUgraphNode *after, size_t n, CUevent event)
{
	CUresult result =
		add_node(added, graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, after, n);

	return result == CUDA_SUCCESS ? set_event(*added, event) : result;
}

static CUresult fake_add_wait(CUgraphNode *added, CUgraph graph, const CUgraphNode *after,
	size_t n, CUevent event)
{
	CUresult result = add_node(added, graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT, after, n);

	return result == CUDA_SUCCESS ? set_event(*added, event) : result;
}

static CUresult fake_get_event(CUgraphNode handle, CUevent *event)
{
	*event = use_node(handle)->event;
	return CUDA_SUCCESS;
}

static CUresult fake_add_empty(
	CUgraphNode *added, CUgraph graph, const CUgraphNode *after, size_t n)
{
	return add_node(added, graph, CU_GRAPH_NODE_TYPE_EMPTY, after, n);
}

static CUresult set_host(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *host)
{
	struct fake_node *node = use_node(handle);

	if (node->kind != CU_GRAPH_NODE_TYPE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	node->host = *host;
	return CUDA_SUCCESS;
}

static CUresult fake_add_host(CUgraphNode *added, CUgraph graph, const CUgraphNode *after,
	size_t n, const CUDA_HOST_NODE_PARAMS *host)
{
	CUresult result = add_node(added, graph, CU_GRAPH_NODE_TYPE_HOST, after, n);

	return result == CUDA_SUCCESS ? set_host(*added, host) : result;
}

static CUresult fake_get_host(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *host)
{
	*host = use_node(handle)->host;
	return CUDA_SUCCESS;
}

/* The function that was captured is that of a node from now on. */
static CUresult fake_launch_host(CUstream stream, CUhostFn fn, void *data)
{
	const CUDA_HOST_NODE_PARAMS host = { fn, data };
	struct fake_capture *capture = find_capture(stream);
	CUgraphNode node;

	return capture ? fake_add_host(&node, (CUgraph)capture->graph, NULL, 0, &host)
		       : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult fake_add_child(CUgraphNode *added, CUgraph graph,
	const CUgraphNode *after, size_t n, CUgraph child)
{
	CUresult result;

	use_graph(child);
	result = add_node(added, graph, CU_GRAPH_NODE_TYPE_GRAPH, after, n);
	if (result == CUDA_SUCCESS) {
		use_node(*added)->child = make_child();
		if (!use_node(*added)->child) {
			end_node(use_node(*added));
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return result;
}

static CUresult fake_get_child(CUgraphNode handle, CUgraph *child)
{
	*child = (CUgraph)use_node(handle)->child;
	return *child ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_batch(CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	struct fake_node *node = use_node(handle);

	for (unsigned int i = 0; i < batch->count; i++) {
		const CUstreamBatchMemOpParams *op = &batch->paramArray[i];

		if (op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ||
			op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
			fake_use_memory(op->writeValue.address, 8);
		else if (op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
			 op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
			fake_use_memory(op->writeValue.address, 4);
	}
	if (batch->ctx)
		fake_use(batch->ctx, FAKE_CONTEXT);
	if (node->kind != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return CUDA_ERROR_INVALID_VALUE;
	node->batch = *batch;
	memcpy(node->ops, batch->paramArray, batch->count * sizeof(*node->ops));
	return CUDA_SUCCESS;
}

static CUresult fake_add_batch(CUgraphNode *added, CUgraph graph,
	const CUgraphNode *after, size_t n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	CUresult result =
		add_node(added, graph, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, after, n);

	return result == CUDA_SUCCESS ? set_batch(*added, batch) : result;
}

static CUresult fake_get_batch(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	*batch = use_node(handle)->batch;
	batch->paramArray = use_node(handle)->ops;
	return CUDA_SUCCESS;
}

/*
 * Executable graphs
 */

static CUresult fake_instantiate(
	CUgraphExec *execp, CUgraph handle, unsigned long long flags)
{
	if (use_graph(handle)->is_captured)
		return CUDA_ERROR_ILLEGAL_STATE;
	for (uint32_t i = 0; i < N_EXECS; i++)
		if (!state.execs[i].is_live) {
			state.execs[i].is_live = true;
			*execp = (CUgraphExec)&state.execs[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_exec_destroy(CUgraphExec exec)
{
	use_exec(exec)->is_live = false;
	return CUDA_SUCCESS;
}

static CUresult fake_exec_update(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraphNode first = NULL;
	size_t n = 1;

	use_exec(exec);
	fake_nodes(graph, &first, &n);
	*info = (CUgraphExecUpdateResultInfo){
		.result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
		.errorNode = n ? first : NULL,
	};
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult fake_graph_launch(CUgraphExec exec, CUstream stream)
{
	use_exec(exec);
	fake_use_stream(stream);
	fake_counts.launches++;
	return CUDA_SUCCESS;
}

static CUresult fake_exec_kernel(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	use_exec(exec);
	return set_kernel(node, kernel);
}

static CUresult fake_exec_copy(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	use_exec(exec);
	return set_copy(node, copy);
}

static CUresult fake_exec_fill(CUgraphExec exec, CUgraphNode node,
	const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	use_exec(exec);
	return set_fill(node, fill);
}

static CUresult fake_exec_event(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	use_exec(exec);
	return set_event(node, event);
}

static CUresult fake_exec_host(
	CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	use_exec(exec);
	return use_node(node)->kind == CU_GRAPH_NODE_TYPE_HOST ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_exec_child(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	use_exec(exec);
	use_node(node);
	use_graph(child);
	return CUDA_SUCCESS;
}

static CUresult fake_exec_batch(
	CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	use_exec(exec);
	return set_batch(node, batch);
}

static CUresult fake_set_enabled(CUgraphExec exec, CUgraphNode node, unsigned int on)
{
	use_exec(exec);
	use_node(node);
	return CUDA_SUCCESS;
}

/*
 * Captures
 */

static CUresult begin(CUstream stream, struct fake_graph *graph, bool is_to_graph)
{
	if (!stream || find_capture(stream) || !graph || graph->is_captured)
		return CUDA_ERROR_ILLEGAL_STATE;
	for (uint32_t i = 0; i < N_CAPTURES; i++) {
		if (state.captures[i].stream)
			continue;
		graph->is_captured = true;
		state.captures[i] = (struct fake_capture){
			.stream = stream,
			.graph = graph,
			.is_to_graph = is_to_graph,
			.id = ++state.last_id,
		};
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
	struct fake_graph *graph;
	CUresult result;

	fake_use_stream(stream);
	graph = make_graph();
	result = begin(stream, graph, false);
	if (result != CUDA_SUCCESS && graph)
		end_graph(graph);
	return result;
}

static CUresult fake_begin_to_graph(CUstream stream, CUgraph graph,
	const CUgraphNode *after, const CUgraphEdgeData *data, size_t n,
	CUstreamCaptureMode mode)
{
	fake_use_stream(stream);
	for (size_t i = 0; i < n; i++)
		if (use_node(after[i])->graph != use_graph(graph))
			return CUDA_ERROR_INVALID_VALUE;
	return begin(stream, use_graph(graph), true);
}

static CUresult fake_end_capture(CUstream stream, CUgraph *graph)
{
	struct fake_capture *capture = find_capture(stream);

	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	*graph = (CUgraph)capture->graph;
	capture->graph->is_captured = false;
	capture->stream = NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	*status = find_capture(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
				       : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult fake_capture_info(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
	const CUgraphEdgeData **data, size_t *n)
{
	struct fake_capture *capture = find_capture(stream);

	fake_is_capturing(stream, status);
	if (!capture)
		return CUDA_SUCCESS;
	*id = capture->id;
	*graph = (CUgraph)capture->graph;
	*n = N_NODES;
	*nodes = state.told;
	*data = NULL;
	return fake_nodes(*graph, state.told, n);
}

static CUresult fake_update_capture(CUstream stream, CUgraphNode *nodes,
	const CUgraphEdgeData *data, size_t n, unsigned int flags)
{
	struct fake_capture *capture = find_capture(stream);

	for (size_t i = 0; i < n; i++)
		if (!capture || use_node(nodes[i])->graph != capture->graph)
			return CUDA_ERROR_INVALID_VALUE;
	return capture ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

static CUresult fake_exchange_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = state.mode;

	state.mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

void fake_graphs_forget_stream(CUstream stream)
{
	for (uint32_t i = 0; i < N_CAPTURES; i++) {
		struct fake_capture *capture = &state.captures[i];

		if (capture->stream != stream)
			continue;
		capture->graph->is_captured = false;
		if (!capture->is_to_graph)
			end_graph(capture->graph);
		capture->stream = NULL;
	}
}

void fake_graphs_init(struct vgpu_driver *table)
{
	memset(&state, 0, sizeof(state));
	fake_users_init(table);
	table->cuGraphCreate = fake_graph_create;
	table->cuGraphDestroy = fake_graph_destroy;
	table->cuGraphClone = fake_graph_clone;
	table->cuGraphNodeFindInClone = fake_find_in_clone;
	table->cuGraphAddDependencies_v2 = fake_add_edges;
	table->cuGraphRemoveDependencies_v2 = fake_remove_edges;
	table->cuGraphGetNodes = fake_nodes;
	table->cuGraphGetRootNodes = fake_nodes;
	table->cuGraphGetEdges_v2 = fake_edges;
	table->cuGraphNodeGetDependencies_v2 = fake_dependencies;
	table->cuGraphNodeGetDependentNodes_v2 = fake_dependents;
	table->cuGraphDestroyNode = fake_destroy_node;
	table->cuGraphNodeGetType = fake_node_type;
	table->cuGraphAddKernelNode_v2 = fake_add_kernel;
	table->cuGraphKernelNodeSetParams_v2 = set_kernel;
	table->cuGraphKernelNodeGetParams_v2 = fake_get_kernel_node;
	table->cuGraphAddMemcpyNode = fake_add_copy;
	table->cuGraphMemcpyNodeSetParams = set_copy;
	table->cuGraphMemcpyNodeGetParams = fake_get_copy;
	table->cuGraphAddMemsetNode = fake_add_fill;
	table->cuGraphMemsetNodeSetParams = set_fill;
	table->cuGraphMemsetNodeGetParams = fake_get_fill;
	table->cuGraphAddEventRecordNode = fake_add_record;
	table->cuGraphAddEventWaitNode = fake_add_wait;
	table->cuGraphEventRecordNodeSetEvent = set_event;
	table->cuGraphEventWaitNodeSetEvent = set_event;
	table->cuGraphEventRecordNodeGetEvent = fake_get_event;
	table->cuGraphEventWaitNodeGetEvent = fake_get_event;
	table->cuGraphAddEmptyNode = fake_add_empty;
	table->cuGraphInstantiateWithFlags = fake_instantiate;
	table->cuGraphExecDestroy = fake_exec_destroy;
	table->cuGraphExecUpdate_v2 = fake_exec_update;
	table->cuGraphLaunch = fake_graph_launch;
	table->cuGraphUpload = fake_graph_launch;
	table->cuGraphExecKernelNodeSetParams_v2 = fake_exec_kernel;
	table->cuGraphExecMemcpyNodeSetParams = fake_exec_copy;
	table->cuGraphExecMemsetNodeSetParams = fake_exec_fill;
	table->cuGraphExecEventRecordNodeSetEvent = fake_exec_event;
	table->cuGraphExecEventWaitNodeSetEvent = fake_exec_event;
	table->cuLaunchHostFunc = fake_launch_host;
	table->cuGraphAddHostNode = fake_add_host;
	table->cuGraphHostNodeSetParams = set_host;
	table->cuGraphHostNodeGetParams = fake_get_host;
	table->cuGraphAddChildGraphNode = fake_add_child;
	table->cuGraphChildGraphNodeGetGraph = fake_get_child;
	table->cuGraphAddBatchMemOpNode = fake_add_batch;
	table->cuGraphBatchMemOpNodeSetParams = set_batch;
	table->cuGraphBatchMemOpNodeGetParams = fake_get_batch;
	table->cuGraphExecHostNodeSetParams = fake_exec_host;
	table->cuGraphExecChildGraphNodeSetParams = fake_exec_child;
	table->cuGraphExecBatchMemOpNodeSetParams = fake_exec_batch;
	table->cuGraphNodeSetEnabled = fake_set_enabled;
	table->cuStreamBeginCapture_v2 = fake_begin_capture;
	table->cuStreamBeginCaptureToGraph = fake_begin_to_graph;
	table->cuStreamEndCapture = fake_end_capture;
	table->cuStreamIsCapturing = fake_is_capturing;
	table->cuStreamGetCaptureInfo_v3 = fake_capture_info;
	table->cuStreamUpdateCaptureDependencies_v2 = fake_update_capture;
	table->cuThreadExchangeStreamCaptureMode = fake_exchange_mode;
}
