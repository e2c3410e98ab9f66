/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: streams whose work becomes nodes of a graph
 *
 * A capture begins in one stream, its origin. Others take part from when they wait for
 * an event that was recorded in a stream that does, until the capture ends in its origin.
 * Each stream that takes part has a lane, which holds the nodes that its next work will
 * depend on; an event that is recorded in it keeps a copy of those. All of this is
 * guarded by graph_lock.
 *
 * An operation that is not permitted on a captured stream invalidates its capture: from
 * then on everything in it fails, and at its end there is no graph.
 */

#include <stdlib.h>

#include "api/capture-lane.h"

struct captures captures = TAILQ_HEAD_INITIALIZER(captures);
uint32_t n_captures;

/* A number of the calling thread that none after it has, as its pthread_t may be. */
uint64_t capture_thread(void)
{
	static __thread uint64_t own;
	static uint64_t n;

	if (!own)
		own = __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED);
	return own;
}

void capture_unref(struct capture *capture)
{
	if (!--capture->n_refs)
		free(capture);
}

CUresult capture_list_copy(struct graph_list *to, const struct graph_list *from)
{
	CUresult result = CUDA_SUCCESS;

	to->n = 0;
	for (size_t i = 0; i < from->n && !result; i++)
		result = graph_list_add(to, from->nodes[i]);
	return result;
}

CUresult capture_list_join(
	struct graph_list *to, const CUgraphNode *nodes, size_t n_nodes)
{
	uint64_t walk = graph_walk();
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < to->n; i++)
		to->nodes[i]->seen = walk;
	for (size_t i = 0; i < n_nodes && !result; i++) {
		if (nodes[i]->seen != walk)
			result = graph_list_add(to, nodes[i]);
		nodes[i]->seen = walk;
	}
	return result;
}

/*
 * Lanes
 */

CUresult capture_lane_new(
	struct capture_lane **lanep, struct capture *capture, struct sched_stream *stream)
{
	struct capture_lane *lane;

	/* Partner: capture_forget_stream(). */
	if (stream->is_ended)
		return CUDA_ERROR_INVALID_HANDLE;
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lane->capture = capture;
	lane->stream = stream;
	TAILQ_INSERT_TAIL(&capture->lanes, lane, link);
	/* Partner: capture_refuse_legacy(). */
	if (stream->is_blocking)
		__atomic_add_fetch(
			&stream_context(stream)->n_captures, 1, __ATOMIC_RELEASE);
	/* Partner: stream_is_captured(). */
	__atomic_store_n(&stream->capture, lane, __ATOMIC_RELEASE);
	*lanep = lane;
	return CUDA_SUCCESS;
}

void capture_lane_leave(struct capture_lane *lane)
{
	struct sched_stream *stream = lane->stream;

	if (!stream)
		return;
	if (stream->is_blocking)
		__atomic_sub_fetch(
			&stream_context(stream)->n_captures, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&stream->capture, NULL, __ATOMIC_RELEASE);
	lane->stream = NULL;
}

static void lane_free(struct capture_lane *lane)
{
	capture_lane_leave(lane);
	TAILQ_REMOVE(&lane->capture->lanes, lane, link);
	free(lane->before.nodes);
	free(lane);
}

/*
 * Beginning and end
 */

static CUresult capture_new(struct capture **capturep, CUgraph graph,
	CUstreamCaptureMode mode, struct sched_stream *stream)
{
	static uint64_t ids;
	struct capture *capture = calloc(1, sizeof(*capture));
	CUresult result = CUDA_SUCCESS;

	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->n_refs = 1;
	capture->id = ++ids;
	capture->mode = mode;
	capture->thread = capture_thread();
	capture->graph = graph;
	capture->has_graph = graph;
	TAILQ_INIT(&capture->lanes);
	if (!graph)
		result = graph_new(&capture->graph, true);
	if (!result)
		result = capture_lane_new(&capture->origin, capture, stream);
	if (result) {
		if (!graph && capture->graph)
			graph_free(capture->graph);
		free(capture);
		return result;
	}
	graph_set_capture(capture->graph, capture);
	TAILQ_INSERT_TAIL(&captures, capture, link);
	__atomic_add_fetch(&n_captures, 1, __ATOMIC_RELEASE);
	*capturep = capture;
	return CUDA_SUCCESS;
}

/* Lets all streams go; the graph is the caller's. */
static void capture_end(struct capture *capture)
{
	while (!TAILQ_EMPTY(&capture->lanes))
		lane_free(TAILQ_FIRST(&capture->lanes));
	TAILQ_REMOVE(&captures, capture, link);
	__atomic_sub_fetch(&n_captures, 1, __ATOMIC_RELEASE);
	capture->is_over = true;
	graph_set_capture(capture->graph, NULL);
	capture->graph = NULL;
	capture->origin = NULL;
	capture_unref(capture);
}

