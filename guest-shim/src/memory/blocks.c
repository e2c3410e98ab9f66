/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks
 *
 * Free blocks are in bins by size, one set of bins for what is ready and one, a queue,
 * for each stream. A bin holds the sizes of an eighth of a power of two: a block of the
 * bin above is always large enough. Blocks in use are in a hash table by address.
 */

#include <stdlib.h>
#include <string.h>

#include "memory/blocks.h"

#define BINS_PER_POWER 8u
#define BINS 320u /* for sizes of up to 2^46 bytes */
#define SIZE_MAX_BITS 46

#define QUEUE_BUCKETS 64u
#define HASH_FIRST 1024u
/* How many blocks of the size's own bin are looked at. */
#define TRIES 8

struct block {
	uint64_t address;
	uint64_t size;
	uint64_t count; /* free and pending: see struct shim_free_point */
	uint64_t order;
	struct queue *queue;	       /* NULL: in use */
	const void *owner;	       /* in use */
	struct block *before, *after;  /* in the segment */
	struct block *previous, *next; /* in the bin; in use, next in the hash bucket */
	struct segment *segment;
};

/* Free blocks that are pending in one stream, or ready. */
struct queue {
	uint64_t stream; /* 0: ready */
	const void *context;
	uint64_t handle;
	struct queue *next; /* in the bucket */
	uint32_t n;
	uint64_t is_filled[BINS / 64];
	struct block *bins[BINS];
};

struct segment {
	struct segment *next;
	uint64_t base;
	uint64_t size;
	struct block *first;
};

struct shim_blocks {
	struct shim_blocks_counts counts;
	struct queue ready;
	struct queue *queues[QUEUE_BUCKETS];
	struct segment *segments;
	struct block **hash;
	uint32_t hash_size;
	uint32_t n_used;
	struct block *unused; /* structures, by next */
};

struct shim_blocks *shim_blocks_new(void)
{
	struct shim_blocks *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return NULL;
	blocks->hash_size = HASH_FIRST;
	blocks->hash = calloc(HASH_FIRST, sizeof(*blocks->hash));
	if (!blocks->hash) {
		free(blocks);
		return NULL;
	}
	return blocks;
}

static void free_list(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
}

struct shim_blocks *shim_blocks_free(struct shim_blocks *blocks)
{
	if (!blocks)
		return NULL;
	while (blocks->segments) {
		struct segment *segment = blocks->segments;

		blocks->segments = segment->next;
		while (segment->first) {
			struct block *block = segment->first;

			segment->first = block->after;
			free(block);
		}
		free(segment);
	}
	for (uint32_t i = 0; i < QUEUE_BUCKETS; i++)
		while (blocks->queues[i]) {
			struct queue *queue = blocks->queues[i];

			blocks->queues[i] = queue->next;
			free(queue);
		}
	free_list(blocks->unused);
	free(blocks->hash);
	free(blocks);
	return NULL;
}

const struct shim_blocks_counts *shim_blocks_counts(const struct shim_blocks *blocks)
{
	return &blocks->counts;
}

void shim_blocks_reset_reserved_high(struct shim_blocks *blocks)
{
	blocks->counts.reserved_high = blocks->counts.reserved;
}

void shim_blocks_reset_used_high(struct shim_blocks *blocks)
{
	blocks->counts.used_high = blocks->counts.used;
}

/*
 * Structures of blocks
 */

static struct block *block_new(struct shim_blocks *blocks)
{
	struct block *block = blocks->unused;

	if (blocks->counts.n_blocks == SHIM_BLOCKS_MAX)
		return NULL;
	if (block)
		blocks->unused = block->next;
	else
		block = malloc(sizeof(*block));
	if (block)
		blocks->counts.n_blocks++;
	return block;
}

static void block_free(struct shim_blocks *blocks, struct block *block)
{
	block->next = blocks->unused;
	blocks->unused = block;
	blocks->counts.n_blocks--;
}

