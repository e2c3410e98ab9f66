/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint: one way in, and what came by it
 *
 * A file of its own because a fuzz target is built with one that is wrong.
 */

#include "keeper/endpoints.h"

void endpoint_forget(struct endpoint *endpoint, const struct held_vm *vm)
{
	if (endpoint->plain == vm)
		endpoint->plain = NULL;
}
