/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CUDA version whose runtime this library is, for example 13000: the only difference
 * between libcudart.so.12 and .13 besides the exported functions. */
extern const int rt_version;
