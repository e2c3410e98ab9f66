/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl trace: passes the events of a worker on to vgpuctl
 */

#include "control/ctl-message.h"

struct broker;

void ctl_trace_reply(
	struct broker *broker, const VgpuCtl__Trace *trace, VgpuCtl__Reply *reply);

/* Frees what ctl_trace_reply() has put into a reply. */
void ctl_trace_free(VgpuCtl__Reply *reply);
