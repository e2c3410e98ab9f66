/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clock: the time by which vgpud waits
 */

#include <stdint.h>

/* Milliseconds of a clock that never goes back. */
int64_t clock_now(void);
