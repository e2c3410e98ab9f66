/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graphs: operations with dependencies, prepared once and launched often
 *
 * A launch of a graph is one operation of a stream. When it begins, the graph's nodes run
 * in *lanes*, streams of the graph that hold one node at a time: a node that ends passes
 * its lane to the first of those that waited for it alone, and takes other lanes for the
 * rest, of which there are enough. So a node runs as an operation of any stream does, and
 * the launch is complete when all nodes are.
 *
 * A graph has the state of one launch, because launches of one graph never overlap: all
 * submitted ones are queued as *turns* in the order of submission, whatever their
 * streams, and each begins when it is the first. Changing a graph that a launch still
 * needs creates a new one, which shares the turns of the old.
 *
 * Nodes that record events or wait for them get the marks that their launch brings.
 *
 * A conditional node chooses one of its bodies by the value of its condition. The nodes
 * of bodies are nodes of the graph; each body has a first one, which the choice begins,
 * and a last one, which returns to it. The choice holds its lane meanwhile. Between two
 * turns of a loop in which no thread had work to do the copy thread has its turn, so that
 * a loop without end keeps nobody from the lock.
 */

#include "sched/condition.h"
#include "sched/sched.h"

struct sched_node {
	struct sched_op op;   /* first; of kind NOTHING where the node is switched off */
	enum sched_kind kind; /* what it does when it is on */
	uint32_t n_before;    /* nodes that it waits for */
	uint32_t n_left;      /* of them, in the launch under way */
	uint32_t n_after;
	uint32_t first_after; /* in graph.after */
	uint32_t returns_to;  /* of a body's last node: its choice + 1; else 0 */
	bool is_body;	      /* a body's first node: a choice begins it */
	void *event;	      /* the caller's */
};

struct sched_edge {
	uint32_t from, to; /* nodes */
};

struct sched_turns {
	uint32_t n_refs; /* the lock, or before there are launches */
	TAILQ_HEAD(, sched_op) launches;
};

/* What the launches of a graph need besides. */
struct sched_keep {
	uint32_t n_refs;	    /* atomic: states of the graph */
	struct sched_errand errand; /* done once no launch needs it any more */
};

struct sched_graph {
	struct sched *sched;
	uint32_t n_refs; /* atomic: its owner, and its launches */
	uint32_t n_nodes, n_roots, n_lanes, n_events;
	uint32_t kinds; /* bit n: it has nodes of kind n */
	struct sched_node *nodes;
	uint32_t *after;  /* the dependencies, beginning with the roots */
	uint32_t *events; /* nodes of kind MARK and WAIT, in order */
	uint32_t n_choices;
	uint32_t *choices; /* nodes of kind CHOICE, in order */
	struct sched_stream *lanes;
	struct sched_turns *turns;
	struct sched_keep *keep; /* a reference, or NULL */

	/* the lock */
	struct sched_streams idle; /* lanes */
	struct sched_op *launch;   /* under way, or NULL */
	uint32_t n_live;	   /* nodes that are begun and not done */
	uint64_t n_works;	   /* nodes so far that take a thread */
};

/*
 * sched_graph_new() - a graph whose nodes are still to be filled in
 * @before:	an older state of the same graph, or NULL
 *
 * Return: 0 or -ENOMEM.
 */
int sched_graph_new(struct sched_graph **graphp, struct sched *sched, uint32_t n_nodes,
	struct sched_graph *before);

/*
 * sched_graph_finish() - connect the nodes
 *
 * All nodes have their operation and their kind; kind and edges do not change any more,
 * and edges form no cycle. Return: 0 or -ENOMEM.
 */
int sched_graph_finish(
	struct sched_graph *graph, const struct sched_edge *edges, uint32_t n_edges);

/* A graph that does the same and shares the turns. Return: 0 or -ENOMEM. */
int sched_graph_copy(struct sched_graph **graphp, struct sched_graph *from);

struct sched_graph *sched_graph_ref(struct sched_graph *graph);

/* Ends one reference; parameters that nodes keep outside go with the last. */
struct sched_graph *sched_graph_unref(struct sched_graph *graph);

/* Return: whether launches that were submitted still need the graph as it is. */
bool sched_graph_is_busy(const struct sched_graph *graph);

/* With the lock, for streams: */

/* A launch that was submitted takes its place. */
void sched_graph_enlist(struct sched_op *launch);

/* A launch at the head of its stream. Return: whether it has begun. */
bool sched_graph_begin(struct sched_op *launch);

/* A choice at the head of its lane: begins a body. Return: whether it is done. */
bool sched_graph_choose(struct sched_op *op);

/* The node at the head of a lane is done. */
void sched_graph_step(struct sched_stream *lane);

/* A launch is done, or will not be. */
void sched_graph_discard(const struct sched_op *launch);
