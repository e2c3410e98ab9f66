/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: first forms of calls, which programs built long ago still use
 *
 * No header leads to them any more: they are found by name and version.
 */

#include "e2e.h"

TEST(contexts_are_created_by_either_old_form)
{
	CUcontext first = NULL, second = NULL, current = NULL;
	CUdevice device = -1;
	CUdeviceptr p;

	check_ok(cuInit(0));
	check_ok(CALL("cuCtxCreate", 2000, (CUcontext *, unsigned int, CUdevice), &first,
		0, 0));
	check_ok(CALL("cuCtxCreate", 3020, (CUcontext *, unsigned int, CUdevice), &second,
		0, 0));
	check(first && second && first != second);
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 0);
	check_ok(CALL("cuCtxPopCurrent", 2000, (CUcontext *), &current));
	check(current == second);
	check_ok(CALL("cuCtxPushCurrent", 2000, (CUcontext), first));
	check_ok(cuCtxGetCurrent(&current));
	check(current == first);
	check_ok(cuMemAlloc(&p, 16));
	check_ok(CALL("cuCtxDestroy", 2000, (CUcontext), first));
	check_cu(cuCtxSetCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
	check_ok(CALL("cuCtxDestroy", 2000, (CUcontext), second));
}

TEST(primary_contexts_are_set_reset_and_released)
{
	unsigned int flags = 0;
	CUcontext context;
	CUdeviceptr p;
	int active;

	check_ok(cuInit(0));
	check_ok(CALL("cuDevicePrimaryCtxSetFlags", 7000, (CUdevice, unsigned int), 0,
		CU_CTX_SCHED_YIELD));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(flags, CU_CTX_SCHED_YIELD);
	check_eq(active, 1);
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuMemAlloc(&p, 16));
	check_ok(CALL("cuDevicePrimaryCtxReset", 7000, (CUdevice), 0));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	/* A reset releases no retain. */
	check_ok(CALL("cuDevicePrimaryCtxRelease", 7000, (CUdevice), 0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 1);
	check_ok(CALL("cuDevicePrimaryCtxRelease", 7000, (CUdevice), 0));
	check_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	check_eq(active, 0);
}

TEST(the_device_is_described_as_far_as_old_types_go)
{
	unsigned int old_total = 0, old_free = 0, all = 0;
	CUuuid uuid = {}, old_uuid = {};
	size_t total = 0;

	fixture_new();
	check_ok(cuDeviceTotalMem(&total, 0));
	check_ok(CALL(
		"cuDeviceTotalMem", 2000, (unsigned int *, CUdevice), &old_total, 0));
	check_eq(old_total, total > UINT32_MAX ? UINT32_MAX : total);
	check_ok(CALL(
		"cuMemGetInfo", 2000, (unsigned int *, unsigned int *), &old_free, &all));
	check_eq(all, old_total);
	check(old_free && old_free <= all);
	check_ok(cuDeviceGetUuid(&uuid, 0));
	check_ok(CALL("cuDeviceGetUuid", 9020, (CUuuid *, CUdevice), &old_uuid, 0));
	check(!memcmp(&uuid, &old_uuid, sizeof(uuid)));
}

