/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warp: the interpreter's loop, groups, barriers
 *
 * See warp.h for the model. Invariants between two turns of the loop: the masks of
 * w->active, of all groups and w->dead are disjoint; a group's mask is never 0; so
 * there are never more than 32 of them. w->stop is the lowest address above the one
 * being run at which a ready group waits: only there can two groups become one.
 */

#include <assert.h>
#include <string.h>

#include "exec/watch.h"

static void add_group(struct warp *w, const struct insn *ip, uint32_t mask,
	enum group_state state, unsigned int barrier)
{
	for (uint32_t i = 0; i < w->n_groups; i++) {
		struct group *g = &w->groups[i];

		if (g->ip == ip && g->state == state && g->barrier == barrier) {
			g->mask |= mask;
			return;
		}
	}
	assert(w->n_groups < LANES);
	w->groups[w->n_groups++] = (struct group){
		.ip = ip,
		.mask = mask,
		.state = (uint8_t)state,
		.barrier = (uint8_t)barrier,
	};
}

static void set_stop(struct warp *w, const struct insn *ip)
{
	w->stop = UINTPTR_MAX;
	for (uint32_t i = 0; i < w->n_groups; i++) {
		uintptr_t at = (uintptr_t)w->groups[i].ip;

		if (w->groups[i].state == GROUP_READY && at > (uintptr_t)ip &&
			at < w->stop)
			w->stop = at;
	}
}

/* Makes the group the running one. Returns: its next instruction. */
static const struct insn *take_group(struct warp *w, struct group *g)
{
	const struct insn *ip = g->ip;

	w->active = g->mask;
	*g = w->groups[--w->n_groups];
	set_stop(w, ip);
	return ip;
}

static struct group *lowest_group(
	struct warp *w, enum group_state state, const struct insn *above)
{
	struct group *best = NULL;

	for (uint32_t i = 0; i < w->n_groups; i++) {
		struct group *g = &w->groups[i];

		if (g->state == state && (!above || g->ip > above) &&
			(!best || g->ip < best->ip))
			best = g;
	}
	return best;
}

/*
 * Returns: the next instruction of the next group, NULL if none can run. A group that
 * waits for lanes that will not arrive continues without them once nothing else can run.
 */
static const struct insn *next_group(struct warp *w)
{
	struct group *g = lowest_group(w, GROUP_READY, NULL);

	if (!g) {
		g = lowest_group(w, GROUP_SYNC, NULL);
		if (!g)
			return NULL;
		w->forced = true;
	}
	return take_group(w, g);
}

void softgpu_warp_push(struct warp *w, const struct insn *ip, uint32_t mask)
{
	w->active &= ~mask;
	add_group(w, ip, mask, GROUP_READY, 0);
	set_stop(w, NULL);
}

void softgpu_warp_park(struct warp *w, const struct insn *ip, uint32_t mask)
{
	w->active &= ~mask;
	add_group(w, ip, mask, GROUP_SYNC, 0);
}

const struct insn *softgpu_warp_split(
	struct warp *w, const struct insn *taken, uint32_t mask, const struct insn *next)
{
	const struct insn *low = taken < next ? taken : next;
	const struct insn *high = taken < next ? next : taken;
	uint32_t low_mask = taken < next ? mask : w->active & ~mask;

	add_group(w, high, w->active & ~low_mask, GROUP_READY, 0);
	w->active = low_mask;
	if (low == taken && !--w->budget) {
		w->event = EVENT_SPENT;
		w->at = low;
		return LEAVE;
	}
	set_stop(w, low);
	return low;
}

/*
 * Barriers
 */

static bool barrier_complete(const struct block *block, const struct barrier *b)
{
	if (!b->in_use)
		return false;
	if (b->expected)
		return b->arrived >= b->expected;
	return b->arrived + block->n_dead >= block->n_warps * LANES;
}

static void write_result(
	struct warp *w, const struct insn *ip, uint32_t mask, const struct barrier *b)
{
	uint32_t *d = (uint32_t *)(w->regs + (size_t)ip->d * SLOT_BYTES), value = 0;

	switch (ip->reserved) {
	case RED_NONE:
		return;
	case RED_POPC:
		for (uint32_t i = 0; i < LANES; i++)
			if (mask & 1u << i)
				d[i] = b->n_true;
		return;
	case RED_AND:
		value = b->n_true == b->n_seen ? UINT32_MAX : 0;
		break;
	case RED_OR:
		value = b->n_true ? UINT32_MAX : 0;
		break;
	}
	w->preds[ip->d] = (w->preds[ip->d] & ~mask) | (value & mask);
}

