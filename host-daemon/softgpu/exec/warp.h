/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A block while it runs: its warps, their groups, its barriers
 *
 * A warp is a set of at most 32 groups: lanes that are at the same instruction. The
 * running group is in w->active and the loop's instruction pointer; all others wait in
 * w->groups. The group with the lowest address runs; when it reaches the address at which
 * another one waits (w->stop), the two merge. A backward branch costs one unit of
 * w->budget; when that is spent and the group was seen to poll memory, other groups and
 * other warps get their turn, so that a thread may wait for another one of its warp.
 *
 * Lanes that do not exist or have exited are in w->dead and in no group. Arithmetic may
 * write their registers, which lets it run unmasked; nothing else may access them.
 *
 * A handler runs one instruction for the lanes in its mask (those of the group whose
 * guard is true) and returns the next one. It returns LEAVE, with w->event and w->at set,
 * if the loop has to decide.
 *
 * Everything here belongs to the thread that runs the block.
 */

#include "exec/code.h"
#include "exec/ops.h"
#include "exec/scalar.h"

#define LANES 32
#define WARPS_MAX (SOFTGPU_BLOCK_THREADS_MAX / LANES)
#define BARRIERS 16
#define CLUSTER_BARRIER BARRIERS /* a block's part, after those of the block */

/*
 * The operands that TEX_PUT stores: coordinates, layer and level, then two gradients and
 * the offsets of texels.
 */
#define TEXTURE_ROWS 15

/*
 * The operands of a matrix instruction: fragments of A, B and C, at most 8 registers
 * each, and the metadata, in fives; or of 64 bits, at most 16, in fives.
 */
#define MATRIX_ROWS 40

/* The greatest numbers of elements: of A without zeros, of B, and of C. */
#define MATRIX_A_MAX 1024
#define MATRIX_B_MAX 1024
#define MATRIX_C_MAX 256

#define LEAVE ((const struct insn *)UINTPTR_MAX)

/* Taken back-edges between two looks around. */
#define BUDGET_POLLING 64
#define BUDGET_QUIET 4096

enum event {
	EVENT_NONE,
	EVENT_ENDED,   /* no lane of the group is left */
	EVENT_SPENT,   /* budget used up; continues at w->at */
	EVENT_SYNC,    /* waits at w->at until the lanes of its membermask are there */
	EVENT_BARRIER, /* all that is left of the group waits for a barrier */
	EVENT_TURN,    /* the operations of a turn are done */
	EVENT_FAULT,
};

enum group_state {
	GROUP_READY,
	GROUP_SYNC,
	GROUP_BARRIER,
};

struct watch;

struct group {
	const struct insn *ip;
	uint32_t mask;
	uint8_t state; /* enum group_state */
	uint8_t barrier;
};

struct barrier {
	uint32_t arrived;  /* threads, in whole warps where a warp is complete */
	uint32_t expected; /* 0: all of the block */
	uint32_t n_true;   /* bar.red */
	uint32_t n_seen;
	bool in_use;
};

struct warp {
	uint8_t *regs;
	uint32_t *preds;
	uint32_t active;
	uint32_t dead;
	uintptr_t stop;
	uint32_t budget;
	uint32_t quiet;		    /* back-edges since the last look around */
	bool polled;		    /* did something a waiting thread would do */
	bool forced;		    /* the next .sync instruction does not wait */
	bool yields;		    /* EVENT_SPENT: other warps should run now */
	const struct insn *turn_at; /* EVENT_TURN: where the group is that had it */

	struct block *block;
	uint32_t first_thread;
	uint32_t index;

	enum event event;
	const struct insn *at;

	struct group groups[LANES];
	uint32_t n_groups;

	/* Lanes that have arrived at the cluster's barrier, which has not opened since.
	 */
	uint32_t arrived;

	/* See call.c: where each lane's frame begins, and how full its stack is. */
	uint32_t frame[LANES];
	uint32_t calls_top[LANES];
	uint32_t stack_top[LANES]; /* in local memory: what is above was allocated */

	uint32_t last_error[LANES]; /* of the device runtime; see service.c */

	uint32_t notes[ACCESS_NOTES_MAX]; /* see memory.c */

	/* EVENT_FAULT */
	int fault_code;
	uint32_t fault_lane;
	uint64_t fault_address;
	const char *fault_text;
};

/* The blocks that run in turn in one scratch, by their rank. */
struct cluster {
	uint32_t n_blocks;
	uint32_t next_block; /* whose turn it is */
	struct block *blocks[SOFTGPU_CLUSTER_MAX];
};

struct block {
	const struct softgpu_launch *launch;
	struct cluster *cluster;
	uint32_t rank; /* in it */
	const struct softgpu_kernel *kernel;
	struct softgpu_space space;
	uint8_t *shared;
	uint32_t shared_size;
	uint32_t reserved_off; /* where the reserved part begins, or would */
	bool has_reserved;
	uint8_t *local; /* local_size bytes for each thread */
	uint32_t local_size;
	uint8_t *calls; /* calls_size bytes for each thread */
	uint32_t calls_size;
	const uint8_t *params;
	uint32_t params_size;
	uint32_t ctaid[3];
	uint32_t cluster_ctaid[3];
	uint32_t n_threads;
	uint32_t n_warps;
	uint32_t next_warp; /* whose turn it is */
	bool is_preempted;
	uint32_t n_dead; /* lanes of all warps */
	struct barrier barriers[BARRIERS + 1];
	struct watch *watch; /* or NULL; see watch.h */
	uint32_t texture_operands[TEXTURE_ROWS][LANES] __attribute__((aligned(64)));
	uint32_t matrix[MATRIX_ROWS][LANES] __attribute__((aligned(64)));
	/* Factors as MMA_REAL has converted them, in an order of its own. */
	f64 matrix_a[MATRIX_A_MAX] __attribute__((aligned(64)));
	f64 matrix_b[MATRIX_B_MAX] __attribute__((aligned(64)));
	struct warp warps[WARPS_MAX];
};

