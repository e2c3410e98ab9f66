/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Devices and their primary contexts
 *
 * A primary context is retained at the first call of any thread that needs it, and
 * becomes current in each thread that has no current context. A context that the program
 * made by the Driver API and that is current is used as it is.
 */

#include <stdbool.h>

#include "runtime/types.h"

/* The driver of NVIDIA has at most 64 devices in a process. */
#define RT_MAX_DEVICES 64

/* Before each call: 0, or a cudaError_t that is the result of the call. */
int rt_enter_bare(void);
int rt_enter_init(void);
int rt_enter_context(void);

/* Number of devices, after rt_enter_init() returned 0. */
int rt_context_n_devices(void);

bool rt_context_is_device(int device);

/* The primary context of a device, which is retained first. */
int rt_context_get(int device, CUcontext *contextp);

/* The device of the current context, or the one whose context the next call enters. */
int rt_device_get(int *devicep);
int rt_device_set(int device);
int rt_device_init(int device, unsigned int device_flags, unsigned int flags);
int rt_device_count(int *countp);
int rt_device_flags(unsigned int *flagsp);
int rt_device_set_flags(unsigned int flags);
int rt_device_reset(void);
int rt_valid_devices(int *devices, int n);
