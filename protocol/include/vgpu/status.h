/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Status: what the GPUs of a virtual machine are and do
 *
 * The broker publishes it in the shared memory, at status_off of the header, and renews
 * it with each heartbeat. Our NVML answers from it: so a process that only looks at the
 * GPUs has no channel and no worker, and the host decodes no message of it.
 *
 * It has the VM's share: its devices, its quota as their memory, its own processes. What
 * the host's driver does not provide, or the host's administrator does not show, is
 * marked as unknown.
 *
 * The host writes and never reads it. A reader copies what it needs, and takes the copy
 * if the sequence was even before and is the same afterwards. All of it is zeroes until
 * the first worker has found the devices.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/device-info.h"
#include "vgpu/handle.h"

/* From the start of the memory; between the channel table and the first area. */
#define VGPU_STATUS_OFF (64u << 10)
#define VGPU_STATUS_PROCESSES_MAX 128u
#define VGPU_STATUS_UNKNOWN UINT32_MAX

/* Values of a device that only its driver's NVML knows; units as in NVML. */
enum vgpu_status_sensor {
	VGPU_SENSOR_TEMPERATURE,	  /* °C, of the GPU */
	VGPU_SENSOR_TEMPERATURE_SLOWDOWN, /* °C, threshold */
	VGPU_SENSOR_TEMPERATURE_SHUTDOWN, /* °C, threshold */
	VGPU_SENSOR_FAN,		  /* % */
	VGPU_SENSOR_POWER,		  /* mW */
	VGPU_SENSOR_POWER_LIMIT,	  /* mW, enforced */
	VGPU_SENSOR_POWER_LIMIT_DEFAULT,  /* mW */
	VGPU_SENSOR_POWER_LIMIT_MIN,	  /* mW */
	VGPU_SENSOR_POWER_LIMIT_MAX,	  /* mW */
	VGPU_SENSOR_ENERGY,		  /* mJ, since the driver was loaded */
	VGPU_SENSOR_CLOCK_GRAPHICS,	  /* MHz */
	VGPU_SENSOR_CLOCK_SM,		  /* MHz */
	VGPU_SENSOR_CLOCK_MEMORY,	  /* MHz */
	VGPU_SENSOR_CLOCK_VIDEO,	  /* MHz */
	VGPU_SENSOR_CLOCK_MAX_GRAPHICS,	  /* MHz */
	VGPU_SENSOR_CLOCK_MAX_SM,	  /* MHz */
	VGPU_SENSOR_CLOCK_MAX_MEMORY,	  /* MHz */
	VGPU_SENSOR_CLOCK_MAX_VIDEO,	  /* MHz */
	VGPU_SENSOR_CLOCK_EVENT_REASONS,  /* bits nvmlClocksEventReason* */
	VGPU_SENSOR_PERFORMANCE_STATE,	  /* nvmlPstates_t */
	VGPU_SENSOR_PCIE_GENERATION,
	VGPU_SENSOR_PCIE_WIDTH,
	VGPU_SENSOR_PCIE_GENERATION_MAX,
	VGPU_SENSOR_PCIE_WIDTH_MAX,
	VGPU_SENSOR_ECC_MODE,	     /* 0 or 1 */
	VGPU_SENSOR_ECC_CORRECTED,   /* errors since the driver was loaded */
	VGPU_SENSOR_ECC_UNCORRECTED, /* the same */
	VGPU_SENSOR_ENCODER,	     /* % */
	VGPU_SENSOR_DECODER,	     /* % */
	_VGPU_SENSOR_N,
};

#define VGPU_STATUS_SENSORS 48u

struct vgpu_status_device {
	struct vgpu_device_info info; /* as vgpuHello tells a channel */
	/* The VM's share of the memory: as cuMemGetInfo, bytes. A quota is for all
	 * devices together, so each shows the use of all. */
	uint64_t memory_total;
	uint64_t memory_used;
	/* % of the time during the last second, by the VM's processes; or
	 * VGPU_STATUS_UNKNOWN. */
	uint32_t utilisation;
	uint32_t memory_utilisation;
	uint64_t sensors_known; /* bits 1 << enum vgpu_status_sensor */
	int64_t sensors[VGPU_STATUS_SENSORS];
};

/* A process of the VM with a channel. */
struct vgpu_status_process {
	/* As in its hello. */
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time;
	uint64_t pid_namespace;
	char comm[16];
	uint64_t opened_us;   /* host's clock, see updated_us */
	uint64_t memory_used; /* device memory, bytes */
	uint32_t utilisation; /* as of the device */
	uint32_t memory_utilisation;
};

enum {
	VGPU_STATUS_SOFTGPU = 1u << 0, /* the devices are software */
};

struct vgpu_status {
	/* Odd while the host writes. */
	uint32_t sequence;
	uint32_t flags;	     /* VGPU_STATUS_* */
	uint64_t updated_us; /* microseconds since 1970, by the host's clock */
	uint32_t n_devices;
	uint32_t n_processes;
	int32_t cuda_version; /* as cuDriverGetVersion */
	uint32_t reserved0;
	char driver_version[80]; /* as nvmlSystemGetDriverVersion */
	uint64_t reserved1[10];
	struct vgpu_status_device devices[VGPU_DEVICES_MAX];
	struct vgpu_status_process processes[VGPU_STATUS_PROCESSES_MAX];
};

static_assert(_VGPU_SENSOR_N <= VGPU_STATUS_SENSORS, "they have room");
static_assert(sizeof(struct vgpu_status_device) == 1360, "fixed size");
static_assert(sizeof(struct vgpu_status_process) == 64, "fixed size");
static_assert(offsetof(struct vgpu_status, devices) == 192, "fixed size");
static_assert(VGPU_STATUS_OFF + sizeof(struct vgpu_status) <= 512u << 10, "fixed size");
