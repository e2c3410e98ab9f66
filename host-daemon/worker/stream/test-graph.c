/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs in the worker: their limits, and two threads of a guest at once
 *
 * The driver here returns the graphs that a test sets; it numbers its objects, and ends
 * the test if one is destroyed twice.
 */

#include <pthread.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/scratch.h"
#include "worker/stream/graph.h"

#define REPLY VGPU_FRAME_REPLY
#define N_MADE 200000u

static struct fixture fixture;

/* The driver's answers. */
static size_t n_told;
static size_t last_offset; /* of a kernel's parameters, which is 8 bytes */
static bool has_grown;	   /* the last one has another address in the second answer */
static unsigned int n_asked;

static void *as_pointer(uint64_t number)
{
	return (void *)(uintptr_t)number;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	for (size_t i = 0; nodes && i < n_told; i += 4096)
		nodes[i] = as_pointer(0x1000);
	*n = n_told;
	return CUDA_SUCCESS;
}

static CUresult list_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *data, size_t *n)
{
	for (size_t i = 0; from && i < n_told; i++) {
		from[i] = to[i] = as_pointer(0x1000);
		data[i] = (CUgraphEdgeData){};
	}
	*n = n_told;
	return CUDA_SUCCESS;
}

static void begin(void)
{
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture.driver.table.cuGraphGetNodes = list_nodes;
	fixture.driver.table.cuGraphGetEdges_v2 = list_edges;
	/* Handles here are made up. */
	fixture.driver.table.cuGraphNodeGetType = NULL;
}

/* A call that handlers and what they use can be given. */
static struct call *some_call(void)
{
	static const struct vgpu_frame frame = { .call = VGPU_CALL_vgpuGraphList };
	static struct call call;

	call_init(&call, &fixture.session, &fixture.session.runner,
		lane_get(&fixture.session, 0), fixture.context, &frame);
	return &call;
}

static uint64_t add(
	enum vgpu_handle_kind kind, uint64_t driver, const struct object *parent)
{
	uint64_t handle;

	check_eq(object_add_child(some_call(), kind, as_pointer(driver), parent, &handle),
		CUDA_SUCCESS);
	return handle;
}

/*
 * Lists
 */

TEST(lists_are_charged_while_they_are_held)
{
	struct graph_list first, second;

	begin();
	n_told = GRAPH_LISTS_MAX / sizeof(CUgraphNode) / 4 * 3;
	check_eq(graph_list_take(some_call(), VGPU_GRAPH_NODES, NULL, &first), 0);
	check_eq(first.n, n_told);
	check_eq(graph_list_take(some_call(), VGPU_GRAPH_NODES, NULL, &second),
		CUDA_ERROR_OUT_OF_MEMORY);
	graph_list_free(&fixture.session, &first);
	check_eq(graph_list_take(some_call(), VGPU_GRAPH_NODES, NULL, &second), 0);
	graph_list_free(&fixture.session, &second);
	check_eq(fixture.session.list_bytes, 0);
	fixture_deinit(&fixture);
}

TEST(a_list_without_an_end_is_refused)
{
	const size_t sizes[] = { GRAPH_LISTS_MAX / 8 + 1, SIZE_MAX / 8 + 1, SIZE_MAX };
	Vgpu__VgpuGraphListRequest request = VGPU__VGPU_GRAPH_LIST_REQUEST__INIT;

	begin();
	request.graph = add(VGPU_HANDLE_GRAPH, 0x2000, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n_told = sizes[i];
		request.list = i % 2 ? VGPU_GRAPH_EDGES : VGPU_GRAPH_NODES;
		check_eq(fixture_call(&fixture, 0, VGPU_CALL_vgpuGraphList, REPLY,
				 &request.base),
			0);
		check_eq(fixture.result, CUDA_ERROR_OUT_OF_MEMORY);
	}
	check_eq(fixture.session.list_bytes, 0);
	fixture_deinit(&fixture);
}

