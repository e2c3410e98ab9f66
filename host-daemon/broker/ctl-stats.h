/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl stats: the verb that tells how long calls took
 */

#include "vgpu-ctl.pb-c.h"

struct broker;

/* Fills in a reply, whose list ctl_stats_free() frees. */
void ctl_stats_reply(
	struct broker *broker, const VgpuCtl__Stats *request, VgpuCtl__Reply *reply);
void ctl_stats_free(VgpuCtl__Reply *reply);
