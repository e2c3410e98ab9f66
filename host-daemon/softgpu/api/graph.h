/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graphs: what their files offer each other
 *
 *	work	what a node does, with all that it needs copied or counted
 *	node	work with edges, part of one graph
 *	graph	nodes in the order in which they were added; belongs to no context
 *	exec	a copy of a graph that the program cannot reach, and what the scheduler
 *		has made of it
 *
 * One lock guards them all, and captures as well. It comes before all others but
 * device.lock, and is not held while something waits for the device. Handles of graphs,
 * nodes and execs are looked up with it, so that none has to be held (object.h); what
 * nodes name outside, kernels and events, they have references to.
 */

#include "api/launch.h"
#include "sched/graph.h"

struct capture;

/* No program needs as many; copies of children in children could soon be more. Fuzzers
 * have fewer. */
#ifndef GRAPH_NODES_MAX
#define GRAPH_NODES_MAX (1u << 18)
#endif
#define GRAPH_DEPTH_MAX 32u

/* Of one conditional node. Each is an object, whether it has nodes or not. */
#define CONDITIONAL_BODIES_MAX 1024u

/* Operations on words that one call or node has. */
#define BATCH_OPS_MAX 255u

struct graph_kernel {
	CUfunction function; /* its module is counted */
	CUcontext context;
	uint64_t generation; /* of the context */
	CUkernel kernel;     /* as given, or NULL */
	struct launch launch;
	struct object *block; /* counted: the following fields point into it */
	uint8_t *params;      /* preceded by the offset of each */
	void **pointers;
	size_t n_attributes;
	CUlaunchAttribute *attributes; /* as set by calls, each once */
};

struct graph_copy {
	CUDA_MEMCPY3D copy;
	CUcontext context;
	uint64_t generation;
};

struct graph_fill {
	CUDA_MEMSET_NODE_PARAMS fill;
	CUcontext context;
	uint64_t generation;
};

struct graph_batch {
	CUcontext context;
	uint64_t generation;
	struct object *block; /* counted: the operations are in it */
	CUstreamBatchMemOpParams *ops;
	unsigned int n;
	unsigned int flags;
};

struct graph_conditional {
	CUcontext context;
	uint64_t generation;
	struct sched_condition *condition; /* a reference */
	CUgraphConditionalNodeType type;
	struct object *block; /* counted: the list of bodies is in it */
	unsigned int n_bodies;
	CUgraph *bodies; /* its own */
};

struct graph_work {
	CUgraphNodeType type;
	union {
		struct graph_kernel kernel;
		struct graph_copy copy;
		struct graph_fill fill;
		struct graph_batch batch;
		CUDA_HOST_NODE_PARAMS host;
		CUevent event;
		CUgraph child; /* its own */
		struct graph_conditional conditional;
	};
};

struct graph_list {
	CUgraphNode *nodes;
	size_t n, n_max;
};

struct CUgraphNode_st {
	struct object object;
	CUgraph graph;
	TAILQ_ENTRY(CUgraphNode_st) link;
	uint64_t id;	 /* no other node has it */
	uint64_t origin; /* of the node that it is a copy of, or 0 */
	struct graph_work work;
	struct graph_list before, after;

	/* Of walks through graphs. */
	uint64_t seen;
	size_t n_left;
	CUgraphNode pair;
	uint32_t first, last; /* among the nodes of the scheduler */
	bool is_disabled;     /* in an exec */
};

/* References of a graph to objects of the program; user-object.c */
struct user_ref {
	CUuserObject object; /* a reference to its memory too */
	uint64_t count;
	STAILQ_ENTRY(user_ref) link;
};

STAILQ_HEAD(user_refs, user_ref);

struct CUgraph_st {
	struct object object;
	bool is_shown; /* has handles */
	bool is_moved; /* was a graph of its own until its node took it over */
	TAILQ_HEAD(, CUgraphNode_st) nodes;
	size_t n_nodes, n_edges;
	size_t n_all;			    /* nodes, including those inside them */
	size_t n_conditionals;		    /* of these */
	uint32_t depth;			    /* of graphs in graphs, at least */
	uint32_t n_captures;		    /* that add to it, or to what is inside it */
	CUgraphNode parent;		    /* that it is inside of, or NULL */
	struct capture *capture;	    /* that adds to it, or NULL */
	struct sched_condition *conditions; /* made for it: references */
	CUgraphExec instance; /* with conditional nodes: the only one, or NULL */
	struct user_refs users;
};

struct CUgraphExec_st {
	struct object object;
	unsigned long long flags;
	CUgraph graph;
	CUgraph source; /* whose instance it is, or NULL */
	struct sched_graph *sched;
	CUcontext context; /* NULL: its work needs none */
	uint64_t generation;

	/* Nodes by their originals. */
	CUgraphNode *nodes;
	size_t n_nodes;

	/* The state that it was checked against. */
	uint64_t memory_ends, n_unloads;
	bool has_memory;
};

extern pthread_mutex_t graph_lock;

/* Around every call. Return: 0 with the lock, or NOT_INITIALIZED without it. */
CUresult graph_enter(void);
CUresult graph_leave(CUresult result);

/* With the lock. Return: a number that no walk had before. */
uint64_t graph_walk(void);

/*
 * Work
 *
 * Return: 0, and what is in *work is the caller's; or why there is no such work.
 */

