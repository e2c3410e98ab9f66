/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Watch: hazards in shared memory, and its bytes that nothing has written
 *
 * Each warp counts in a clock of its own. An access has the number of its warp's clock,
 * and each warp knows up to which number of every other warp's clock all accesses happen
 * before what it does next (seen[]). Barriers, mbarriers, and accesses with a memory
 * order to the same place pass that knowledge on; the warp that passes it begins a new
 * number. Two accesses of one byte by different warps, at least one of which writes, are
 * a hazard if neither is known to happen before the other, unless both have a memory
 * order or are atomic, or both write the same value. Lanes of one warp count as one.
 *
 * A byte remembers its last write and some of the reads since: of more reads some are
 * forgotten. So what is reported is a hazard, but not each hazard is reported.
 *
 * Owned by a scratch; belongs to the thread that runs the block.
 */

#include "exec/bits.h"
#include "exec/warp.h"

#define WATCH_READS 3

/* Places of synchronising accesses, by a hash of the address. Those that meet pass on
 * more than they should, which hides hazards and makes none up. */
#define WATCH_PLACES 64

/* Of an access; see WATCH_WHO(). A clock of 0: there is none. */
struct watch_access {
	uint32_t clock;
	uint32_t who;
};

struct watch_byte {
	struct watch_access write;
	struct watch_access reads[WATCH_READS];
};

struct watch {
	const struct softgpu_checks *checks; /* of the launch */
	struct watch_byte *bytes;	     /* of shared memory; NULL: no races */
	uint8_t *unwritten;		     /* a bit for each byte; NULL: not kept */
	uint32_t n_bytes;		     /* that there is room for */
	uint32_t size;			     /* of what is watched in this launch */
	uint32_t clock_max;
	uint32_t seen[WARPS_MAX][WARPS_MAX];
	uint32_t waiting[BARRIERS + 1][WARPS_MAX]; /* of those that have arrived */
	uint32_t opened[BARRIERS + 1][WARPS_MAX];  /* when it opened last */
	uint32_t places[WATCH_PLACES][WARPS_MAX];
};

enum watch_kind {
	WATCH_READ,
	WATCH_WRITE,
	WATCH_ATOMIC, /* reads and writes */
	WATCH_ORDERED_READ,
	WATCH_ORDERED_WRITE,
};

/* What an instruction does in shared memory, in one lane. */
struct watch_what {
	enum watch_kind kind;
	uint32_t first, size;
	const uint8_t *value; /* that a store writes, or NULL */
};

/* Returns: 0 or 2. For a launch whose kernel can be watched; *watchp may be an older
 * one, of any launch. */
int softgpu_watch_prepare(
	struct watch **watchp, const struct softgpu_launch *launch, uint32_t size);
struct watch *softgpu_watch_free(struct watch *watch);
size_t softgpu_watch_size(const struct watch *watch);

/* A block begins. */
void softgpu_watch_begin(struct watch *watch);

/* A warp arrives at a barrier; a barrier opens; and a warp that did not wait, or no
 * longer does, is after it if it has opened. */
void softgpu_watch_arrive(struct warp *w, unsigned int id);
void softgpu_watch_open(struct block *block, unsigned int id);
void softgpu_watch_pass(struct warp *w, unsigned int id);

/* An access with a memory order to any address. */
void softgpu_watch_order(struct warp *w, uint64_t address, enum watch_kind kind);

/* Something other than an access of a lane has written at a generic address, where there
 * is memory. */
void softgpu_watch_wrote(const struct block *block, uint64_t address, uint64_t size);

/*
 * An access of the lane's, whose bytes exist.
 *
 * Return: NULL, or which hazard it is, with the other access.
 */
const char *softgpu_watch_access(struct warp *w, const struct insn *ip, uint32_t lane,
	const struct watch_what *what, struct watch_access *otherp);

#define WATCH_CODE_BITS 21
#define WATCH_CODE(_who) ((_who) & ((1u << WATCH_CODE_BITS) - 1))
#define WATCH_WARP(_who) ((_who) >> WATCH_CODE_BITS & 31)
#define WATCH_LANE(_who) ((_who) >> (WATCH_CODE_BITS + 5) & 31)
#define WATCH_IS_ORDERED(_who) ((_who) >> 31)
