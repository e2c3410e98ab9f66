/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Machine code in an image that has no PTX: for the message that says so
 */

#include <stddef.h>

#define MACHINE_CODE_TEXT_MAX 160u

/*
 * Writes for what the image has machine code, and the name of a kernel, such as "machine
 * code for sm_80, sm_90 (kernel add and 3 more)"; an empty text if it has none. Names are
 * those of the image: other bytes than printable ones of ASCII become '?'.
 */
void machine_code_describe(
	const void *bytes, size_t size, char text[MACHINE_CODE_TEXT_MAX]);