/* Handlers of one instruction set; see table.c. */
extern const insn_fn softgpu_handlers_base[_OP_N];

/* What a machine has (best-*.c): all features of x86-64-v3, for which handlers are
 * compiled, and the vectors of 512 bits that some of these use. */
enum machine {
	MACHINE_BASE,
	MACHINE_V3,
	MACHINE_512,
};

enum machine softgpu_machine(void);

/* Returns: the best handlers for such a machine; *namep is for the log. */
const insn_fn *softgpu_handlers_for(enum machine machine, const char **namep);

/* Whether those handlers may use vectors of 512 bits; atomic, the same at each call. */
extern bool softgpu_uses_512;

/* Starts the warp anew at the kernel's first instruction. */
void softgpu_warp_start(struct warp *w);

/*
 * Runs the warp until none of its groups can continue, or for a time slice; or runs one
 * operation.
 *
 * Return: EVENT_ENDED, EVENT_BARRIER (all groups wait for barriers), EVENT_SPENT,
 * EVENT_TURN, EVENT_FAULT.
 */
enum event softgpu_warp_run(struct warp *w);
enum event softgpu_warp_step(struct warp *w);

/*
 * For handlers, with lanes of the running group; each takes them out of it.
 *
 * push: they are ready at @ip, which the loop has to learn by the handler's return of
 *	another address; park: they wait at the .sync instruction @ip; split: @mask goes
 *	on at @taken, the others at @next; exit: they have ended.
 */
void softgpu_warp_push(struct warp *w, const struct insn *ip, uint32_t mask);
void softgpu_warp_park(struct warp *w, const struct insn *ip, uint32_t mask);
const struct insn *softgpu_warp_split(
	struct warp *w, const struct insn *taken, uint32_t mask, const struct insn *next);
const struct insn *softgpu_warp_exit(
	struct warp *w, const struct insn *ip, uint32_t mask);

/* @expected: threads, 0 for all of the block. The last to arrive sets all free. */
const struct insn *softgpu_barrier_arrive(struct warp *w, const struct insn *ip,
	uint32_t mask, uint32_t id, uint32_t expected, bool waits);

/*
 * The barrier of a cluster: arriving and waiting are two instructions. Lanes that have
 * not arrived, or whose barrier has completed, do not wait.
 */
const struct insn *softgpu_cluster_arrive(
	struct warp *w, const struct insn *ip, uint32_t mask);
const struct insn *softgpu_cluster_wait(
	struct warp *w, const struct insn *ip, uint32_t mask);

/*
 * For handlers. Each file of handlers is compiled once for each instruction set, with
 * SOFTGPU_ISA set to the suffix of its table.
 */
#ifdef SOFTGPU_ISA

#define HANDLER_PASTE_(_a, _b) op_##_a##_##_b
#define HANDLER_PASTE(_a, _b) HANDLER_PASTE_(_a, _b)
#define HANDLER_NAME(_name) HANDLER_PASTE(_name, SOFTGPU_ISA)
#define HANDLER(_name)                                                                   \
	const struct insn *HANDLER_NAME(_name)(                                          \
		struct warp * w, const struct insn *ip, uint32_t mask);                  \
	const struct insn *HANDLER_NAME(_name)(                                          \
		struct warp * w, const struct insn *ip, uint32_t mask)

#define REG(_type, _slot)                                                                \
	((_type *)__builtin_assume_aligned(w->regs + (size_t)(_slot)*SLOT_BYTES, 64))

#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)

/* Lane by lane, only those of the mask, lowest first. */
#define EACH_SET_LANE(_i, _mask)                                                         \
	for (uint32_t left_ = (_mask), _i; left_ && (_i = (u32)__builtin_ctz(left_), 1); \
		left_ &= left_ - 1)

#define BITS_4_(_i) 1u << (_i), 1u << ((_i) + 1), 1u << ((_i) + 2), 1u << ((_i) + 3)
#define BITS_32_                                                                         \
	{                                                                                \
		BITS_4_(0), BITS_4_(4), BITS_4_(8), BITS_4_(12), BITS_4_(16),            \
			BITS_4_(20), BITS_4_(24), BITS_4_(28)                            \
	}

static const uint32_t lane_bit[LANES] __attribute__((aligned(64), unused)) = BITS_32_;
static const uint64_t lane_bit_wide[LANES] __attribute__((aligned(64), unused)) =
	BITS_32_;

SCALAR uint32_t pred_read(const struct warp *w, uint16_t operand)
{
	return w->preds[operand & ~PRED_NEGATED] ^ (0u - (operand >> 15));
}

SCALAR void pred_write(struct warp *w, uint16_t operand, uint32_t mask, uint32_t value)
{
	w->preds[operand] = (w->preds[operand] & ~mask) | (value & mask);
}

static inline const struct insn *warp_fault(struct warp *w, const struct insn *ip,
	int code, uint32_t lane, uint64_t address, const char *text)
{
	w->event = EVENT_FAULT;
	w->at = ip;
	w->fault_code = code;
	w->fault_lane = lane;
	w->fault_address = address;
	w->fault_text = text;
	return LEAVE;
}

/* Of a matrix each lane has a part: PTX leaves the result undefined if one is missing. */
#define WHOLE_WARP                                                                       \
	do {                                                                             \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (mask != UINT32_MAX)                                                  \
			return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION,      \
				(u32)__builtin_ctz(mask), mask,                          \
				"a matrix instruction without all lanes of its warp");   \
	} while (0)

#endif
