/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block: execution of blocks, one after the other, in a scratch
 *
 * A scratch has a room for each block of a cluster, one where there are no clusters. The
 * blocks of a cluster run in turn, so that none has its memory accessed by another thread
 * of the process; a room stays as it is until all of them have ended.
 *
 * A room owns the memory of one running block: register files, predicates, shared and
 * local memory, a copy of the parameters. Slots that are the same for all blocks of a
 * launch (immediates, thread numbers, shape) are written at the launch's first block
 * only; the room remembers the launch. Registers are cleared then, so that a kernel
 * that reads an unwritten register does not see a value of another kernel.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/report.h"
#include "exec/watch.h"
#include "ptx/isa.h"
#include "vgpu/cleanup.h"

struct room {
	uint32_t smid;
	struct block block;

	/* The launch for which the buffers were prepared. */
	const struct softgpu_kernel *kernel;
	uint64_t serial;
	struct softgpu_launch launch;
	uint32_t envreg[SOFTGPU_ENVREGS];

	uint8_t *regs;
	size_t regs_size;
	uint32_t *preds;
	size_t preds_size;
	uint8_t *shared;
	size_t shared_size;
	uint8_t *local;
	size_t local_size;
	uint8_t *calls;
	size_t calls_size;
	uint8_t *params;
	size_t params_size;
	bool has_params; /* they are in params, and in their slots */
	struct watch *watch;
};

struct softgpu_scratch {
	uint32_t smid;
	struct cluster cluster;
	uint32_t n_rooms;
	struct room *rooms[SOFTGPU_CLUSTER_MAX];
	struct watch_clocks *clocks; /* or NULL */
};

/* Return: 0, or no memory: then there are fewer. */
static int have_rooms(struct softgpu_scratch *scratch, uint32_t n)
{
	for (; scratch->n_rooms < n; scratch->n_rooms++) {
		struct room *room = aligned_alloc(_Alignof(struct room), sizeof(*room));

		if (!room)
			return SOFTGPU_ERROR_OUT_OF_MEMORY;
		memset(room, 0, sizeof(*room));
		scratch->rooms[scratch->n_rooms] = room;
	}
	return SOFTGPU_SUCCESS;
}