void capture_abandon(struct capture *capture)
{
	CUgraph graph = capture->has_graph ? NULL : capture->graph;

	capture_end(capture);
	if (graph)
		graph_free(graph);
}

static CUresult begin(struct sched_stream *stream, CUgraph graph,
	const CUgraphNode *before, size_t n_before, CUstreamCaptureMode mode)
{
	struct capture *capture = NULL;
	CUresult result;

	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (capture_lane_of(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (graph) {
		if (graph->capture)
			return CUDA_ERROR_INVALID_VALUE;
		/* Bodies are filled in this way, children are complete. */
		if (graph->parent &&
			graph->parent->work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return CUDA_ERROR_NOT_SUPPORTED;
		result = graph_check_nodes(graph, before, n_before);
		if (result)
			return result;
	}
	result = capture_new(&capture, graph, mode, stream);
	if (result)
		return result;
	result = capture_list_join(&capture->origin->before, before, n_before);
	if (result)
		capture_abandon(capture);
	return result;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (!result)
		result = graph_enter();
	return result ? result : graph_leave(begin(stream, NULL, NULL, 0, mode));
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
	return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (!result && !graph_edges_are_plain(dependencyData, numDependencies))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (!result)
		result = graph_enter();
	if (result)
		return result;
	result = graph_get(hGraph);
	if (!result)
		result = begin(stream, hGraph, dependencies, numDependencies, mode);
	return graph_leave(result);
}

/* Marks all that a list waits for, directly or not. */
static CUresult mark_before(const struct graph_list *list, uint64_t walk)
{
	struct graph_list todo = { 0 };
	CUresult result;

	result = capture_list_copy(&todo, list);
	while (!result && todo.n) {
		const struct CUgraphNode_st *node = todo.nodes[--todo.n];

		if (node->seen == walk)
			continue;
		((CUgraphNode)node)->seen = walk;
		for (size_t i = 0; i < node->before.n && !result; i++)
			result = graph_list_add(&todo, node->before.nodes[i]);
	}
	free(todo.nodes);
	return result;
}

/* Return: 0 if the origin waits for all that other streams did. */
static CUresult capture_check_joined(struct capture *capture)
{
	uint64_t walk = graph_walk();
	struct capture_lane *lane;
	CUresult result;

	if (TAILQ_FIRST(&capture->lanes) == TAILQ_LAST(&capture->lanes, capture_lanes))
		return CUDA_SUCCESS;
	result = mark_before(&capture->origin->before, walk);
	TAILQ_FOREACH(lane, &capture->lanes, link)
		for (size_t i = 0; i < lane->before.n && !result; i++)
			if (lane->before.nodes[i]->seen != walk)
				result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	return result;
}

static CUresult end(struct sched_stream *stream, CUgraph *graphp)
{
	struct capture_lane *lane = capture_lane_of(stream);
	struct capture *capture;
	CUresult result;

	if (!lane)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = lane->capture;
	/* A program that gave the graph has it. */
	if (!graphp && !capture->has_graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (lane != capture->origin) {
		capture->is_invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		capture->thread != capture_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	result = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				     : capture_check_joined(capture);
	if (result) {
		capture_abandon(capture);
		return result;
	}
	if (graphp)
		*graphp = capture->graph;
	capture_end(capture);
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_find(hStream, &stream);
	if (result)
		return result;
	if (phGraph)
		*phGraph = NULL;
	result = graph_enter();
	return result ? result : graph_leave(end(stream, phGraph));
}

/*
 * Work
 */

CUresult capture_lane_add(struct capture_lane *lane, struct graph_work *work)
{
	CUgraphNode node;
	CUresult result;

	if (lane->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	result = graph_add(
		&node, lane->capture->graph, lane->before.nodes, lane->before.n, work);
	if (result) {
		lane->capture->is_invalid = true;
		return result;
	}
	lane->before.n = 0;
	if (graph_list_add(&lane->before, node))
		lane->capture->is_invalid = true;
	return CUDA_SUCCESS;
}

CUresult capture_add(struct sched_stream *stream, struct graph_work *work)
{
	struct capture_lane *lane;
	CUresult result;

	result = graph_enter();
	if (result) {
		work_deinit(work);
		return result;
	}
	lane = capture_lane_of(stream);
	/* None if it ended a moment ago, in another thread. */
	result = lane ? capture_lane_add(lane, work) : CUDA_ERROR_ILLEGAL_STATE;
	if (result)
		work_deinit(work);
	return graph_leave(result);
}
