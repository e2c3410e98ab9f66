/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random calls: graphs, captures and user objects
 */

#include <stdlib.h>

#include "calls-graph.h"
#include "slots.h"

void calls_graph_create(uint8_t a, uint8_t b)
{
	CUgraph made;

	if (b % 4) {
		if (!cuGraphCreate(&made, 0))
			slot_put(SLOT_GRAPH, a, made);
	} else if (!cuGraphClone(&made, slot_get(SLOT_GRAPH, b / 4))) {
		slot_put(SLOT_GRAPH, a, made);
	}
}

void calls_graph_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(b % 2 ? SLOT_GRAPH : SLOT_EXEC, a, b / 2);
}

static CUresult node_add_work(CUgraphNode *nodep, CUgraph graph, uint8_t a, uint8_t b)
{
	CUdeviceptr where = calls_word(b);
	void *params[] = { &where };
	const CUDA_KERNEL_NODE_PARAMS kernel = {
		.func = calls_function(a),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params,
	};
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = calls_place(a),
		.value = b,
		.elementSize = 1,
		.width = 64,
		.height = 1,
	};
	const CUDA_HOST_NODE_PARAMS host = { .fn = calls_called_back };
	CUstreamBatchMemOpParams ops[] = {
		{ .writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_32, where, { 1 } } },
		{ .waitValue = { CU_STREAM_MEM_OP_WAIT_VALUE_32, where, { 1 } } },
	};
	const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = { slot_get(SLOT_CONTEXT, a), 2, ops,
		0 };
	CUgraphNode before = slot_get(SLOT_NODE, b);
	size_t n_before = b & 64 ? 1 : 0;

	switch (b % 8) {
	case 0:
		return cuGraphAddMemsetNode(nodep, graph, &before, n_before, &fill,
			slot_get(SLOT_CONTEXT, a));
	case 1:
		return cuGraphAddHostNode(nodep, graph, &before, n_before, &host);
	case 2:
		return cuGraphAddEventRecordNode(
			nodep, graph, &before, n_before, slot_get(SLOT_EVENT, a));
	case 3:
		return cuGraphAddEventWaitNode(
			nodep, graph, &before, n_before, slot_get(SLOT_EVENT, a));
	case 4:
		return cuGraphAddChildGraphNode(
			nodep, graph, &before, n_before, slot_get(SLOT_GRAPH, a));
	case 5:
		return cuGraphAddBatchMemOpNode(nodep, graph, &before, n_before, &batch);
	default:
		return cuGraphAddKernelNode_v2(nodep, graph, &before, n_before, &kernel);
	}
}

void calls_node_add(uint8_t a, uint8_t b)
{
	CUgraphNode node;

	if (!node_add_work(&node, slot_get(SLOT_GRAPH, a / 8), a, b))
		slot_put(SLOT_NODE, a ^ b, node);
}

void calls_node_use(uint8_t a, uint8_t b)
{
	CUgraphNode node = slot_get(SLOT_NODE, a), nodes[4];
	CUgraph graph = slot_get(SLOT_GRAPH, b / 8);
	CUgraphExec exec = slot_get(SLOT_EXEC, b / 8);
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphNodeType type;
	size_t n = 4;

	switch (b % 8) {
	case 0:
		cuGraphDestroyNode(node);
		break;
	case 1:
		cuGraphNodeGetType(node, &type);
		break;
	case 2:
		cuGraphGetNodes(graph, nodes, &n);
		break;
	case 3:
		cuGraphEventRecordNodeSetEvent(node, slot_get(SLOT_EVENT, b / 8));
		if (!cuGraphKernelNodeGetParams_v2(node, &params) &&
			*(const CUdeviceptr *)params.kernelParams[0] == 1)
			abort();
		break;
	case 4:
		cuGraphNodeSetEnabled(exec, node, a % 2);
		break;
	case 5:
		cuGraphExecEventRecordNodeSetEvent(
			exec, node, slot_get(SLOT_EVENT, b / 8));
		break;
	default:
		if (!cuGraphGetRootNodes(graph, nodes, &n) && n)
			slot_put(SLOT_NODE, a, nodes[0]);
		break;
	}
}

/*
 * Conditional nodes
 */

/* Handles of conditions, atomic, also of those that have ended. Their values stay 0, so
 * that no loop is without end. */
static uint64_t conditions[8];

static CUgraphConditionalHandle condition_get(uint8_t which)
{
	return __atomic_load_n(&conditions[which % 8], __ATOMIC_RELAXED);
}

