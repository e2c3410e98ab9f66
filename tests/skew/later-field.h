/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Later field: what a later release adds to each message, number 2000, with a value of
 * bytes
 */

#include <stdint.h>
#include <string.h>

#define LATER_FIELD_SIZE 8u

static inline void later_field_put(uint8_t *out)
{
	/* The tag, the length and the bytes. */
	static const uint8_t field[LATER_FIELD_SIZE] = { 0x82, 0x7d, 5, 'l', 'a', 't',
		'e', 'r' };

	memcpy(out, field, sizeof(field));
}
