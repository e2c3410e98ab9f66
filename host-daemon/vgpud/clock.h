/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clock: the time by which vgpud waits
 */

#include <stdint.h>

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t clock_now(void);
