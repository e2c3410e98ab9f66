/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream can do besides kernels and copies: write words, wait for words, call
 * functions of the program
 */

#include "api/api.h"

static CUresult word_submit(CUstream handle, enum sched_kind kind, uint64_t address,
	uint64_t value, uint32_t size, unsigned int compare)
{
	struct sched_op op = {
		.kind = kind,
		.word = {
			.address = address,
			.value = value,
			.size = size,
			.compare = compare,
		},
	};
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(handle, &stream);
	if (r)
		return r;
	if (address % size || !memory_covers(&softgpu_device.memory, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	return sched_submit(stream, &op, false);
}

static CUresult word_write(CUstream stream, uint64_t address, uint64_t value,
	uint32_t size, unsigned int flags)
{
	if (flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return word_submit(stream, SCHED_WRITE, address, value, size, 0);
}

static CUresult word_wait(CUstream stream, uint64_t address, uint64_t value,
	uint32_t size, unsigned int flags)
{
	_Static_assert((int)SCHED_COMPARE_GEQ == CU_STREAM_WAIT_VALUE_GEQ &&
			       (int)SCHED_COMPARE_EQ == CU_STREAM_WAIT_VALUE_EQ &&
			       (int)SCHED_COMPARE_AND == CU_STREAM_WAIT_VALUE_AND &&
			       (int)SCHED_COMPARE_NOR == CU_STREAM_WAIT_VALUE_NOR,
		"passed on as they are");

	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags >= _SCHED_COMPARE_N)
		return CUDA_ERROR_INVALID_VALUE;
	return word_submit(stream, SCHED_WAIT_VALUE, address, value, size, flags);
}

CUresult cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return word_write(stream, addr, value, 4, flags);
}

CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return word_write(stream, addr, value, 8, flags);
}

CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return word_wait(stream, addr, value, 4, flags);
}

CUresult cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return word_wait(stream, addr, value, 8, flags);
}

static void host_call_function(const struct sched_host *host, int status)
{
	((CUhostFn)host->target)(host->data);
}

static void host_call_callback(const struct sched_host *host, int status)
{
	print_flush(host->owner);
	((CUstreamCallback)host->target)(host->argument, status, host->data);
}

static CUresult host_submit(CUstream handle, const struct sched_host *host)
{
	struct sched_op op = { .kind = SCHED_HOST, .host = *host };
	struct sched_stream *stream;
	CUresult r;

	r = stream_get(handle, &stream);
	if (r)
		return r;
	if (!host->target)
		return CUDA_ERROR_INVALID_VALUE;
	op.host.owner = stream_context(stream);
	return sched_submit(stream, &op, false);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct sched_host host = {
		.function = host_call_function,
		.target = (void *)fn,
		.data = userData,
	};

	return host_submit(hStream, &host);
}

CUresult cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	struct sched_host host = {
		.function = host_call_callback,
		.even_after_fault = true,
		.target = (void *)callback,
		.argument = hStream,
		.data = userData,
	};

	return flags ? CUDA_ERROR_INVALID_VALUE : host_submit(hStream, &host);
}
