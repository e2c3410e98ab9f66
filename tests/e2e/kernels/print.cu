/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that print and assert: in a separate module, because one that prints
 * changes how everything is waited for
 */

#include "device.h"

extern "C" {

__device__ int printf(const char *format, ...);
__device__ void __assertfail(const char *message, const char *file, unsigned int line,
	const char *function, unsigned long char_size);

__global__ void say(int round, int n)
{
	for (int i = 0; i < n; i++)
		printf("device %d.%d %s\n", round, i, "says");
}

__global__ void say_and_trap(int round, int n)
{
	printf("device %d.0 traps\n", round);
	__builtin_trap();
}

/* Lines of 64 bytes. */
__global__ void say_much(int n)
{
	for (int i = 0; i < n; i++)
		printf("%063d\n", i);
}

__global__ void must_be(int value, int wanted)
{
	if (value != wanted)
		__assertfail("value == wanted", "print.cu", 42, "must_be", 1);
}
}
