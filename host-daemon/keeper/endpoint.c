/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Door: one way in, and what came by it
 *
 * A file of its own because a fuzz target is built with one that is wrong.
 */

#include "keeper/endpoints.h"

void door_forget(struct door *door, const struct held_vm *vm)
{
	if (door->plain == vm)
		door->plain = NULL;
}
