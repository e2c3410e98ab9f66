/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox calls: the system calls a worker may still make; lists end with NULL
 */

extern const char *const sandbox_calls_common[];
/* Besides, with a driver that is not ours. */
extern const char *const sandbox_calls_driver[];
