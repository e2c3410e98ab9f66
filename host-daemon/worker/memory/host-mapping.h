/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host mappings: pieces of the arena at reserved addresses of the guest
 *
 * The guest maps pages of the shared memory at an address of the window, and the worker
 * maps the same pages there, so that program and device use one address. A device gets
 * access when the pages are registered with the driver at that address, which opens them
 * to all devices: a mapping is registered as long as any device has access.
 *
 * Registrations belong to the arena's home, like those of the arena itself. Everything
 * here happens under the lock of virtual memory but for the end of a registration, which
 * waits for work: other threads leave a mapping that is closing alone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"
#include "worker/memory/arena.h"

struct call;
struct vgpu_driver;

/* Rights of the guest's processors, behind those of the devices. */
#define HOST_MAPPING_GUEST VGPU_DEVICES_MAX

struct host_mapping {
	bool is_lent; /* the addresses are not the driver's: placement.h */
	struct arena_alias alias;
	bool is_closing;
	struct host_mapping *next;	      /* that the same thread is closing */
	uint8_t access[VGPU_DEVICES_MAX + 1]; /* CUmemAccess_flags */
};

/* Whether a device uses registered memory at the addresses of the host. */
bool host_mapping_is_possible(const struct vgpu_driver *driver, CUdevice device);

/* Maps a piece of the arena, which the session has. Return: NULL without memory. */
struct host_mapping *host_mapping_new(struct call *call, uint64_t address, uint64_t size,
	uint64_t arena_address, bool is_lent);

/* Ends a mapping that is closed; the addresses are as before. */
void host_mapping_free(struct call *call, struct host_mapping *mapping);

/* Sets the rights of a device, or of the guest's processors. If no device is left with
 * any, the mapping is closing, and has to be closed. */
CUresult host_mapping_set_access(struct call *call, struct host_mapping *mapping,
	uint32_t who, CUmemAccess_flags flags);

/* Ends the registration of a mapping that is closing, after work that may use it. */
void host_mapping_close(struct call *call, struct host_mapping *mapping);
