/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: hazards in shared memory, and its bytes that nothing has written
 *
 * Clocks go on from block to block, so that all that earlier blocks have left in the
 * bytes happened before; they are cleared when the clock comes near its end.
 */

#include <stdlib.h>
#include <string.h>

#include "exec/watch.h"

/* Clocks begin anew beyond this, and stop at the end, which hides hazards and makes none
 * up. */
#define CLOCK_LIMIT (1u << (WATCH_CLOCK_BITS - 1))
#define CLOCK_END ((1u << WATCH_CLOCK_BITS) - 1)

_Static_assert(2 * SOFTGPU_CLUSTER_MAX * WARPS_MAX == 1 << 10 && LANES == 32,
	"ten bits and five in struct watch_access");

static uint32_t *row_of(const struct watch_clocks *clocks, uint32_t *rows, size_t i)
{
	return rows + i * clocks->n_agents;
}

static uint32_t *seen_by(const struct watch_clocks *clocks, uint32_t agent)
{
	return row_of(clocks, clocks->seen, agent);
}

/* Barriers of the cluster's are one, that of its first block. */
static uint32_t *row_of_barrier(
	const struct block *block, uint32_t *rows, unsigned int id)
{
	uint32_t rank = id == CLUSTER_BARRIER ? 0 : block->rank;

	return row_of(block->watch->clocks, rows, rank * (BARRIERS + 1) + id);
}