TEST(streams_events_and_host_memory_go)
{
	CUevent begin, end;
	float ms = -1, new_ms;
	CUstream stream;
	unsigned int *word = NULL;
	CUdeviceptr p;

	fixture_new();
	check_ok(CALL(
		"cuMemAllocHost", 2000, (void **, unsigned int), (void **)&word, 64));
	check_ok(cuMemAlloc(&p, 64));
	check_ok(cuStreamCreate(&stream, 0));
	check_ok(cuEventCreate(&begin, 0));
	check_ok(cuEventCreate(&end, 0));
	check_ok(cuEventRecord(begin, stream));
	check_ok(cuMemsetD8Async(p, 0x5a, 64, stream));
	check_ok(cuEventRecord(end, stream));
	check_ok(cuMemcpyDtoHAsync(word, p, 64, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(word[15], 0x5a5a5a5a);
	check_ok(CALL("cuEventElapsedTime", 2000, (float *, CUevent, CUevent), &ms, begin,
		end));
	check_ok(cuEventElapsedTime(&new_ms, begin, end));
	check(ms >= 0 && ms == new_ms);
	check_ok(CALL("cuEventDestroy", 2000, (CUevent), begin));
	check_cu(cuEventQuery(begin), CUDA_ERROR_INVALID_HANDLE);
	check_ok(CALL("cuStreamDestroy", 2000, (CUstream), stream));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST(streams_write_and_wait_for_words)
{
	CUstream writer, waiter;
	uint64_t *words;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemHostAlloc((void **)&words, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&p, words, 0));
	memset(words, 0, 64);
	check_ok(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
	check_ok(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
	check_ok(CALL("cuStreamWaitValue32", 8000,
		(CUstream, CUdeviceptr, cuuint32_t, unsigned int), waiter, p, 3,
		CU_STREAM_WAIT_VALUE_EQ));
	check_ok(CALL("cuStreamWaitValue64", 9000,
		(CUstream, CUdeviceptr, cuuint64_t, unsigned int), waiter, p + 8,
		1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(CALL("cuStreamWriteValue32", 8000,
		(CUstream, CUdeviceptr, cuuint32_t, unsigned int), waiter, p + 16, 1, 0));
	check_ok(CALL("cuStreamWriteValue32", 8000,
		(CUstream, CUdeviceptr, cuuint32_t, unsigned int), writer, p, 3, 0));
	check_ok(cuStreamSynchronize(writer));
	check_eq(words[0], 3);
	check_eq(words[2], 0);
	check_cu(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
	check_ok(CALL("cuStreamWriteValue64", 9000,
		(CUstream, CUdeviceptr, cuuint64_t, unsigned int), writer, p + 8,
		1ull << 40, 0));
	check_ok(cuStreamSynchronize(waiter));
	check_eq(words[1], 1ull << 40);
	check_eq(words[2], 1);
}

TEST(a_first_batch_writes_words)
{
	CUstreamBatchMemOpParams op = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32 };
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuMemsetD32(p, 1, 4));
	op.writeValue.address = p + 4;
	op.writeValue.value = 0x1234;
	check_ok(CALL("cuStreamBatchMemOp", 8000,
		(CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int), NULL,
		1, &op, 0));
	check_eq(device_word(p + 4), 0x1234);
	check_eq(device_word(p), 1);
}

TEST(the_first_look_up_finds_the_same)
{
	void *alloc = NULL, *again = NULL;

	check_ok(cuInit(0));
	check_ok(CALL("cuGetProcAddress", 11030, (const char *, void **, int, cuuint64_t),
		"cuMemAlloc", &alloc, 13000, CU_GET_PROC_ADDRESS_DEFAULT));
	check_ok(cuGetProcAddress("cuMemAlloc", &again, 13000, 0, NULL));
	check(alloc && alloc == again);
}

TEST(arrays_are_made_described_and_copied_by_the_old_forms)
{
	const CUDA_ARRAY_DESCRIPTOR_v1 wanted = { 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	const CUDA_ARRAY3D_DESCRIPTOR_v1 wanted_3d = { 64, 2, 2,
		CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED };
	CUDA_ARRAY3D_DESCRIPTOR_v1 got_3d = {};
	CUDA_ARRAY_DESCRIPTOR_v1 got = {};
	CUarray array = NULL, other = NULL;
	uint8_t in[64], out[64] = {};

	fixture_new();
	for (int i = 0; i < 64; i++)
		in[i] = (uint8_t)(7 * i + 1);
	check_ok(CALL("cuArrayCreate", 2000,
		(CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *), &array, &wanted));
	check_ok(CALL("cuArray3DCreate", 2000,
		(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *), &other, &wanted_3d));
	check_ok(CALL("cuArrayGetDescriptor", 2000, (CUDA_ARRAY_DESCRIPTOR_v1 *, CUarray),
		&got, array));
	check_eq(got.Width, 64);
	check_eq(got.NumChannels, 1);
	check_ok(CALL("cuArray3DGetDescriptor", 2000,
		(CUDA_ARRAY3D_DESCRIPTOR_v1 *, CUarray), &got_3d, other));
	check_eq(got_3d.Height, 2);
	check_eq(got_3d.Depth, 2);
	check_eq(got_3d.Flags, CUDA_ARRAY3D_LAYERED);
	check_ok(CALL("cuMemcpyHtoA", 2000,
		(CUarray, unsigned int, const void *, unsigned int), array, 0, in, 64));
	check_ok(CALL("cuMemcpyAtoA", 2000,
		(CUarray, unsigned int, CUarray, unsigned int, unsigned int), other, 32,
		array, 16, 32));
	check_ok(CALL("cuMemcpyAtoH", 2000, (void *, CUarray, unsigned int, unsigned int),
		out, other, 32, 32));
	check(!memcmp(out, in + 16, 32));
	check_ok(CALL("cuMemcpyHtoAAsync", 2000,
		(CUarray, unsigned int, const void *, unsigned int, CUstream), other, 0,
		in, 64, NULL));
	check_ok(CALL("cuMemcpyAtoHAsync", 2000,
		(void *, CUarray, unsigned int, unsigned int, CUstream), out, other, 0,
		64, NULL));
	check_ok(cuStreamSynchronize(NULL));
	check(!memcmp(out, in, 64));
}

/* Lays the parameters of `fill` out as the kernel has them. */
static void set_fill(CUfunction fill, CUdeviceptr p, unsigned int value, unsigned int n)
{
	check_ok(cuParamSetv(fill, 0, &p, sizeof(p)));
	check_ok(cuParamSeti(fill, 8, value));
	check_ok(cuParamSeti(fill, 12, n));
	check_ok(cuParamSetSize(fill, 16));
}

TEST(functions_keep_what_the_next_launch_takes)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUfunction dynamic = fixture_function(&fixture, "dynamic_shared");
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuMemsetD32(p, 0, 1024));
	/* No block size has been set yet. */
	set_fill(fill, p, 3, 1024);
	check_cu(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuFuncSetBlockShape(fill, 64, 1, 1));
	check_ok(cuLaunch(fill));
	check_eq(device_word(p + 63 * 4), 3);
	check_eq(device_word(p + 64 * 4), 0);
	check_ok(cuParamSeti(fill, 8, 4));
	check_ok(cuLaunchGrid(fill, 8, 2));
	check_eq(device_word(p), 4);
	check_eq(device_word(p + 511 * 4), 4);
	check_eq(device_word(p + 512 * 4), 0);
	check_ok(cuParamSeti(fill, 8, 5));
	check_ok(cuLaunchGridAsync(fill, 16, 1, stream));
	/* Parameters may change after the launch has copied them. */
	check_ok(cuParamSeti(fill, 8, 6));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p + 1023 * 4), 5);
	/* Another function has its own. */
	check_ok(cuFuncSetBlockShape(dynamic, 128, 1, 1));
	check_ok(cuFuncSetSharedSize(dynamic, 128 * 4));
	check_ok(cuParamSetv(dynamic, 0, &p, sizeof(p)));
	check_ok(cuParamSeti(dynamic, 8, 128));
	check_ok(cuParamSetSize(dynamic, 12));
	check_ok(cuLaunch(dynamic));
	check_eq(device_word(p + 4), 126 * 126);
	check_ok(cuFuncSetSharedSize(dynamic, 1 << 30));
	check_cu(cuLaunch(dynamic), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory_is_registered_by_the_old_form)
{
	void *memory = malloc(8192);
	int has = 0;

	fixture_new();
	check_ok(cuDeviceGetAttribute(
		&has, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0));
	if (!has)
		test_skip("the device cannot have memory registered in this process");
	check_ok(CALL("cuMemHostRegister", 4000, (void *, size_t, unsigned int), memory,
		8192, 0));
	check_ok(cuMemHostUnregister(memory));
	free(memory);
}

TEST(parameters_of_old_launches_lie_where_they_are_put)
{
	struct fixture fixture = fixture_new();
	CUfunction pack = fixture_function(&fixture, "pack");
	char a = -3;
	double b = 2.5, out[6];
	short c = -400;
	long long f = 1ll << 40;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, sizeof(out)));
	check_ok(cuFuncSetBlockShape(pack, 1, 1, 1));
	check_ok(cuParamSetv(pack, 0, &a, sizeof(a)));
	check_ok(cuParamSetv(pack, 8, &b, sizeof(b)));
	check_ok(cuParamSetv(pack, 16, &c, sizeof(c)));
	check_ok(cuParamSeti(pack, 20, 70000));
	check_ok(cuParamSetf(pack, 24, 0.125f));
	check_ok(cuParamSetv(pack, 32, &f, sizeof(f)));
	check_ok(cuParamSetv(pack, 40, &p, sizeof(p)));
	check_ok(cuParamSetSize(pack, 48));
	check_ok(cuLaunch(pack));
	check_ok(cuMemcpyDtoH(out, p, sizeof(out)));
	check(out[0] == -3 && out[1] == 2.5 && out[2] == -400);
	check(out[3] == 70000 && out[4] == 0.125 && out[5] == (double)(1ll << 40));
}

/* Their numbers have a sign, and their grids two dimensions. */
TEST(a_shape_that_no_grid_has_is_refused_by_old_launches)
{
	static const int shapes[][5] = { { 0, 1, 1, 1, 1 }, { 1, 0, 1, 1, 1 },
		{ 0, 0, 1, 1, 1 }, { -1, 1, 1, 1, 1 }, { 1, -1, 1, 1, 1 },
		{ INT32_MIN, 1, 1, 1, 1 }, { 1, 65536, 1, 1, 1 },
		{ 1, INT32_MAX, 1, 1, 1 }, { 1, 1, 1025, 1, 1 }, { 1, 1, 1, 1, 65 },
		{ 1, 1, 1024, 2, 1 }, { 1, 1, INT32_MAX, INT32_MAX, INT32_MAX },
		{ 1, 1, 0, 1, 1 }, { 1, 1, 1, 0, 1 }, { 1, 1, 1, 1, 0 } };
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUdeviceptr p;
	CUresult r;

	check_ok(cuMemAlloc(&p, 4));
	set_fill(fill, p, 7, 1);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const int *s = shapes[i];

		for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
			r = cuFuncSetBlockShape(fill, s[2], s[3], s[4]);
			if (!r && asynchronous)
				r = cuLaunchGridAsync(fill, s[0], s[1], NULL);
			else if (!r)
				r = cuLaunchGrid(fill, s[0], s[1]);
			if (r != CUDA_ERROR_INVALID_VALUE)
				test_fail(__FILE__, __LINE__, "shape %zu is %d", i, r);
		}
	}
	check_ok(cuFuncSetBlockShape(fill, 1, 1, 1));
	check_ok(cuLaunchGrid(fill, 1, 1));
	check_eq(device_word(p), 7);
}

TEST(old_launches_are_refused_what_cannot_be)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUfunction none = (CUfunction)0x1234567890abull;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	set_fill(fill, p, 7, 1);
	check_ok(cuFuncSetBlockShape(fill, 1, 1, 1));
	check_cu(cuFuncSetBlockShape(fill, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuFuncSetBlockShape(fill, 1, -1, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSetSize(fill, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSeti(fill, -4, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSetf(fill, 32764, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSetv(fill, 0, NULL, 4), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSetv(fill, 32760, &p, 8), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuParamSetv(fill, 8, &p, ~0u), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchGrid(fill, 0, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchGrid(fill, 1, -1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchGridAsync(fill, 1, 1, (CUstream)0x1234567890abull),
		CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuFuncSetSharedSize(none, 0), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuParamSetSize(none, 0), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuLaunch(none), CUDA_ERROR_INVALID_HANDLE);
	/* These calls did not change the settings. */
	check_ok(cuLaunch(fill));
	check_eq(device_word(p), 7);
}
