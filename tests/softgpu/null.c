/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Null driver: a caller continues as if something had been done
 */

#include "api.h"
#include "softgpu.h"

TEST(the_null_driver_has_a_name_and_a_program_runs_on_it)
{
	uint64_t word = 0;
	char name[64];
	CUcontext context;
	CUdeviceptr one, two;
	CUmodule module;
	CUfunction function;
	CUstream stream;
	CUevent event;
	size_t offset, size;
	void *params[] = { &one, &offset };

	check_ok(cuInit(0));
	check_ok(cuDeviceGetName(name, sizeof(name), 0));
	check_str(name, "vGPU null driver");
	check_eq(softgpu_set_window(0x5000000000, 1ull << 40, 0, 0), 0);
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuMemAlloc(&one, 1000));
	check_ok(cuMemAlloc(&two, 1000));
	check(one >= 0x5000000000 && two >= one + 1000);
	check_ok(cuModuleLoadDataEx(&module, kernels_ptx, 0, NULL, NULL));
	check_ok(cuModuleGetFunction(&function, module, "store"));
	check_cu(cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
	check_ok(cuFuncGetParamInfo(function, 1, &offset, &size));
	check_eq(offset, 8);
	check_eq(size, 4);
	check_cu(cuFuncGetParamInfo(function, 2, &offset, &size),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuEventCreate(&event, 0));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	check_ok(cuMemcpyHtoDAsync(one, &word, 8, stream));
	check_ok(cuEventRecord(event, stream));
	check_ok(cuEventQuery(event));
	check_ok(cuStreamWriteValue64(stream, (uintptr_t)&word, 5, 0));
	check_eq(word, 5);
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuModuleUnload(module));
}

TEST(the_null_driver_captures_and_launches_graphs_of_nothing)
{
	CUstreamCaptureStatus status;
	CUgraphExec exec, other;
	CUgraph graph, added;
	CUgraphNode node;
	CUstream stream;
	size_t n = 9;

	check_ok(cuInit(0));
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_ok(cuStreamIsCapturing(stream, &status));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	check_ok(cuStreamEndCapture(stream, &graph));
	check_ok(cuStreamIsCapturing(stream, &status));
	check_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
	check_cu(cuStreamEndCapture(stream, &added), CUDA_ERROR_ILLEGAL_STATE);
	check_ok(cuGraphCreate(&added, 0));
	check(added != graph);
	check_ok(cuGraphAddEmptyNode(&node, added, NULL, 0));
	check_ok(cuGraphGetNodes(added, NULL, &n));
	check_eq(n, 0);
	check_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check_ok(cuGraphInstantiateWithFlags(&other, added, 0));
	check(exec != other);
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}
