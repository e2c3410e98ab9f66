/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on executable graphs
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/stream/graph.h"

static CUresult make(struct call *call, const struct object *graph,
	const Vgpu__CuGraphInstantiateWithParamsRequest *request,
	Vgpu__CuGraphInstantiateWithParamsReply *reply, CUgraphExec *execp)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = request->flags };
	const struct vgpu_driver *driver = call->driver;
	CUresult result, told;
	void *stream;

	if (!request->has_params) {
		if (driver->cuGraphInstantiateWithFlags)
			return driver->cuGraphInstantiateWithFlags(
				execp, graph->driver, request->flags);
		if (!driver->cuGraphInstantiate_v2 || request->flags)
			return CUDA_ERROR_NOT_SUPPORTED;
		return driver->cuGraphInstantiate_v2(execp, graph->driver, NULL, NULL, 0);
	}
	if (!driver->cuGraphInstantiateWithParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(
		call, VGPU_HANDLE_STREAM, request->upload_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	params.hUploadStream = stream;
	result = driver->cuGraphInstantiateWithParams(execp, graph->driver, &params);
	reply->status = params.result_out;
	told = graph_find_node(call, params.hErrNode_out, graph, &reply->error_node);
	if (result == CUDA_SUCCESS && told != CUDA_SUCCESS)
		driver->cuGraphExecDestroy(*execp);
	return result == CUDA_SUCCESS ? told : result;
}

CUresult handle_cuGraphInstantiateWithParams(struct call *call,
	const Vgpu__CuGraphInstantiateWithParamsRequest *request,
	Vgpu__CuGraphInstantiateWithParamsReply *reply)
{
	CUgraphExec exec = NULL;
	struct graph_exec kept = {};
	struct object *graph;
	CUresult result;

	/* So that no node is destroyed while those inside it are counted. */
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = graph_count(call, graph->driver, &reply->n_nodes);
	pthread_mutex_unlock(&call->session->destroy_lock);
	if (result == CUDA_SUCCESS)
		result = make(call, graph, request, reply, &exec);
	if (result != CUDA_SUCCESS)
		return result;
	kept.n_nodes = reply->n_nodes;
	result = object_add_like(call, VGPU_HANDLE_GRAPH_EXEC, exec, NULL, &kept.object,
		&reply->ph_graph_exec);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphExecDestroy(exec);
	return result;
}

CUresult handle_cuGraphExecDestroy(struct call *call,
	const Vgpu__CuGraphExecDestroyRequest *request,
	Vgpu__CuGraphExecDestroyReply *reply)
{
	struct graph_exec functions = {};
	struct object *object;
	CUresult result;
	void *exec;

	if (!call->driver->cuGraphExecDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result =
		object_find(call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph_exec, &object);
	if (result == CUDA_SUCCESS) {
		graph_exec_take_functions((struct graph_exec *)object, &functions);
		result = object_take(
			call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph_exec, &exec);
	}
	pthread_mutex_unlock(&call->session->destroy_lock);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphExecDestroy(exec);
	graph_exec_retire_functions(call->session, &functions);
	return result;
}

/* Drivers before CUDA 12.0 return only the error node. */
static CUresult update(struct call *call, CUgraphExec exec, CUgraph graph,
	CUgraphExecUpdateResultInfo *info)
{
	const struct vgpu_driver *driver = call->driver;

	if (driver->cuGraphExecUpdate_v2)
		return driver->cuGraphExecUpdate_v2(exec, graph, info);
	if (!driver->cuGraphExecUpdate)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuGraphExecUpdate(exec, graph, &info->errorNode, &info->result);
}

CUresult handle_cuGraphExecUpdate_v2(struct call *call,
	const Vgpu__CuGraphExecUpdateV2Request *request,
	Vgpu__CuGraphExecUpdateV2Reply *reply)
{
	CUgraphExecUpdateResultInfo info = {};
	struct graph_exec functions = {};
	struct object *graph, *exec;
	CUresult result, told;

	result = object_find(call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph_exec, &exec);
	if (result == CUDA_SUCCESS)
		result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result != CUDA_SUCCESS)
		return result;
	result = update(call, exec->driver, graph->driver, &info);
	if (result == CUDA_SUCCESS) {
		/* The graph's own functions have taken their place. */
		pthread_mutex_lock(&call->session->destroy_lock);
		graph_exec_take_functions((struct graph_exec *)exec, &functions);
		pthread_mutex_unlock(&call->session->destroy_lock);
		graph_exec_retire_functions(call->session, &functions);
	}
	reply->status = info.result;
	told = graph_find_node(call, info.errorNode, graph, &reply->error_node);
	if (told == CUDA_SUCCESS)
		told = graph_find_node(
			call, info.errorFromNode, graph, &reply->error_from_node);
	return result == CUDA_SUCCESS ? told : result;
}

CUresult handle_cuGraphLaunch(struct call *call,
	const Vgpu__CuGraphLaunchRequest *request, Vgpu__CuGraphLaunchReply *reply)
{
	struct graph_exec *exec;
	struct object *object;
	CUresult result;
	void *stream;

	if (!call->driver->cuGraphLaunch)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = object_find(
			call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph, &object);
	if (result != CUDA_SUCCESS)
		return result;
	exec = (struct graph_exec *)object;
	call->is_large = vgpu_graph_is_large(exec->n_nodes);
	result = call->driver->cuGraphLaunch(object->driver, stream);
	if (result != CUDA_SUCCESS)
		return result;
	call->runner->n_launches++;
	__atomic_fetch_add(&exec->n_launches, 1, __ATOMIC_RELAXED);
	if (session_is_capturing(call->session))
		__atomic_store_n(&exec->is_copied, true, __ATOMIC_RELAXED);
	if (session_is_recorded(call->session))
		recorder_graph_output(call->session, request->h_graph, stream);
	return CUDA_SUCCESS;
}
