/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which wake-ups are lost: none
 */

#include "vgpu/wake.h"

bool vgpu_wake_is_lost(void)
{
	return false;
}
