/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the driver API of softgpu, called by eight threads
 *
 * The input is a program of random calls (calls.h). Threads take part in what happens, so
 * that an input that failed may have to be run several times to fail again:
 * 'fuzz-api -runs=1000 INPUT'.
 */

#include <stdlib.h>

#include "calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A longer one finds no more in its time than several. */
#define PROGRAM_SIZE_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int is_started;

	if (!is_started) {
		setenv("VGPU_SOFTGPU_DEVICES", "2", 0);
		setenv("VGPU_SOFTGPU_THREADS", "2", 0);
		setenv("VGPU_SOFTGPU_MEMORY", "64M", 0);
		setenv("VGPU_LOG", "none", 0);
		calls_start();
		is_started = 1;
	}
	calls_run(data, size < PROGRAM_SIZE_MAX ? size : PROGRAM_SIZE_MAX);
	return 0;
}
