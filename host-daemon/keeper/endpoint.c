/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint: the pointers from an endpoint to a VM
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include "keeper/endpoints.h"

void endpoint_forget(struct endpoint *endpoint, const struct held_vm *vm)
{
	if (endpoint->plain == vm)
		endpoint->plain = NULL;
}
