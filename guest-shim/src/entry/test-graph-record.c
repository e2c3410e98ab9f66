/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: records of graphs that allocate or free memory
 */

#include <stdlib.h>

#include "test.h"

#include "entry/graph-record.h"

/* Handles of an index, as the host makes them. */
static void *handle(uint64_t kind, uint64_t i)
{
	return (void *)(uintptr_t)(kind << 52 | UINT64_C(1) << 20 | i);
}

static CUgraph graph(uint64_t i)
{
	return handle(16, i);
}

static CUgraphNode node(uint64_t i)
{
	return handle(17, i);
}

static CUdeviceptr address(uint64_t i)
{
	return 0x7f0000000000 + 512 * i;
}

/* An allocation with its node, of one number. */
static struct shim_record *add(CUgraph handle, uint64_t i)
{
	struct shim_record *record = shim_record_get(handle);
	const CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = i };

	check(record);
	shim_record_add_memory(
		record, calloc(1, sizeof(struct shim_record_memory)), address(i));
	shim_record_add_node(record, shim_record_node_new(&params), node(i));
	return record;
}

/* Return: how much memory the record had. */
static size_t end(struct shim_record *record)
{
	struct shim_record_memory *memory = shim_record_free(record), *next;
	size_t n = 0;

	for (; memory; memory = next, n++) {
		next = memory->next;
		check(memory->address.value);
		check(!shim_record_find_memory(memory->address.value));
		free(memory);
	}
	return n;
}

TEST(everything_is_found_by_its_handle)
{
	const uint64_t n = 20000;

	for (uint64_t i = 0; i < n; i++)
		add(graph(i % 7), i);
	for (uint64_t i = 0; i < n; i++) {
		struct shim_record_node *found = shim_record_find_node(node(i));

		check(found && found->params.bytesize == i);
		check(found->graph == shim_record_find(graph(i % 7)));
		check(shim_record_find_memory(address(i))->graph == found->graph);
	}
	check(!shim_record_find(graph(7)) && !shim_record_find(NULL));
	check(!shim_record_find_node(node(n)) && !shim_record_find_node(NULL));
	check(!shim_record_find_memory(address(n)) && !shim_record_find_memory(0));
	for (uint64_t i = 0; i < 7; i++)
		check_eq(end(shim_record_find(graph(i))), (n + 6 - i) / 7);
	check(!shim_record_first());
	check(!shim_record_find_node(node(0)));
}

TEST(a_record_lasts_longer_than_its_graph)
{
	struct shim_record *record = add(graph(1), 1);
	CUgraphExec exec = handle(18, 5);

	shim_record_set_exec(record, exec);
	shim_record_drop_handles(record);
	check(!shim_record_find(graph(1)) && !shim_record_find_node(node(1)));
	check(shim_record_find_exec(exec) == record);
	check(record->nodes && shim_record_find_memory(address(1)));
	shim_record_set_in_use(record->memories, true);
	shim_record_set_in_use(record->memories, true);
	check_eq(record->n_in_use, 1);
	shim_record_set_in_use(record->memories, false);
	check_eq(record->n_in_use, 0);
	shim_record_set_exec(record, NULL);
	check(!shim_record_find_exec(exec) && !shim_record_find_exec(NULL));
	check_eq(end(record), 1);
}

TEST(records_are_merged)
{
	struct shim_record *to = add(graph(1), 1), *from = add(graph(2), 2);

	add(graph(2), 3);
	shim_record_set_in_use(shim_record_find_memory(address(3)), true);
	shim_record_merge(to, from);
	check(!shim_record_find(graph(2)) && shim_record_first() == to && !to->next);
	check_eq(to->n_in_use, 1);
	for (uint64_t i = 1; i <= 3; i++)
		check(shim_record_find_node(node(i))->graph == to &&
			shim_record_find_memory(address(i))->graph == to);
	/* A record of a graph becomes another one's. */
	shim_record_set_handle(to, graph(9));
	check(shim_record_find(graph(9)) == to && !shim_record_find(graph(1)));
	check_eq(end(to), 3);
}

TEST(a_node_has_a_copy_of_its_parameters)
{
	CUmemAccessDesc descs[2] = { { .flags = 1 }, { .flags = 3 } };
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .accessDescs = descs,
		.accessDescCount = 2 };
	struct shim_record_node *made = shim_record_node_new(&params);

	check(made && made->is_alloc);
	descs[1].flags = 0;
	check(made->params.accessDescs != descs);
	check_eq(made->params.accessDescs[1].flags, 3);
	shim_record_node_free(made);
	made = shim_record_node_new(NULL);
	check(made && !made->is_alloc);
	shim_record_node_free(made);
	shim_record_node_free(NULL);
}
