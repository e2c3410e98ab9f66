/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: the payload of an entry is compared with the wrong number
 *
 * Built instead of host-daemon/softgpu/fatbin/bounds.c where the build option
 * planted_bug is fatbin-bounds. The header's size is left out of what the payload
 * may take, so that a payload may reach past the end of the container.
 */

#include "fatbin/bounds.h"

bool fatbin_entry_fits(size_t left, uint32_t header_size, uint64_t payload_size)
{
	return header_size <= left && payload_size <= left;
}
