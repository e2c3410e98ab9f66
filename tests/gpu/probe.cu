/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the probe
 */

#define __global__ __attribute__((global))

extern "C" {

__attribute__((device)) int vprintf(const char *format, void *arguments);

__global__ void empty(void)
{
}

__global__ void wait_for(volatile unsigned int *flag)
{
	while (!*flag)
		;
}

__global__ void say(int number)
{
	int arguments[1] = { number };

	vprintf("kernel says %d\n", arguments);
}
}
