/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox calls: the system calls that a worker may make, in NULL-terminated lists
 */

extern const char *const sandbox_calls_common[];
/* In addition, with NVIDIA's driver. */
extern const char *const sandbox_calls_driver[];
