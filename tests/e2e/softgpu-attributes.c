/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: every documented attribute and limit, on softgpu with default settings
 *
 * The expected values are in protocol/api/attributes.xml. Unlike the other programs here
 * this one depends on softgpu: another device has other attributes.
 */

#include <stdio.h>

#include "e2e.h"

#define SAMPLES_MAX 3

struct attribute_row {
	const char *name;
	int number;
	const char *values[SAMPLES_MAX];
};

#include "g-attribute-rows.h"

#define N_OF(_array) (sizeof(_array) / sizeof(*(_array)))

/* The subjects of the rows of CUfunction_attribute. */
static const char sample_ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".const .align 4 .b8 table[64];\n"
	".visible .entry sample(.param .u64 to)\n.maxntid 256, 1, 1\n{\n"
	".reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n"
	".shared .align 4 .b8 block[512];\n.local .align 8 .b8 frame[128];\n"
	"ld.param.u64 %rd1, [to];\n"
	"mov.u64 %rd2, table;\nld.const.u32 %r1, [%rd2];\n"
	"mov.u64 %rd3, block;\nst.shared.u32 [%rd3], %r1;\n"
	"mov.u64 %rd4, frame;\nst.local.u32 [%rd4], %r1;\n"
	"st.global.u32 [%rd1], %r1;\nret;\n}\n";

static bool is_number(const char *text)
{
	return *text == '-' || (*text >= '0' && *text <= '9');
}

/* Fails the test if the result of a call differs from the row. */
static void check_row(const struct attribute_row *row, unsigned int sample,
	CUresult result, long long value)
{
	const char *expected = row->values[sample], *name = "?";
	long long least, most;

	if (!is_number(expected)) {
		cuGetErrorName(result, &name);
		if (strcmp(name, expected))
			test_fail(__FILE__, __LINE__, "%s is %s, not %s", row->name, name,
				expected);
		return;
	}
	if (sscanf(expected, "%lld..%lld", &least, &most) == 1)
		most = least;
	if (result != CUDA_SUCCESS || value < least || value > most)
		test_fail(__FILE__, __LINE__, "%s is %lld (%d), not %s", row->name, value,
			result, expected);
}

TEST(device_attributes_are_as_described)
{
	check_ok(cuInit(0));
	for (size_t i = 0; i < N_OF(rows_CUdevice_attribute); i++) {
		const struct attribute_row *row = &rows_CUdevice_attribute[i];
		int value = -12345;
		CUresult result;

		result = cuDeviceGetAttribute(&value, (CUdevice_attribute)row->number, 0);
		check_row(row, 0, result, value);
	}
}

static unsigned int attribute(CUdevice_attribute number)
{
	int value = 0;

	check_ok(cuDeviceGetAttribute(&value, number, 0));
	return (unsigned int)value;
}

#define TEXTURE(_name) CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE##_name
#define SURFACE(_name) CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE##_name
#define LAYERED CUDA_ARRAY3D_LAYERED
#define CUBEMAP CUDA_ARRAY3D_CUBEMAP
#define GATHER CUDA_ARRAY3D_TEXTURE_GATHER
#define SURF CUDA_ARRAY3D_SURFACE_LDST
#define SQUARE 1 /* height is as width */

/* An array whose one side is as the attribute says is made; one larger is not. */
static void check_array(CUdevice_attribute number, char side, size_t height, size_t depth,
	unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = { .Width = 1,
		.Height = height,
		.Depth = depth,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1,
		.Flags = flags };
	unsigned int limit = attribute(number);
	unsigned int step = flags & CUBEMAP && side == 'd' ? 6 : 1;
	CUarray array;

	for (unsigned int over = 0; over < 2; over++) {
		size_t size = limit + over * step;

		if (side == 'w')
			descriptor.Width = size;
		else if (side == 'h')
			descriptor.Height = size;
		else
			descriptor.Depth = size;
		if (flags & CUBEMAP && side == 'w')
			descriptor.Height = size;
		if (over)
			check_cu(cuArray3DCreate(&array, &descriptor),
				CUDA_ERROR_INVALID_VALUE);
		else if (!(flags & CUBEMAP && side == 'w')) { /* gigabytes */
			check_ok(cuArray3DCreate(&array, &descriptor));
			check_ok(cuArrayDestroy(array));
		}
	}
}

