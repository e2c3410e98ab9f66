/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: operations with dependencies, prepared once and launched often
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "sched/graph.h"

static struct sched_turns *turns_new(void)
{
	struct sched_turns *turns = malloc(sizeof(*turns));

	if (!turns)
		return NULL;
	turns->n_refs = 1;
	TAILQ_INIT(&turns->launches);
	return turns;
}

static struct sched_turns *turns_ref(struct sched_turns *turns)
{
	__atomic_fetch_add(&turns->n_refs, 1, __ATOMIC_RELAXED);
	return turns;
}

static void turns_unref(struct sched_turns *turns)
{
	if (turns && __atomic_sub_fetch(&turns->n_refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(turns);
}

static void node_deinit(struct sched_node *node)
{
	if (node->kind == SCHED_LAUNCH)
		free(node->op.grid.long_params);
	if (node->kind == SCHED_CHOICE) {
		sched_condition_unref(node->op.choice.condition);
		free(node->op.choice.bodies);
	}
}

/* With the lock, or before the first launch. */
static void graph_free(struct sched_graph *graph)
{
	for (uint32_t i = 0; i < graph->n_lanes; i++) {
		struct sched_stream *lane = &graph->lanes[i];

		/* A lane that has become empty may still be about to be looked at. */
		if (lane->is_kicked)
			TAILQ_REMOVE(&graph->sched->kicked, lane, kick_link);
		pthread_cond_destroy(&lane->done);
	}
	for (uint32_t i = 0; i < graph->n_nodes; i++)
		node_deinit(&graph->nodes[i]);
	turns_unref(graph->turns);
	if (graph->keep &&
		__atomic_sub_fetch(&graph->keep->n_refs, 1, __ATOMIC_ACQ_REL) == 0)
		sched_errand_add(graph->sched, &graph->keep->errand);
	free(graph->nodes);
	free(graph->after);
	free(graph->events);
	free(graph->choices);
	free(graph->lanes);
	free(graph);
}

int sched_graph_new(struct sched_graph **graphp, struct sched *sched, uint32_t n_nodes,
	struct sched_graph *before)
{
	struct sched_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return vgpu_error_origin(-ENOMEM);
	graph->sched = sched;
	graph->n_refs = 1;
	TAILQ_INIT(&graph->idle);
	graph->turns = before ? turns_ref(before->turns) : turns_new();
	graph->nodes = calloc(n_nodes ? n_nodes : 1, sizeof(*graph->nodes));
	if (!graph->turns || !graph->nodes) {
		graph_free(graph);
		return vgpu_error_origin(-ENOMEM);
	}
	graph->n_nodes = n_nodes;
	*graphp = graph;
	return 0;
}

static bool is_root(const struct sched_node *node)
{
	return !node->n_before && !node->is_body;
}

static int graph_connect(
	struct sched_graph *graph, const struct sched_edge *edges, uint32_t n_edges)
{
	uint32_t at;

	for (uint32_t i = 0; i < n_edges; i++) {
		graph->nodes[edges[i].from].n_after++;
		graph->nodes[edges[i].to].n_before++;
	}
	for (uint32_t i = 0; i < graph->n_nodes; i++)
		graph->n_roots += is_root(&graph->nodes[i]);
	graph->after = calloc((size_t)graph->n_roots + n_edges + 1, sizeof(uint32_t));
	if (!graph->after)
		return vgpu_error_origin(-ENOMEM);
	at = 0;
	for (uint32_t i = 0; i < graph->n_nodes; i++)
		if (is_root(&graph->nodes[i]))
			graph->after[at++] = i;
	for (uint32_t i = 0; i < graph->n_nodes; i++) {
		graph->nodes[i].first_after = at;
		at += graph->nodes[i].n_after;
		graph->nodes[i].n_after = 0;
	}
	for (uint32_t i = 0; i < n_edges; i++) {
		struct sched_node *node = &graph->nodes[edges[i].from];

		graph->after[node->first_after + node->n_after++] = edges[i].to;
		graph->nodes[edges[i].to].n_left++;
	}
	return 0;
}

/* As many lanes as nodes can be under way at once: a node that ends leaves one free. A
 * choice keeps its own while a body is. */
static uint32_t graph_width(const struct sched_graph *graph)
{
	uint64_t n = graph->n_roots;

	for (uint32_t i = 0; i < graph->n_nodes; i++) {
		n += graph->nodes[i].is_body;
		if (graph->nodes[i].n_after)
			n += graph->nodes[i].n_after - 1;
	}
	return n < graph->n_nodes ? n : graph->n_nodes;
}

static int graph_add_lanes(struct sched_graph *graph, uint32_t n)
{
	graph->lanes = calloc(n ? n : 1, sizeof(*graph->lanes));
	if (!graph->lanes)
		return vgpu_error_origin(-ENOMEM);
	graph->n_lanes = n;
	for (uint32_t i = 0; i < n; i++) {
		struct sched_stream *lane = &graph->lanes[i];

		lane->graph = graph;
		STAILQ_INIT(&lane->ops);
		pthread_cond_init(&lane->done, NULL);
		TAILQ_INSERT_TAIL(&graph->idle, lane, link);
	}
	return 0;
}

/* Lists the nodes of some kinds. */
static int graph_list(
	const struct sched_graph *graph, uint32_t kinds, uint32_t **listp, uint32_t *np)
{
	for (uint32_t i = 0; i < graph->n_nodes; i++)
		*np += kinds >> graph->nodes[i].kind & 1;
	*listp = calloc(*np + 1, sizeof(**listp));
	if (!*listp)
		return vgpu_error_origin(-ENOMEM);
	for (uint32_t i = 0, n = 0; i < graph->n_nodes; i++)
		if (kinds >> graph->nodes[i].kind & 1)
			(*listp)[n++] = i;
	return 0;
}

int sched_graph_finish(
	struct sched_graph *graph, const struct sched_edge *edges, uint32_t n_edges)
{
	int r;

	for (uint32_t i = 0; i < graph->n_nodes; i++)
		graph->kinds |= 1u << graph->nodes[i].kind;
	r = graph_connect(graph, edges, n_edges);
	if (!r)
		r = graph_add_lanes(graph, graph_width(graph));
	if (!r)
		r = graph_list(graph, 1u << SCHED_MARK | 1u << SCHED_WAIT, &graph->events,
			&graph->n_events);
	return r ? r
		 : graph_list(
			   graph, 1u << SCHED_CHOICE, &graph->choices, &graph->n_choices);
}

static uint32_t *array_copy(const uint32_t *from, size_t n)
{
	uint32_t *to = malloc((n + 1) * sizeof(*to));

	if (to)
		memcpy(to, from, n * sizeof(*to));
	return to;
}

static int choice_copy(struct sched_choice *to, const struct sched_choice *from)
{
	*to = (struct sched_choice){
		.condition = sched_condition_ref(from->condition),
		.kind = from->kind,
		.n_bodies = from->n_bodies,
		.bodies = array_copy(from->bodies, from->n_bodies),
	};
	return to->bodies ? 0 : vgpu_error_origin(-ENOMEM);
}

/* With the lock: a launch under way changes what is not copied here. */
static int node_copy(struct sched_node *to, const struct sched_node *from)
{
	const struct sched_grid *grid = &from->op.grid;
	uint32_t size = grid->launch.params_size;

	*to = (struct sched_node){
		.op.kind = from->op.kind,
		.kind = from->kind,
		.n_before = from->n_before,
		.n_left = from->n_before,
		.n_after = from->n_after,
		.first_after = from->first_after,
		.returns_to = from->returns_to,
		.is_body = from->is_body,
		.event = from->event,
	};
	switch (from->kind) {
	case SCHED_COPY:
		to->op.copy = from->op.copy;
		return 0;
	case SCHED_FILL:
		to->op.fill = from->op.fill;
		return 0;
	case SCHED_HOST:
		to->op.host = from->op.host;
		return 0;
	case SCHED_WRITE:
	case SCHED_WAIT_VALUE:
		to->op.word = from->op.word;
		return 0;
	case SCHED_CHOICE:
		return choice_copy(&to->op.choice, &from->op.choice);
	case SCHED_LAUNCH:
		break;
	default:
		return 0;
	}
	to->op.grid.launch = grid->launch;
	to->op.grid.launch.params = to->op.grid.params;
	to->op.grid.n_blocks = grid->n_blocks;
	to->op.grid.is_cooperative = grid->is_cooperative;
	to->op.grid.resident_max = grid->resident_max;
	to->op.grid.has_priority = grid->has_priority;
	to->op.grid.priority = grid->priority;
	if (grid->long_params) {
		to->op.grid.long_params = malloc(size);
		if (!to->op.grid.long_params)
			return vgpu_error_origin(-ENOMEM);
		to->op.grid.launch.params = to->op.grid.long_params;
	}
	memcpy((void *)to->op.grid.launch.params, grid->launch.params, size);
	return 0;
}

int sched_graph_copy(struct sched_graph **graphp, struct sched_graph *from)
{
	size_t n_edges = 0;
	struct sched_graph *to;
	int r;

	r = sched_graph_new(&to, from->sched, from->n_nodes, from);
	if (r)
		return r;
	to->keep = from->keep;
	if (to->keep)
		__atomic_fetch_add(&to->keep->n_refs, 1, __ATOMIC_RELAXED);
	sched_lock(from->sched);
	for (uint32_t i = 0; i < from->n_nodes && !r; i++) {
		r = node_copy(&to->nodes[i], &from->nodes[i]);
		n_edges += from->nodes[i].n_after;
	}
	sched_unlock(from->sched);
	to->n_roots = from->n_roots;
	to->n_events = from->n_events;
	to->kinds = from->kinds;
	to->after = array_copy(from->after, from->n_roots + n_edges);
	to->events = array_copy(from->events, from->n_events);
	to->n_choices = from->n_choices;
	to->choices = array_copy(from->choices, from->n_choices);
	if (!to->after || !to->events || !to->choices)
		r = vgpu_error_origin(-ENOMEM);
	if (!r)
		r = graph_add_lanes(to, from->n_lanes);
	if (r)
		sched_graph_unref(to);
	else
		*graphp = to;
	return r;
}

/* With the lock where launches were submitted: then the last reference may be one. */
static void graph_drop(struct sched_graph *graph)
{
	if (__atomic_sub_fetch(&graph->n_refs, 1, __ATOMIC_ACQ_REL) == 0)
		graph_free(graph);
}

struct sched_graph *sched_graph_ref(struct sched_graph *graph)
{
	__atomic_fetch_add(&graph->n_refs, 1, __ATOMIC_RELAXED);
	return graph;
}

struct sched_graph *sched_graph_unref(struct sched_graph *graph)
{
	if (graph) {
		struct sched *sched = graph->sched;

		sched_lock(sched);
		graph_drop(graph);
		sched_unlock(sched);
	}
	return NULL;
}

bool sched_graph_is_busy(const struct sched_graph *graph)
{
	/* Partner: graph_drop(), after the last use by a launch. */
	return __atomic_load_n(&graph->n_refs, __ATOMIC_ACQUIRE) > 1;
}

/*
 * Launches
 */

void sched_graph_enlist(struct sched_op *launch)
{
	launch->run.is_listed = true;
	TAILQ_INSERT_TAIL(&launch->run.graph->turns->launches, launch, run.link);
}

static bool takes_thread(enum sched_kind kind)
{
	return kind == SCHED_LAUNCH || kind == SCHED_COPY || kind == SCHED_FILL ||
	       kind == SCHED_HOST;
}

static void graph_push(
	struct sched_graph *graph, uint32_t index, struct sched_stream *lane)
{
	struct sched_node *node = &graph->nodes[index];

	if (!lane) {
		lane = TAILQ_FIRST(&graph->idle);
		TAILQ_REMOVE(&graph->idle, lane, link);
		lane->context = graph->launch->stream->context;
		lane->is_confined = graph->launch->stream->is_confined;
		lane->sms = graph->launch->stream->sms;
		sched_stream_set_priority(
			lane, sched_stream_priority(graph->launch->stream));
		TAILQ_INSERT_TAIL(&lane->context->lanes, lane, link);
	}
	graph->n_live++;
	graph->n_works += takes_thread(node->op.kind);
	node->n_left = node->n_before;
	if (node->op.kind == SCHED_CHOICE)
		node->op.choice.is_inside = node->op.choice.is_due = false;
	else if (node->op.kind == SCHED_LAUNCH)
		node->op.grid.is_over = false;
	node->op.stream = lane;
	node->op.ticket = graph->launch->ticket;
	STAILQ_INSERT_TAIL(&lane->ops, &node->op, next);
	sched_kick(lane);
}

static void graph_end(struct sched_graph *graph)
{
	struct sched_op *launch = graph->launch;

	graph->launch = NULL;
	launch->run.is_done = true;
	launch->stream->state = SCHED_STREAM_IDLE;
	sched_kick(launch->stream);
}

bool sched_graph_begin(struct sched_op *launch)
{
	struct sched_graph *graph = launch->run.graph;

	if (TAILQ_FIRST(&graph->turns->launches) != launch)
		return false;
	graph->launch = launch;
	sched_op_begun(graph->sched, launch);
	graph->n_live = 0;
	sched_budget_begin(graph->sched, &launch->run.budget);
	launch->stream->state = SCHED_STREAM_RUNNING;
	for (uint32_t i = 0; i < graph->n_events; i++) {
		struct sched_node *node = &graph->nodes[graph->events[i]];

		/* An event that was never recorded is not waited for. */
		node->op.mark = launch->run.marks[i];
		node->op.kind = node->op.mark ? node->kind : SCHED_NOTHING;
	}
	for (uint32_t i = 0; i < graph->n_choices; i++)
		sched_condition_begin(
			graph->nodes[graph->choices[i]].op.choice.condition);
	for (uint32_t i = 0; i < graph->n_roots; i++)
		graph_push(graph, graph->after[i], NULL);
	if (!graph->n_nodes)
		graph_end(graph);
	return true;
}

/*
 * Choices
 */

/* A body is done: the choice has its next turn. */
static void choice_return(struct sched_op *op)
{
	op->stream->state = SCHED_STREAM_IDLE;
	sched_kick(op->stream);
}

/* Return: whether the condition is for a body, and which. */
static bool choice_find(const struct sched_choice *choice, uint32_t *bodyp)
{
	uint32_t value = sched_condition_value(choice->condition), body = 0;

	if (choice->kind == SCHED_CHOICE_SWITCH)
		body = value;
	else if (!value)
		body = choice->kind == SCHED_CHOICE_IF ? 1 : choice->n_bodies;
	if (body >= choice->n_bodies)
		return false;
	*bodyp = choice->bodies[body];
	return true;
}

/* The time limit of kernels is that of a loop, too. Return: whether it is over. */
static bool choice_is_late(struct sched_op *op, const struct sched *sched)
{
	struct softgpu_fault fault = { .code = SOFTGPU_ERROR_LAUNCH_TIMEOUT };

	if (!sched->timeout_ns ||
		sched_now_ns() - op->choice.begun_ns < sched->timeout_ns)
		return false;
	snprintf(fault.text, sizeof(fault.text),
		"a conditional node of a graph has looped for more than %llu ms",
		(unsigned long long)sched->timeout_ns / 1000000);
	sched_grid_fail(op, &fault);
	return true;
}

bool sched_graph_choose(struct sched_op *op)
{
	struct sched_stream *lane = op->stream;
	struct sched_graph *graph = lane->graph;
	struct sched_choice *choice = &op->choice;
	uint32_t body;

	if (choice->is_inside && choice->kind != SCHED_CHOICE_WHILE)
		return true;
	if (!choice_find(choice, &body))
		return true;
	if (!choice->is_inside)
		choice->begun_ns = sched_now_ns();
	else if (choice_is_late(op, graph->sched))
		return true;
	if (choice->is_inside && !choice->is_due && choice->n_works == graph->n_works) {
		lane->state = SCHED_STREAM_POLLING;
		TAILQ_INSERT_TAIL(&graph->sched->polling, lane, wait_link);
		return false;
	}
	choice->is_inside = true;
	choice->is_due = false;
	choice->n_works = graph->n_works;
	lane->state = SCHED_STREAM_RUNNING;
	graph_push(graph, body, NULL);
	return false;
}

void sched_graph_step(struct sched_stream *lane)
{
	struct sched_graph *graph = lane->graph;
	struct sched_node *node = (struct sched_node *)STAILQ_FIRST(&lane->ops);
	const uint32_t *after = &graph->after[node->first_after];

	STAILQ_REMOVE_HEAD(&lane->ops, next);
	if (node->kind == SCHED_MARK)
		sched_mark_finish(node->op.mark);
	for (uint32_t i = 0; i < node->n_after; i++)
		if (!--graph->nodes[after[i]].n_left)
			graph_push(
				graph, after[i], STAILQ_EMPTY(&lane->ops) ? lane : NULL);
	if (STAILQ_EMPTY(&lane->ops)) {
		TAILQ_REMOVE(&lane->context->lanes, lane, link);
		TAILQ_INSERT_HEAD(&graph->idle, lane, link);
	}
	if (node->returns_to)
		choice_return(&graph->nodes[node->returns_to - 1].op);
	if (!--graph->n_live)
		graph_end(graph);
}

void sched_graph_discard(const struct sched_op *launch)
{
	struct sched_graph *graph = launch->run.graph;
	struct sched_op *next;

	for (uint32_t i = 0; i < graph->n_events; i++) {
		struct sched_mark *mark = launch->run.marks[i];

		if (graph->nodes[graph->events[i]].kind == SCHED_MARK && !mark->is_done)
			sched_mark_finish(mark);
		sched_mark_unref(mark);
	}
	free(launch->run.marks);
	if (launch->run.is_listed) {
		TAILQ_REMOVE(
			&graph->turns->launches, (struct sched_op *)launch, run.link);
		next = TAILQ_FIRST(&graph->turns->launches);
		if (next)
			sched_kick(next->stream);
	}
	graph_drop(graph);
}
