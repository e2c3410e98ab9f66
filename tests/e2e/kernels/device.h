/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of CUDA C beyond the language, for clang without any header of a CUDA
 * toolkit.
 */

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))

#define thread_x() __nvvm_read_ptx_sreg_tid_x()
#define thread_y() __nvvm_read_ptx_sreg_tid_y()
#define block_x() __nvvm_read_ptx_sreg_ctaid_x()
#define block_y() __nvvm_read_ptx_sreg_ctaid_y()
#define block_size_x() __nvvm_read_ptx_sreg_ntid_x()
#define grid_size_x() __nvvm_read_ptx_sreg_nctaid_x()
#define global_x() (block_x() * block_size_x() + thread_x())
#define barrier() __syncthreads()
