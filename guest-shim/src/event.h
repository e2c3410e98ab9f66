/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events: their handles are chosen here, so that creating one needs no answer
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

/* Chooses a handle. Return: NULL when there are 2^20 events. */
CUevent shim_event_new(void);

/* Gives a handle up. Return: false where there is no such event. */
bool shim_event_free(CUevent event);

bool shim_event_exists(CUevent event);
