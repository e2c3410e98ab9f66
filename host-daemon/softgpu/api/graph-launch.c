/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of executable graphs
 *
 * Memory and modules that nodes use may be freed while a graph exists, without notice to
 * the graph: a launch checks them again after any was freed.
 */

#include <stdlib.h>
#include <string.h>

#include "api/capture.h"
#include "api/copy.h"

/* Return: 0 if what a node uses is still there, and where it was. */
static CUresult exec_check_node(CUgraphExec exec, const struct CUgraphNode_st *own)
{
	const struct sched_op *op = &exec->sched->nodes[own->first].op;
	struct sched_node now;
	CUresult result = CUDA_SUCCESS;

	if (own->work.type == CU_GRAPH_NODE_TYPE_KERNEL)
		return object_is(own->work.kernel.function, OBJECT_FUNCTION)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_HANDLE;
	if (own->work.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
		result = copy_prepare(&now.op.copy, &own->work.copy.copy, NULL);
		if (!result && memcmp(&now.op.copy, &op->copy, sizeof(op->copy)))
			result = CUDA_ERROR_INVALID_VALUE;
	} else if (own->work.type == CU_GRAPH_NODE_TYPE_MEMSET) {
		result = fill_prepare(&now.op.fill, &own->work.fill.fill);
	} else if (own->work.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		for (unsigned int i = 0; i < own->work.batch.n && !result; i++)
			result = word_describe(&now.op, &own->work.batch.ops[i]);
	}
	return result;
}

static CUresult exec_check(
	CUgraphExec exec, const struct sched_stream *stream, uint64_t unloads)
{
	CUcontext context = stream_context(stream);
	uint64_t ends = memory_ends(&softgpu_device.memory);
	CUresult result = CUDA_SUCCESS;

	if (exec->context) {
		if (exec->context != context)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (exec->generation != context_generation(context))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	if (unloads == exec->n_unloads &&
		(!exec->has_memory || ends == exec->memory_ends))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < exec->n_nodes && !result; i++)
		result = exec_check_node(exec, exec->nodes[i]);
	if (!result) {
		exec->memory_ends = ends;
		exec->n_unloads = unloads;
	}
	return result;
}

static void marks_free(struct sched_mark **marks, uint32_t n)
{
	for (uint32_t i = 0; marks && i < n; i++)
		sched_mark_unref(marks[i]);
	free(marks);
}

/* Marks for what a launch records; none is an event's yet. */
static CUresult exec_new_marks(
	const struct sched_graph *graph, struct sched_mark ***marksp)
{
	struct sched_mark **marks = calloc(graph->n_events, sizeof(struct sched_mark *));
	CUresult result = marks ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < graph->n_events && !result; i++) {
		const struct sched_node *node = &graph->nodes[graph->events[i]];

		if (!object_is(node->event, OBJECT_EVENT)) {
			result = CUDA_ERROR_INVALID_HANDLE;
		} else if (node->kind == SCHED_MARK) {
			marks[i] = sched_mark_new(graph->sched);
			if (!marks[i])
				result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result)
		marks_free(marks, graph->n_events);
	else
		*marksp = marks;
	return result;
}

/* The events that a launch records have these marks once it was submitted. */
struct records {
	uint32_t n;
	struct record {
		CUevent event;
		struct sched_mark *mark;
	} * records;
};

/* Events are recorded and waited for as if a stream were given node by node. */
static CUresult exec_take_events(struct sched_run *run, struct records *records)
{
	const struct sched_graph *graph = run->graph;
	CUresult result;

	if (!graph->n_events)
		return CUDA_SUCCESS;
	records->records = calloc(graph->n_events, sizeof(*records->records));
	result = records->records ? exec_new_marks(graph, &run->marks)
				  : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < graph->n_events && !result; i++) {
		CUevent event = graph->nodes[graph->events[i]].event;

		if (!run->marks[i]) {
			run->marks[i] = event->next ? sched_mark_ref(event->next)
						    : event_mark(event);
			continue;
		}
		event->next = run->marks[i];
		object_ref(&event->object);
		records->records[records->n++] =
			(struct record){ event, sched_mark_ref(run->marks[i]) };
	}
	for (uint32_t i = 0; i < records->n; i++)
		records->records[i].event->next = NULL;
	return result;
}

/* The launch has been submitted, or will not be. */
static void records_end(struct records *records, bool is_submitted)
{
	for (uint32_t i = 0; i < records->n; i++) {
		struct record *record = &records->records[i];

		if (is_submitted) {
			capture_forget_event(record->event);
			event_set_mark(record->event, record->mark);
		}
		sched_mark_unref(record->mark);
		object_unref(&record->event->object);
	}
	free(records->records);
}

/* A launch into a captured stream becomes a child. */
static CUresult exec_capture(CUgraphExec exec, struct sched_stream *stream)
{
	struct graph_work work = { .type = CU_GRAPH_NODE_TYPE_GRAPH };
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = object_is(exec, OBJECT_GRAPH_EXEC) ? CUDA_SUCCESS
						    : CUDA_ERROR_INVALID_VALUE;
	if (!result && exec->graph->n_conditionals)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (!result)
		result = graph_copy(&work.child, exec->graph, true);
	graph_leave(result);
	return result ? result : capture_add(stream, &work);
}

/* Return: as sched_submit_if(), by the number of modules that have gone. */
static int exec_launch(CUgraphExec exec, struct sched_stream *stream)
{
	const uint64_t *unloadsp = &softgpu_device.n_unloads;
	uint64_t unloads = __atomic_load_n(unloadsp, __ATOMIC_ACQUIRE);
	struct sched_op op = { .kind = SCHED_GRAPH };
	struct records records = { 0 };
	int r;

	r = graph_enter();
	if (r)
		return r;
	r = object_is(exec, OBJECT_GRAPH_EXEC) ? exec_check(exec, stream, unloads)
					       : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return graph_leave(r);
	op.run.graph = exec->sched;
	r = exec_take_events(&op.run, &records);
	if (!r)
		sched_graph_ref(op.run.graph);
	graph_leave(r);
	/* Not with the lock: a stream that is full makes the caller wait. */
	if (!r)
		r = sched_submit_if(stream, &op, unloadsp, unloads);
	records_end(&records, !r);
	return r;
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	API_CALL;
	struct sched_stream *stream;
	int r;

	r = stream_get_work(hStream, &stream);
	if (r)
		return r;
	if (stream_is_captured(stream))
		return exec_capture(hGraph, stream);
	print_flush(stream_context(stream));
	/* The module that was just unloaded may be one that it uses. */
	do
		r = exec_launch(hGraph, stream);
	while (r == SCHED_E_CHANGED);
	return r;
}

/* There is nowhere to bring it. */
CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	API_CALL;
	struct sched_stream *stream;
	CUresult result;

	result = stream_get(hStream, &stream);
	if (!result)
		result = graph_enter();
	if (result)
		return result;
	result = object_is(hGraph, OBJECT_GRAPH_EXEC) ? CUDA_SUCCESS
						      : CUDA_ERROR_INVALID_VALUE;
	return graph_leave(result);
}