/* Up to which number accesses of all agents happen before, together with another. */
static void join(const struct watch_clocks *clocks, uint32_t *to, const uint32_t *from)
{
	for (uint32_t i = 0; i < clocks->n_agents; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* What the agent does from now on is not known to the others. */
static void advance(struct watch_clocks *clocks, uint32_t agent)
{
	uint32_t *clock = &seen_by(clocks, agent)[agent];

	if (*clock < CLOCK_END)
		++*clock;
	if (*clock > clocks->clock_max)
		clocks->clock_max = *clock;
}

static int allocate(struct watch *watch, unsigned int kinds, uint32_t size)
{
	if (kinds & SOFTGPU_CHECK_RACES) {
		watch->bytes = calloc(size, sizeof(*watch->bytes));
		if (!watch->bytes)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	if (kinds & SOFTGPU_CHECK_UNWRITTEN) {
		watch->unwritten = calloc(size / 8 + 1, 1);
		if (!watch->unwritten)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	watch->n_bytes = size;
	return SOFTGPU_SUCCESS;
}

static bool is_enough(const struct watch *watch, unsigned int kinds, uint32_t size)
{
	return watch && watch->n_bytes >= size &&
	       !watch->bytes == !(kinds & SOFTGPU_CHECK_RACES) &&
	       !watch->unwritten == !(kinds & SOFTGPU_CHECK_UNWRITTEN);
}

int softgpu_watch_prepare(
	struct watch **watchp, const struct softgpu_launch *launch, uint32_t size)
{
	unsigned int kinds = launch->checks->kinds;
	struct watch *watch;

	/* Room for 1 byte at least, since an empty one might be NULL. */
	if (!is_enough(*watchp, kinds, size + 1)) {
		watch = calloc(1, sizeof(*watch));
		if (!watch)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
		if (allocate(watch, kinds, size + 1)) {
			softgpu_watch_free(watch);
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
		}
		softgpu_watch_free(*watchp);
		*watchp = watch;
	}
	(*watchp)->checks = launch->checks;
	(*watchp)->size = size;
	return SOFTGPU_SUCCESS;
}

struct watch *softgpu_watch_free(struct watch *watch)
{
	if (!watch)
		return NULL;
	free(watch->bytes);
	free(watch->unwritten);
	free(watch);
	return NULL;
}

size_t softgpu_watch_size(const struct watch *watch)
{
	size_t each = 0;

	if (!watch)
		return 0;
	if (watch->bytes)
		each += sizeof(*watch->bytes);
	if (watch->unwritten)
		each += 1;
	return sizeof(*watch) + each * watch->n_bytes;
}

/*
 * Clocks
 */

int softgpu_clocks_prepare(
	struct watch_clocks **clocksp, uint32_t n_blocks, uint32_t n_warps)
{
	uint32_t n_agents = 2 * n_blocks * n_warps;
	size_t n_barriers = (size_t)n_blocks * (BARRIERS + 1);
	struct watch_clocks *clocks = *clocksp;

	if (clocks && clocks->n_agents == n_agents && clocks->n_warps == n_warps)
		return SOFTGPU_SUCCESS;
	clocks = calloc(1, sizeof(*clocks));
	if (!clocks)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	clocks->n_rows = n_agents + WATCH_PLACES + 2 * n_barriers;
	clocks->seen = calloc(clocks->n_rows * n_agents, sizeof(*clocks->seen));
	if (!clocks->seen) {
		free(clocks);
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	clocks->n_agents = n_agents;
	clocks->n_warps = n_warps;
	clocks->places = row_of(clocks, clocks->seen, n_agents);
	clocks->waiting = row_of(clocks, clocks->places, WATCH_PLACES);
	clocks->opened = row_of(clocks, clocks->waiting, n_barriers);
	if (*clocksp)
		clocks->clock_max = (*clocksp)->clock_max;
	softgpu_clocks_free(*clocksp);
	*clocksp = clocks;
	return SOFTGPU_SUCCESS;
}

struct watch_clocks *softgpu_clocks_free(struct watch_clocks *clocks)
{
	if (clocks)
		free(clocks->seen);
	free(clocks);
	return NULL;
}

size_t softgpu_clocks_size(const struct watch_clocks *clocks)
{
	if (!clocks)
		return 0;
	return sizeof(*clocks) +
	       clocks->n_rows * clocks->n_agents * sizeof(*clocks->seen);
}

static void forget(struct watch *watch)
{
	if (watch->bytes)
		memset(watch->bytes, 0, watch->n_bytes * sizeof(*watch->bytes));
}

void softgpu_watch_begin(const struct cluster *cluster, struct watch_clocks *clocks)
{
	bool is_full = clocks->clock_max >= CLOCK_LIMIT;
	uint32_t start = is_full ? 0 : clocks->clock_max;
	uint32_t *rest = clocks->places;

	for (uint32_t i = 0; i < cluster->n_blocks; i++) {
		struct watch *watch = cluster->blocks[i]->watch;

		watch->clocks = clocks;
		if (is_full)
			forget(watch);
		if (watch->unwritten)
			softgpu_bits_set(watch->unwritten, 0, watch->size, true);
	}
	for (uint32_t i = 0; i < clocks->n_agents; i++) {
		uint32_t *seen = seen_by(clocks, i);

		for (uint32_t k = 0; k < clocks->n_agents; k++)
			seen[k] = start;
		seen[i] = start + 1;
	}
	clocks->clock_max = start + 1;
	memset(rest, 0,
		(clocks->n_rows - clocks->n_agents) * clocks->n_agents * sizeof(*rest));
}

/*
 * Synchronisation
 */

void softgpu_watch_arrive(struct warp *w, unsigned int id)
{
	struct watch_clocks *clocks = w->block->watch->clocks;
	uint32_t agent = watch_agent(w, false);

	join(clocks, row_of_barrier(w->block, clocks->waiting, id),
		seen_by(clocks, agent));
	advance(clocks, agent);
}

static bool is_waiting(const struct warp *w, unsigned int id)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (w->groups[i].state == GROUP_BARRIER && w->groups[i].barrier == id)
			return true;
	return false;
}

/* A barrier of all threads counts those that have exited as arrived. */
static void collect_dead(const struct block *block, unsigned int id)
{
	struct watch_clocks *clocks = block->watch->clocks;
	uint32_t *waiting = row_of_barrier(block, clocks->waiting, id);

	for (uint32_t i = 0; i < block->n_warps; i++)
		if (block->warps[i].dead == UINT32_MAX)
			join(clocks, waiting,
				seen_by(clocks, watch_agent(&block->warps[i], false)));
}

static void let_pass(const struct block *block, unsigned int id)
{
	struct watch_clocks *clocks = block->watch->clocks;
	const uint32_t *waiting = row_of_barrier(block, clocks->waiting, id);

	for (uint32_t i = 0; i < block->n_warps; i++)
		if (is_waiting(&block->warps[i], id))
			join(clocks,
				seen_by(clocks, watch_agent(&block->warps[i], false)),
				waiting);
}

static void turn_over(const struct block *block, unsigned int id)
{
	struct watch_clocks *clocks = block->watch->clocks;
	uint32_t *waiting = row_of_barrier(block, clocks->waiting, id);
	size_t size = clocks->n_agents * sizeof(*waiting);

	memcpy(row_of_barrier(block, clocks->opened, id), waiting, size);
	memset(waiting, 0, size);
}

void softgpu_watch_open(struct block *block, unsigned int id)
{
	if (!block->barriers[id].expected)
		collect_dead(block, id);
	let_pass(block, id);
	turn_over(block, id);
}

void softgpu_watch_open_cluster(const struct cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->n_blocks; i++)
		collect_dead(cluster->blocks[i], CLUSTER_BARRIER);
	for (uint32_t i = 0; i < cluster->n_blocks; i++)
		let_pass(cluster->blocks[i], CLUSTER_BARRIER);
	turn_over(cluster->blocks[0], CLUSTER_BARRIER);
}

/* The cluster's has not opened again before a warp passes it. */
void softgpu_watch_pass(struct warp *w, unsigned int id)
{
	struct watch_clocks *clocks = w->block->watch->clocks;

	if (id == CLUSTER_BARRIER || !w->block->barriers[id].in_use)
		join(clocks, seen_by(clocks, watch_agent(w, false)),
			row_of_barrier(w->block, clocks->opened, id));
}

/* One place for all addresses of a byte: a block's own shared memory is that of a rank,
 * too. */
static uint32_t *place_of(const struct block *block, uint64_t address)
{
	const struct watch_clocks *clocks = block->watch->clocks;
	uint64_t off = address - SOFTGPU_GENERIC_SHARED, hash;

	if (off < SOFTGPU_CLUSTER_STRIDE)
		address += (block->rank + 1) * (uint64_t)SOFTGPU_CLUSTER_STRIDE;
	hash = (address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	return row_of(clocks, clocks->places, hash % WATCH_PLACES);
}

void softgpu_watch_order(struct warp *w, uint64_t address, enum watch_kind kind)
{
	struct watch_clocks *clocks = w->block->watch->clocks;
	uint32_t *place = place_of(w->block, address), agent = watch_agent(w, false);

	if (kind != WATCH_ORDERED_WRITE)
		join(clocks, seen_by(clocks, agent), place);
	if (kind == WATCH_ORDERED_READ)
		return;
	join(clocks, place, seen_by(clocks, agent));
	advance(clocks, agent);
}

void softgpu_watch_issue(struct warp *w)
{
	struct watch_clocks *clocks = w->block->watch->clocks;
	uint32_t agent = watch_agent(w, false);

	join(clocks, seen_by(clocks, watch_agent(w, true)), seen_by(clocks, agent));
	advance(clocks, agent);
}

void softgpu_watch_signal(struct warp *w, uint64_t address)
{
	struct watch_clocks *clocks = w->block->watch->clocks;
	uint32_t copies = watch_agent(w, true);

	join(clocks, place_of(w->block, address), seen_by(clocks, copies));
	advance(clocks, copies);
}

void softgpu_watch_collect(struct warp *w)
{
	struct watch_clocks *clocks = w->block->watch->clocks;
	uint32_t copies = watch_agent(w, true);

	join(clocks, seen_by(clocks, watch_agent(w, false)), seen_by(clocks, copies));
	advance(clocks, copies);
}

/*
 * Accesses
 */

const struct block *softgpu_watch_find(
	const struct block *block, uint64_t address, uint32_t *offp)
{
	uint64_t off = address - SOFTGPU_GENERIC_SHARED, number;

	if (off >= SOFTGPU_GENERIC_RANGE)
		return NULL;
	number = off / SOFTGPU_CLUSTER_STRIDE;
	if (number > block->cluster->n_blocks)
		return NULL;
	if (number)
		block = block->cluster->blocks[number - 1];
	*offp = (uint32_t)(off % SOFTGPU_CLUSTER_STRIDE);
	return *offp < block->watch->size ? block : NULL;
}

void softgpu_watch_wrote(const struct block *block, uint64_t address, uint64_t size)
{
	const struct watch *watch = block->watch;
	uint32_t off;

	if (!watch || !watch->unwritten)
		return;
	if (address >= SOFTGPU_GLOBAL_LOWEST)
		softgpu_space_wrote(&block->space, address, size);
	block = softgpu_watch_find(block, address, &off);
	if (!block)
		return;
	watch = block->watch;
	softgpu_bits_set(watch->unwritten, off,
		size < watch->size - off ? size : watch->size - off, false);
}

/* What an agent knows. */
struct view {
	const struct watch_clocks *clocks;
	const uint32_t *seen;
	uint32_t agent;
};

/* Of an earlier launch there may be agents that this one lacks. */
static bool is_before(const struct view *view, const struct watch_access *access)
{
	return access->agent == view->agent || access->agent >= view->clocks->n_agents ||
	       view->seen[access->agent] >= access->clock;
}

/* Instead of one that happened before, or of an empty one, or of any. */
static void add_read(
	struct watch_byte *byte, const struct view *view, struct watch_access access)
{
	unsigned int at = access.clock % WATCH_READS;

	for (unsigned int i = 0; i < WATCH_READS; i++)
		if (is_before(view, &byte->reads[i]))
			at = i;
	byte->reads[at] = access;
}

/* Returns: the hazard with an earlier access, which is in *otherp, or NULL. */
static const char *find_hazard(const struct watch_byte *byte, const struct view *view,
	bool writes, bool is_ordered, bool is_same, struct watch_access *otherp)
{
	*otherp = byte->write;
	if (!is_before(view, otherp) && !(is_ordered && otherp->is_ordered) && !is_same)
		return writes ? "write after write" : "read after write";
	for (unsigned int i = 0; writes && i < WATCH_READS; i++) {
		*otherp = byte->reads[i];
		if (!is_before(view, otherp) && !(is_ordered && otherp->is_ordered))
			return "write after read";
	}
	return NULL;
}

const char *softgpu_watch_access(struct warp *w, const struct insn *ip, uint32_t lane,
	const struct watch_what *what, struct watch_access *otherp)
{
	const struct watch *watch = what->block->watch;
	const struct watch_clocks *clocks = watch->clocks;
	uint32_t agent = watch_agent(w, what->is_copy);
	struct view view = { clocks, seen_by(clocks, agent), agent };
	bool writes = what->kind == WATCH_WRITE || what->kind == WATCH_ATOMIC ||
		      what->kind == WATCH_ORDERED_WRITE;
	struct watch_access access = {
		.clock = view.seen[agent],
		.code = (uint64_t)(ip - w->block->kernel->code),
		.agent = agent,
		.lane = lane,
		.is_ordered = what->kind >= WATCH_ATOMIC,
	};
	const char *hazard = NULL;

	for (uint32_t i = 0; i < what->size; i++) {
		struct watch_byte *byte = &watch->bytes[what->first + i];
		bool is_same = what->value &&
			       what->block->shared[what->first + i] == what->value[i];

		if (!hazard)
			hazard = find_hazard(
				byte, &view, writes, access.is_ordered, is_same, otherp);
		if (!writes) {
			add_read(byte, &view, access);
			continue;
		}
		*byte = (struct watch_byte){ .write = access };
	}
	return hazard;
}
