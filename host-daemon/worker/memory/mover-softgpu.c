/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mover of softgpu, whose memory the worker can read and write
 */

#include <string.h>

#include "vgpu/error.h"
#include "worker/base/session.h"
#include "worker/memory/mover.h"

static int list(struct session *session, struct mover_list *list)
{
	struct softgpu_piece *pieces;
	size_t n;
	int r;

	r = session->driver->list_memory(&pieces, &n);
	if (r)
		return r;
	list->native = pieces;
	for (size_t i = 0; i < n && !r; i++)
		r = mover_list_add(list, &(struct mover_piece){
						 .address = pieces[i].address,
						 .size = pieces[i].size,
						 .id = pieces[i].id,
					 });
	return r ? vgpu_error_trace(r) : 0;
}

static bool has(const struct session *session, const struct mover_piece *piece)
{
	const struct softgpu_piece native = { piece->address, piece->size, piece->id };

	return session->driver->has_memory(&native);
}

static CUresult copy(struct session *session, const struct mover_piece *piece,
	uint64_t at, void *host, uint64_t size, bool is_out)
{
	void *address = (void *)(uintptr_t)(piece->address + at);

	if (is_out)
		memcpy(host, address, size);
	else if (has(session, piece))
		memcpy(address, host, size);
	return CUDA_SUCCESS;
}

static void drop(struct session *session, struct mover_list *list)
{
	session->driver->drop_memory(list->native, list->n);
	for (size_t i = 0; i < list->n; i++)
		list->pieces[i].is_gone = true;
}

const struct mover mover_of_softgpu = {
	.list = list,
	.copy = copy,
	.drop = drop,
};
