/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the programs of the CUDA Runtime API: ordinary programs, compiled by nvcc,
 * which are independent of this project.
 */

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA(_call)                                                                      \
	do {                                                                             \
		cudaError_t r_ = (_call);                                                \
		if (r_ != cudaSuccess) {                                                 \
			fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__,      \
				#_call, cudaGetErrorName(r_), r_);                       \
			exit(EXIT_FAILURE);                                              \
		}                                                                        \
	} while (0)

/* Prints the verdict that the demo and the tests look for. */
static inline int result(const char *what, size_t n, size_t n_wrong)
{
	printf("%s: %zu values, %zu wrong: %s\n", what, n, n_wrong,
		n_wrong ? "FAIL" : "PASS");
	return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