TEST(arrays_are_as_large_as_attributes_say_and_no_larger)
{
	static const struct {
		CUdevice_attribute number;
		char side;
		size_t height, depth;
		unsigned int flags;
	} cases[] = {
		{ TEXTURE(1D_WIDTH), 'w', 0, 0, 0 },
		{ TEXTURE(2D_WIDTH), 'w', 1, 0, 0 },
		{ TEXTURE(2D_HEIGHT), 'h', 1, 0, 0 },
		{ TEXTURE(3D_WIDTH), 'w', 1, 1, 0 },
		{ TEXTURE(3D_HEIGHT), 'h', 1, 1, 0 },
		{ TEXTURE(3D_DEPTH), 'd', 1, 1, 0 },
		{ TEXTURE(1D_LAYERED_WIDTH), 'w', 0, 1, LAYERED },
		{ TEXTURE(1D_LAYERED_LAYERS), 'd', 0, 1, LAYERED },
		{ TEXTURE(2D_LAYERED_WIDTH), 'w', 1, 1, LAYERED },
		{ TEXTURE(2D_LAYERED_HEIGHT), 'h', 1, 1, LAYERED },
		{ TEXTURE(2D_LAYERED_LAYERS), 'd', 1, 1, LAYERED },
		{ TEXTURE(2D_GATHER_WIDTH), 'w', 1, 0, GATHER },
		{ TEXTURE(2D_GATHER_HEIGHT), 'h', 1, 0, GATHER },
		{ TEXTURE(CUBEMAP_WIDTH), 'w', SQUARE, 6, CUBEMAP },
		{ TEXTURE(CUBEMAP_LAYERED_WIDTH), 'w', SQUARE, 6, CUBEMAP | LAYERED },
		{ TEXTURE(CUBEMAP_LAYERED_LAYERS), 'd', 1, 6, CUBEMAP | LAYERED },
		{ SURFACE(1D_WIDTH), 'w', 0, 0, SURF },
		{ SURFACE(2D_WIDTH), 'w', 1, 0, SURF },
		{ SURFACE(2D_HEIGHT), 'h', 1, 0, SURF },
		{ SURFACE(3D_WIDTH), 'w', 1, 1, SURF },
		{ SURFACE(3D_HEIGHT), 'h', 1, 1, SURF },
		{ SURFACE(3D_DEPTH), 'd', 1, 1, SURF },
		{ SURFACE(1D_LAYERED_WIDTH), 'w', 0, 1, SURF | LAYERED },
		{ SURFACE(1D_LAYERED_LAYERS), 'd', 0, 1, SURF | LAYERED },
		{ SURFACE(2D_LAYERED_WIDTH), 'w', 1, 1, SURF | LAYERED },
		{ SURFACE(2D_LAYERED_HEIGHT), 'h', 1, 1, SURF | LAYERED },
		{ SURFACE(2D_LAYERED_LAYERS), 'd', 1, 1, SURF | LAYERED },
		{ SURFACE(CUBEMAP_WIDTH), 'w', SQUARE, 6, SURF | CUBEMAP },
		{ SURFACE(CUBEMAP_LAYERED_WIDTH), 'w', SQUARE, 6,
			SURF | CUBEMAP | LAYERED },
		{ SURFACE(CUBEMAP_LAYERED_LAYERS), 'd', 1, 6, SURF | CUBEMAP | LAYERED },
	};

	fixture_new();
	for (size_t i = 0; i < N_OF(cases); i++)
		check_array(cases[i].number, cases[i].side, cases[i].height,
			cases[i].depth, cases[i].flags);
}

