/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: executable graphs
 *
 * The first launch of an executable graph has a reply, as has the first after anything in
 * it was changed; later ones are one message without a reply.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/graph.h"
#include "vgpu/handle.h"

#include "entry/graph-around.h"
#include "entry/graph-exec.h"
#include "entry/graph-launch.h"
#include "entry/graph-memory.h"
#include "entry/graph-pageable.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/environment.h"
#include "process/stream.h"
#include "wait/capture.h"
#include "wire/lock.h"
#include "wire/table.h"

/* State of an executable graph; an entry, once allocated, is reused for the next handle
 * with its index. */
struct exec {
	CUgraphExec handle;
	uint64_t n_nodes;
	/* Where its launch was accepted: context and its epoch, mixed; 0: nowhere.
	 * Atomic, may be lost. */
	uint64_t accepted;
};

static struct shim_lock execs_lock;
static struct shim_table execs;

static struct exec *find(CUgraphExec handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct exec *exec;

	if (vgpu_handle_kind(number) != VGPU_HANDLE_GRAPH_EXEC)
		return NULL;
	exec = shim_table_get(&execs, vgpu_handle_index(number));
	return exec && __atomic_load_n(&exec->handle, __ATOMIC_ACQUIRE) == handle ? exec
										  : NULL;
}

static struct exec *make_entry(uint32_t index)
{
	struct exec *exec = shim_table_get(&execs, index);

	if (exec)
		return exec;
	exec = calloc(1, sizeof(*exec));
	if (exec && !shim_table_set(&execs, index, exec)) {
		free(exec);
		return NULL;
	}
	return exec;
}

static CUresult keep(CUgraphExec handle, uint64_t n_nodes)
{
	struct exec *exec;

	SHIM_LOCKED(&execs_lock);
	exec = make_entry(vgpu_handle_index((uint64_t)(uintptr_t)handle));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->n_nodes = n_nodes;
	__atomic_store_n(&exec->accepted, 0, __ATOMIC_RELAXED);
	/* Partner: the load in find(). */
	__atomic_store_n(&exec->handle, handle, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

void shim_graph_exec_forget(CUgraphExec handle)
{
	struct exec *exec = find(handle);

	if (exec)
		__atomic_store_n(&exec->accepted, 0, __ATOMIC_RELAXED);
}

static CUresult refuse(CUresult error)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphInstantiateWithParams);

	return shim_call_error(&call, error);
}

/* The fields of the reply to an instantiation besides the handle. */
struct outcome {
	CUgraphNode error_node;
	CUgraphInstantiateResult result;
};

static CUresult instantiate(CUgraphExec *execp,
	Vgpu__CuGraphInstantiateWithParamsRequest *request, struct outcome *outcome)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphInstantiateWithParams);
	const Vgpu__CuGraphInstantiateWithParamsReply *reply = NULL;
	const ProtobufCMessage *message;
	CUgraph graph = (CUgraph)(uintptr_t)request->h_graph;
	struct shim_graph_wrap wrap;
	uint64_t n_nodes;
	CUgraphExec exec;
	CUresult result;

	*outcome = (struct outcome){ .result = CUDA_GRAPH_INSTANTIATE_ERROR };
	result = shim_graph_memory_check_exec(graph);
	if (result == CUDA_SUCCESS)
		result = shim_graph_around_wrap(graph, &wrap);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_call_sync(&call, &request->base,
		&vgpu__cu_graph_instantiate_with_params_reply__descriptor, &message);
	if (message) {
		reply = (const Vgpu__CuGraphInstantiateWithParamsReply *)message;
		outcome->error_node = (CUgraphNode)(uintptr_t)reply->error_node;
		outcome->result = (CUgraphInstantiateResult)reply->status;
	}
	/* Of a call that never came to the driver. */
	if (result != CUDA_SUCCESS && !outcome->result)
		outcome->result = CUDA_GRAPH_INSTANTIATE_ERROR;
	exec = reply ? (CUgraphExec)(uintptr_t)reply->ph_graph_exec : NULL;
	n_nodes = reply ? reply->n_nodes : 0;
	/* The thread's reply is another one then. */
	shim_graph_around_unwrap(&wrap);
	if (result != CUDA_SUCCESS || !exec)
		return result;
	result = keep(exec, n_nodes);
	if (result == CUDA_SUCCESS) {
		*execp = exec;
		shim_graph_memory_note_exec(graph, exec, request->flags);
	} else {
		shim_cuGraphExecDestroy(exec);
	}
	return result;
}

CUresult shim_cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	Vgpu__CuGraphInstantiateWithParamsRequest request =
		VGPU__CU_GRAPH_INSTANTIATE_WITH_PARAMS_REQUEST__INIT;
	struct outcome outcome;

	if (!phGraphExec)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	request.h_graph = (uint64_t)(uintptr_t)hGraph;
	request.flags = flags;
	return instantiate(phGraphExec, &request, &outcome);
}

static CUresult instantiate_with_params(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUstream stream)
{
	Vgpu__CuGraphInstantiateWithParamsRequest request =
		VGPU__CU_GRAPH_INSTANTIATE_WITH_PARAMS_REQUEST__INIT;
	struct outcome outcome;
	CUresult result;

	if (!phGraphExec || !params)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	request.h_graph = (uint64_t)(uintptr_t)hGraph;
	request.flags = params->flags;
	request.has_params = 1;
	request.upload_stream = (uint64_t)(uintptr_t)stream;
	result = instantiate(phGraphExec, &request, &outcome);
	params->hErrNode_out = outcome.error_node;
	params->result_out = outcome.result;
	return result;
}

