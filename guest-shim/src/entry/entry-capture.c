/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: captures of streams
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/stream.h"
#include "wait/capture.h"

/*
 * The dependency set last returned to the program. The pointer is valid until the stream
 * is used again or the capture ends (CUDA Driver API, cuStreamGetCaptureInfo), so each
 * stream has its own.
 */
struct shim_capture_list {
	size_t room;
	CUgraphNode *nodes;
	CUgraphEdgeData *edges;
};

static uint64_t number(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

CUresult shim_cuStreamBeginCapture(CUstream hStream)
{
	return shim_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult shim_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	Vgpu__CuStreamBeginCaptureToGraphRequest request =
		VGPU__CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamBeginCaptureToGraph);
	struct shim_stream *stream;
	CUresult result;

	if (numDependencies && !dependencies)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	/* The driver takes all at once, and a message no more than these. */
	if (numDependencies > VGPU_GRAPH_LIST_MAX)
		return shim_call_error(&call, CUDA_ERROR_NOT_SUPPORTED);
	request.h_stream = number(hStream);
	request.h_graph = number(hGraph);
	request.mode = (int32_t)mode;
	request.dependencies_list.data = (uint8_t *)dependencies;
	request.dependencies_list.len = numDependencies * sizeof(*dependencies);
	if (!shim_graph_edges_are_plain(dependencyData, numDependencies)) {
		request.edges.data = (uint8_t *)dependencyData;
		request.edges.len = numDependencies * sizeof(*dependencyData);
	}
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_begin_capture_to_graph_reply__descriptor, NULL);
	if (result == CUDA_SUCCESS && shim_stream_find(hStream, &stream) == CUDA_SUCCESS)
		stream->captures_to_graph = true;
	return result;
}

/* Return: whether the program has the graph of a capture. */
static bool has_graph(CUstream handle)
{
	struct shim_stream *stream;

	return shim_stream_find(handle, &stream) == CUDA_SUCCESS &&
	       stream->captures_to_graph;
}

/* These results leave the stream in its capture. */
static void note_end(CUstream handle, CUresult result)
{
	struct shim_stream *stream;

	if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD &&
		result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
		shim_stream_find(handle, &stream) == CUDA_SUCCESS)
		stream->captures_to_graph = false;
}

CUresult shim_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	Vgpu__CuStreamEndCaptureRequest request =
		VGPU__CU_STREAM_END_CAPTURE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamEndCapture);
	const ProtobufCMessage *reply;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!phGraph && !has_graph(hStream))
		return CUDA_ERROR_INVALID_VALUE;
	if (phGraph)
		*phGraph = NULL;
	request.h_stream = number(hStream);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_end_capture_reply__descriptor, &reply);
	shim_graph_memory_end_capture(hStream, result == CUDA_SUCCESS);
	note_end(hStream, result);
	if (result == CUDA_SUCCESS && phGraph)
		*phGraph =
			(CUgraph)(uintptr_t)((const Vgpu__CuStreamEndCaptureReply *)reply)
				->ph_graph;
	return result;
}

/* Without a capture in the process, no stream has one. */
CUresult shim_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamIsCapturing);
	CUresult result;

	result = shim_call_error(
		&call, captureStatus ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (result == CUDA_SUCCESS)
		result = shim_stream_check(hStream);
	if (result != CUDA_SUCCESS)
		return result;
	if (shim_channel_has_capture())
		return shim_remote_cuStreamIsCapturing(hStream, captureStatus);
	*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/*
 * The state of a capture
 */

/* The versions of cuStreamGetCaptureInfo return more or less of it. */
struct info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *nodes;
	const CUgraphEdgeData *edges;
	size_t n;
	bool has_unplain_edges;
};

static CUresult make_room(struct shim_capture_list **listp, size_t n)
{
	struct shim_capture_list *list = *listp;
	size_t room = n + VGPU_CAPTURE_PAGE;

	if (list && list->room >= n)
		return CUDA_SUCCESS;
	free(list);
	*listp = NULL;
	list = calloc(1,
		sizeof(*list) + room * (sizeof(CUgraphNode) + sizeof(CUgraphEdgeData)));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list->room = room;
	list->nodes = (CUgraphNode *)(list + 1);
	list->edges = (CUgraphEdgeData *)(list->nodes + room);
	*listp = list;
	return CUDA_SUCCESS;
}

static CUresult take_page(const Vgpu__CuStreamGetCaptureInfoV3Reply *reply,
	uint64_t first, struct shim_capture_list *list)
{
	size_t n = reply->nodes.len / sizeof(*list->nodes);

	if (first > list->room || n > list->room - first ||
		(reply->edges.len && reply->edges.len != n * sizeof(*list->edges)))
		return CUDA_ERROR_UNKNOWN;
	memcpy(list->nodes + first, reply->nodes.data, n * sizeof(*list->nodes));
	memset(list->edges + first, 0, n * sizeof(*list->edges));
	memcpy(list->edges + first, reply->edges.data, reply->edges.len);
	return CUDA_SUCCESS;
}

