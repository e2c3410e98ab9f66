/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Definitions in the other part of the program
 */

__host__ __device__ unsigned int mixed(unsigned int i);
extern __device__ unsigned int offset;
extern __constant__ unsigned int factors[4];

void set_factors(const unsigned int *values);
