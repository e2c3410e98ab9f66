/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's libcuda.so.1 exports: small */

#include "process/shim.h"
#include "process/thread.h"
#include "process/trace.h"

#define EXPORT __attribute__((__visibility__("default")))

static __attribute__((__cold__, __noinline__)) CUresult traced_cuInit(unsigned int Flags)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuInit", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuInit", shim_cuInit(Flags));
	shim_trace_unsigned(&trace, "Flags", Flags);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuInit(unsigned int Flags)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuInit(Flags);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuInit(Flags);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuNameOf(int number,
	const char **name)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	shim_trace_result(&trace, "cuNameOf", shim_cuNameOf(number, name));
	shim_trace_signed(&trace, "number", number);
	shim_trace_output(&trace, "name", name, sizeof(*name), SHIM_TRACE_ADDRESS);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuNameOf(int number, const char **name)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuNameOf(number, name);
	return shim_cuNameOf(number, name);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuNumberOf(
	const char *name, size_t *number)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuNumberOf", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuNumberOf", shim_cuNumberOf(name, number));
	shim_trace_string(&trace, "name", name);
	shim_trace_output(&trace, "number", number, sizeof(*number), SHIM_TRACE_UNSIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuNumberOf(const char *name, size_t *number)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuNumberOf(name, number);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuNumberOf(name, number);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuNumberOf_ptds(
	const char *name, size_t *number)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuNumberOf_ptds", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuNumberOf_ptds", shim_cuNumberOf_ptds(name,
			number));
	shim_trace_string(&trace, "name", name);
	shim_trace_output(&trace, "number", number, sizeof(*number), SHIM_TRACE_UNSIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuNumberOf_ptds(const char *name, size_t *number)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuNumberOf_ptds(name, number);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuNumberOf_ptds(name, number);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuNumber(const char *name,
	size_t *number)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuNumber", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuNumber", shim_cuNumber(name, number));
	shim_trace_string(&trace, "name", name);
	shim_trace_output(&trace, "number", number, sizeof(*number), SHIM_TRACE_UNSIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuNumber(const char *name, size_t *number)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuNumber(name, number);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuNumber(name, number);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuStreamGetPriority(
	CUstream hStream, int *priority)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuStreamGetPriority", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuStreamGetPriority", shim_cuStreamGetPriority(
			hStream, priority));
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	shim_trace_output(&trace, "priority", priority, sizeof(*priority),
		SHIM_TRACE_SIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuStreamGetPriority(hStream, priority);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuStreamGetPriority(hStream, priority);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuStreamGetPriority_ptsz(
	CUstream hStream, int *priority)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuStreamGetPriority_ptsz", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuStreamGetPriority_ptsz", shim_cuStreamGetPriority_ptsz(
			hStream, priority));
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	shim_trace_output(&trace, "priority", priority, sizeof(*priority),
		SHIM_TRACE_SIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuStreamGetPriority_ptsz(CUstream hStream, int *priority)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuStreamGetPriority_ptsz(hStream, priority);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuStreamGetPriority_ptsz(hStream, priority);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuMemsetD16Async(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuMemsetD16Async", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuMemsetD16Async", shim_cuMemsetD16Async(
			dstDevice, us, N, hStream));
	shim_trace_address(&trace, "dstDevice", (uintptr_t)dstDevice);
	shim_trace_unsigned(&trace, "us", us);
	shim_trace_unsigned(&trace, "N", N);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuMemsetD16Async(dstDevice, us, N, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuMemsetD16Async(dstDevice, us, N, hStream);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuMemsetD16Async_ptsz(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuMemsetD16Async_ptsz", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuMemsetD16Async_ptsz", shim_cuMemsetD16Async_ptsz(
			dstDevice, us, N, hStream));
	shim_trace_address(&trace, "dstDevice", (uintptr_t)dstDevice);
	shim_trace_unsigned(&trace, "us", us);
	shim_trace_unsigned(&trace, "N", N);
	shim_trace_address(&trace, "hStream", (uintptr_t)hStream);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuMemsetD16Async_ptsz(dstDevice, us, N, hStream);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuMemsetD16Async_ptsz(dstDevice, us, N, hStream);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuMemAlloc(
	unsigned int *dptr, unsigned int bytesize)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuMemAlloc", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuMemAlloc", shim_cuMemAlloc(dptr, bytesize));
	shim_trace_output(&trace, "dptr", dptr, sizeof(*dptr), SHIM_TRACE_UNSIGNED);
	shim_trace_unsigned(&trace, "bytesize", bytesize);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuMemAlloc(unsigned int *dptr, unsigned int bytesize)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuMemAlloc(dptr, bytesize);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuMemAlloc(dptr, bytesize);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuMemAlloc_v2(
	CUdeviceptr *dptr, size_t bytesize)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuMemAlloc_v2", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuMemAlloc_v2", shim_cuMemAlloc_v2(dptr,
			bytesize));
	shim_trace_output(&trace, "dptr", dptr, sizeof(*dptr), SHIM_TRACE_ADDRESS);
	shim_trace_unsigned(&trace, "bytesize", bytesize);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuMemAlloc_v2(dptr, bytesize);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuMemAlloc_v2(dptr, bytesize);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuEventDestroy(
	CUevent hEvent)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuEventDestroy", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuEventDestroy", shim_cuEventDestroy(hEvent));
	shim_trace_address(&trace, "hEvent", (uintptr_t)hEvent);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuEventDestroy(CUevent hEvent)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuEventDestroy(hEvent);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuEventDestroy(hEvent);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuEventQuery(
	CUevent hEvent)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuEventQuery", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuEventQuery", shim_cuEventQuery(hEvent));
	shim_trace_address(&trace, "hEvent", (uintptr_t)hEvent);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuEventQuery(CUevent hEvent)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuEventQuery(hEvent);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuEventQuery(hEvent);
}

static __attribute__((__cold__, __noinline__)) CUresult traced_cuFind(size_t *found,
	const char *name, int *count)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	if (shim_thread_must_not_call())
		shim_trace_result(&trace, "cuFind", CUDA_ERROR_NOT_PERMITTED);
	else
		shim_trace_result(&trace, "cuFind", shim_cuFind(found, name, count));
	shim_trace_output(&trace, "found", found, sizeof(*found), SHIM_TRACE_UNSIGNED);
	shim_trace_string(&trace, "name", name);
	shim_trace_output(&trace, "count", count, sizeof(*count), SHIM_TRACE_SIGNED);
	return shim_trace_end(&trace);
}

EXPORT CUresult cuFind(size_t *found, const char *name, int *count)
{
	if (__builtin_expect(shim_trace_is_on, 0))
		return traced_cuFind(found, name, count);
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_cuFind(found, name, count);
}
