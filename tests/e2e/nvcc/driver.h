/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of the driver, as programs get them that link the runtime alone
 */

#include <cuda.h>

#include "runtime.h"

#define DRIVER(_call)                                                                    \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		if (r_ != CUDA_SUCCESS) {                                                \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #_call,   \
				r_);                                                     \
			exit(EXIT_FAILURE);                                              \
		}                                                                        \
	} while (0)

template <typename Function> static void find(Function *&function, const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *pointer = NULL;

	CUDA(cudaGetDriverEntryPointByVersion(
		name, &pointer, 12050, cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess) {
		fprintf(stderr, "no %s\n", name);
		exit(EXIT_FAILURE);
	}
	function = (Function *)pointer;
}
