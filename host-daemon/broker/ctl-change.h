/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl change: another configuration by vgpuctl
 */

#include <stdbool.h>

#include "vgpu-ctl.pb-c.h"

struct broker;
struct ctl_client;

/*
 * Makes the configuration that a request asks for, and sends it to the keeper with the
 * client's connection.
 *
 * Return: whether it was sent; if not, the reply has the result. Its reason is freed by
 * ctl_change_free().
 */
bool ctl_change(struct broker *broker, const struct ctl_client *client,
	const VgpuCtl__Request *request, VgpuCtl__Reply *reply);
void ctl_change_free(VgpuCtl__Reply *reply);
