/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Driver: a libcuda-compatible library opened by path
 *
 * NVIDIA's libcuda.so.1, softgpu and the null driver have the same interface, the table
 * of g-driver.h, in which a function that the library lacks is NULL. Our two drivers also
 * accept the address range for device memory.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "vgpu/g-driver.h"
#include "softgpu/softgpu.h"

struct driver {
	struct vgpu_driver table;
	char path[256];
	char why[512]; /* after a failure: a sentence about it */
	/* NULL for NVIDIA's driver. */
	int (*configure)(const struct softgpu_config *config);
	int (*set_window)(
		uint64_t base, uint64_t size, uint64_t host_base, uint64_t host_size);
	/* softgpu's alone. */
	int (*export)(uint64_t address, uint64_t *basep, uint64_t *sizep, int *fdp);
	int (*list_memory)(struct softgpu_piece **piecesp, size_t *n_piecesp);
	void (*drop_memory)(const struct softgpu_piece *pieces, size_t n_pieces);
	bool (*has_memory)(const struct softgpu_piece *piece);
	void (*limit_launches)(uint32_t ms);
	void (*trace)(const struct softgpu_trace *trace);
};

enum {
	_DRIVER_E_SUCCESS,
	DRIVER_E_ABSENT,  /* no such file, or no driver in it */
	DRIVER_E_OURS,	  /* it is the guest's library, which is never loaded */
	DRIVER_E_NO_INIT, /* it is there, but does not work: see initp */
};

struct driver_options {
	const char *choice; /* auto, nvidia, soft, null or a path */
	const char *softgpu_path;
	const char *null_path;
	struct softgpu_config softgpu;
};

/*
 * Loads one library and calls its cuInit. The library stays loaded for good,
 * because drivers are not made to be unloaded.
 *
 * @initp:	what cuInit returned
 *
 * Return: 0 or DRIVER_E_*.
 */
int driver_open(struct driver *driver, const char *path,
	const struct softgpu_config *softgpu, CUresult *initp);

/*
 * Opens the driver that the options choose and logs which and why. That there is none is
 * a warning, with what to do.
 *
 * Return: 0, or DRIVER_E_* of the last one tried.
 */
int driver_select(
	struct driver *driver, const struct driver_options *options, CUresult *initp);

/* The file name, for logs and for the guest. */
static inline const char *driver_name(const struct driver *driver)
{
	const char *slash = strrchr(driver->path, '/');

	return slash ? slash + 1 : driver->path;
}
