/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Decoded form of a kernel: what lower/ makes and the handlers run
 *
 * The register file of a warp is an array of slots of 128 bytes: a 32-bit value is
 * one slot (32 lanes of 4 bytes, also for 8 and 16-bit values, whose upper bits
 * mean nothing), a 64-bit value two slots (32 lanes of 8 bytes). Immediates and
 * special registers are slots like all others, filled before a block starts, so
 * that handlers have register operands only. Values of the two widths live in
 * different parts of the file: a destination may be the same slot as a source of
 * its width, and never overlaps one otherwise.
 *
 * Predicates are one bit a lane in a separate array of words. An operand that is a
 * predicate has bit 15 set where it is negated. Predicate 0 is always true.
 *
 * Handlers trust the code completely. lower/encode.c is the one place that makes it,
 * and checks each operand against the signature of its operation (ops.h) there.
 */

#include "exec/engine.h"

struct warp;
struct insn;

/*
 * The value of a function's address: its number above this, outside of any memory. Only a
 * call through a pointer interprets it.
 */
#define FUNCTION_HANDLE_BASE 0x3f000000u

typedef const struct insn *(*insn_fn)(
	struct warp *w, const struct insn *ip, uint32_t mask);

#define SLOT_BYTES 128
#define PRED_NEGATED 0x8000u
#define PRED_TRUE 0u
#define PRED_CARRY 1u /* the carry flag of add.cc and its kind */

/*
 * The most that an operand of 16 bits can address; for predicates, one bit less for the
 * negation. A warp has memory for as many as its kernel needs.
 */
#define SLOTS_MAX 65536u
#define PREDS_MAX 32768u

struct insn {
	insn_fn fn;
	uint16_t d, a, b, c;
	union {
		uint64_t imm;
		struct {
			int32_t off; /* of an address; options of others */
			uint16_t e, f;
		};
	};
	uint16_t guard;
	uint16_t reserved;
	int32_t target; /* of a branch, in instructions relative to this one */
};

_Static_assert(sizeof(struct insn) == 32, "two instructions fill a cache line");

/*
 * In insn.reserved: what an operation leaves in the block for the next one must still be
 * there then, so that it does not end a turn.
 */
#define INSN_KEEPS_TURN 0x8000u

/* insn.reserved of the barriers: what becomes of the predicates. */
enum red {
	RED_NONE,
	RED_AND,
	RED_OR,
	RED_POPC,
};

/* A slot that is filled before a block starts. */
struct code_constant {
	uint64_t bits; /* of a parameter its offset in the parameter block */
	uint16_t slot;
	bool wide;
	bool is_param;
};

struct code_sreg {
	uint8_t sreg; /* enum ptx_sreg */
	uint8_t number;
	uint16_t slot;
	bool wide;
};

/*
 * Calls of subroutines: code that has its own frame in a thread's local memory wherever
 * it is called, and that uses the same slots as its caller
 */

/* Bytes that go from the caller's frame into the new one, or back. */
struct code_move {
	uint32_t from, to, size;
};

/* A slot, or a predicate, whose value the caller needs after the call. */
struct code_save {
	uint16_t slot;
	uint16_t size; /* 8, 4; 1 for a predicate */
};

struct code_subroutine {
	uint32_t entry; /* instruction */
	uint32_t frame_size;
};

struct code_call {
	uint32_t subroutine;	  /* of CALL; of SERVE the service */
	uint32_t first_candidate; /* of CALL_POINTER: subroutine + 1 by function */
	uint32_t n_candidates;
	uint32_t frame_end;  /* of the caller, where the new frame begins */
	uint32_t first_move; /* arguments, then results */
	uint32_t n_arguments;
	uint32_t n_results;
	uint32_t first_save; /* by falling size */
	uint32_t n_saves;
	uint32_t saves_size;
};

struct softgpu_kernel {
	struct softgpu_kernel_info info;
	uint64_t serial; /* never used twice */

	/*
	 * The tables of this code, which are all indexed from 0, are shared with other
	 * kernels (lower/common.c); its own part follows the shared part.
	 */
	bool is_shared;

	/* Ends with an exit, so that running off the end ends the thread. */
	struct insn *code;
	uint32_t *lines;
	const char *text; /* of the module, to which the lines refer */
	uint32_t n_code;  /* with the shared part */

	/* Of a kernel that can be watched: the handlers that do the work, and for each
	 * instruction what was reported about it, atomic. Else NULL. */
	const insn_fn *handlers;
	uint8_t *reported;

	struct code_constant *constants;
	uint32_t n_constants;
	struct code_sreg *sregs;
	uint32_t n_sregs;
	uint32_t n_slots;
	uint32_t n_preds;

	uint32_t shared_align;
	uint32_t local_size; /* as in info, a multiple of 16 */
	bool uses_stack;     /* by alloca */

	/* Branch tables: targets as instruction numbers. */
	uint32_t *targets;

	uint32_t entry; /* instruction at which threads start */
	struct code_subroutine *subroutines;
	struct code_call *calls; /* NULL: none */
	struct code_move *moves;
	uint32_t *candidates;
	struct code_save *saves;
	char **refusals; /* of REFUSE: the reasons */
	uint32_t n_refusals;
};