/*
 * Blocks in use, by address
 */

static struct block **hash_bucket(const struct shim_blocks *blocks, uint64_t address)
{
	uint64_t mixed = (address / SHIM_BLOCK_UNIT) * 0x9e3779b97f4a7c15ull;

	return &blocks->hash[(mixed >> 32) & (blocks->hash_size - 1)];
}

static void hash_add(struct shim_blocks *blocks, struct block *block)
{
	struct block **bucket = hash_bucket(blocks, block->address);

	block->next = *bucket;
	*bucket = block;
	blocks->n_used++;
}

/* Twice the buckets; without memory the chains become longer. */
static void hash_grow(struct shim_blocks *blocks)
{
	uint32_t old_size = blocks->hash_size;
	struct block **old = blocks->hash;

	blocks->hash = calloc(2 * (size_t)old_size, sizeof(*blocks->hash));
	if (!blocks->hash) {
		blocks->hash = old;
		return;
	}
	blocks->hash_size = 2 * old_size;
	blocks->n_used = 0;
	for (uint32_t i = 0; i < old_size; i++)
		while (old[i]) {
			struct block *block = old[i];

			old[i] = block->next;
			hash_add(blocks, block);
		}
	free(old);
}

static struct block *hash_remove(struct shim_blocks *blocks, uint64_t address)
{
	struct block **link = hash_bucket(blocks, address), *block;

	while (*link && (*link)->address != address)
		link = &(*link)->next;
	block = *link;
	if (!block)
		return NULL;
	*link = block->next;
	blocks->n_used--;
	return block;
}

/*
 * Free blocks, by size
 */

static uint32_t bin_of(uint64_t size)
{
	uint64_t units = size / SHIM_BLOCK_UNIT;
	uint32_t power;

	if (units < 2 * BINS_PER_POWER)
		return (uint32_t)units;
	power = 63 - (uint32_t)__builtin_clzll(units) - 3;
	return power * BINS_PER_POWER + (uint32_t)(units >> power);
}

static void queue_add(struct queue *queue, struct block *block)
{
	uint32_t bin = bin_of(block->size);

	block->queue = queue;
	block->previous = NULL;
	block->next = queue->bins[bin];
	if (block->next)
		block->next->previous = block;
	queue->bins[bin] = block;
	queue->is_filled[bin / 64] |= 1ull << bin % 64;
	queue->n++;
}

static void queue_remove(struct block *block)
{
	struct queue *queue = block->queue;
	uint32_t bin = bin_of(block->size);

	if (block->next)
		block->next->previous = block->previous;
	if (block->previous)
		block->previous->next = block->next;
	else
		queue->bins[bin] = block->next;
	if (!queue->bins[bin])
		queue->is_filled[bin / 64] &= ~(1ull << bin % 64);
	queue->n--;
}

