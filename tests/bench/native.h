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

struct native_loop {
	const char *name;
	void (*run)(void);
};

/* In the order of the kernels that do the same. */
extern const struct native_loop native_loops[3];

/* Makes the numbers for all of them. Return: false without memory. */
bool native_prepare(void);
void native_free(void);