/* Asks for all; the nodes are left in the stream's list. */
static CUresult ask(CUstream handle, bool wants_nodes, struct info *info)
{
	Vgpu__CuStreamGetCaptureInfoV3Request request =
		VGPU__CU_STREAM_GET_CAPTURE_INFO_V3_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamGetCaptureInfo_v3);
	const Vgpu__CuStreamGetCaptureInfoV3Reply *reply;
	const ProtobufCMessage *message;
	struct shim_stream *stream;
	CUresult result;

	*info = (struct info){};
	result = shim_call_check(call.id);
	if (result == CUDA_SUCCESS)
		result = shim_stream_find(handle, &stream);
	if (result != CUDA_SUCCESS || !shim_channel_has_capture())
		return result;
	request.h_stream = number(handle);
	do {
		result = shim_call_sync(&call, &request.base,
			&vgpu__cu_stream_get_capture_info_v3_reply__descriptor, &message);
		if (result != CUDA_SUCCESS)
			return result;
		reply = (const Vgpu__CuStreamGetCaptureInfoV3Reply *)message;
		info->status = (CUstreamCaptureStatus)reply->capture_status_out;
		info->id = reply->id_out;
		info->graph = (CUgraph)(uintptr_t)reply->graph_out;
		info->n = reply->n_dependencies;
		if (!wants_nodes || !reply->nodes.len)
			break;
		result = make_room(&stream->capture_list, info->n);
		if (result == CUDA_SUCCESS)
			result = take_page(reply, request.first, stream->capture_list);
		request.first += reply->nodes.len / sizeof(*info->nodes);
	} while (result == CUDA_SUCCESS && request.first < info->n);
	if (result != CUDA_SUCCESS || !wants_nodes || !info->n)
		return result;
	info->n = request.first;
	info->nodes = stream->capture_list->nodes;
	info->edges = stream->capture_list->edges;
	info->has_unplain_edges = !shim_graph_edges_are_plain(info->edges, info->n);
	return CUDA_SUCCESS;
}

static CUresult refuse(void)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamGetCaptureInfo_v3);

	return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuStreamGetCaptureInfo(
	CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	struct info info;
	CUresult result;

	if (!captureStatus_out)
		return refuse();
	result = ask(hStream, false, &info);
	if (result != CUDA_SUCCESS)
		return result;
	*captureStatus_out = info.status;
	if (id_out && info.status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*id_out = info.id;
	return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetCaptureInfo_v3(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
	size_t *numDependencies_out)
{
	struct info info;
	CUresult result;

	if (!captureStatus_out)
		return refuse();
	result = ask(hStream, dependencies_out || edgeData_out, &info);
	if (result != CUDA_SUCCESS)
		return result;
	if (info.has_unplain_edges && !edgeData_out)
		return CUDA_ERROR_LOSSY_QUERY;
	*captureStatus_out = info.status;
	if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id_out)
		*id_out = info.id;
	if (graph_out)
		*graph_out = info.graph;
	if (dependencies_out)
		*dependencies_out = info.nodes;
	if (edgeData_out)
		*edgeData_out = info.edges;
	if (numDependencies_out)
		*numDependencies_out = info.n;
	return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetCaptureInfo_v2(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
	return shim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out,
		graph_out, dependencies_out, NULL, numDependencies_out);
}

CUresult shim_cuStreamUpdateCaptureDependencies_v2(CUstream hStream,
	CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, unsigned int flags)
{
	Vgpu__CuStreamUpdateCaptureDependenciesV2Request request =
		VGPU__CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_V2_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuStreamUpdateCaptureDependencies_v2);
	size_t done = 0, n;
	CUresult result;

	if (numDependencies && !dependencies)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.h_stream = number(hStream);
	request.flags = flags;
	do {
		n = numDependencies - done;
		n = n < VGPU_GRAPH_LIST_MAX ? n : VGPU_GRAPH_LIST_MAX;
		request.dependencies_list.data = (uint8_t *)(dependencies + done);
		request.dependencies_list.len = n * sizeof(*dependencies);
		if (!shim_graph_edges_are_plain(dependencyData, numDependencies)) {
			request.edges.data = (uint8_t *)(dependencyData + done);
			request.edges.len = n * sizeof(*dependencyData);
		}
		result = shim_call_sync(&call, &request.base,
			&vgpu__cu_stream_update_capture_dependencies_v2_reply__descriptor,
			NULL);
		done += n;
		/* Nodes that did not fit are added to those that did. */
		if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			request.flags = CU_STREAM_ADD_CAPTURE_DEPENDENCIES;
	} while (result == CUDA_SUCCESS && done < numDependencies);
	return result;
}

CUresult shim_cuStreamUpdateCaptureDependencies(CUstream hStream,
	CUgraphNode *dependencies, size_t numDependencies, unsigned int flags)
{
	return shim_cuStreamUpdateCaptureDependencies_v2(
		hStream, dependencies, NULL, numDependencies, flags);
}