int softgpu_scratch_new(struct softgpu_scratch **scratchp, uint32_t smid)
{
	struct softgpu_scratch *scratch = calloc(1, sizeof(*scratch));

	if (!scratch || have_rooms(scratch, 1)) {
		free(scratch);
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	scratch->smid = smid;
	*scratchp = scratch;
	return SOFTGPU_SUCCESS;
}

void softgpu_scratch_move(struct softgpu_scratch *scratch, uint32_t smid)
{
	scratch->smid = smid;
}

size_t softgpu_scratch_size(const struct softgpu_scratch *scratch)
{
	size_t size = sizeof(*scratch) + softgpu_clocks_size(scratch->clocks);

	for (uint32_t i = 0; i < scratch->n_rooms; i++) {
		const struct room *room = scratch->rooms[i];

		size += sizeof(*room) + room->regs_size + room->preds_size +
			room->shared_size + room->local_size + room->calls_size +
			room->params_size + softgpu_watch_size(room->watch);
	}
	return size;
}

static void room_free(struct room *room)
{
	free(room->regs);
	free(room->preds);
	free(room->shared);
	free(room->local);
	free(room->calls);
	free(room->params);
	softgpu_watch_free(room->watch);
	free(room);
}

struct softgpu_scratch *softgpu_scratch_free(struct softgpu_scratch *scratch)
{
	if (!scratch)
		return NULL;
	while (scratch->n_rooms)
		room_free(scratch->rooms[--scratch->n_rooms]);
	softgpu_clocks_free(scratch->clocks);
	free(scratch);
	return NULL;
}

/* Replaces a buffer by a zeroed one unless it is large enough. */
static int grow(void *bufferp, size_t *havep, size_t need)
{
	_vgpu_cleanup_(vgpu_freep) void *buffer = NULL;

	if (need <= *havep)
		return SOFTGPU_SUCCESS;
	if (posix_memalign(&buffer, 64, need))
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	memset(buffer, 0, need);
	free(*(void **)bufferp);
	*(void **)bufferp = buffer;
	*havep = need;
	buffer = NULL;
	return SOFTGPU_SUCCESS;
}

/* Stacks may be large and mostly untouched: their zeros come from the kernel. */
static int grow_local(uint8_t **bufferp, size_t *havep, size_t need)
{
	if (need <= *havep)
		return SOFTGPU_SUCCESS;
	free(*bufferp);
	*havep = 0;
	*bufferp = calloc(1, need);
	if (!*bufferp)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	*havep = need;
	return SOFTGPU_SUCCESS;
}

/*
 * Shared memory reserved for the system: a kernel that queries its offset gets some after
 * its own, zeroed at the start of each block. Cooperative groups keep the barriers and
 * the scratch of tiles of more than a warp at its second offset, for which their headers
 * assume 288 bytes.
 */
#define RESERVED_SIZE 1024u
#define RESERVED_ALIGN 128u /* the unit in which shared memory is allocated */

static bool uses_reserved(const struct softgpu_kernel *kernel)
{
	for (uint32_t i = 0; i < kernel->n_sregs; i++)
		if (kernel->sregs[i].sreg >= PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN &&
			kernel->sregs[i].sreg <= PTX_SREG_RESERVED_SMEM_OFFSET)
			return true;
	return false;
}

/*
 * Special registers
 */

static void fill_slot(struct warp *w, const struct code_sreg *sreg, uint64_t value)
{
	uint8_t *slot = w->regs + (size_t)sreg->slot * SLOT_BYTES;

	if (sreg->wide)
		for (uint32_t i = 0; i < LANES; i++)
			((uint64_t *)slot)[i] = value;
	else
		for (uint32_t i = 0; i < LANES; i++)
			((uint32_t *)slot)[i] = (uint32_t)value;
}

static uint32_t thread_sreg(const struct block *block, const struct warp *w,
	const struct code_sreg *sreg, uint32_t lane)
{
	const uint32_t *dim = block->launch->block;
	uint32_t thread = w->first_thread + lane;

	switch (sreg->sreg) {
	case PTX_SREG_TID_X:
		return thread % dim[0];
	case PTX_SREG_TID_Y:
		return thread / dim[0] % dim[1];
	case PTX_SREG_TID_Z:
		return thread / dim[0] / dim[1];
	case PTX_SREG_LANEID:
		return lane;
	case PTX_SREG_LANEMASK_EQ:
		return 1u << lane;
	case PTX_SREG_LANEMASK_LE:
		return UINT32_MAX >> (31 - lane);
	case PTX_SREG_LANEMASK_LT:
		return (1u << lane) - 1;
	case PTX_SREG_LANEMASK_GE:
		return UINT32_MAX << lane;
	default:
		return UINT32_MAX << lane << 1; /* LANEMASK_GT */
	}
}

/* The allocation unit of shared memory, as in PTX for targets from sm_80 on. */
#define SHARED_UNIT 128u

static uint32_t shared_units(uint32_t size)
{
	return (size + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
}

/* Blocks of a cluster in one dimension. */
static uint32_t cluster_width(const struct softgpu_launch *launch, unsigned int i)
{
	return launch->cluster[i] ? launch->cluster[i] : 1;
}

static uint32_t cluster_size(const struct softgpu_launch *launch)
{
	return cluster_width(launch, 0) * cluster_width(launch, 1) *
	       cluster_width(launch, 2);
}

static uint64_t launch_sreg(
	const struct room *room, const struct warp *w, const struct code_sreg *sreg)
{
	const struct block *block = &room->block;
	const struct softgpu_launch *launch = block->launch;
	unsigned int i;

	switch (sreg->sreg) {
	case PTX_SREG_NTID_X:
	case PTX_SREG_NTID_Y:
	case PTX_SREG_NTID_Z:
		return launch->block[sreg->sreg - PTX_SREG_NTID_X];
	case PTX_SREG_NCTAID_X:
	case PTX_SREG_NCTAID_Y:
	case PTX_SREG_NCTAID_Z:
		return launch->grid[sreg->sreg - PTX_SREG_NCTAID_X];
	case PTX_SREG_NCLUSTERID_X:
	case PTX_SREG_NCLUSTERID_Y:
	case PTX_SREG_NCLUSTERID_Z:
		i = sreg->sreg - PTX_SREG_NCLUSTERID_X;
		return launch->grid[i] / cluster_width(launch, i);
	case PTX_SREG_WARPID:
		return w->index;
	case PTX_SREG_NWARPID:
		return block->n_warps;
	case PTX_SREG_SMID:
		return room->smid;
	case PTX_SREG_NSMID:
		return launch->n_sms;
	case PTX_SREG_GRIDID:
		return launch->grid_id;
	case PTX_SREG_ENVREG:
		return room->envreg[sreg->number % SOFTGPU_ENVREGS];
	case PTX_SREG_DYNAMIC_SMEM_SIZE:
		return launch->dynamic_shared_size;
	case PTX_SREG_TOTAL_SMEM_SIZE:
		return block->reserved_off;
	case PTX_SREG_AGGR_SMEM_SIZE:
		return block->reserved_off + RESERVED_SIZE;
	case PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
		return block->reserved_off;
	case PTX_SREG_RESERVED_SMEM_OFFSET_END:
		return block->reserved_off + RESERVED_SIZE;
	case PTX_SREG_RESERVED_SMEM_OFFSET_CAP:
		return RESERVED_SIZE;
	case PTX_SREG_RESERVED_SMEM_OFFSET:
		return block->reserved_off + sreg->number * (RESERVED_SIZE / 2);
	case PTX_SREG_CLUSTER_NCTAID_X:
	case PTX_SREG_CLUSTER_NCTAID_Y:
	case PTX_SREG_CLUSTER_NCTAID_Z:
		return cluster_width(launch, sreg->sreg - PTX_SREG_CLUSTER_NCTAID_X);
	case PTX_SREG_CLUSTER_NCTARANK:
		return cluster_size(launch);
	default:
		return 0;
	}
}

static bool is_thread_sreg(unsigned int sreg)
{
	return sreg <= PTX_SREG_TID_Z || sreg == PTX_SREG_LANEID ||
	       (sreg >= PTX_SREG_LANEMASK_EQ && sreg <= PTX_SREG_LANEMASK_GT);
}

static bool is_block_sreg(unsigned int sreg)
{
	return (sreg >= PTX_SREG_CTAID_X && sreg <= PTX_SREG_CTAID_Z) ||
	       (sreg >= PTX_SREG_CLUSTERID_X && sreg <= PTX_SREG_CLUSTERID_Z) ||
	       (sreg >= PTX_SREG_CLUSTER_CTAID_X && sreg <= PTX_SREG_CLUSTER_CTAID_Z) ||
	       sreg == PTX_SREG_CLUSTER_CTARANK;
}

static uint32_t block_sreg(const struct block *block, unsigned int sreg)
{
	unsigned int i;

	switch (sreg) {
	case PTX_SREG_CTAID_X:
	case PTX_SREG_CTAID_Y:
	case PTX_SREG_CTAID_Z:
		return block->ctaid[sreg - PTX_SREG_CTAID_X];
	case PTX_SREG_CLUSTERID_X:
	case PTX_SREG_CLUSTERID_Y:
	case PTX_SREG_CLUSTERID_Z:
		i = sreg - PTX_SREG_CLUSTERID_X;
		return block->ctaid[i] / cluster_width(block->launch, i);
	case PTX_SREG_CLUSTER_CTARANK:
		return block->rank;
	default:
		return block->cluster_ctaid[sreg - PTX_SREG_CLUSTER_CTAID_X];
	}
}

/* Slots that are the same for all blocks of the launch. */
static void fill_launch_slots(struct room *room, struct warp *w)
{
	const struct softgpu_kernel *kernel = room->block.kernel;

	for (uint32_t i = 0; i < kernel->n_constants; i++) {
		const struct code_constant *c = &kernel->constants[i];
		struct code_sreg slot = { .slot = c->slot, .wide = c->wide };

		if (!c->is_param)
			fill_slot(w, &slot, c->bits);
	}
	for (uint32_t i = 0; i < kernel->n_sregs; i++) {
		const struct code_sreg *sreg = &kernel->sregs[i];
		uint32_t *slot = (uint32_t *)(w->regs + (size_t)sreg->slot * SLOT_BYTES);

		if (is_block_sreg(sreg->sreg))
			continue;
		if (!is_thread_sreg(sreg->sreg)) {
			fill_slot(w, sreg, launch_sreg(room, w, sreg));
			continue;
		}
		for (uint32_t lane = 0; lane < LANES; lane++)
			slot[lane] = thread_sreg(&room->block, w, sreg, lane);
	}
}

/* Parameters that have slots; lower/ has checked that they are in the block. */
static void fill_param_slots(const struct block *block, struct warp *w)
{
	const struct softgpu_kernel *kernel = block->kernel;

	for (uint32_t i = 0; i < kernel->n_constants; i++) {
		const struct code_constant *c = &kernel->constants[i];
		struct code_sreg slot = { .slot = c->slot, .wide = c->wide };
		uint64_t value = 0;

		if (!c->is_param)
			continue;
		memcpy(&value, block->params + c->bits, c->wide ? 8 : 4);
		fill_slot(w, &slot, value);
	}
}

/* Parameters are mostly those of the block before. */
static void take_params(struct room *room, const struct softgpu_launch *launch)
{
	struct block *block = &room->block;

	if (!block->params_size)
		return;
	if (room->has_params && !memcmp(room->params, launch->params, block->params_size))
		return;
	memcpy(room->params, launch->params, block->params_size);
	for (uint32_t i = 0; i < block->n_warps; i++)
		fill_param_slots(block, &block->warps[i]);
	room->has_params = true;
}

static void fill_block_slots(const struct block *block, struct warp *w)
{
	const struct softgpu_kernel *kernel = block->kernel;

	for (uint32_t i = 0; i < kernel->n_sregs; i++) {
		const struct code_sreg *sreg = &kernel->sregs[i];

		if (is_block_sreg(sreg->sreg))
			fill_slot(w, sreg, block_sreg(block, sreg->sreg));
	}
}

/*
 * Preparation
 */

static const uint32_t no_envreg[SOFTGPU_ENVREGS];

static bool is_prepared(const struct room *room, const struct softgpu_launch *launch)
{
	const struct softgpu_launch *last = &room->launch;

	const uint32_t *envreg = launch->envreg ? launch->envreg : no_envreg;

	return room->kernel == launch->kernel && room->serial == launch->kernel->serial &&
	       !memcmp(last->grid, launch->grid, sizeof(last->grid)) &&
	       !memcmp(last->block, launch->block, sizeof(last->block)) &&
	       !memcmp(last->cluster, launch->cluster, sizeof(last->cluster)) &&
	       last->dynamic_shared_size == launch->dynamic_shared_size &&
	       last->stack_size == launch->stack_size && last->n_sms == launch->n_sms &&
	       last->grid_id == launch->grid_id &&
	       !memcmp(room->envreg, envreg, sizeof(room->envreg));
}

static uint32_t stack_size(const struct softgpu_launch *launch)
{
	uint32_t size = launch->stack_size ? launch->stack_size : SOFTGPU_STACK_DEFAULT;

	if (size > SOFTGPU_LOCAL_MAX / SOFTGPU_STACK_FACTOR)
		return SOFTGPU_LOCAL_MAX;
	return (size * SOFTGPU_STACK_FACTOR + 15) & ~15u;
}

static int prepare_buffers(struct room *room, const struct softgpu_launch *launch)
{
	const struct softgpu_kernel *kernel = launch->kernel;
	uint32_t n_threads = launch->block[0] * launch->block[1] * launch->block[2];
	uint32_t n_warps = (n_threads + LANES - 1) / LANES;
	size_t regs_size = (size_t)n_warps * kernel->n_slots * SLOT_BYTES;
	size_t preds_size = (size_t)n_warps * kernel->n_preds * sizeof(uint32_t);
	struct block *block = &room->block;
	int r;

	block->shared_size =
		kernel->info.static_shared_size + launch->dynamic_shared_size;
	block->reserved_off =
		(block->shared_size + RESERVED_ALIGN - 1) & ~(RESERVED_ALIGN - 1);
	block->has_reserved = uses_reserved(kernel);
	if (block->has_reserved)
		block->shared_size = block->reserved_off + RESERVED_SIZE;
	/* Accesses to the rest of the last unit are tolerated, unless memory is
	 * checked. */
	if (!launch->space->covers)
		block->shared_size = shared_units(block->shared_size);
	block->calls_size = kernel->calls || kernel->uses_stack ? stack_size(launch) : 0;
	block->local_size = kernel->local_size + block->calls_size;
	block->n_threads = n_threads;
	block->n_warps = n_warps;
	block->params_size = kernel->info.params_size;
	r = grow(&room->regs, &room->regs_size, regs_size);
	if (!r)
		r = grow(&room->preds, &room->preds_size, preds_size);
	if (!r)
		r = grow(&room->shared, &room->shared_size,
			(size_t)block->shared_size + 64);
	if (!r)
		r = grow(&room->params, &room->params_size,
			(size_t)block->params_size + 64);
	if (!r && block->local_size)
		r = grow_local(&room->local, &room->local_size,
			(size_t)n_warps * LANES * block->local_size);
	if (!r && block->calls_size)
		r = grow_local(&room->calls, &room->calls_size,
			(size_t)n_warps * LANES * block->calls_size);
	if (r)
		return r;
	if (regs_size)
		memset(room->regs, 0, regs_size);
	memset(room->preds, 0, preds_size);
	memset(room->shared, 0, block->shared_size);
	return SOFTGPU_SUCCESS;
}

static void prepare_warps(struct room *room)
{
	struct block *block = &room->block;
	const struct softgpu_kernel *kernel = block->kernel;

	for (uint32_t i = 0; i < block->n_warps; i++) {
		struct warp *w = &block->warps[i];

		/* A kernel may have none of either. */
		w->regs = room->regs
				  ? room->regs + (size_t)i * kernel->n_slots * SLOT_BYTES
				  : NULL;
		w->preds = room->preds ? room->preds + (size_t)i * kernel->n_preds : NULL;
		w->block = block;
		w->index = i;
		w->first_thread = i * LANES;
		fill_launch_slots(room, w);
	}
}

/* What the runtime has in shared memory is its own matter. */
static int prepare_watch(struct room *room, const struct softgpu_launch *launch)
{
	struct block *block = &room->block;
	uint32_t size =
		launch->kernel->info.static_shared_size + launch->dynamic_shared_size;
	int r;

	block->watch = NULL;
	if (!launch->checks || !launch->kernel->reported)
		return SOFTGPU_SUCCESS;
	r = softgpu_watch_prepare(&room->watch, launch, size);
	if (!r)
		block->watch = room->watch;
	return r;
}

static int prepare(struct room *room, const struct softgpu_launch *launch)
{
	struct block *block = &room->block;
	int r;

	block->launch = launch;
	block->kernel = launch->kernel;
	block->space = *launch->space;
	r = prepare_watch(room, launch);
	if (r || is_prepared(room, launch))
		return r;
	room->kernel = NULL;
	r = prepare_buffers(room, launch);
	if (r)
		return r;
	block->shared = room->shared;
	block->local = room->local;
	block->calls = room->calls;
	block->params = room->params;
	memcpy(room->envreg, launch->envreg ? launch->envreg : no_envreg,
		sizeof(room->envreg));
	prepare_warps(room);
	room->has_params = false;
	room->kernel = launch->kernel;
	room->serial = launch->kernel->serial;
	room->launch = *launch;
	return SOFTGPU_SUCCESS;
}

/*
 * Running
 */

/* A kernel that is ended: by the clock at a place worth to know, else by someone else. */
static void describe_end(
	struct softgpu_fault *faultp, int code, const struct block *block, struct warp *w)
{
	if (code != SOFTGPU_ERROR_LAUNCH_TIMEOUT) {
		softgpu_report_block(faultp, code, block, "stopped");
		return;
	}
	w->fault_code = code;
	w->fault_text = "time is over";
	w->fault_address = 0;
	w->fault_lane = 0;
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (w->groups[i].ip == w->at)
			w->fault_lane = (uint32_t)__builtin_ctz(w->groups[i].mask);
	softgpu_report_fault(faultp, block, w);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns: 0, or why the launch has to end. */
static int look_around(const struct softgpu_launch *launch)
{
	uint32_t stop =
		launch->stop ? __atomic_load_n(launch->stop, __ATOMIC_RELAXED) : 0;

	if (stop)
		return (int)stop;
	if (!launch->deadline_ns)
		return 0;
	return now_ns() >= launch->deadline_ns ? SOFTGPU_ERROR_LAUNCH_TIMEOUT : 0;
}

static bool is_over(const struct softgpu_slice *slice)
{
	return slice && now_ns() >= (__atomic_load_n(slice->wanted, __ATOMIC_RELAXED)
						    ? slice->end_ns
						    : slice->last_ns);
}

/* The place of the block with that rank of a cluster. */
static void place_block(struct block *block, const struct softgpu_launch *launch,
	uint64_t number, uint32_t rank)
{
	uint64_t left = number;
	uint32_t rest = rank;

	block->rank = rank;
	for (unsigned int i = 0; i < 3; i++) {
		uint32_t width = cluster_width(launch, i), n = launch->grid[i] / width;

		block->cluster_ctaid[i] = rest % width;
		block->ctaid[i] = (uint32_t)(left % n) * width + block->cluster_ctaid[i];
		left /= n;
		rest /= width;
	}
}

static int begin(struct softgpu_scratch *scratch, struct room *room,
	const struct softgpu_launch *launch, struct softgpu_fault *faultp)
{
	struct block *block = &room->block;
	int r;

	room->smid = scratch->smid;
	r = prepare(room, launch);
	if (r) {
		softgpu_report_block(faultp, r, block, "no memory to run a block");
		return r;
	}
	take_params(room, launch);
	if (block->has_reserved)
		memset(block->shared + block->reserved_off, 0, RESERVED_SIZE);
	block->n_dead = block->n_warps * LANES - block->n_threads;
	block->next_warp = 0;
	memset(block->barriers, 0, sizeof(block->barriers));
	for (uint32_t i = 0; i < block->n_warps; i++) {
		struct warp *w = &block->warps[i];
		uint32_t n = block->n_threads - w->first_thread;

		w->dead = n < LANES ? UINT32_MAX << n : 0;
		fill_block_slots(block, w);
		softgpu_warp_start(w);
	}
	return SOFTGPU_SUCCESS;
}

/* In a cluster other blocks order a block's accesses, and write its memory. */
static int begin_watch(struct softgpu_scratch *scratch, struct softgpu_fault *faultp)
{
	const struct block *block = scratch->cluster.blocks[0];
	int r;

	if (!block->watch)
		return SOFTGPU_SUCCESS;
	r = softgpu_clocks_prepare(
		&scratch->clocks, scratch->cluster.n_blocks, block->n_warps);
	if (r)
		softgpu_report_block(faultp, r, block, "no memory to watch a block");
	else
		softgpu_watch_begin(&scratch->cluster, scratch->clocks);
	return r;
}

int softgpu_block_begin(struct softgpu_scratch *scratch,
	const struct softgpu_launch *launch, uint64_t number,
	struct softgpu_fault *faultp)
{
	struct cluster *cluster = &scratch->cluster;
	uint32_t n = cluster_size(launch);
	int r;

	cluster->n_blocks = n;
	cluster->next_block = 0;
	/* The memory of a large cluster is not kept for launches without. */
	while (scratch->n_rooms > n)
		room_free(scratch->rooms[--scratch->n_rooms]);
	r = have_rooms(scratch, n);
	for (uint32_t i = 0; i < n && i < scratch->n_rooms; i++) {
		struct block *block = &scratch->rooms[i]->block;

		cluster->blocks[i] = block;
		block->cluster = cluster;
		block->kernel = launch->kernel;
		place_block(block, launch, number, i);
	}
	if (r)
		softgpu_report_block(
			faultp, r, cluster->blocks[0], "no memory to run a cluster");
	for (uint32_t i = 0; i < n && !r; i++)
		r = begin(scratch, scratch->rooms[i], launch, faultp);
	return r ? r : begin_watch(scratch, faultp);
}

/* Returns: whether the warp has a group that is not waiting for a barrier. */
static bool warp_can_run(const struct warp *w)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (w->groups[i].state != GROUP_BARRIER)
			return true;
	return false;
}

/* Looks around after which the next warp of the block has its turn: a warp may wait for
 * it without polling. About a tenth of a second. */
#define TURN_QUIET 256

/*
 * Runs one warp until it waits, ends, wants others to run or has run for very long, or
 * the slice is over. Returns: 0 or a code.
 */
static int run_warp(struct block *block, struct warp *w,
	const struct softgpu_slice *slice, struct softgpu_fault *faultp)
{
	bool steps = block->launch->schedule == SOFTGPU_SCHEDULE_FAIR;
	enum event event;
	int code, n = 0;

	do {
		event = steps ? softgpu_warp_step(w) : softgpu_warp_run(w);
		if (event == EVENT_FAULT) {
			softgpu_report_fault(faultp, block, w);
			return faultp->code;
		}
		if (event != EVENT_SPENT)
			return SOFTGPU_SUCCESS;
		code = look_around(block->launch);
		if (code) {
			describe_end(faultp, code, block, w);
			return code;
		}
		block->is_preempted = is_over(slice);
	} while (!w->yields && !block->is_preempted && ++n < TURN_QUIET);
	return SOFTGPU_SUCCESS;
}

/* Whose turn it is; one that was ended in its own gets the next after all others. */
static struct warp *next_warp(struct block *block)
{
	struct warp *w = &block->warps[block->next_warp];

	if (++block->next_warp == block->n_warps)
		block->next_warp = 0;
	return w;
}

/* The same of blocks. */
static struct block *next_block(struct cluster *cluster)
{
	struct block *block = cluster->blocks[cluster->next_block];

	if (++cluster->next_block == cluster->n_blocks)
		cluster->next_block = 0;
	return block;
}

/* A turn for all warps of all blocks. */
struct round {
	bool alive, ran, yielded;
};

static enum softgpu_progress run_block(struct block *block, struct round *round,
	const struct softgpu_slice *slice, struct softgpu_fault *faultp)
{
	block->is_preempted = false;
	for (uint32_t i = 0; i < block->n_warps; i++) {
		struct warp *w = next_warp(block);

		if (!w->n_groups)
			continue;
		round->alive = true;
		if (!warp_can_run(w))
			continue;
		round->ran = true;
		w->yields = false;
		if (run_warp(block, w, slice, faultp))
			return SOFTGPU_BLOCK_FAULTED;
		if (block->is_preempted)
			return SOFTGPU_BLOCK_PREEMPTED;
		round->yielded |= w->yields;
	}
	return SOFTGPU_BLOCK_DONE;
}

enum softgpu_progress softgpu_block_resume(struct softgpu_scratch *scratch,
	const struct softgpu_slice *slice, struct softgpu_fault *faultp)
{
	struct cluster *cluster = &scratch->cluster;
	enum softgpu_progress progress;
	struct round round;

	do {
		round = (struct round){};
		for (uint32_t i = 0; i < cluster->n_blocks; i++) {
			progress = run_block(next_block(cluster), &round, slice, faultp);
			if (progress != SOFTGPU_BLOCK_DONE)
				return progress;
		}
		if (round.alive && !round.ran) {
			softgpu_report_block(faultp, SOFTGPU_ERROR_LAUNCH_TIMEOUT,
				cluster->blocks[0],
				"all threads wait at barriers that cannot open");
			return SOFTGPU_BLOCK_FAULTED;
		}
	} while (round.alive && !round.yielded);
	return round.alive ? SOFTGPU_BLOCK_YIELDED : SOFTGPU_BLOCK_DONE;
}

int softgpu_run_blocks(struct softgpu_scratch *scratch,
	const struct softgpu_launch *launch, uint64_t first, uint64_t count,
	struct softgpu_fault *faultp)
{
	enum softgpu_progress progress;
	int r;

	for (uint64_t i = 0; i < count; i++) {
		r = softgpu_block_begin(scratch, launch, first + i, faultp);
		if (r)
			return r;
		do
			progress = softgpu_block_resume(scratch, NULL, faultp);
		while (progress == SOFTGPU_BLOCK_YIELDED);
		if (progress == SOFTGPU_BLOCK_FAULTED)
			return faultp->code;
		r = launch->stop ? (int)__atomic_load_n(launch->stop, __ATOMIC_RELAXED)
				 : 0;
		if (r) {
			softgpu_report_block(
				faultp, r, scratch->cluster.blocks[0], "stopped");
			return r;
		}
	}
	return SOFTGPU_SUCCESS;
}

static bool is_cluster_legal(const struct softgpu_launch *launch)
{
	uint64_t n = 1;

	for (int i = 0; i < 3; i++) {
		if (!launch->cluster[i] != !launch->cluster[0] ||
			launch->cluster[i] > SOFTGPU_CLUSTER_MAX ||
			launch->grid[i] % cluster_width(launch, (unsigned int)i))
			return false;
		n *= cluster_width(launch, (unsigned int)i);
	}
	return n <= SOFTGPU_CLUSTER_MAX;
}

int softgpu_launch_check(const struct softgpu_launch *launch)
{
	const struct softgpu_kernel_info *info = &launch->kernel->info;
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++) {
		if (!launch->grid[i] || !launch->block[i] ||
			launch->grid[i] > (i ? 65535u : INT32_MAX) ||
			launch->block[i] > (i == 2 ? 64u : SOFTGPU_BLOCK_THREADS_MAX))
			return SOFTGPU_ERROR_INVALID_VALUE;
		threads *= launch->block[i];
		if (info->required_block[0] &&
			info->required_block[i] != launch->block[i])
			return SOFTGPU_ERROR_INVALID_VALUE;
	}
	if (!is_cluster_legal(launch) || threads > info->bound_threads ||
		launch->params_size < info->params_size ||
		(info->params_size && !launch->params))
		return SOFTGPU_ERROR_INVALID_VALUE;
	if (threads > info->max_threads ||
		(uint64_t)info->static_shared_size + launch->dynamic_shared_size >
			SOFTGPU_SHARED_MAX)
		return SOFTGPU_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return SOFTGPU_SUCCESS;
}
