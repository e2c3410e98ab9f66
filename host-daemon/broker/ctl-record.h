/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl record: gives a guest process that begins to whoever waits to record it
 */

#include "control/ctl-message.h"

struct broker;

/*
 * Begins to wait for a process.
 *
 * @fdp:	on success the socket from which the client reads the recording, the
 *		caller's; else -1, and the reply has the reason
 */
void ctl_record_reply(struct broker *broker, const VgpuCtl__Record *record,
	VgpuCtl__Reply *reply, int *fdp);
