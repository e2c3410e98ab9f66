/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Grammar: kernels made from an input, with their behaviour by the manual
 *
 * A kernel is a list of statements on eight registers of 64 bits: arithmetic, forward
 * branches that diverge by thread, loops, calls, accesses to memory, and the newer groups
 * of grammar-groups.h and grammar-device.h. An access is to the thread's own GRAMMAR_SLOT
 * bytes of a space, or to unallocated memory: so each thread's values, and whether it
 * ends by a fault, follow from the list alone, of matrices together with those of its
 * warp.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader.h"

#define GRAMMAR_REGISTERS 8u
#define GRAMMAR_STATEMENTS 48u
#define GRAMMAR_WARP 32u
#define GRAMMAR_THREADS (2 * GRAMMAR_WARP)
#define GRAMMAR_SLOT 64u
/* Not a multiple of 8: an access of 8 bytes may begin within it and end outside. */
#define GRAMMAR_SHARED (GRAMMAR_THREADS * GRAMMAR_SLOT + 4)
#define GRAMMAR_TEXT 65536u
#define GRAMMAR_TEXELS 100u /* of 4 bytes, in a texture and in a surface */

enum grammar_kind {
	GRAMMAR_ARITHMETIC,
	GRAMMAR_NARROW, /* the same in 32 bits */
	GRAMMAR_SET,
	GRAMMAR_SKIP, /* branch over the next statements */
	GRAMMAR_LOOP, /* the next statements, some times */
	GRAMMAR_CALL,
	GRAMMAR_STACK, /* a register through memory from the stack */
	GRAMMAR_LOAD,
	GRAMMAR_STORE,
	GRAMMAR_ATOMIC,
	_GRAMMAR_OLD_N,
	GRAMMAR_CONVERT = _GRAMMAR_OLD_N, /* floats of 8 bits to floats of 16 */
	GRAMMAR_VIDEO,
	GRAMMAR_TEXTURE,
	GRAMMAR_COPY, /* cp.async, from the global slot to the shared one */
	GRAMMAR_MATRIX,
	_GRAMMAR_NEWER_N,
	GRAMMAR_BULK = _GRAMMAR_NEWER_N, /* grammar-device.h has these */
	GRAMMAR_SURFACE,
	GRAMMAR_SERVICE,
	_GRAMMAR_KIND_N,
};

enum grammar_space {
	GRAMMAR_GLOBAL,
	GRAMMAR_GENERIC, /* of global memory */
	GRAMMAR_IN_SHARED,
	GRAMMAR_LOCAL,
	_GRAMMAR_SPACE_N,
};

struct grammar_statement {
	uint8_t kind;
	uint8_t operation;
	uint8_t d, a, b;
	uint8_t n;	 /* statements that are skipped or repeated */
	uint8_t times;	 /* of a loop */
	uint8_t space;	 /* enum grammar_space */
	uint8_t size;	 /* of an access, in bytes */
	bool is_vector;	 /* of elements of 4 bytes */
	bool is_whole;	 /* 16 bytes at once; atomic: exchanged */
	bool is_outside; /* an access to unallocated memory */
	uint64_t value;	 /* a constant, an offset in the slot, or where outside */
};

struct grammar {
	struct grammar_statement statements[GRAMMAR_STATEMENTS];
	unsigned int n;
};

/* The places. */
struct grammar_places {
	uint64_t memory;  /* of global slots */
	uint64_t results; /* where each thread puts its registers in the end */
	uint64_t outside[8];
	uint64_t texture, surface; /* numbers of objects */
	uint64_t own_texels;	   /* that of a surface with one for each thread */
};

struct grammar_thread {
	uint64_t registers[GRAMMAR_REGISTERS];
	uint8_t slots[_GRAMMAR_SPACE_N][GRAMMAR_SLOT];
	uint32_t number;
	uint32_t texel;
	uint32_t last_error; /* of the device runtime */
	bool faults;
};

void grammar_read(struct grammar *grammar, struct reader *reader);

/* Returns: the length of the text. */
size_t grammar_write(const struct grammar *grammar, const struct grammar_places *places,
	char text[GRAMMAR_TEXT]);

/* The final states of all threads; if one faults those of the others are not theirs. */
void grammar_run(
	const struct grammar *grammar, struct grammar_thread threads[GRAMMAR_THREADS]);