static void release_barrier(struct block *block, unsigned int id)
{
	struct barrier *b = &block->barriers[id];

	if (block->watch && id != CLUSTER_BARRIER)
		softgpu_watch_open(block, id);
	for (uint32_t i = 0; i < block->n_warps; i++) {
		struct warp *w = &block->warps[i];

		for (uint32_t k = 0; k < w->n_groups; k++) {
			struct group *g = &w->groups[k];

			if (g->state != GROUP_BARRIER || g->barrier != id)
				continue;
			write_result(w, g->ip, g->mask, b);
			g->state = GROUP_READY;
			g->ip++;
			g->barrier = 0;
		}
	}
	*b = (struct barrier){};
	if (id != CLUSTER_BARRIER)
		return;
	for (uint32_t i = 0; i < block->n_warps; i++)
		block->warps[i].arrived = 0;
}

const struct insn *softgpu_barrier_arrive(struct warp *w, const struct insn *ip,
	uint32_t mask, uint32_t id, uint32_t expected, bool waits)
{
	struct block *block = w->block;
	struct barrier *b = &block->barriers[id];

	/* A whole warp counts as one even where some of its lanes are dead. */
	if (!expected || (mask | w->dead) != UINT32_MAX)
		b->arrived += (uint32_t)__builtin_popcount(mask);
	else
		b->arrived += LANES;
	b->in_use = true;
	if (expected)
		b->expected = expected;
	if (ip->reserved != RED_NONE) {
		uint32_t p = w->preds[ip->c & ~PRED_NEGATED] ^ (0u - (ip->c >> 15));

		b->n_true += (uint32_t)__builtin_popcount(p & mask);
		b->n_seen += (uint32_t)__builtin_popcount(mask);
	}
	if (barrier_complete(block, b)) {
		if (waits)
			write_result(w, ip, mask, b);
		release_barrier(block, id);
		set_stop(w, ip);
		return ip + 1;
	}
	if (!waits)
		return ip + 1;
	add_group(w, ip, mask, GROUP_BARRIER, id);
	w->active &= ~mask;
	if (w->active)
		return ip + 1;
	w->event = EVENT_BARRIER;
	return LEAVE;
}

/*
 * Opens the cluster's barrier if all threads have arrived or ended. A block that has
 * ended holds no other one up.
 */
static bool settle_cluster(const struct cluster *cluster)
{
	bool in_use = false;

	for (uint32_t i = 0; i < cluster->n_blocks; i++) {
		const struct block *block = cluster->blocks[i];
		const struct barrier *b = &block->barriers[CLUSTER_BARRIER];

		in_use |= b->in_use;
		if (b->arrived + block->n_dead < block->n_warps * LANES)
			return false;
	}
	if (in_use && cluster->blocks[0]->watch)
		softgpu_watch_open_cluster(cluster);
	for (uint32_t i = 0; i < cluster->n_blocks && in_use; i++)
		release_barrier(cluster->blocks[i], CLUSTER_BARRIER);
	return in_use;
}

const struct insn *softgpu_cluster_arrive(
	struct warp *w, const struct insn *ip, uint32_t mask)
{
	struct barrier *b = &w->block->barriers[CLUSTER_BARRIER];

	/* To arrive twice is undefined; it counts once. */
	mask &= ~w->arrived;
	w->arrived |= mask;
	b->arrived += (uint32_t)__builtin_popcount(mask);
	b->in_use = true;
	if (settle_cluster(w->block->cluster))
		set_stop(w, ip);
	return ip + 1;
}

const struct insn *softgpu_cluster_wait(
	struct warp *w, const struct insn *ip, uint32_t mask)
{
	mask &= w->arrived;
	if (!mask)
		return ip + 1;
	add_group(w, ip, mask, GROUP_BARRIER, CLUSTER_BARRIER);
	w->active &= ~mask;
	if (w->active)
		return ip + 1;
	w->event = EVENT_BARRIER;
	return LEAVE;
}

const struct insn *softgpu_warp_exit(struct warp *w, const struct insn *ip, uint32_t mask)
{
	struct block *block = w->block;

	/* A lane that has arrived and then exits counts as dead only. */
	block->barriers[CLUSTER_BARRIER].arrived -=
		(uint32_t)__builtin_popcount(mask & w->arrived);
	w->arrived &= ~mask;
	w->dead |= mask;
	w->active &= ~mask;
	block->n_dead += (uint32_t)__builtin_popcount(mask);
	for (unsigned int id = 0; id < BARRIERS; id++)
		if (barrier_complete(block, &block->barriers[id]))
			release_barrier(block, id);
	settle_cluster(block->cluster);
	set_stop(w, ip);
	if (w->active)
		return ip + 1;
	w->event = EVENT_ENDED;
	return LEAVE;
}