TEST(edges_have_room_for_both_ends_and_their_data)
{
	struct graph_list list;

	begin();
	n_told = 1001;
	check_eq(graph_list_take(some_call(), VGPU_GRAPH_EDGES, NULL, &list), 0);
	check_eq(list.n, 1001);
	check_eq(list.size, 1001 * 24);
	graph_list_free(&fixture.session, &list);
	fixture_deinit(&fixture);
}

/*
 * Parameters of kernels
 */

static CUresult node_kind(CUgraphNode node, CUgraphNodeType *kindp)
{
	*kindp = CU_GRAPH_NODE_TYPE_KERNEL;
	return CUDA_SUCCESS;
}

static CUresult node_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
	static uint64_t values[2] = { 11, 22 };
	static void *pointers[] = { &values[0], &values[1] };

	*params = (CUDA_KERNEL_NODE_PARAMS){
		.func = as_pointer(0x3000),
		.kernelParams = pointers,
	};
	return CUDA_SUCCESS;
}

static CUresult param_info(CUfunction function, size_t i, size_t *offset, size_t *size)
{
	if (i > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = i ? last_offset : 0;
	if (i && has_grown && n_asked++)
		*offset = 4096;
	*size = 8;
	return CUDA_SUCCESS;
}

/* Queries the node of a kernel with two parameters. Return: the guest's result. */
static CUresult ask_node(uint64_t *n_paramsp)
{
	Vgpu__VgpuGraphNodeRequest request = VGPU__VGPU_GRAPH_NODE_REQUEST__INIT;
	const struct object *graph;
	Vgpu__VgpuGraphNodeReply *reply;

	begin();
	fixture.driver.table.cuGraphNodeGetType = node_kind;
	fixture.driver.table.cuGraphKernelNodeGetParams_v2 = node_params;
	fixture.driver.table.cuFuncGetParamInfo = param_info;
	graph = object_table_find(&fixture.session.objects[VGPU_HANDLE_GRAPH],
		add(VGPU_HANDLE_GRAPH, 0x2000, NULL));
	request.node = add(VGPU_HANDLE_GRAPH_NODE, 0x1000, graph);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_vgpuGraphNode, REPLY, &request.base),
		0);
	*n_paramsp = 0;
	if (fixture.result == CUDA_SUCCESS) {
		reply = (void *)protobuf_c_message_unpack(
			&vgpu__vgpu_graph_node_reply__descriptor, NULL,
			fixture.reply_size, fixture.reply);
		check(reply);
		*n_paramsp = reply->n_params;
		protobuf_c_message_free_unpacked(&reply->base, NULL);
	}
	fixture_deinit(&fixture);
	return fixture.result;
}

TEST(parameters_of_a_kernel_are_returned)
{
	uint64_t n_params;

	last_offset = 8;
	check_eq(ask_node(&n_params), CUDA_SUCCESS);
	check_eq(n_params, 16);
}

/* As if its entry had been reused for another kernel between the two queries. */
TEST(parameters_that_have_grown_meanwhile_stay_in_their_block)
{
	uint64_t n_params;

	last_offset = 8;
	has_grown = true;
	check_eq(ask_node(&n_params), CUDA_ERROR_INVALID_VALUE);
}

/* Its range would be empty whatever the driver makes of it. */
TEST(a_fill_with_elements_of_no_bytes_is_refused)
{
	Vgpu__CuGraphAddNodeV2Request request = VGPU__CU_GRAPH_ADD_NODE_V2_REQUEST__INIT;
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = 0x1000, .width = 1, .height = 1 };

	begin();
	fixture.driver.table.cuGraphAddMemsetNode = NULL; /* and so is not asked */
	request.h_graph = add(VGPU_HANDLE_GRAPH, 0x2000, NULL);
	request.kind = CU_GRAPH_NODE_TYPE_MEMSET;
	request.detail.data = (uint8_t *)&fill;
	request.detail.len = sizeof(fill);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuGraphAddNode_v2, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(a_kernel_with_more_parameters_than_there_can_be_has_none_to_tell)
{
	const size_t offsets[] = { 32760, UINT32_MAX - 8, UINT32_MAX, SIZE_MAX - 7,
		SIZE_MAX };
	uint64_t n_params;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		last_offset = offsets[i];
		check_eq(ask_node(&n_params), CUDA_ERROR_NOT_SUPPORTED);
	}
}