CUresult shim_cuGraphInstantiateWithParams_on(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams, CUstream stream)
{
	CUstream upload = instantiateParams ? instantiateParams->hUploadStream : NULL;

	return instantiate_with_params(
		phGraphExec, hGraph, instantiateParams, upload ? upload : stream);
}

/* The log buffer of older drivers is left as it is. */
CUresult shim_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
	CUresult result;

	if (logBuffer && bufferSize)
		*logBuffer = '\0';
	if (!phErrorNode)
		return shim_cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
	result = instantiate_with_params(phGraphExec, hGraph, &params, NULL);
	*phErrorNode = params.hErrNode_out;
	return result;
}

CUresult shim_cuGraphExecUpdate_v2(
	CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	Vgpu__CuGraphExecUpdateV2Request request =
		VGPU__CU_GRAPH_EXEC_UPDATE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphExecUpdate_v2);
	const Vgpu__CuGraphExecUpdateV2Reply *reply;
	const ProtobufCMessage *message;
	struct shim_graph_wrap wrap;
	CUresult result;

	if (!resultInfo)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	*resultInfo = (CUgraphExecUpdateResultInfo){ CU_GRAPH_EXEC_UPDATE_ERROR };
	/* CUDA documents no update of what graphs allocate. */
	if (shim_graph_memory_has(hGraph))
		return CUDA_ERROR_NOT_SUPPORTED;
	request.h_graph_exec = (uint64_t)(uintptr_t)hGraphExec;
	request.h_graph = (uint64_t)(uintptr_t)hGraph;
	shim_graph_exec_forget(hGraphExec);
	result = shim_graph_around_wrap(hGraph, &wrap);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_exec_update_v2_reply__descriptor, &message);
	if (message) {
		reply = (const Vgpu__CuGraphExecUpdateV2Reply *)message;
		*resultInfo = (CUgraphExecUpdateResultInfo){
			.result = (CUgraphExecUpdateResult)reply->status,
			.errorNode = (CUgraphNode)(uintptr_t)reply->error_node,
			.errorFromNode = (CUgraphNode)(uintptr_t)reply->error_from_node,
		};
	}
	shim_graph_around_unwrap(&wrap);
	if (result == CUDA_SUCCESS)
		shim_graph_launch_drop(hGraphExec);
	if (!message)
		return result;
	/* Of a call that never came to the driver. */
	if (result != CUDA_SUCCESS && !resultInfo->result)
		resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	return result;
}

CUresult shim_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
	CUgraphNode *hErrorNode_out, CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info = {};
	CUresult result = shim_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return result;
}

CUresult shim_cuGraphNodeSetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	CUgraphNode inner;
	CUresult result;

	shim_graph_exec_forget(hGraphExec);
	result = shim_remote_cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled);
	return result == CUDA_ERROR_INVALID_VALUE &&
			       shim_graph_pageable_find_copy(hNode, &inner)
		       ? shim_remote_cuGraphNodeSetEnabled(hGraphExec, inner, isEnabled)
		       : result;
}

CUresult shim_cuGraphNodeGetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	CUgraphNode inner;
	CUresult result;

	result = shim_remote_cuGraphNodeGetEnabled(hGraphExec, hNode, isEnabled);
	return result == CUDA_ERROR_INVALID_VALUE && isEnabled &&
			       shim_graph_pageable_find_copy(hNode, &inner)
		       ? shim_remote_cuGraphNodeGetEnabled(hGraphExec, inner, isEnabled)
		       : result;
}

CUresult shim_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	CUresult result = refuse(CUDA_SUCCESS);
	struct exec *exec = find(hGraphExec);

	if (result != CUDA_SUCCESS)
		return result;
	/* Forget it first: no launch without a reply may follow. */
	if (exec)
		__atomic_store_n(&exec->handle, NULL, __ATOMIC_RELAXED);
	result = shim_remote_cuGraphExecDestroy(hGraphExec);
	if (result == CUDA_SUCCESS) {
		shim_graph_memory_drop_exec(hGraphExec);
		shim_graph_launch_drop(hGraphExec);
	}
	return result;
}

/* Never 0. */
static uint64_t place_of(const struct shim_context *context)
{
	return (uint64_t)context->id << 32 | (context->epoch + 1u);
}

CUresult shim_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	Vgpu__CuGraphLaunchRequest request = VGPU__CU_GRAPH_LAUNCH_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphLaunch);
	CUresult result = shim_call_check(call.id);
	struct exec *exec = find(hGraph);
	struct shim_graph_launch *around;
	struct shim_thread *thread;
	uint64_t place;

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_graph_memory_check_launch(hGraph, hStream);
	if (result != CUDA_SUCCESS)
		return result;
	thread = shim_thread_get();
	if (vgpu_graph_is_large(exec->n_nodes)) {
		result = shim_stream_admit_large(
			thread, hStream, vgpu_graph_in_flight(exec->n_nodes));
		if (result != CUDA_SUCCESS)
			return result;
	}
	place = place_of(shim_thread_top(thread));
	result = shim_graph_launch_begin(hGraph, hStream, &around);
	if (result != CUDA_SUCCESS)
		return result;
	call.wants_result = __atomic_load_n(&exec->accepted, __ATOMIC_RELAXED) != place;
	request.h_graph = (uint64_t)(uintptr_t)hGraph;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	result = shim_call_async(&call, &request.base, hStream);
	if (call.wants_result && result == CUDA_SUCCESS)
		__atomic_store_n(&exec->accepted, place, __ATOMIC_RELAXED);
	if (result == CUDA_SUCCESS)
		shim_graph_memory_note_launch(hGraph, hStream);
	result = shim_graph_launch_end(hStream, around, result);
	if (shim_environment.launches_block && result == CUDA_SUCCESS &&
		!shim_channel_has_capture())
		result = shim_stream_synchronize(hStream);
	return result;
}
