/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the guest's libcuda.so.1: launch */

#include "g-stubs.h"

SHIM_EXPORT CUresult cuLaunch_ptsz(void **params, CUstream hStream)
{
	return cuLaunch(params, per_thread(hStream));
}

SHIM_EXPORT CUresult cuGraphLaunch(CUgraph graph, CUstream hStream)
{
	return shim_call_refused(VGPU_CALL_cuGraphLaunch);
}

SHIM_EXPORT CUresult cuGraphLaunch_ptsz(CUgraph graph, CUstream hStream)
{
	return shim_call_refused(VGPU_CALL_cuGraphLaunch);
}
