/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session: the state of one guest process in its worker
 */

#include "vgpu/log.h"
#include "vgpu/wake.h"
#include "worker/base/session.h"

void session_ring(struct session *session)
{
	if (session->doorbell >= 0 && vgpu_wake_eventfd(session->doorbell))
		vgpu_log_debug("the dispatcher cannot be woken");
}
