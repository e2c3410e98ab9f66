/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Library: whichever libnvidia-ml.so.1 the loader finds
 *
 * Nothing else is known of the devices, so the program shows NVIDIA's as well. A function
 * that the library lacks returns NVML_ERROR_FUNCTION_NOT_FOUND.
 */

#include "vgpu/nvml.h"

/* clang-format off */
#define SMI_FUNCTIONS(_f)                                                                \
	_f(nvmlInit_v2)                                                                  \
	_f(nvmlShutdown)                                                                 \
	_f(nvmlSystemGetDriverVersion)                                                   \
	_f(nvmlSystemGetCudaDriverVersion)                                               \
	_f(nvmlSystemGetProcessName)                                                     \
	_f(nvmlDeviceGetCount_v2)                                                        \
	_f(nvmlDeviceGetHandleByIndex_v2)                                                \
	_f(nvmlDeviceGetHandleByUUID)                                                    \
	_f(nvmlDeviceGetHandleByPciBusId_v2)                                             \
	_f(nvmlDeviceGetIndex)                                                           \
	_f(nvmlDeviceGetName)                                                            \
	_f(nvmlDeviceGetUUID)                                                            \
	_f(nvmlDeviceGetSerial)                                                          \
	_f(nvmlDeviceGetMinorNumber)                                                     \
	_f(nvmlDeviceGetPciInfo_v3)                                                      \
	_f(nvmlDeviceGetVbiosVersion)                                                    \
	_f(nvmlDeviceGetCudaComputeCapability)                                           \
	_f(nvmlDeviceGetComputeMode)                                                     \
	_f(nvmlDeviceGetPersistenceMode)                                                 \
	_f(nvmlDeviceGetDisplayMode)                                                     \
	_f(nvmlDeviceGetDisplayActive)                                                   \
	_f(nvmlDeviceGetAccountingMode)                                                  \
	_f(nvmlDeviceGetMigMode)                                                         \
	_f(nvmlDeviceGetMemoryInfo)                                                      \
	_f(nvmlDeviceGetEccMode)                                                         \
	_f(nvmlDeviceGetTotalEccErrors)                                                  \
	_f(nvmlDeviceGetUtilizationRates)                                                \
	_f(nvmlDeviceGetEncoderUtilization)                                              \
	_f(nvmlDeviceGetDecoderUtilization)                                              \
	_f(nvmlDeviceGetTemperature)                                                     \
	_f(nvmlDeviceGetTemperatureThreshold)                                            \
	_f(nvmlDeviceGetFanSpeed)                                                        \
	_f(nvmlDeviceGetPerformanceState)                                                \
	_f(nvmlDeviceGetCurrentClocksThrottleReasons)                                    \
	_f(nvmlDeviceGetPowerUsage)                                                      \
	_f(nvmlDeviceGetPowerManagementLimit)                                            \
	_f(nvmlDeviceGetPowerManagementDefaultLimit)                                     \
	_f(nvmlDeviceGetPowerManagementLimitConstraints)                                 \
	_f(nvmlDeviceGetEnforcedPowerLimit)                                              \
	_f(nvmlDeviceGetTotalEnergyConsumption)                                          \
	_f(nvmlDeviceGetClockInfo)                                                       \
	_f(nvmlDeviceGetMaxClockInfo)                                                    \
	_f(nvmlDeviceGetCurrPcieLinkGeneration)                                          \
	_f(nvmlDeviceGetCurrPcieLinkWidth)                                               \
	_f(nvmlDeviceGetMaxPcieLinkGeneration)                                           \
	_f(nvmlDeviceGetMaxPcieLinkWidth)                                                \
	_f(nvmlDeviceGetInforomVersion)                                                  \
	_f(nvmlDeviceGetInforomImageVersion)                                             \
	_f(nvmlDeviceGetGpuOperationMode)                                                \
	_f(nvmlDeviceGetGspFirmwareMode)                                                 \
	_f(nvmlDeviceGetAccountingBufferSize)                                            \
	_f(nvmlDeviceGetMemoryInfo_v2)                                                   \
	_f(nvmlDeviceGetMemoryErrorCounter)                                              \
	_f(nvmlDeviceGetFieldValues)                                                     \
	_f(nvmlDeviceGetJpgUtilization)                                                  \
	_f(nvmlDeviceGetOfaUtilization)                                                  \
	_f(nvmlDeviceGetEncoderStats)                                                    \
	_f(nvmlDeviceGetMarginTemperature)                                               \
	_f(nvmlDeviceGetSupportedClocksThrottleReasons)                                  \
	_f(nvmlDeviceGetPowerManagementMode)                                             \
	_f(nvmlDeviceGetApplicationsClock)                                               \
	_f(nvmlDeviceGetDefaultApplicationsClock)                                        \
	_f(nvmlDeviceGetGpuMaxPcieLinkGeneration)                                        \
	_f(nvmlDeviceGetComputeRunningProcesses_v3)                                      \
	_f(nvmlDeviceGetGraphicsRunningProcesses_v3)                                     \
	_f(nvmlDeviceGetProcessUtilization)
/* clang-format on */

struct smi_library {
#define SMI_MEMBER(_name) __typeof__(&_name) _name;
	SMI_FUNCTIONS(SMI_MEMBER)
#undef SMI_MEMBER
};

extern struct smi_library smi_library;

#define SMI_CALL(_name, ...)                                                             \
	(smi_library._name ? smi_library._name(__VA_ARGS__)                              \
			   : NVML_ERROR_FUNCTION_NOT_FOUND)

/* Loads and initialises it; the loader's comes before the one that we installed. Return:
 * NVML_ERROR_LIBRARY_NOT_FOUND if there is none. */
nvmlReturn_t smi_library_open(void);
void smi_library_close(void);

/* What a code means for a user. */
const char *smi_library_explain(nvmlReturn_t result);

/* The exit status for a code: its number, or 255. */
int smi_library_status(nvmlReturn_t result);
