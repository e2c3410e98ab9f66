/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the process, as all calls read it; entry/open.c changes it
 */

#include "process/shim.h"

static const uint32_t never_opened = SHIM_NEW;
const uint32_t *shim_statep = &never_opened;

CUresult shim_why_not_ready(void)
{
	if (__atomic_load_n(shim_statep, __ATOMIC_ACQUIRE) != SHIM_CLOSED)
		return CUDA_ERROR_NOT_INITIALIZED;
	return CUDA_ERROR_DEINITIALIZED;
}
