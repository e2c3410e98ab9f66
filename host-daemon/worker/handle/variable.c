/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules and libraries
 */

#include "driver/driver.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/handle/variable.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"

static bool ask_managed(const struct call *call, CUdeviceptr address)
{
	unsigned int is_managed = 0;

	return call->driver->cuPointerGetAttribute &&
	       call->driver->cuPointerGetAttribute(&is_managed,
		       CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
	       is_managed;
}

CUresult variable_publish(struct call *call, const struct lookup *lookup,
	const struct object *parent, CUdeviceptr address, size_t size, bool is_managed,
	const struct variable_reply *reply)
{
	const size_t room = VGPU_MIRROR_PIECES_MAX * sizeof(struct vgpu_mirror_piece);
	struct managed_run run;
	CUresult result;
	uint32_t n;

	*reply->dptr = address;
	*reply->bytes = size;
	if (managed_find(call->session, address, size, &run)) {
		*reply->first_extent = run.first;
		*reply->n_extents = run.n_extents;
		return CUDA_SUCCESS;
	}
	if (!is_managed && !ask_managed(call, address))
		return device_memory_publish_global(call, address, size, parent);
	reply->pieces->data = call_alloc(call, room);
	if (!reply->pieces->data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = mirror_add(call, lookup, address, size,
		(struct vgpu_mirror_piece *)reply->pieces->data, &n);
	reply->pieces->len = n * sizeof(struct vgpu_mirror_piece);
	return result;
}