CUresult work_kernel(struct graph_work *work, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult work_launch(struct graph_work *work, CUfunction function, CUkernel kernel,
	const struct launch *launch, void **params, void **extra);
CUresult work_copy(struct graph_work *work, const CUDA_MEMCPY3D *copy, CUcontext context);
CUresult work_fill(
	struct graph_work *work, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context);
CUresult work_host(struct graph_work *work, const CUDA_HOST_NODE_PARAMS *params);
CUresult work_event(struct graph_work *work, CUgraphNodeType type, CUevent event);
CUresult work_child(struct graph_work *work, CUgraph child);
CUresult work_batch(struct graph_work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
CUresult work_conditional(struct graph_work *work, CUgraph graph,
	const CUDA_CONDITIONAL_NODE_PARAMS *params);
/* All kinds but conditional ones. */
CUresult work_any(struct graph_work *work, const CUgraphNodeParams *params);
CUresult work_clone(
	struct graph_work *work, const struct graph_work *from, bool is_shown);
void work_deinit(struct graph_work *work);

/* The graphs inside a node: a child, or bodies. */
unsigned int work_n_inside(const struct graph_work *work);
CUgraph *work_inside(struct graph_work *work);

/* The context that it needs. Return: 0, or that it is gone. */
CUresult work_context(
	const struct graph_work *work, CUcontext *contextp, uint64_t *generationp);

/* Fills in a node of the scheduler; what is inside, and batches, are not for here. */
CUresult work_prepare(const struct graph_work *work, struct sched_node *node);

/* The same for one operation of a batch. */
CUresult work_prepare_word(
	const CUstreamBatchMemOpParams *params, struct sched_node *node);

CUresult kernel_set_attribute(struct graph_work *work, CUlaunchAttributeID id,
	const CUlaunchAttributeValue *value);

/* A function of the program as an operation, and one operation on a word; stream-op.c */
void host_describe(struct sched_host *host, CUhostFn fn, void *data);
CUresult word_describe(struct sched_op *op, const CUstreamBatchMemOpParams *params);

CUresult kernel_copy_attributes(struct graph_kernel *to, const struct graph_kernel *from);

/*
 * Objects of the program, with the lock
 */

CUresult users_copy(struct user_refs *to, const struct user_refs *from);
void users_free(struct user_refs *users);

/* References to all objects of a graph and its children, for launches; NULL where there
 * are none. */
CUresult users_keep(struct sched_keep **keepp, CUgraph graph);

/*
 * Conditional nodes, with the lock; graph-conditional.c
 */

CUresult conditional_clone(struct graph_conditional *conditional, bool is_shown);
void conditional_deinit(struct graph_conditional *conditional);
CUresult conditional_prepare(
	const struct graph_conditional *conditional, struct sched_node *node);

/* The graph ends. */
void conditions_free(CUgraph graph);

/* Return: whether a condition was made for which there is no node. */
bool graph_has_unused_condition(CUgraph graph);

/* Return: whether one graph is the other, or inside it. */
bool graph_is_within(const struct CUgraph_st *graph, const struct CUgraph_st *other);

/* Return: whether a graph is a body, or inside one. */
bool graph_is_body(const struct CUgraph_st *graph);

/* Return: 0, or that no body may have such a node. */
CUresult graph_check_body(const struct CUgraph_st *graph, const struct graph_work *work);

/* Graphs, with the lock */

CUresult graph_new(CUgraph *graphp, bool is_shown);
CUresult graph_copy(CUgraph *graphp, CUgraph from, bool is_shown);
void graph_free(CUgraph graph);
CUresult graph_get(CUgraph graph);
CUresult graph_get_node(CUgraphNode node);

/* Takes the work over if it succeeds. */
CUresult graph_add(CUgraphNode *nodep, CUgraph graph, const CUgraphNode *before,
	size_t n_before, struct graph_work *work);
void graph_remove(CUgraphNode node);
CUresult graph_connect(CUgraphNode from, CUgraphNode to);
void graph_disconnect(CUgraphNode from, CUgraphNode to);
bool graph_is_connected(
	const struct CUgraphNode_st *from, const struct CUgraphNode_st *to);

/* Return: whether a node has room, with a copy of a child, or NULL. */
bool graph_has_room(CUgraph graph, CUgraph child);

/* A capture begins to add to it, or NULL: it no longer does. */
void graph_set_capture(CUgraph graph, struct capture *capture);

/* Return: 0 if all are nodes of the graph, each once. */
CUresult graph_check_nodes(CUgraph graph, const CUgraphNode *nodes, size_t n);
CUresult graph_list_add(struct graph_list *list, CUgraphNode node);

/* Return: whether edges are of the kind that waits for the whole of a node. */
bool graph_edges_are_plain(const CUgraphEdgeData *data, size_t n);

/*
 * Executable graphs
 */

/* Why a graph cannot be made executable. */
struct exec_error {
	CUgraphInstantiateResult result;
	CUgraphNode node; /* that does not work, or NULL */
};

/* Makes what the scheduler runs anew, from the exec's own graph, whose node is at fault
 * if there is one. */
CUresult exec_build(CUgraphExec exec, struct exec_error *error);

/* Return: 0 with the exec's own node for one of the graph that it was made from. */
CUresult exec_find(CUgraphNode *ownp, CUgraphExec exec, CUgraphNode node);

/* The operation of one of its own nodes. */
CUresult exec_prepare_node(const struct CUgraphExec_st *exec,
	const struct CUgraphNode_st *own, struct sched_node *node);