/*
 * The loop
 */

/* The budget is spent at w->at. Returns: where to go on, NULL to return. */
static const struct insn *spend(struct warp *w)
{
	struct group *g;

	w->budget = BUDGET_POLLING;
	w->quiet += BUDGET_POLLING;
	if (!w->polled && w->quiet < BUDGET_QUIET) {
		set_stop(w, w->at);
		return w->at;
	}
	add_group(w, w->at, w->active, GROUP_READY, 0);
	w->active = 0;
	if (!w->polled) {
		w->quiet = 0;
		return NULL;
	}
	w->polled = false;
	g = lowest_group(w, GROUP_READY, w->at);
	if (g)
		return take_group(w, g);
	w->quiet = 0;
	w->yields = true;
	return NULL;
}

/* Two groups wait at the same .sync instruction: together they may be complete. */
static const struct insn *wait_sync(struct warp *w)
{
	const struct insn *ip = w->at;

	for (uint32_t i = 0; i < w->n_groups; i++) {
		struct group *g = &w->groups[i];

		if (g->state != GROUP_SYNC || g->ip != ip)
			continue;
		g->mask |= w->active;
		return take_group(w, g);
	}
	add_group(w, ip, w->active, GROUP_SYNC, 0);
	w->active = 0;
	return next_group(w);
}

/* The group whose turn was over continues, so that the end of a turn changes nothing in
 * the warp. */
static const struct insn *first_group(struct warp *w)
{
	for (uint32_t i = 0; w->turn_at && i < w->n_groups; i++)
		if (w->groups[i].state == GROUP_READY && w->groups[i].ip == w->turn_at)
			return take_group(w, &w->groups[i]);
	return next_group(w);
}

static const struct insn *execute(struct warp *w, const struct insn *ip)
{
	uint32_t guard = ip->guard;

	return ip->fn(w, ip,
		w->active & (w->preds[guard & ~PRED_NEGATED] ^ (0u - (guard >> 15))));
}

/* @steps: whether to return after each operation */
static inline enum event run(struct warp *w, const struct insn *ip, bool steps)
{
	bool is_done = false;

	w->yields = false;
	while (ip) {
		while ((uintptr_t)ip < w->stop && !is_done) {
			is_done = steps && !(ip->reserved & INSN_KEEPS_TURN);
			ip = execute(w, ip);
		}
		if (ip != LEAVE && is_done) {
			/* If other groups wait the lowest one continues, as without
			 * turns. */
			w->turn_at = (uintptr_t)ip < w->stop ? ip : NULL;
			add_group(w, ip, w->active, GROUP_READY, 0);
			return EVENT_TURN;
		}
		if (ip != LEAVE) {
			add_group(w, ip, w->active, GROUP_READY, 0);
			ip = next_group(w);
			continue;
		}
		switch (w->event) {
		case EVENT_SPENT:
			ip = spend(w);
			if (!ip)
				return EVENT_SPENT;
			break;
		case EVENT_SYNC:
			ip = wait_sync(w);
			break;
		case EVENT_FAULT:
			return EVENT_FAULT;
		default:
			ip = next_group(w);
			break;
		}
		is_done = false;
	}
	return w->n_groups ? EVENT_BARRIER : EVENT_ENDED;
}

enum event softgpu_warp_run(struct warp *w)
{
	return run(w, next_group(w), false);
}

enum event softgpu_warp_step(struct warp *w)
{
	const struct insn *ip = first_group(w);

	w->turn_at = NULL;
	return run(w, ip, true);
}

void softgpu_warp_start(struct warp *w)
{
	w->preds[PRED_TRUE] = UINT32_MAX;
	w->n_groups = 0;
	w->budget = BUDGET_POLLING;
	w->quiet = 0;
	w->polled = false;
	w->forced = false;
	w->turn_at = NULL;
	if (w->block->kernel->calls) {
		memset(w->frame, 0, sizeof(w->frame));
		memset(w->calls_top, 0, sizeof(w->calls_top));
		memset(w->last_error, 0, sizeof(w->last_error));
	}
	w->arrived = 0;
	for (uint32_t i = 0; i < LANES; i++)
		w->stack_top[i] = w->block->local_size;
	if (~w->dead)
		add_group(w, w->block->kernel->code + w->block->kernel->entry, ~w->dead,
			GROUP_READY, 0);
}