/*
 * Two threads of the guest
 */

static uint32_t n_made;
static bool is_destroyed[N_MADE + 1]; /* atomic */

static CUresult make_one(uint64_t *numberp)
{
	check(n_made < N_MADE);
	*numberp = ++n_made;
	return CUDA_SUCCESS;
}

static CUresult destroy_one(uint64_t number)
{
	check(number && number <= N_MADE);
	check(!__atomic_exchange_n(&is_destroyed[number], true, __ATOMIC_RELAXED));
	return CUDA_SUCCESS;
}

static CUresult make_event(CUevent *event, unsigned int flags)
{
	return make_one((uint64_t *)event);
}

static CUresult destroy_event(CUevent event)
{
	return destroy_one((uintptr_t)event);
}

static CUresult make_graph(CUgraph *graph, unsigned int flags)
{
	return make_one((uint64_t *)graph);
}

static CUresult destroy_graph(CUgraph graph)
{
	return destroy_one((uintptr_t)graph);
}

static CUresult make_node(
	CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n)
{
	return make_one((uint64_t *)node);
}

static CUresult destroy_node(CUgraphNode node)
{
	return destroy_one((uintptr_t)node);
}

static CUresult make_exec(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return make_one((uint64_t *)exec);
}

static CUresult destroy_exec(CUgraphExec exec)
{
	return destroy_one((uintptr_t)exec);
}

/* The other thread, which destroys objects whose handles the guest does not have yet. */
struct other {
	pthread_t thread;
	uint32_t call;
	uint64_t handle; /* the one to be made next, atomic */
	bool is_over;	 /* atomic */
};

static struct other other;

static size_t pack_destroy(uint32_t call, uint64_t handle, uint8_t *body)
{
	Vgpu__CuEventDestroyV2Request event = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;
	Vgpu__CuGraphExecDestroyRequest exec = VGPU__CU_GRAPH_EXEC_DESTROY_REQUEST__INIT;
	Vgpu__CuGraphDestroyRequest graph = VGPU__CU_GRAPH_DESTROY_REQUEST__INIT;
	Vgpu__CuGraphDestroyNodeRequest node = VGPU__CU_GRAPH_DESTROY_NODE_REQUEST__INIT;

	event.h_event = exec.h_graph_exec = graph.h_graph = node.h_node = handle;
	switch (call) {
	case VGPU_CALL_cuEventDestroy_v2:
		return protobuf_c_message_pack(&event.base, body);
	case VGPU_CALL_cuGraphExecDestroy:
		return protobuf_c_message_pack(&exec.base, body);
	case VGPU_CALL_cuGraphDestroy:
		return protobuf_c_message_pack(&graph.base, body);
	default:
		return protobuf_c_message_pack(&node.base, body);
	}
}

static void destroy(struct runner *runner, uint32_t lane, uint32_t call, uint64_t handle)
{
	struct vgpu_frame *frame = calloc(1, sizeof(*frame) + 64);
	const char *why;

	check(frame != NULL);
	frame->call = call;
	frame->flags = REPLY;
	frame->lane = lane;
	frame->size = sizeof(*frame) + pack_destroy(call, handle, frame->body);
	check_eq(call_run(&fixture.session, runner, lane_get(&fixture.session, lane),
			 fixture.context, frame, &why),
		0);
	free(frame);
}

static void *destroy_all_the_time(void *unused)
{
	struct runner runner = {};

	check_eq(scratch_init(&runner.scratch), 0);
	while (!__atomic_load_n(&other.is_over, __ATOMIC_RELAXED))
		destroy(&runner, 1, other.call,
			__atomic_load_n(&other.handle, __ATOMIC_RELAXED));
	scratch_deinit(&runner.scratch);
	return NULL;
}