void calls_condition_create(uint8_t a, uint8_t b)
{
	CUgraphConditionalHandle made;

	if (!cuGraphConditionalHandleCreate(&made, slot_get(SLOT_GRAPH, a),
		    b & 8 ? slot_get(SLOT_CONTEXT, b / 16) : NULL, 0,
		    b & 64 ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0))
		__atomic_store_n(&conditions[b % 8], made, __ATOMIC_RELAXED);
}

/* A kernel that sets a condition, before a node or in its body. */
static void condition_set(CUgraph graph, uint8_t a, uint8_t b)
{
	CUgraphConditionalHandle handle = condition_get(b);
	void *params[] = { &handle };
	const CUDA_KERNEL_NODE_PARAMS kernel = {
		.func = calls_function(a),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params,
	};
	CUgraphNode node;

	if (!cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel))
		slot_put(SLOT_NODE, a ^ b, node);
}

void calls_conditional_add(uint8_t a, uint8_t b)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraph graph = slot_get(SLOT_GRAPH, a / 8), body;
	CUgraphNode node;

	if (b % 4 == 3) {
		condition_set(graph, a, b);
		return;
	}
	params.conditional.handle = condition_get(b / 32);
	params.conditional.type = (CUgraphConditionalNodeType)(b % 4);
	params.conditional.size = 1 + (b / 4) % 4;
	params.conditional.ctx = b & 16 ? slot_get(SLOT_CONTEXT, a) : NULL;
	if (cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params))
		return;
	/* A body remains after it is put out of its slot, but only as long as its node.
	 */
	body = params.conditional.phGraph_out[a % params.conditional.size];
	slot_put(SLOT_GRAPH, a ^ b, body);
	slot_put(SLOT_NODE, a ^ b, node);
}

void calls_exec_create(uint8_t a, uint8_t b)
{
	CUgraph graph = slot_get(SLOT_GRAPH, b);
	CUgraphExecUpdateResultInfo info;
	CUgraphExec made;

	if (b & 64)
		cuGraphExecUpdate_v2(slot_get(SLOT_EXEC, a), graph, &info);
	else if (!cuGraphInstantiateWithFlags(&made, graph, 0))
		slot_put(SLOT_EXEC, a, made);
}

void calls_exec_launch(uint8_t a, uint8_t b)
{
	cuGraphLaunch(slot_get(SLOT_EXEC, a), calls_stream(b));
}

void calls_capture_begin(uint8_t a, uint8_t b)
{
	static const CUstreamCaptureMode modes[] = { CU_STREAM_CAPTURE_MODE_RELAXED,
		CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
		CU_STREAM_CAPTURE_MODE_GLOBAL };

	if (b & 64)
		cuStreamBeginCaptureToGraph(calls_stream(a), slot_get(SLOT_GRAPH, b / 4),
			NULL, NULL, 0, modes[b % 4]);
	else
		cuStreamBeginCapture_v2(calls_stream(a), modes[b % 4]);
}

void calls_capture_end(uint8_t a, uint8_t b)
{
	CUgraph graph = NULL;

	if (!cuStreamEndCapture(calls_stream(a), &graph) && graph)
		slot_put(SLOT_GRAPH, b, graph);
}

void calls_capture_ask(uint8_t a, uint8_t b)
{
	CUstreamCaptureStatus status;
	const CUgraphNode *nodes = NULL;
	CUgraph graph = NULL;
	cuuint64_t id;
	size_t n = 0;

	if (b % 2)
		cuStreamIsCapturing(calls_stream(a), &status);
	else if (!cuStreamGetCaptureInfo_v2(
			 calls_stream(a), &status, &id, &graph, &nodes, &n) &&
		 n && nodes)
		slot_put(SLOT_NODE, b, nodes[n - 1]);
}

/*
 * User objects: a graph may keep them, and so may the program
 */

void calls_user_create(uint8_t a, uint8_t b)
{
	CUuserObject made;

	if (!cuUserObjectCreate(&made, NULL, calls_called_back, 1 + b % 2,
		    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC))
		slot_put(SLOT_USER, a, made);
}

void calls_user_use(uint8_t a, uint8_t b)
{
	CUuserObject user = slot_get(SLOT_USER, a);
	CUgraph graph = slot_get(SLOT_GRAPH, b / 8);

	switch (b % 4) {
	case 0:
		cuUserObjectRetain(user, 1);
		break;
	case 1:
		cuUserObjectRelease(user, 1);
		break;
	case 2:
		cuGraphRetainUserObject(
			graph, user, 1, b & 4 ? CU_GRAPH_USER_OBJECT_MOVE : 0);
		break;
	default:
		cuGraphReleaseUserObject(graph, user, 1);
		break;
	}
}