/* The smallest bin from this one on that is filled, or BINS. */
static uint32_t queue_next_bin(const struct queue *queue, uint32_t bin)
{
	uint32_t word = bin / 64;
	uint64_t bits;

	if (bin >= BINS)
		return BINS;
	bits = queue->is_filled[word] & ~0ull << bin % 64;
	while (!bits) {
		if (++word == BINS / 64)
			return BINS;
		bits = queue->is_filled[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

static struct block *queue_find(const struct queue *queue, uint64_t size)
{
	uint32_t bin = bin_of(size), tries = TRIES;
	struct block *block;

	for (block = queue->bins[bin]; block && tries--; block = block->next)
		if (block->size >= size)
			return block;
	bin = queue_next_bin(queue, bin + 1);
	return bin < BINS ? queue->bins[bin] : NULL;
}

/* One of the first blocks of a bin that is large enough and was freed early enough. */
static struct block *bin_find_until(struct block *first, uint64_t size, uint64_t count)
{
	uint32_t tries = TRIES;

	for (struct block *block = first; block && tries--; block = block->next)
		if (block->size >= size && block->count <= count)
			return block;
	return NULL;
}

static struct block *queue_find_until(
	const struct queue *queue, uint64_t size, uint64_t count)
{
	struct block *block = NULL;

	for (uint32_t bin = queue_next_bin(queue, bin_of(size)); bin < BINS && !block;
		bin = queue_next_bin(queue, bin + 1))
		block = bin_find_until(queue->bins[bin], size, count);
	return block;
}

static struct queue *find_queue(const struct shim_blocks *blocks, uint64_t stream)
{
	struct queue *queue = blocks->queues[stream % QUEUE_BUCKETS];

	while (queue && queue->stream != stream)
		queue = queue->next;
	return queue;
}

static struct queue *make_queue(
	struct shim_blocks *blocks, const struct shim_free_point *point)
{
	struct queue **bucket = &blocks->queues[point->stream % QUEUE_BUCKETS];
	struct queue *queue = find_queue(blocks, point->stream);

	if (queue)
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->stream = point->stream;
	queue->context = point->context;
	queue->handle = point->handle;
	queue->next = *bucket;
	*bucket = queue;
	return queue;
}

/*
 * Allocating and freeing
 */

bool shim_blocks_add(struct shim_blocks *blocks, uint64_t base, uint64_t size)
{
	struct segment *segment = malloc(sizeof(*segment));
	struct block *block = segment ? block_new(blocks) : NULL;

	if (!block) {
		free(segment);
		return false;
	}
	*segment = (struct segment){ blocks->segments, base, size, block };
	blocks->segments = segment;
	*block = (struct block){ .address = base, .size = size, .segment = segment };
	queue_add(&blocks->ready, block);
	blocks->counts.reserved += size;
	if (blocks->counts.reserved > blocks->counts.reserved_high)
		blocks->counts.reserved_high = blocks->counts.reserved;
	return true;
}

/* Cuts a free block that is in no bin, and puts the rest back. Return: false without a
 * structure for the rest. */
static bool split(struct shim_blocks *blocks, struct block *block, uint64_t size)
{
	struct block *rest;

	if (block->size == size)
		return true;
	rest = block_new(blocks);
	if (!rest)
		return false;
	*rest = *block;
	rest->address += size;
	rest->size -= size;
	rest->before = block;
	block->after = rest;
	if (rest->after)
		rest->after->before = rest;
	block->size = size;
	queue_add(block->queue, rest);
	return true;
}

/* A block that is in no bin, and has the right size, is used. */
static void note_used(struct shim_blocks *blocks, struct block *block, const void *owner)
{
	block->queue = NULL;
	block->owner = owner;
	hash_add(blocks, block);
	if (blocks->n_used > blocks->hash_size)
		hash_grow(blocks);
	blocks->counts.used += block->size;
	if (blocks->counts.used > blocks->counts.used_high)
		blocks->counts.used_high = blocks->counts.used;
}

static uint64_t use(
	struct shim_blocks *blocks, struct block *block, uint64_t size, const void *owner)
{
	queue_remove(block);
	if (!split(blocks, block, size)) {
		queue_add(block->queue, block);
		return 0;
	}
	note_used(blocks, block, owner);
	return block->address;
}

/* Return: 0 for more than any pool can have. */
static uint64_t round_up(uint64_t size)
{
	if (size >> SIZE_MAX_BITS)
		return 0;
	return (size + SHIM_BLOCK_UNIT - 1) & ~(uint64_t)(SHIM_BLOCK_UNIT - 1);
}

uint64_t shim_blocks_take(
	struct shim_blocks *blocks, uint64_t size, uint64_t stream, const void *owner)
{
	const struct queue *queue = find_queue(blocks, stream);
	struct block *block = NULL;

	size = round_up(size);
	if (!size)
		return 0;
	if (queue && queue->n)
		block = queue_find(queue, size);
	if (!block)
		block = queue_find(&blocks->ready, size);
	return block ? use(blocks, block, size, owner) : 0;
}

uint64_t shim_blocks_take_after(struct shim_blocks *blocks, uint64_t size,
	const struct shim_order *order, const void *owner)
{
	struct block *block = NULL;

	size = round_up(size);
	if (!size)
		return 0;
	for (uint32_t i = 0; i < order->n && !block; i++) {
		const struct queue *queue = find_queue(blocks, order->points[i].stream);

		if (queue && queue->n)
			block = queue_find_until(queue, size, order->points[i].count);
	}
	return block ? use(blocks, block, size, owner) : 0;
}

static struct shim_free_point point_of(const struct block *block)
{
	return (struct shim_free_point){
		.stream = block->queue->stream,
		.count = block->count,
		.order = block->order,
		.context = block->queue->context,
		.handle = block->queue->handle,
	};
}

uint64_t shim_blocks_borrow(struct shim_blocks *blocks, uint64_t size, const void *owner,
	shim_blocks_past_fn may_wait, void *data, struct shim_free_point *pointp)
{
	size = round_up(size);
	if (!size)
		return 0;
	for (uint32_t i = 0; i < QUEUE_BUCKETS; i++)
		for (const struct queue *queue = blocks->queues[i]; queue;
			queue = queue->next) {
			struct block *block = queue->n ? queue_find(queue, size) : NULL;

			if (!block)
				continue;
			*pointp = point_of(block);
			if (may_wait(pointp, data))
				return use(blocks, block, size, owner);
		}
	return 0;
}

/* Merges a free block, in no bin, with what follows it in the segment. */
static void absorb(struct shim_blocks *blocks, struct block *block, struct block *after)
{
	block->size += after->size;
	block->after = after->after;
	if (block->after)
		block->after->before = block;
	if (after->count > block->count)
		block->count = after->count;
	if (after->order > block->order)
		block->order = after->order;
	block_free(blocks, after);
}

/* Puts a block that is in no bin into a queue, with its neighbours there. */
static void put(struct shim_blocks *blocks, struct block *block, struct queue *queue)
{
	struct block *before = block->before, *after = block->after;

	if (after && after->queue == queue) {
		queue_remove(after);
		absorb(blocks, block, after);
	}
	if (before && before->queue == queue) {
		queue_remove(before);
		absorb(blocks, before, block);
		block = before;
	}
	queue_add(queue, block);
}

static struct segment *find_segment(const struct shim_blocks *blocks, uint64_t address)
{
	struct segment *segment = blocks->segments;

	while (segment && address - segment->base >= segment->size)
		segment = segment->next;
	return segment;
}

/* The block with an address, if all from there to the end is free. */
static struct block *find_free(
	const struct segment *segment, uint64_t address, uint64_t size)
{
	struct block *block = segment->first, *last;

	if (size > segment->size - (address - segment->base))
		return NULL;
	while (address - block->address >= block->size)
		block = block->after;
	for (last = block; last->queue; last = last->after)
		if (address + size - last->address <= last->size)
			return block;
	return NULL;
}

/* Cuts a free block in two free ones. Return: the second, or NULL without memory. */
static struct block *cut(struct shim_blocks *blocks, struct block *block, uint64_t size)
{
	bool is_done;

	queue_remove(block);
	is_done = split(blocks, block, size);
	queue_add(block->queue, block);
	return is_done ? block->after : NULL;
}

bool shim_blocks_take_at(
	struct shim_blocks *blocks, uint64_t address, uint64_t size, const void *owner)
{
	const struct segment *segment = find_segment(blocks, address);
	struct block *block, *last;

	size = round_up(size);
	block = segment && size ? find_free(segment, address, size) : NULL;
	if (block && block->address != address)
		block = cut(blocks, block, address - block->address);
	if (!block)
		return false;
	for (last = block; address + size - last->address > last->size;)
		last = last->after;
	if (address + size - last->address < last->size &&
		!cut(blocks, last, address + size - last->address))
		return false;
	queue_remove(block);
	while (block->size < size) {
		queue_remove(block->after);
		absorb(blocks, block, block->after);
	}
	note_used(blocks, block, owner);
	return true;
}

bool shim_blocks_give(
	struct shim_blocks *blocks, uint64_t address, const struct shim_free_point *point)
{
	struct queue *queue = point ? make_queue(blocks, point) : &blocks->ready;
	struct block *block = queue ? hash_remove(blocks, address) : NULL;

	if (!block)
		return false;
	blocks->counts.used -= block->size;
	block->count = point ? point->count : 0;
	block->order = point ? point->order : 0;
	put(blocks, block, queue);
	return true;
}

void shim_blocks_give_owned(struct shim_blocks *blocks, const void *owner)
{
	for (uint32_t i = 0; i < blocks->hash_size; i++) {
		struct block *block = blocks->hash[i], *next;

		for (; block; block = next) {
			next = block->next;
			if (block->owner == owner)
				shim_blocks_give(blocks, block->address, NULL);
		}
	}
}

/* Blocks of a queue whose points are past become ready. */
static void settle(struct shim_blocks *blocks, struct queue *queue,
	shim_blocks_past_fn is_past, void *data)
{
	for (uint32_t bin = queue_next_bin(queue, 0); bin < BINS;
		bin = queue_next_bin(queue, bin + 1)) {
		struct block *block = queue->bins[bin], *next;

		for (; block; block = next) {
			struct shim_free_point point = point_of(block);

			next = block->next;
			if (!is_past(&point, data))
				continue;
			queue_remove(block);
			put(blocks, block, &blocks->ready);
		}
	}
}

void shim_blocks_settle(
	struct shim_blocks *blocks, shim_blocks_past_fn is_past, void *data)
{
	for (uint32_t i = 0; i < QUEUE_BUCKETS; i++) {
		struct queue **link = &blocks->queues[i];

		while (*link) {
			struct queue *queue = *link;
			bool was_empty = !queue->n;

			settle(blocks, queue, is_past, data);
			/* It is made again when a block is freed in that stream. */
			if (was_empty) {
				*link = queue->next;
				free(queue);
			} else {
				link = &queue->next;
			}
		}
	}
}

void shim_blocks_each_segment(const struct shim_blocks *blocks,
	void (*visit)(uint64_t base, uint64_t size, void *data), void *data)
{
	for (const struct segment *segment = blocks->segments; segment;
		segment = segment->next)
		visit(segment->base, segment->size, data);
}

bool shim_blocks_remove(
	struct shim_blocks *blocks, uint64_t keep, uint64_t *basep, uint64_t *sizep)
{
	struct segment **link = &blocks->segments, *segment;

	if (keep >= blocks->counts.reserved)
		return false;
	for (; *link; link = &(*link)->next)
		if ((*link)->first->queue == &blocks->ready &&
			(*link)->first->size == (*link)->size &&
			(*link)->size <= blocks->counts.reserved - keep)
			break;
	segment = *link;
	if (!segment)
		return false;
	queue_remove(segment->first);
	block_free(blocks, segment->first);
	*link = segment->next;
	*basep = segment->base;
	*sizep = segment->size;
	blocks->counts.reserved -= segment->size;
	free(segment);
	return true;
}

bool shim_blocks_find(const struct shim_blocks *blocks, uint64_t address, uint64_t *basep,
	uint64_t *sizep)
{
	const struct segment *segment = find_segment(blocks, address);
	const struct block *block;

	/* Usually an address is where a block begins. */
	block = *hash_bucket(blocks, address);
	while (block && block->address != address)
		block = block->next;
	if (!block && segment)
		for (block = segment->first; block; block = block->after)
			if (address - block->address < block->size)
				break;
	if (!block || block->queue)
		return false;
	*basep = block->address;
	*sizep = block->size;
	return true;
}
