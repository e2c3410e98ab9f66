/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream operations besides kernels and copies: writing words, waiting for words, calling
 * functions of the program
 */

#include "api/capture.h"

CUresult word_describe(struct sched_op *op, const CUstreamBatchMemOpParams *params)
{
	_Static_assert((int)SCHED_COMPARE_GEQ == CU_STREAM_WAIT_VALUE_GEQ &&
			       (int)SCHED_COMPARE_EQ == CU_STREAM_WAIT_VALUE_EQ &&
			       (int)SCHED_COMPARE_AND == CU_STREAM_WAIT_VALUE_AND &&
			       (int)SCHED_COMPARE_NOR == CU_STREAM_WAIT_VALUE_NOR,
		"passed on as they are");
	const unsigned int flags = params->waitValue.flags;
	uint64_t address = params->waitValue.address;
	uint64_t value = params->waitValue.value64;
	uint32_t size = 8;
	bool is_wait = false;

	op->kind = SCHED_NOTHING;
	switch (params->operation) {
	case CU_STREAM_MEM_OP_BARRIER:
		/* Operations of a stream see each other's writes anyway. */
		if (params->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		is_wait = true;
		/* fall through */
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		size = 4;
		value = params->waitValue.value;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		is_wait = true;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (is_wait && flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (is_wait ? flags >= _SCHED_COMPARE_N
		    : flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	if (address % size || !context_reaches(NULL, address, size,
				      is_wait ? SOFTGPU_READ : SOFTGPU_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	op->kind = is_wait ? SCHED_WAIT_VALUE : SCHED_WRITE;
	op->word = (struct sched_word){
		.address = address,
		.value = value,
		.size = size,
		.compare = is_wait ? flags : 0,
	};
	return CUDA_SUCCESS;
}

static CUresult batch_capture(struct sched_stream *stream,
	const CUstreamBatchMemOpParams *ops, unsigned int n, unsigned int flags)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
		.ctx = stream_context(stream),
		.count = n,
		.paramArray = (CUstreamBatchMemOpParams *)ops,
		.flags = flags,
	};
	struct graph_work work;
	CUresult result;

	result = work_batch(&work, &params);
	return result ? result : capture_add(stream, &work);
}

/* All or none: the operations are checked before the first is submitted. */
static CUresult batch_submit(CUstream handle, const CUstreamBatchMemOpParams *ops,
	unsigned int n, unsigned int flags)
{
	struct sched_stream *stream;
	struct sched_op op;
	CUresult result;

	result = stream_get_work(handle, &stream);
	if (result)
		return result;
	if (!ops || !n || n > BATCH_OPS_MAX || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream_is_captured(stream))
		return batch_capture(stream, ops, n, flags);
	for (unsigned int i = 0; i < n && !result; i++)
		result = word_describe(&op, &ops[i]);
	for (unsigned int i = 0; i < n && !result; i++) {
		result = word_describe(&op, &ops[i]);
		if (!result && op.kind != SCHED_NOTHING)
			result = sched_submit(stream, &op, false);
	}
	return result;
}

static CUresult word_submit(CUstream stream, CUstreamBatchMemOpType type,
	uint64_t address, uint64_t value, unsigned int flags)
{
	CUstreamBatchMemOpParams op = {
		.waitValue = {
			.operation = type,
			.address = address,
			.value64 = value,
			.flags = flags,
		},
	};

	return batch_submit(stream, &op, 1, 0);
}

CUresult cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	API_CALL;

	return word_submit(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	API_CALL;

	return word_submit(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	API_CALL;

	return word_submit(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	API_CALL;

	return word_submit(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	API_CALL;

	return batch_submit(stream, paramArray, count, flags);
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