TEST(launches_are_as_large_as_attributes_say_and_no_larger)
{
	static const CUdevice_attribute sides[6] = { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
		CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
		CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
		CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z };
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	unsigned int optin =
		attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	unsigned int n = 0;
	void *parameters[2];
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	parameters[0] = &p;
	parameters[1] = &n;
	for (unsigned int i = 0; i < 6; i++) {
		unsigned int d[6] = { 1, 1, 1, 1, 1, 1 };

		d[i] = attribute(sides[i]);
		if (i) /* two thousand million blocks take too long */
			check_ok(cuLaunchKernel(step, d[0], d[1], d[2], d[3], d[4], d[5],
				0, NULL, parameters, NULL));
		d[i]++;
		check_cu(cuLaunchKernel(step, d[0], d[1], d[2], d[3], d[4], d[5], 0, NULL,
				 parameters, NULL),
			CUDA_ERROR_INVALID_VALUE);
	}
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
	check_ok(
		cuLaunchKernel(step, 1, 1, 1, 32, 32, 1, shared, NULL, parameters, NULL));
	check_cu(cuLaunchKernel(step, 1, 1, 1, 41, 25, 1, 0, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(
			 step, 1, 1, 1, 1, 1, 1, shared + 1, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuFuncSetAttribute(
		step, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)optin));
	check_ok(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, optin, NULL, parameters, NULL));
	check_cu(cuFuncSetAttribute(step, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			 (int)optin + 1),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxSynchronize());
}

TEST(limits_are_as_described)
{
	CUcontext context;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	for (size_t i = 0; i < N_OF(rows_CUlimit); i++) {
		const struct attribute_row *row = &rows_CUlimit[i];
		size_t value = 12345;
		CUresult result = cuCtxGetLimit(&value, (CUlimit)row->number);

		check_row(row, 0, result, (long long)value);
	}
}

static CUfunction sample_kernel(void)
{
	CUfunction function;
	CUmodule module;

	fixture_new();
	check_ok(cuModuleLoadData(&module, sample_ptx));
	check_ok(cuModuleGetFunction(&function, module, "sample"));
	return function;
}

TEST(function_attributes_are_as_described)
{
	CUfunction function = sample_kernel();

	for (size_t i = 0; i < N_OF(rows_CUfunction_attribute); i++) {
		const struct attribute_row *row = &rows_CUfunction_attribute[i];
		int value = -12345;
		CUresult result;

		result = cuFuncGetAttribute(
			&value, (CUfunction_attribute)row->number, function);
		check_row(row, 0, result, value);
	}
}

TEST(function_attributes_that_cuda_lets_set_are_kept)
{
	static const struct {
		CUfunction_attribute attribute;
		int value, wrong;
		CUresult refusal;
	} cases[] = {
		{ CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, 1 << 20,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, 101,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2, -1,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1, -1,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1, -1,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
			CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING, 3,
			CUDA_ERROR_INVALID_VALUE },
		{ CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, 0,
			CUDA_SUCCESS },
	};
	CUfunction function = sample_kernel();

	for (size_t i = 0; i < N_OF(cases); i++) {
		int value = -1;

		check_ok(
			cuFuncSetAttribute(function, cases[i].attribute, cases[i].value));
		check_ok(cuFuncGetAttribute(&value, cases[i].attribute, function));
		check_eq(value, cases[i].value);
		check_cu(cuFuncSetAttribute(function, cases[i].attribute, cases[i].wrong),
			cases[i].refusal);
	}
	/* Others are what the compiler made. */
	for (int i = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
		i <= CU_FUNC_ATTRIBUTE_CACHE_MODE_CA; i++)
		check_cu(cuFuncSetAttribute(function, (CUfunction_attribute)i, 1),
			CUDA_ERROR_INVALID_VALUE);
	check_cu(cuFuncSetAttribute(
			 function, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1),
		CUDA_ERROR_INVALID_VALUE);
}

#define SIZE 5000u

/* An allocation, and another of its kind that shares no number with it. */
struct sample {
	CUdeviceptr start;
	CUdeviceptr other;
};

