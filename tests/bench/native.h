/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The loops of kernels, compiled for this machine: what a kernel could take at best
 */

#include <stdbool.h>

#define NATIVE_VADD (1 << 20)
#define NATIVE_REDUCE (16 * 256 * 64)
#define NATIVE_N 256
#define NATIVE_TILE 16
/* Threads and rounds of the kernels below. */
#define NATIVE_THREADS (16 * 128)
#define NATIVE_WARPS (NATIVE_THREADS / 32)
#define NATIVE_ROUNDS 256
#define NATIVE_CHAINS 4
#define NATIVE_TEXTURE 256

struct native_loop {
	const char *name; /* loop_, and the kernel's name without soft_kernel_ */
	void (*run)(void);
};

#define NATIVE_LOOPS 7
extern const struct native_loop native_loops[NATIVE_LOOPS];

/* Makes the numbers for all of them. Return: false without memory. */
bool native_prepare(void);
void native_free(void);
