/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of graphs that allocate or free memory
 *
 * A record has the graph's memory, which ends with it, and its nodes, which launches of
 * the executable graph need after the graph itself is destroyed. All is guarded by a lock
 * of the caller's. Each look-up is one in a hash table: frameworks have graphs with
 * thousands of such nodes, and launch them thousands of times.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* A key that is 0 has no place in a table. */
struct shim_record_key {
	struct shim_record_key *next;
	uint64_t value;
};

struct shim_record {
	struct shim_record_key handle; /* 0 once the graph is destroyed */
	struct shim_record_key exec;   /* 0: none */
	struct shim_record *next;
	struct shim_record_memory *memories;
	struct shim_record_node *nodes;
	uint32_t n_in_use; /* of its memory */
	CUstream capture;  /* that makes it, if is_captured */
	CUcontext user;	   /* whose work used its memory last; NULL for none */
	bool is_captured;
	bool frees_at_launch;
};

struct shim_record_memory {
	struct shim_record_key address;
	struct shim_record_memory *next; /* of its graph */
	struct shim_record *graph;
	bool is_freed_inside; /* a node of the graph frees it */
	bool is_in_use;	      /* after a launch */
};

struct shim_record_node {
	struct shim_record_key handle; /* 0 once the graph is destroyed */
	struct shim_record_node *next; /* of its graph */
	struct shim_record *graph;
	bool is_alloc;
	CUdeviceptr address;
	CUDA_MEM_ALLOC_NODE_PARAMS params; /* accessDescs: owned */
};

/* Return: NULL if there is none. */
struct shim_record *shim_record_find(CUgraph handle);
struct shim_record *shim_record_find_exec(CUgraphExec handle);
struct shim_record_memory *shim_record_find_memory(CUdeviceptr address);
struct shim_record_node *shim_record_find_node(CUgraphNode handle);

/* The record of a graph, made here if there is none. Return: NULL without memory. */
struct shim_record *shim_record_get(CUgraph handle);

/* The first of all records, linked by `next`. */
struct shim_record *shim_record_first(void);

void shim_record_set_handle(struct shim_record *record, CUgraph handle);

/* An executable graph is made of it, or NULL: it has ended. */
void shim_record_set_exec(struct shim_record *record, CUgraphExec exec);

/* The graph and its nodes have no handles any more. */
void shim_record_drop_handles(struct shim_record *record);

/* Entries that the caller has made. */
void shim_record_add_memory(struct shim_record *record, struct shim_record_memory *memory,
	CUdeviceptr address);
void shim_record_add_node(
	struct shim_record *record, struct shim_record_node *node, CUgraphNode handle);

void shim_record_set_in_use(struct shim_record_memory *memory, bool is_in_use);

/* Moves all that one record has to another one, and frees it. */
void shim_record_merge(struct shim_record *to, struct shim_record *from);

/* Frees a record, with its nodes. Return: its memory, for the caller to free. */
struct shim_record_memory *shim_record_free(struct shim_record *record);

/* A node with a copy of the parameters, or NULL: one that frees memory. Return: NULL
 * without memory. */
struct shim_record_node *shim_record_node_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params);
void shim_record_node_free(struct shim_record_node *node);
