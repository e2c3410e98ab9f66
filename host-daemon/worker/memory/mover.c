/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mover: how the memory of a driver leaves the device and comes back
 */

#include <errno.h>
#include <stdlib.h>

#include "vgpu/error.h"
#include "worker/memory/mover.h"

int mover_list_add(struct mover_list *list, const struct mover_piece *piece)
{
	if (list->n == list->max) {
		const size_t max = list->max ? 2 * list->max : 64;
		struct mover_piece *pieces =
			reallocarray(list->pieces, max, sizeof(*pieces));

		if (!pieces)
			return vgpu_error_origin(-ENOMEM);
		list->pieces = pieces;
		list->max = max;
	}
	list->pieces[list->n++] = *piece;
	return 0;
}

void mover_list_deinit(struct mover_list *list)
{
	free(list->pieces);
	free(list->native);
	*list = (struct mover_list){};
}
