/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clock: the monotonic clock of vgpud
 */

#include <stdint.h>

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t clock_now(void);
