/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: a table's start and its length are each within the image, their sum
 * is not looked at
 *
 * Built instead of host-daemon/worker/code/image-table.c into the target that must find
 * it.
 */

#include "vgpu/checked.h"

#include "worker/code/image-table.h"

bool image_table_is_contained(uint64_t start, uint64_t n, uint64_t entry, size_t size)
{
	uint64_t length;

	return vgpu_mul_u64(n, entry, &length) && start <= size && length <= size;
}
