/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NVML: NVIDIA's library, opened by name
 *
 * Functions that an older library lacks are NULL; only those without which nothing can be
 * measured are required.
 */

#include "vgpu/nvml.h"

/* name, whether it is required */
#define NVML_FUNCTIONS(X)                                                                \
	X(nvmlInit_v2, 1)                                                                \
	X(nvmlSystemGetDriverVersion, 1)                                                 \
	X(nvmlDeviceGetCount_v2, 1)                                                      \
	X(nvmlDeviceGetHandleByIndex_v2, 1)                                              \
	X(nvmlDeviceGetUUID, 1)                                                          \
	X(nvmlDeviceGetTemperature, 0)                                                   \
	X(nvmlDeviceGetTemperatureThreshold, 0)                                          \
	X(nvmlDeviceGetFanSpeed, 0)                                                      \
	X(nvmlDeviceGetPowerUsage, 0)                                                    \
	X(nvmlDeviceGetEnforcedPowerLimit, 0)                                            \
	X(nvmlDeviceGetPowerManagementDefaultLimit, 0)                                   \
	X(nvmlDeviceGetPowerManagementLimitConstraints, 0)                               \
	X(nvmlDeviceGetTotalEnergyConsumption, 0)                                        \
	X(nvmlDeviceGetClockInfo, 0)                                                     \
	X(nvmlDeviceGetMaxClockInfo, 0)                                                  \
	X(nvmlDeviceGetCurrentClocksThrottleReasons, 0)                                  \
	X(nvmlDeviceGetPerformanceState, 0)                                              \
	X(nvmlDeviceGetCurrPcieLinkGeneration, 0)                                        \
	X(nvmlDeviceGetCurrPcieLinkWidth, 0)                                             \
	X(nvmlDeviceGetMaxPcieLinkGeneration, 0)                                         \
	X(nvmlDeviceGetMaxPcieLinkWidth, 0)                                              \
	X(nvmlDeviceGetEccMode, 0)                                                       \
	X(nvmlDeviceGetTotalEccErrors, 0)                                                \
	X(nvmlDeviceGetEncoderUtilization, 0)                                            \
	X(nvmlDeviceGetDecoderUtilization, 0)                                            \
	X(nvmlDeviceGetJpgUtilization, 0)                                                \
	X(nvmlDeviceGetOfaUtilization, 0)                                                \
	X(nvmlDeviceGetFieldValues, 0)                                                   \
	X(nvmlDeviceGetNumFans, 0)                                                       \
	X(nvmlDeviceGetPcieThroughput, 0)                                                \
	X(nvmlDeviceGetPcieReplayCounter, 0)                                             \
	X(nvmlDeviceGetSupportedClocksThrottleReasons, 0)                                \
	X(nvmlDeviceGetRetiredPages, 0)                                                  \
	X(nvmlDeviceGetRetiredPagesPendingStatus, 0)                                     \
	X(nvmlDeviceGetRemappedRows, 0)                                                  \
	X(nvmlDeviceGetTopologyCommonAncestor, 0)                                        \
	X(nvmlDeviceGetComputeRunningProcesses_v3, 0)                                    \
	X(nvmlDeviceGetProcessUtilization, 0)

struct nvml {
#define NVML_MEMBER(_name, _is_required) __typeof__(&_name) _name;
	NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
};

/*
 * Opens the library and initialises it.
 *
 * @path:	or a name for the loader
 *
 * Return: 0, or -ENOENT if it is not there, lacks a required function, or finds no driver
 * (logged).
 */
int nvml_open(struct nvml *nvml, const char *path);
