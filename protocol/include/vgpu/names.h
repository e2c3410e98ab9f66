/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of the fields of calls, and of results: for people, not for the protocol
 */

#include <stdint.h>

/* Returns: the fields of a call's request, as "NUMBER NAME" with commas between them; a
 * name after a $ is that of a string. Empty: it has none, or there is no such call. */
const char *vgpu_call_fields(uint32_t call);

/* Returns: the name of a CUresult, or NULL. */
const char *vgpu_result_name(int32_t result);
