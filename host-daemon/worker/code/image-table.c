/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image table: whether a table in an image stays within the image's bytes
 */

#include "vgpu/checked.h"

#include "worker/code/image-table.h"

bool image_table_is_contained(uint64_t start, uint64_t n, uint64_t entry, size_t size)
{
	uint64_t length;

	return vgpu_mul_u64(n, entry, &length) &&
	       vgpu_range_within(start, length, 0, size);
}
