/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of graphs that allocate or free memory
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "entry/graph-record.h"

/* A power of two; a chain is short up to some ten thousand entries. */
#define BUCKETS 4096u

static struct {
	struct shim_record *records;
	struct shim_record_key *graphs[BUCKETS];
	struct shim_record_key *execs[BUCKETS];
	struct shim_record_key *memories[BUCKETS];
	struct shim_record_key *nodes[BUCKETS];
} all;

/*
 * Keys
 */

static struct shim_record_key **bucket(struct shim_record_key **table, uint64_t value)
{
	/* The low bits of addresses and the high ones of handles hardly differ. */
	return &table[value * 0x9e3779b97f4a7c15ull >> 52 & (BUCKETS - 1)];
}

/* Takes a key out of its table; the value stays. */
static void key_drop(struct shim_record_key **table, struct shim_record_key *key)
{
	struct shim_record_key **link = bucket(table, key->value);

	while (*link != key)
		link = &(*link)->next;
	*link = key->next;
}

static void key_set(
	struct shim_record_key **table, struct shim_record_key *key, uint64_t value)
{
	struct shim_record_key **link;

	if (key->value)
		key_drop(table, key);
	key->value = value;
	if (!value)
		return;
	link = bucket(table, value);
	key->next = *link;
	*link = key;
}

static struct shim_record_key *key_find(struct shim_record_key **table, uint64_t value)
{
	struct shim_record_key *key = value ? *bucket(table, value) : NULL;

	while (key && key->value != value)
		key = key->next;
	return key;
}

static uint64_t number(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* The entry that a key is in. */
#define ENTRY(_key, _type, _member)                                                      \
	((_key) ? (_type *)(void *)((char *)(_key)-offsetof(_type, _member)) : NULL)

struct shim_record *shim_record_find(CUgraph handle)
{
	return ENTRY(key_find(all.graphs, number(handle)), struct shim_record, handle);
}

struct shim_record *shim_record_find_exec(CUgraphExec handle)
{
	return ENTRY(key_find(all.execs, number(handle)), struct shim_record, exec);
}

struct shim_record_memory *shim_record_find_memory(CUdeviceptr address)
{
	return ENTRY(key_find(all.memories, address), struct shim_record_memory, address);
}

struct shim_record_node *shim_record_find_node(CUgraphNode handle)
{
	return ENTRY(
		key_find(all.nodes, number(handle)), struct shim_record_node, handle);
}

/*
 * Records
 */

struct shim_record *shim_record_first(void)
{
	return all.records;
}

struct shim_record *shim_record_get(CUgraph handle)
{
	struct shim_record *record = shim_record_find(handle);

	if (record)
		return record;
	record = calloc(1, sizeof(*record));
	if (!record)
		return NULL;
	key_set(all.graphs, &record->handle, number(handle));
	record->next = all.records;
	all.records = record;
	return record;
}

void shim_record_set_handle(struct shim_record *record, CUgraph handle)
{
	key_set(all.graphs, &record->handle, number(handle));
}

void shim_record_set_exec(struct shim_record *record, CUgraphExec exec)
{
	key_set(all.execs, &record->exec, number(exec));
}

void shim_record_drop_handles(struct shim_record *record)
{
	struct shim_record_node *node;

	key_set(all.graphs, &record->handle, 0);
	for (node = record->nodes; node; node = node->next)
		key_set(all.nodes, &node->handle, 0);
}

void shim_record_add_memory(struct shim_record *record, struct shim_record_memory *memory,
	CUdeviceptr address)
{
	key_set(all.memories, &memory->address, address);
	memory->graph = record;
	memory->next = record->memories;
	record->memories = memory;
}

void shim_record_add_node(
	struct shim_record *record, struct shim_record_node *node, CUgraphNode handle)
{
	key_set(all.nodes, &node->handle, number(handle));
	node->graph = record;
	node->next = record->nodes;
	record->nodes = node;
}

void shim_record_set_in_use(struct shim_record_memory *memory, bool is_in_use)
{
	memory->graph->n_in_use += is_in_use - memory->is_in_use;
	memory->is_in_use = is_in_use;
}

void shim_record_merge(struct shim_record *to, struct shim_record *from)
{
	struct shim_record_memory **memory = &to->memories;
	struct shim_record_node **node = &to->nodes;

	while (*memory)
		memory = &(*memory)->next;
	*memory = from->memories;
	for (; *memory; memory = &(*memory)->next)
		(*memory)->graph = to;
	while (*node)
		node = &(*node)->next;
	*node = from->nodes;
	for (; *node; node = &(*node)->next)
		(*node)->graph = to;
	to->n_in_use += from->n_in_use;
	from->memories = NULL;
	from->nodes = NULL;
	shim_record_free(from);
}

static void unlink_record(struct shim_record *record)
{
	struct shim_record **link = &all.records;

	while (*link != record)
		link = &(*link)->next;
	*link = record->next;
}

struct shim_record_memory *shim_record_free(struct shim_record *record)
{
	struct shim_record_memory *memories = record->memories, *memory;
	struct shim_record_node *node;

	shim_record_drop_handles(record);
	key_set(all.execs, &record->exec, 0);
	for (memory = memories; memory; memory = memory->next)
		key_drop(all.memories, &memory->address);
	while ((node = record->nodes)) {
		record->nodes = node->next;
		shim_record_node_free(node);
	}
	unlink_record(record);
	free(record);
	return memories;
}

/*
 * Nodes
 */

struct shim_record_node *shim_record_node_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct shim_record_node *node = calloc(1, sizeof(*node));
	CUmemAccessDesc *descs;

	if (!node || !params)
		return node;
	node->is_alloc = true;
	node->params = *params;
	descs = calloc(params->accessDescCount + 1, sizeof(*descs));
	if (!descs) {
		free(node);
		return NULL;
	}
	if (params->accessDescCount)
		memcpy(descs, params->accessDescs,
			params->accessDescCount * sizeof(*descs));
	node->params.accessDescs = descs;
	return node;
}

void shim_record_node_free(struct shim_record_node *node)
{
	if (node)
		free((void *)node->params.accessDescs);
	free(node);
}
