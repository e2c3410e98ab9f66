/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Graph parts: the host memory that copies in graphs access, for a recording
 *
 * A graph has the parts that calls which add or change its nodes have named. What is made
 * from a graph, as an executable one or a clone, has its parts, too. Parts are never
 * taken away: more are compared then than a launch has copied, which are the same anyway.
 * The caller locks.
 */

#include <stdbool.h>
#include <stdint.h>

/* Further graphs take the places of the oldest ones, further parts are left out. */
#define GRAPH_PARTS_OBJECTS 1024u
#define GRAPH_PARTS_MAX 64u

struct graph_part {
	uint64_t offset; /* in the shared memory */
	uint64_t size;
};

struct graph_parts_object {
	uint64_t handle; /* 0: what is being captured */
	uint32_t n;
	struct graph_part parts[GRAPH_PARTS_MAX];
};

struct graph_parts {
	struct graph_parts_object captured;
	struct graph_parts_object *objects; /* NULL before there is any */
	uint64_t n_objects;		    /* so far */
	uint64_t to_graph;		    /* to which is captured, 0: a new one */
};

void graph_parts_deinit(struct graph_parts *parts);

/* Return: that of a graph or an executable one, NULL: it has no parts. */
struct graph_parts_object *graph_parts_find(struct graph_parts *parts, uint64_t handle);

/* A new graph or executable one without parts, in place of any with that handle. Return:
 * NULL without memory. */
struct graph_parts_object *graph_parts_make(struct graph_parts *parts, uint64_t handle);

void graph_parts_add(struct graph_parts_object *object, const struct graph_part *part);
void graph_parts_join(
	struct graph_parts_object *object, const struct graph_parts_object *other);
