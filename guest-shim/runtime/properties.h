/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Properties of devices
 */

#include "runtime/types.h"

int rt_properties(cudaDeviceProp *prop, int device);
int rt_properties_12(rt_device_prop_12 *prop, int device);
int rt_properties_11(rt_device_prop_11 *prop, int device);

/* The device whose properties are most like those wanted; zeros are not wanted. */
int rt_choose_device(int *devicep, const void *wanted);

int rt_runtime_version(int *versionp);
