/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the caller of softgpu puts elsewhere for a while
 */

#include <errno.h>
#include <stdlib.h>

#include "vgpu/error.h"

#include "api/api.h"
#include "mem/move.h"

static bool has_memory(void)
{
	bool has;

	if (device_check())
		return false;
	pthread_mutex_lock(&softgpu_device.lock);
	has = softgpu_device.has_memory;
	pthread_mutex_unlock(&softgpu_device.lock);
	return has;
}

int softgpu_list_memory(struct softgpu_piece **piecesp, size_t *n_piecesp)
{
	int r;

	*piecesp = NULL;
	*n_piecesp = 0;
	if (!has_memory())
		return 0;
	if (!sched_is_idle(&softgpu_device.sched))
		return -EBUSY;
	r = move_list(&softgpu_device.memory, piecesp, n_piecesp);
	return r ? vgpu_error_fold(r) : 0;
}

void softgpu_drop_memory(const struct softgpu_piece *pieces, size_t n_pieces)
{
	move_drop(&softgpu_device.memory, pieces, n_pieces);
}

bool softgpu_has_memory(const struct softgpu_piece *piece)
{
	return move_has(&softgpu_device.memory, piece);
}
