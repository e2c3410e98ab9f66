/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The driver's library, whichever libcuda.so.1 the loader finds
 */

#include "vgpu/g-driver.h"

/* Valid after rt_driver_open() returned 0. No entry is NULL: a function that the library
 * lacks returns CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER. */
extern struct vgpu_driver rt_driver;

/*
 * Loads the library and initialises it, once in a process.
 *
 * Return: 0, or a cudaError_t, the same in each call.
 */
int rt_driver_open(void);

/* The CUDA version of the driver, 0 if there is no driver. */
int rt_driver_version(int *versionp);
