/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of captures, and dependencies that the program sets
 */

#include <stdlib.h>
#include <string.h>

#include "api/capture-lane.h"

static CUresult info_check_legacy(const struct sched_stream *stream)
{
	if (!stream->is_legacy)
		return CUDA_SUCCESS;
	/* The legacy stream is of no use meanwhile, but asking does no harm. */
	if (__atomic_load_n(&stream_context(stream)->n_captures, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return CUDA_SUCCESS;
}

static CUstreamCaptureStatus lane_status(const struct capture_lane *lane)
{
	if (!lane)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return lane->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/*
 * The last result of a thread, in memory of its own: calls of other threads may change or
 * end the capture.
 */
struct told {
	CUgraphNode *nodes;
	CUgraphEdgeData *data;
};

static pthread_once_t told_once = PTHREAD_ONCE_INIT;
static pthread_key_t told_key;

static void told_free(void *memory)
{
	struct told *told = memory;

	free(told->nodes);
	free(told->data);
	free(told);
}

static void told_make_key(void)
{
	if (pthread_key_create(&told_key, told_free))
		abort();
}

static struct told *told_get(void)
{
	struct told *told;

	pthread_once(&told_once, told_make_key);
	told = pthread_getspecific(told_key);
	if (told)
		return told;
	told = calloc(1, sizeof(*told));
	if (told && pthread_setspecific(told_key, told)) {
		free(told);
		return NULL;
	}
	return told;
}

/* All edges are plain, so all edge data is zero. */
static CUresult lane_tell(const struct capture_lane *lane, const CUgraphNode **nodesp,
	const CUgraphEdgeData **datap)
{
	struct told *told = told_get();
	size_t n = lane->before.n;

	if (!told)
		return CUDA_ERROR_OUT_OF_MEMORY;
	free(told->nodes);
	free(told->data);
	told->nodes = calloc(n + 1, sizeof(CUgraphNode));
	told->data = calloc(n + 1, sizeof(*told->data));
	if (!told->nodes || !told->data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (n)
		memcpy(told->nodes, lane->before.nodes, n * sizeof(CUgraphNode));
	if (nodesp)
		*nodesp = told->nodes;
	if (datap)
		*datap = told->data;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
	size_t *numDependencies_out)
{
	API_CALL;
	struct sched_stream *stream;
	struct capture_lane *lane;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (!captureStatus_out)
		return CUDA_ERROR_INVALID_VALUE;
	result = info_check_legacy(stream);
	if (!result)
		result = graph_enter();
	if (result)
		return result;
	lane = capture_lane_of(stream);
	*captureStatus_out = lane_status(lane);
	/* The rest is returned for active captures only. */
	if (!lane || lane->capture->is_invalid)
		return graph_leave(CUDA_SUCCESS);
	if (id_out)
		*id_out = lane->capture->id;
	if (graph_out)
		*graph_out = lane->capture->graph;
	if (dependencies_out || edgeData_out)
		result = lane_tell(lane, dependencies_out, edgeData_out);
	if (numDependencies_out)
		*numDependencies_out = lane->before.n;
	return graph_leave(result);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
		dependencies_out, NULL, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(
	CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo_v3(
		hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return cuStreamGetCaptureInfo_v3(
		hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

static CUresult lane_update(
	struct capture_lane *lane, const CUgraphNode *nodes, size_t n, unsigned int flags)
{
	CUresult result;

	if (!lane)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (lane->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	result = graph_check_nodes(lane->capture->graph, nodes, n);
	if (result)
		return result;
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		lane->before.n = 0;
	return capture_list_join(&lane->before, nodes, n);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
	const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!graph_edges_are_plain(dependencyData, numDependencies))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = graph_enter();
	if (result)
		return result;
	return graph_leave(lane_update(
		capture_lane_of(stream), dependencies, numDependencies, flags));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
	size_t numDependencies, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(
		hStream, dependencies, NULL, numDependencies, flags);
}