static void start_other(uint32_t call)
{
	other = (struct other){ .call = call };
	lane_get(&fixture.session, 1);
	check_eq(pthread_create(&other.thread, NULL, destroy_all_the_time, NULL), 0);
}

/* Each created object was destroyed exactly once. */
static void stop_other(void)
{
	__atomic_store_n(&other.is_over, true, __ATOMIC_RELAXED);
	check_eq(pthread_join(other.thread, NULL), 0);
	check_eq(n_made, N_MADE);
	for (uint32_t i = 1; i <= N_MADE; i++)
		check(is_destroyed[i]);
	fixture_deinit(&fixture);
}

TEST(an_event_that_another_thread_destroys_at_once_is_destroyed_once)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;

	begin();
	fixture.driver.table.cuEventCreate = make_event;
	fixture.driver.table.cuEventDestroy_v2 = destroy_event;
	start_other(VGPU_CALL_cuEventDestroy_v2);
	request.event = vgpu_handle_make(VGPU_HANDLE_EVENT, 5, 1);
	other.handle = request.event;
	while (n_made < N_MADE) {
		check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY,
				 &request.base),
			0);
		check_eq(fixture.result, CUDA_SUCCESS);
		destroy(&fixture.session.runner, 0, other.call, request.event);
	}
	stop_other();
}

/* Makes objects of that kind one by one, and destroys each that is still there. */
static void make_and_destroy(enum vgpu_handle_kind kind, uint32_t made_by,
	const ProtobufCMessage *request, uint32_t destroyed_by)
{
	uint64_t handle;

	start_other(destroyed_by);
	while (n_made < N_MADE) {
		handle = vgpu_handle_make(kind, 0, n_made + 1);
		__atomic_store_n(&other.handle, handle, __ATOMIC_RELAXED);
		check_eq(fixture_call(&fixture, 0, made_by, REPLY, request), 0);
		check_eq(fixture.result, CUDA_SUCCESS);
		destroy(&fixture.session.runner, 0, destroyed_by, handle);
	}
	stop_other();
}

TEST(an_executable_graph_that_another_thread_destroys_is_destroyed_once)
{
	Vgpu__CuGraphInstantiateWithParamsRequest request =
		VGPU__CU_GRAPH_INSTANTIATE_WITH_PARAMS_REQUEST__INIT;

	begin();
	n_told = 1;
	fixture.driver.table.cuGraphInstantiateWithFlags = make_exec;
	fixture.driver.table.cuGraphExecDestroy = destroy_exec;
	request.h_graph = add(VGPU_HANDLE_GRAPH, 0x2000, NULL);
	make_and_destroy(VGPU_HANDLE_GRAPH_EXEC, VGPU_CALL_cuGraphInstantiateWithParams,
		&request.base, VGPU_CALL_cuGraphExecDestroy);
}

TEST(a_graph_that_another_thread_destroys_is_destroyed_once)
{
	Vgpu__CuGraphCreateRequest request = VGPU__CU_GRAPH_CREATE_REQUEST__INIT;

	begin();
	fixture.driver.table.cuGraphCreate = make_graph;
	fixture.driver.table.cuGraphDestroy = destroy_graph;
	make_and_destroy(VGPU_HANDLE_GRAPH, VGPU_CALL_cuGraphCreate, &request.base,
		VGPU_CALL_cuGraphDestroy);
}

TEST(a_node_that_another_thread_destroys_is_destroyed_once)
{
	Vgpu__CuGraphAddNodeV2Request request = VGPU__CU_GRAPH_ADD_NODE_V2_REQUEST__INIT;

	begin();
	fixture.driver.table.cuGraphAddEmptyNode = make_node;
	fixture.driver.table.cuGraphDestroyNode = destroy_node;
	request.h_graph = add(VGPU_HANDLE_GRAPH, 0x2000, NULL);
	request.kind = CU_GRAPH_NODE_TYPE_EMPTY;
	make_and_destroy(VGPU_HANDLE_GRAPH_NODE, VGPU_CALL_cuGraphAddNode_v2,
		&request.base, VGPU_CALL_cuGraphDestroyNode);
}
