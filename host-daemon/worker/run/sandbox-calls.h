/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox calls: the system calls a worker may still make; lists end with NULL
 */

extern const char *const sandbox_calls_common[];
/* In addition, with NVIDIA's driver. */
extern const char *const sandbox_calls_driver[];
