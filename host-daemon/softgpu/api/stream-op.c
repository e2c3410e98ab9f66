/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream operations besides kernels and copies: writing words, waiting for words, calling
 * functions of the program
 */

#include "api/capture.h"

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
	CUresult result;

	result = stream_get(handle, &stream);
	if (result)
		return result;
	if (address % size || !context_reaches(address, size,
				      kind == SCHED_WRITE ? SOFTGPU_WRITE : SOFTGPU_READ))
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
	API_CALL;

	return word_write(stream, addr, value, 4, flags);
}

CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	API_CALL;

	return word_write(stream, addr, value, 8, flags);
}

CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	API_CALL;

	return word_wait(stream, addr, value, 4, flags);
}

CUresult cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	API_CALL;

	return word_wait(stream, addr, value, 8, flags);
}

/* Return: whether an operation of a batch can be carried out. */
static CUresult batch_check(const CUstreamBatchMemOpParams *op)
{
	uint64_t address = op->writeValue.address;
	uint32_t size = 8;
	bool is_wait;

	switch (op->operation) {
	case CU_STREAM_MEM_OP_BARRIER:
		if (op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		size = 4;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	is_wait = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		  op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	if (is_wait) {
		if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (op->waitValue.flags >= _SCHED_COMPARE_N)
			return CUDA_ERROR_INVALID_VALUE;
	} else if (op->writeValue.flags &
		   ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (address % size ||
		!context_reaches(address, size, is_wait ? SOFTGPU_READ : SOFTGPU_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult batch_submit(CUstream stream, const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return word_write(stream, op->writeValue.address, op->writeValue.value, 4,
			op->writeValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return word_write(stream, op->writeValue.address, op->writeValue.value64,
			8, op->writeValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return word_wait(stream, op->waitValue.address, op->waitValue.value, 4,
			op->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return word_wait(stream, op->waitValue.address, op->waitValue.value64, 8,
			op->waitValue.flags);
	default:
		/* Operations of a stream see each other's writes anyway. */
		return CUDA_SUCCESS;
	}
}

/* All or none: the operations are checked before the first is submitted. */
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	API_CALL;
	struct sched_stream *found;
	CUresult result;

	result = stream_get(stream, &found);
	if (result)
		return result;
	if (!paramArray || !count || count > 255 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count && !result; i++)
		result = batch_check(&paramArray[i]);
	for (unsigned int i = 0; i < count && !result; i++)
		result = batch_submit(stream, &paramArray[i]);
	return result;
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
	CUresult result;

	result = stream_get(handle, &stream);
	if (result)
		return result;
	if (!host->target)
		return CUDA_ERROR_INVALID_VALUE;
	op.host.owner = stream_context(stream);
	return sched_submit(stream, &op, false);
}

static CUresult host_capture(struct sched_stream *stream, CUhostFn fn, void *data)
{
	const CUDA_HOST_NODE_PARAMS params = { .fn = fn, .userData = data };
	struct graph_work work;
	CUresult result;

	result = work_host(&work, &params);
	return result ? result : capture_add(stream, &work);
}

void host_describe(struct sched_host *host, CUhostFn fn, void *data)
{
	*host = (struct sched_host){
		.function = host_call_function,
		.target = (void *)fn,
		.data = data,
	};
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	API_CALL;
	struct sched_stream *stream;
	struct sched_host host;
	CUresult result;

	result = stream_get_work(hStream, &stream);
	if (result)
		return result;
	if (stream_is_captured(stream))
		return host_capture(stream, fn, userData);
	host_describe(&host, fn, userData);
	return host_submit(hStream, &host);
}

CUresult cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	API_CALL;
	struct sched_host host = {
		.function = host_call_callback,
		.even_after_fault = true,
		.target = (void *)callback,
		.argument = hStream,
		.data = userData,
	};

	return flags ? CUDA_ERROR_INVALID_VALUE : host_submit(hStream, &host);
}
