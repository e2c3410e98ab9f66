/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph parts: which memory belongs to which graph
 */

#include "test.h"
#include "worker/base/graph-parts.h"

TEST(a_graph_has_the_parts_of_another_once)
{
	struct graph_parts parts = {};
	struct graph_parts_object *graph, *exec;

	check(!graph_parts_find(&parts, 7));
	graph = graph_parts_make(&parts, 7);
	graph_parts_add(graph, &(struct graph_part){ 4096, 100 });
	graph_parts_add(graph, &(struct graph_part){ 4096, 100 });
	graph_parts_add(graph, &(struct graph_part){ 4096, 101 });
	check_eq(graph->n, 2);
	exec = graph_parts_make(&parts, 8);
	graph_parts_join(exec, graph);
	graph_parts_join(exec, graph);
	graph_parts_join(exec, exec);
	check_eq(exec->n, 2);
	check(graph_parts_find(&parts, 8) == exec);
	/* The handle was given again. */
	check(graph_parts_make(&parts, 8) == exec);
	check_eq(exec->n, 0);
	check_eq(graph->n, 2);
	graph_parts_deinit(&parts);
}

TEST(there_are_limits)
{
	struct graph_parts parts = {};
	struct graph_parts_object *graph;

	for (uint64_t i = 1; i <= GRAPH_PARTS_OBJECTS + 1; i++)
		graph_parts_make(&parts, i);
	check(!graph_parts_find(&parts, 1));
	check(graph_parts_find(&parts, 2));
	graph = graph_parts_find(&parts, GRAPH_PARTS_OBJECTS + 1);
	for (uint64_t i = 0; i <= GRAPH_PARTS_MAX; i++)
		graph_parts_add(graph, &(struct graph_part){ i, 1 });
	check_eq(graph->n, GRAPH_PARTS_MAX);
	graph_parts_deinit(&parts);
}
