/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Greeting: whether the guest of a machine has sent its boot id
 */

#include <stdbool.h>

#include "control/ctl-message.h"
#include "ctl/client.h"
#include "ctl/ctl.h"

/*
 * Asks vgpud until a guest of the machine has greeted, at most so many seconds. It says
 * on standard error what it waits for, and that the time has passed.
 *
 * Return: CTL_OK, CTL_SILENT, or the status of a failure, which is printed.
 */
enum ctl_status greeting_wait(struct client *client, const char *vm, unsigned int seconds,
	VgpuCtl__Greeting *greetingp);
