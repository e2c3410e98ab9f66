/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl verbs: what a request of vgpuctl is answered with
 */

#include "vgpu-ctl.pb-c.h"

struct broker;
struct ctl_client;

/* Fills in replies. Lists in them are freed by ctl_verbs_free(). */
void ctl_verbs_list(
	struct broker *broker, const VgpuCtl__List *list, VgpuCtl__Reply *reply);
void ctl_verbs_show(
	struct broker *broker, const VgpuCtl__Show *show, VgpuCtl__Reply *reply);
void ctl_verbs_free(VgpuCtl__Reply *reply);
