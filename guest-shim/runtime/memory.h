/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory of devices and of the host
 */

#include "runtime/types.h"

int rt_malloc(void **addressp, size_t size);
int rt_free(void *address);
int rt_malloc_pitch(void **addressp, size_t *pitchp, size_t width, size_t height);
int rt_malloc_3d(cudaPitchedPtr *pitched, cudaExtent extent);
int rt_malloc_managed(void **addressp, size_t size, unsigned int flags);
int rt_host_alloc(void **addressp, size_t size, unsigned int flags);
int rt_host_free(void *address);
int rt_pointer_attributes(cudaPointerAttributes *attributes, const void *address);
