/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's libcuda.so.1 exports: launch */

#include "process/shim.h"
#include "process/thread.h"
#include "process/trace.h"

#define EXPORT __attribute__((__visibility__("default")))

static __attribute__((__cold__, __noinline__)) CUresult traced_cuLaunch(void **params,
	CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuLaunch", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuLaunch", shim_cuLaunch(params, hStream));
	shim_trace_address(&trace, "params", (uintptr_t)params);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuLaunch(void **params, CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuLaunch(params, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuLaunch(params, hStream);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuLaunch_ptsz(
	void **params, CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuLaunch_ptsz", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuLaunch_ptsz", shim_cuLaunch_ptsz(params,
			hStream));
	shim_trace_address(&trace, "params", (uintptr_t)params);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuLaunch_ptsz(void **params, CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuLaunch_ptsz(params, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuLaunch_ptsz(params, hStream);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuGraphLaunch(
	CUgraph graph, CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuGraphLaunch", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuGraphLaunch", shim_cuGraphLaunch(graph,
			hStream));
	shim_trace_address(&trace, "graph", (uintptr_t)graph);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuGraphLaunch(CUgraph graph, CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuGraphLaunch(graph, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuGraphLaunch(graph, hStream);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuGraphLaunch_ptsz(
	CUgraph graph, CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuGraphLaunch_ptsz", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuGraphLaunch_ptsz", shim_cuGraphLaunch_ptsz(
			graph, hStream));
	shim_trace_address(&trace, "graph", (uintptr_t)graph);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraph graph, CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuGraphLaunch_ptsz(graph, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuGraphLaunch_ptsz(graph, hStream);
}
