/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does an entry lie within its container?
 */

#include "fatbin/bounds.h"

bool fatbin_entry_fits(size_t left, uint32_t header_size, uint64_t payload_size)
{
	return header_size <= left && payload_size <= left - header_size;
}