static void check_pointer(const struct attribute_row *row, unsigned int number,
	const struct sample *sample, CUcontext context)
{
	CUpointer_attribute attribute = (CUpointer_attribute)row->number;
	const char *expected = row->values[number];
	unsigned long long value = 0, other = 0;
	CUdeviceptr address = sample->start + 8;
	CUresult result = cuPointerGetAttribute(&value, attribute, address);

	if (!strcmp(expected, "number")) {
		check_ok(result);
		check_ok(cuPointerGetAttribute(&other, attribute, sample->other));
		check(value && value != other);
	} else if (!strcmp(expected, "context")) {
		check_ok(result);
		check(value == (uintptr_t)context);
	} else if (!strcmp(expected, "address")) {
		check_ok(result);
		check_eq(value, address);
	} else if (!strcmp(expected, "start")) {
		check_ok(result);
		check_eq(value, sample->start);
	} else if (!strcmp(expected, "size")) {
		check_ok(result);
		check_eq(value, SIZE);
	} else {
		check_row(row, number, result, (long long)value);
	}
}

static CUdeviceptr pinned(void)
{
	void *address;

	check_ok(cuMemHostAlloc(&address, SIZE, 0));
	return (CUdeviceptr)(uintptr_t)address;
}

TEST(pointer_attributes_are_as_described)
{
	struct fixture fixture = fixture_new();
	struct sample samples[SAMPLES_MAX];

	check_ok(cuMemAlloc(&samples[0].start, SIZE));
	check_ok(cuMemAlloc(&samples[0].other, SIZE));
	samples[1] = (struct sample){ pinned(), pinned() };
	check_ok(cuMemAllocManaged(&samples[2].start, SIZE, CU_MEM_ATTACH_GLOBAL));
	check_ok(cuMemAllocManaged(&samples[2].other, SIZE, CU_MEM_ATTACH_GLOBAL));
	for (size_t i = 0; i < N_OF(rows_CUpointer_attribute); i++)
		for (unsigned int k = 0; k < SAMPLES_MAX; k++)
			check_pointer(&rows_CUpointer_attribute[i], k, &samples[k],
				fixture.context);
}

TEST(stream_attributes_are_as_described)
{
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < N_OF(rows_CUlaunchAttributeID); i++) {
		const struct attribute_row *row = &rows_CUlaunchAttributeID[i];
		CUstreamAttrValue value, zero = {};
		CUresult result;

		memset(&value, 0xee, sizeof(value));
		result =
			cuStreamGetAttribute(stream, (CUstreamAttrID)row->number, &value);
		check_row(row, 0, result, *(int *)&value);
		if (result == CUDA_SUCCESS) /* all of it was set */
			check(!memcmp((char *)&value + sizeof(int),
				(char *)&zero + sizeof(int),
				sizeof(value) - sizeof(int)));
	}
}

TEST(kinds_of_affinity_are_as_described)
{
	check_ok(cuInit(0));
	for (size_t i = 0; i < N_OF(rows_CUexecAffinityType); i++) {
		const struct attribute_row *row = &rows_CUexecAffinityType[i];
		int value = -1;
		CUresult result;

		result = cuDeviceGetExecAffinitySupport(
			&value, (CUexecAffinityType)row->number, 0);
		check_row(row, 0, result, value);
	}
}

TEST(numbers_that_are_no_attribute_are_refused)
{
	static const int wrong[] = { -1, 1000, INT32_MAX, INT32_MIN };
	CUfunction function = sample_kernel();
	CUstreamAttrValue attribute = {};
	unsigned long long data;
	CUdeviceptr p;
	size_t limit;
	int value;

	check_ok(cuMemAlloc(&p, SIZE));
	for (size_t i = 0; i < N_OF(wrong); i++) {
		check_cu(cuDeviceGetAttribute(&value, (CUdevice_attribute)wrong[i], 0),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuCtxGetLimit(&limit, (CUlimit)wrong[i]),
			CUDA_ERROR_UNSUPPORTED_LIMIT);
		check_cu(cuFuncGetAttribute(
				 &value, (CUfunction_attribute)wrong[i], function),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuFuncSetAttribute(function, (CUfunction_attribute)wrong[i], 1),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuPointerGetAttribute(&data, (CUpointer_attribute)wrong[i], p),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuStreamGetAttribute(NULL, (CUstreamAttrID)wrong[i], &attribute),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuStreamSetAttribute(NULL, (CUstreamAttrID)wrong[i], &attribute),
			CUDA_ERROR_INVALID_VALUE);
	}
}
