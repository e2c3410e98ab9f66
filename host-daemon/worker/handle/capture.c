/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on captures of streams
 *
 * Calls that begin or end a capture, or exchange the thread's mode, always run on the
 * lane of their guest thread: the driver identifies the guest thread by it.
 */

#include <string.h>

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/lane.h"
#include "worker/base/object-handles.h"
#include "worker/stream/capture.h"
#include "worker/stream/graph.h"

CUresult handle_cuThreadExchangeStreamCaptureMode(struct call *call,
	const Vgpu__CuThreadExchangeStreamCaptureModeRequest *request,
	Vgpu__CuThreadExchangeStreamCaptureModeReply *reply)
{
	CUstreamCaptureMode mode = request->mode;
	CUresult result;

	if (!call->driver->cuThreadExchangeStreamCaptureMode)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuThreadExchangeStreamCaptureMode(&mode);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(
			&call->lane->capture_mode, request->mode, __ATOMIC_RELAXED);
	reply->mode = mode;
	return result;
}

/* The driver has no such query. So if the modes of the captures forbid it, this makes a
 * small call that they forbid: the driver refuses and invalidates. */
CUresult handle_vgpuCaptureCheck(struct call *call,
	const Vgpu__VgpuCaptureCheckRequest *request, Vgpu__VgpuCaptureCheckReply *reply)
{
	CUresult result;
	void *memory;

	if (!call->driver->cuMemHostAlloc || !call->driver->cuMemFreeHost)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!lane_is_forbidden_unsafe(call->lane))
		return CUDA_SUCCESS;
	result = call->driver->cuMemHostAlloc(&memory, 1, 0);
	if (result == CUDA_SUCCESS)
		call->driver->cuMemFreeHost(memory);
	return result;
}

/* Records a capture that the driver has begun, or ends it without memory. */
static CUresult note(
	struct call *call, CUstream stream, CUstreamCaptureMode mode, bool is_to_graph)
{
	struct capture capture = {
		.stream = call->stream,
		.lane = call->lane,
		.mode = mode,
		.is_to_graph = is_to_graph,
	};
	CUgraph graph = NULL;
	struct capture_info info;

	if (capture_ask(call, stream, &info) == CUDA_SUCCESS)
		capture.id = info.id;
	if (capture_add(call->session, &capture))
		return CUDA_SUCCESS;
	if (call->driver->cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS &&
		!is_to_graph)
		call->driver->cuGraphDestroy(graph);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult handle_cuStreamBeginCapture_v2(struct call *call,
	const Vgpu__CuStreamBeginCaptureV2Request *request,
	Vgpu__CuStreamBeginCaptureV2Reply *reply)
{
	CUresult result;
	void *stream;

	if (!call->driver->cuStreamBeginCapture_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	captures_hold(call->session);
	result = call->driver->cuStreamBeginCapture_v2(stream, request->mode);
	if (result == CUDA_SUCCESS)
		result = note(call, stream, request->mode, false);
	captures_release(call->session);
	return result;
}

CUresult handle_cuStreamBeginCaptureToGraph(struct call *call,
	const Vgpu__CuStreamBeginCaptureToGraphRequest *request,
	Vgpu__CuStreamBeginCaptureToGraphReply *reply)
{
	struct graph_names after;
	void *stream, *graph;
	CUresult result;

	if (!call->driver->cuStreamBeginCaptureToGraph)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_GRAPH, request->h_graph, false, &graph);
	if (result == CUDA_SUCCESS)
		result = graph_names_take(
			call, &request->dependencies_list, &request->edges, &after);
	if (result != CUDA_SUCCESS)
		return result;
	captures_hold(call->session);
	result = call->driver->cuStreamBeginCaptureToGraph(
		stream, graph, after.nodes, after.edges, after.n, request->mode);
	if (result == CUDA_SUCCESS)
		result = note(call, stream, request->mode, true);
	captures_release(call->session);
	return result;
}

/* Whether a capture has ended in the driver, also if its result was an error. */
static bool is_over(struct call *call, CUstream stream, CUresult result)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;

	if (result == CUDA_SUCCESS)
		return true;
	return call->driver->cuStreamIsCapturing &&
	       call->driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult handle_cuStreamEndCapture(struct call *call,
	const Vgpu__CuStreamEndCaptureRequest *request,
	Vgpu__CuStreamEndCaptureReply *reply)
{
	CUgraph graph = NULL;
	CUresult result;
	void *stream;

	if (!call->driver->cuStreamEndCapture)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = call->driver->cuStreamEndCapture(stream, &graph);
	if (is_over(call, stream, result))
		capture_remove(call->session, call->stream, result == CUDA_SUCCESS);
	if (result != CUDA_SUCCESS || !graph)
		return result;
	result = graph_keep(call, graph, &reply->ph_graph);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroy(graph);
	return result;
}

/* One page of the nodes on which the next work depends. */
static CUresult tell_nodes(struct call *call, const struct capture_info *info,
	uint64_t first, Vgpu__CuStreamGetCaptureInfoV3Reply *reply)
{
	size_t n = first < info->n ? info->n - first : 0;
	CUresult result = CUDA_SUCCESS;
	struct object *graph;
	uint64_t *handles;

	if (n > VGPU_CAPTURE_PAGE)
		n = VGPU_CAPTURE_PAGE;
	handles = call_alloc(call, (n + 1) * sizeof(*handles));
	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = object_find(call, VGPU_HANDLE_GRAPH, reply->graph_out, &graph);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result =
			graph_keep_node(call, info->nodes[first + i], graph, &handles[i]);
	reply->n_dependencies = info->n;
	reply->nodes.data = (uint8_t *)handles;
	reply->nodes.len = n * sizeof(*handles);
	if (result != CUDA_SUCCESS || !n || !info->edges)
		return result;
	reply->edges.len = n * sizeof(*info->edges);
	reply->edges.data = call_alloc(call, reply->edges.len);
	if (!reply->edges.data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(reply->edges.data, info->edges + first, reply->edges.len);
	return CUDA_SUCCESS;
}

CUresult handle_cuStreamGetCaptureInfo_v3(struct call *call,
	const Vgpu__CuStreamGetCaptureInfoV3Request *request,
	Vgpu__CuStreamGetCaptureInfoV3Reply *reply)
{
	struct capture_info info;
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = capture_ask(call, stream, &info);
	if (result != CUDA_SUCCESS)
		return result;
	reply->capture_status_out = info.status;
	reply->id_out = info.id;
	if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE || !info.graph)
		return CUDA_SUCCESS;
	result = graph_keep(call, info.graph, &reply->graph_out);
	if (result != CUDA_SUCCESS)
		return result;
	capture_note_graph(call->session, info.id, info.graph);
	return tell_nodes(call, &info, request->first, reply);
}

CUresult handle_cuStreamUpdateCaptureDependencies_v2(struct call *call,
	const Vgpu__CuStreamUpdateCaptureDependenciesV2Request *request,
	Vgpu__CuStreamUpdateCaptureDependenciesV2Reply *reply)
{
	const struct vgpu_driver *driver = call->driver;
	struct graph_names names;
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = graph_names_take(
			call, &request->dependencies_list, &request->edges, &names);
	if (result != CUDA_SUCCESS)
		return result;
	if (driver->cuStreamUpdateCaptureDependencies_v2)
		return driver->cuStreamUpdateCaptureDependencies_v2(
			stream, names.nodes, names.edges, names.n, request->flags);
	if (!driver->cuStreamUpdateCaptureDependencies || names.edges)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuStreamUpdateCaptureDependencies(
		stream, names.nodes, names.n, request->flags);
}
