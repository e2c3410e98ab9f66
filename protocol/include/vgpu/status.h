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
#include "vgpu/ring-layout.h"

/* From the start of the memory; between the channel table and the first area. */
#define VGPU_STATUS_OFF (64u << 10)
#define VGPU_STATUS_PROCESSES_MAX 128u
#define VGPU_STATUS_UNKNOWN UINT32_MAX
/* At the rate of the heartbeat, the last 20 seconds. */
#define VGPU_STATUS_SAMPLES 100u
#define VGPU_STATUS_EVENTS 64u

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
	VGPU_SENSOR_ECC_MODE,			  /* 0 or 1 */
	VGPU_SENSOR_ECC_CORRECTED,		  /* errors since the driver was loaded */
	VGPU_SENSOR_ECC_UNCORRECTED,		  /* the same */
	VGPU_SENSOR_ENCODER,			  /* % */
	VGPU_SENSOR_DECODER,			  /* % */
	VGPU_SENSOR_JPEG,			  /* % */
	VGPU_SENSOR_OFA,			  /* % */
	VGPU_SENSOR_ECC_CORRECTED_EVER,		  /* errors in the life of the device */
	VGPU_SENSOR_ECC_UNCORRECTED_EVER,	  /* the same */
	VGPU_SENSOR_TEMPERATURE_MEMORY,		  /* °C */
	VGPU_SENSOR_TEMPERATURE_MEMORY_MAX,	  /* °C, threshold */
	VGPU_SENSOR_TEMPERATURE_MAX,		  /* °C, threshold of the GPU */
	VGPU_SENSOR_FANS,			  /* how many */
	VGPU_SENSOR_PCIE_SENT,			  /* kB/s, from the device */
	VGPU_SENSOR_PCIE_RECEIVED,		  /* kB/s */
	VGPU_SENSOR_PCIE_REPLAYS,		  /* since the driver was loaded */
	VGPU_SENSOR_CLOCK_EVENT_REASONS_POSSIBLE, /* bits, as of the reasons */
	VGPU_SENSOR_RETIRED_CORRECTED,		  /* pages, for corrected errors */
	VGPU_SENSOR_RETIRED_UNCORRECTED,	  /* pages, for an uncorrected one */
	VGPU_SENSOR_RETIRED_PENDING,		  /* 0 or 1 */
	VGPU_SENSOR_REMAPPED_CORRECTED,		  /* rows, for corrected errors */
	VGPU_SENSOR_REMAPPED_UNCORRECTED,	  /* rows, for uncorrected ones */
	VGPU_SENSOR_REMAPPED_STATE, /* bit 0: some are pending, 1: one has failed */
	_VGPU_SENSOR_N,
};

#define VGPU_STATUS_SENSORS 48u

struct vgpu_status_device {
	struct vgpu_device_info info; /* as vgpuHello tells a channel */
	/* The VM's share of the memory, bytes. A quota is for all devices together, see
	 * memory_limit. */
	uint64_t memory_total;
	uint64_t memory_used; /* on this device */
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

/* What a process does on one device. */
struct vgpu_status_use {
	/* Device memory, bytes; UINT64_MAX: it does not use the device. */
	uint64_t memory_used;
	uint32_t utilisation; /* as of the device */
	uint32_t memory_utilisation;
};

/* What a device did at one time. Unknown are the highest numbers of each type. */
struct vgpu_status_sample {
	uint64_t at_us;	       /* as updated_us; 0: none */
	uint32_t power;	       /* mW */
	uint16_t clock_sm;     /* MHz */
	uint16_t clock_memory; /* MHz */
	uint8_t utilisation;   /* %, this and the rest */
	uint8_t memory_utilisation;
	uint8_t encoder;
	uint8_t decoder;
	uint8_t jpeg;
	uint8_t ofa;
	uint8_t reserved[2];
};

enum vgpu_status_event_type {
	VGPU_STATUS_FAULT = 1, /* work of the VM broke its context */
};

/* What happened to a device, once. */
struct vgpu_status_event {
	/* When, as updated_us; no two are of the same time, 0: none. */
	uint64_t at_us;
	uint32_t type; /* enum vgpu_status_event_type */
	uint32_t device;
	int64_t detail; /* of a fault: the CUresult */
};

/* What one device can do with the memory of another one. */
enum {
	VGPU_STATUS_PEER_KNOWN = 1u << 0,
	VGPU_STATUS_PEER_ACCESS = 1u << 1,
	VGPU_STATUS_PEER_ATOMICS = 1u << 2,
};

/* How far apart two devices are: 0 unknown, else 1 more than a tenth of NVML's level. */
#define VGPU_STATUS_DISTANCE(_level) ((uint8_t)((_level) / 10 + 1))

enum {
	VGPU_STATUS_SOFTGPU = 1u << 0, /* the devices are software */
	/* All after the processes is there; of an older host it is not. */
	VGPU_STATUS_WHOLE = 1u << 1,
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
	/* Device memory of the VM, bytes: of all devices together, and what no process
	 * has any more but others still use. 0: no limit. */
	uint64_t memory_limit;
	uint64_t memory_used;
	uint64_t reserved1[8];
	struct vgpu_status_device devices[VGPU_DEVICES_MAX];
	struct vgpu_status_process processes[VGPU_STATUS_PROCESSES_MAX];
	struct vgpu_status_use uses[VGPU_DEVICES_MAX][VGPU_STATUS_PROCESSES_MAX];
	/* Rings without an order but that of the times in them. */
	struct vgpu_status_sample samples[VGPU_DEVICES_MAX][VGPU_STATUS_SAMPLES];
	struct vgpu_status_event events[VGPU_STATUS_EVENTS];
	uint8_t peers[VGPU_DEVICES_MAX][VGPU_DEVICES_MAX]; /* VGPU_STATUS_PEER_* */
	uint8_t distances[VGPU_DEVICES_MAX][VGPU_DEVICES_MAX];
};

static_assert(_VGPU_SENSOR_N <= VGPU_STATUS_SENSORS, "they have room");
static_assert(sizeof(struct vgpu_status_device) == 1360, "fixed size");
static_assert(sizeof(struct vgpu_status_process) == 64, "fixed size");
static_assert(offsetof(struct vgpu_status, devices) == 192, "fixed size");
static_assert(sizeof(struct vgpu_status_use) == 16, "fixed size");
static_assert(sizeof(struct vgpu_status_sample) == 24, "fixed size");
static_assert(sizeof(struct vgpu_status_event) == 24, "fixed size");
static_assert(offsetof(struct vgpu_status, uses) == 95424, "fixed size");
static_assert(offsetof(struct vgpu_status, samples) == 226496, "fixed size");
static_assert(offsetof(struct vgpu_status, events) == 380096, "fixed size");
static_assert(offsetof(struct vgpu_status, peers) == 381632, "fixed size");
static_assert(sizeof(struct vgpu_status) <= VGPU_STATUS_SIZE, "the guest maps that");
static_assert(VGPU_STATUS_OFF % VGPU_STATUS_ALIGN == 0, "in pages of its own");
static_assert(VGPU_STATUS_OFF + VGPU_STATUS_SIZE <= VGPU_OWNERS_OFF, "no overlap");
