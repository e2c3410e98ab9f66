/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the memory of other devices
 */

#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/peer.h"

int rt_peer_enable(int peer, unsigned int flags)
{
	CUcontext context;
	int error = rt_context_get(peer, &context);

	return error ? error : (int)rt_driver.cuCtxEnablePeerAccess(context, flags);
}

int rt_peer_disable(int peer)
{
	CUcontext context;
	int error = rt_context_get(peer, &context);

	return error ? error : (int)rt_driver.cuCtxDisablePeerAccess(context);
}
