/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the guest's libcuda.so.1: launch */

#include "g-stubs.h"

CUresult shim_cuLaunch_ptsz(void **params, CUstream hStream)
{
	return shim_cuLaunch(params, per_thread(hStream));
}

CUresult shim_cuGraphLaunch(CUgraph graph, CUstream hStream)
{
	return shim_call_refused(VGPU_CALL_cuGraphLaunch,
		NULL);
}

CUresult shim_cuGraphLaunch_ptsz(CUgraph graph, CUstream hStream)
{
	return shim_call_refused(VGPU_CALL_cuGraphLaunch,
		NULL);
}
