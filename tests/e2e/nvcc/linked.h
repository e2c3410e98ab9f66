/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Definitions in the other part of the program
 */

#define N_OPERATIONS 3

typedef unsigned int (*operation)(unsigned int);

__host__ __device__ unsigned int mixed(unsigned int i);
extern __device__ unsigned int offset;
extern __constant__ unsigned int factors[4];
extern __device__ operation operations[N_OPERATIONS];

/* Turns the first n words of dynamic shared memory round. */
__device__ void reverse(unsigned int n);

/* Counts its calls in a variable that each part has. */
__device__ unsigned int count_there(unsigned int n);

/* In each part a copy, of which one remains. */
template <typename T> __host__ __device__ T twice(T x)
{
	return 2 * x;
}

struct shape {
	unsigned int size;

	__device__ virtual unsigned int area() const = 0;
};

struct square : shape {
	__device__ unsigned int area() const override;
};

void set_factors(const unsigned int *values);
