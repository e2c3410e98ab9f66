/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory for other processes, of programs that did not create it for that
 */

#include <errno.h>
#include <unistd.h>

#include "vgpu/error.h"

#include "api/api.h"
#include "mem/virtual.h"

/* What the file holds besides the pages are zeros: memory is mapped in larger pieces. */
static uint64_t file_size(const struct memory_share *share)
{
	uint64_t granularity = VIRTUAL_GRANULARITY;

	return (share->size + granularity - 1) / granularity * granularity;
}

/* Return: 0, -errno, or MEMORY_E_TWICE if the pages have changed meanwhile. */
static int share_pages(uint64_t address, struct memory_share *share)
{
	const struct physical template = {
		.size = file_size(share),
		.device = share->device,
		.is_shared = true,
		.is_import = true,
	};
	struct memory *memory = &softgpu_device.memory;
	struct physical *physical;
	int r;

	r = physical_new(memory, &template, &physical);
	if (r)
		return r == MEMORY_E_FULL ? vgpu_error_origin(-ENOMEM) : r;
	sched_stop(&softgpu_device.sched);
	r = memory_share(memory, address, share, physical);
	sched_resume(&softgpu_device.sched);
	if (!r)
		share->fd = physical_export(physical);
	else
		physical_unref(memory, physical);
	return !r && share->fd < 0 ? share->fd : r;
}

int softgpu_export(uint64_t address, uint64_t *basep, uint64_t *sizep, int *fdp)
{
	struct memory_share share;
	int r;

	if (device_check())
		return vgpu_error_origin(-EINVAL);
	do {
		if (memory_find_share(&softgpu_device.memory, address, &share))
			return vgpu_error_origin(-EINVAL);
		r = share.fd < 0 ? share_pages(address, &share) : 0;
	} while (r == MEMORY_E_TWICE);
	if (r)
		return r == MEMORY_E_UNKNOWN ? vgpu_error_origin(-EINVAL)
					     : vgpu_error_trace(r);
	*basep = share.address;
	*sizep = file_size(&share);
	*fdp = share.fd;
	return 0;
}
