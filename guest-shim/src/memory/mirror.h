/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mirrors: managed variables that the host's driver has placed outside the arena
 *
 * The worker keeps a copy of them in the arena, see vgpu/mirror.h, which the program has
 * at the addresses of the variables. The worker compares both at each call: so every call
 * is sent to it, and waited for, once there is such a variable.
 */

#include <stddef.h>

#include "vgpu/cuda.h"

/*
 * Maps the pieces that hold a variable, unless they are mapped already.
 *
 * @size:	in bytes; a size that is no multiple of a piece's, or a bad piece, is the
 *		host's fault
 *
 * Return: CUDA_ERROR_NOT_SUPPORTED if the program uses such an address itself.
 */
CUresult shim_mirror_map(const void *pieces, size_t size);
