/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: texture and surface references
 *
 * Kernels refer to a texture or surface of their module, which the program binds before.
 * The CPU computes the expected results.
 */

#include <math.h>

#include "e2e.h"

/* As in programs that were compiled when there were no texture objects. */
static const char old_ptx[] =
	".version 1.5\n.target sm_13\n"
	".tex .u64 old;\n"
	".entry fetch_old (.param .u64 in, .param .u64 out) {\n"
	".reg .u64 %d<5>; .reg .u32 %r<5>; .reg .f32 %f<5>;\n"
	"ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];\n"
	"cvt.u32.u16 %r0, %tid.x; mul.wide.u32 %d2, %r0, 16;\n"
	"add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n"
	"ld.global.s32 %r1, [%d3+0];\n"
	"mov.s32 %r2, 0; mov.s32 %r3, 0; mov.s32 %r4, 0;\n"
	"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [old, {%r1, %r2, %r3, %r4}];\n"
	"st.global.v4.f32 [%d4+0], {%f1, %f2, %f3, %f4};\n"
	"exit; }\n";

#define KERNEL(_name, _instruction)                                                      \
	".entry " _name "(.param .u64 in, .param .u64 out) {\n"                          \
	".reg .b32 %r<16>; .reg .b64 %d<8>;\n"                                           \
	"ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r0, %tid.x;\n"        \
	"mul.wide.u32 %d3, %r0, 16; add.s64 %d1, %d1, %d3;\n"                            \
	"add.s64 %d2, %d2, %d3; mov.b32 %r4, 0; mov.b32 %r5, 0;\n"                       \
	"mov.b32 %r6, 0; mov.b32 %r7, 0;\n"                                              \
	"ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d1];\n" _instruction                 \
	"st.global.v4.b32 [%d2], {%r4, %r5, %r6, %r7}; ret; }\n"

#define RESULT "{%r4, %r5, %r6, %r7}"

/* clang-format off */
static const char reference_ptx[] =
	".version 3.1\n.target sm_20\n.address_size 64\n"
	".global .texref t;\n.global .texref u;\n.global .surfref s;\n"
	".global .texref initial = { width = 64, channel_data_type = signed_int8,\n"
	" addr_mode_0 = wrap, addr_mode_1 = mirror, addr_mode_2 = clamp_to_border,\n"
	" filter_mode = linear, normalized_coords = 1 };\n"
	".global .u64 plain;\n"
	KERNEL("tex_1d", "tex.1d.v4.f32.f32 " RESULT ", [t, {%r8}];\n")
	KERNEL("tex_2d", "tex.2d.v4.f32.f32 " RESULT ", [t, {%r8, %r9}];\n")
	KERNEL("fetch_1d", "tex.1d.v4.u32.s32 " RESULT ", [t, {%r8}];\n")
	KERNEL("level_2d", "tex.level.2d.v4.f32.f32 " RESULT ", [t, {%r8, %r9}], %r10;\n")
	KERNEL("other_1d", "tex.1d.v4.f32.f32 " RESULT ", [u, {%r8}];\n")
	KERNEL("load_2d", "suld.b.2d.b32.trap {%r4}, [s, {%r8, %r9}];\n")
	KERNEL("store_2d", "sust.b.2d.b32.trap [s, {%r8, %r9}], {%r10};\n");
/* clang-format on */

enum { THREADS = 32 };

union four {
	float f[4];
	uint32_t u[4];
	int32_t s[4];
};

struct bench {
	struct fixture fixture;
	CUmodule module;
	CUdeviceptr in;
	CUdeviceptr out;
	CUtexref t;
};

static struct bench bench_new(void)
{
	struct bench bench = { .fixture = fixture_new() };

	check_ok(cuModuleLoadData(&bench.module, reference_ptx));
	check_ok(cuMemAlloc(&bench.in, THREADS * sizeof(union four)));
	check_ok(cuMemAlloc(&bench.out, THREADS * sizeof(union four)));
	check_ok(cuModuleGetTexRef(&bench.t, bench.module, "t"));
	return bench;
}

/* Runs a kernel in one warp. Return: what became of it. */
static CUresult run(
	struct bench *bench, const char *name, const union four *in, union four *out)
{
	void *parameters[] = { &bench->in, &bench->out };
	CUfunction function;
	CUresult r;

	check_ok(cuModuleGetFunction(&function, bench->module, name));
	check_ok(cuMemcpyHtoD(bench->in, in, THREADS * sizeof(*in)));
	check_ok(cuMemsetD8(bench->out, 0xee, THREADS * sizeof(*out)));
	check_ok(cuLaunchKernel(
		function, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
	r = cuCtxSynchronize();
	if (r == CUDA_SUCCESS)
		check_ok(cuMemcpyDtoH(out, bench->out, THREADS * sizeof(*out)));
	return r;
}

static CUarray make_array(size_t width, size_t height, CUarray_format format,
	unsigned int flags, const void *texels)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = width,
		.Height = height,
		.Format = format,
		.NumChannels = 1,
		.Flags = flags,
	};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = texels,
		.srcPitch = width * 4,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = width * 4,
		.Height = height ? height : 1,
	};

	check_ok(cuArray3DCreate(&copy.dstArray, &descriptor));
	check_ok(cuMemcpy2D(&copy));
	return copy.dstArray;
}

static void check_near(float got, float wanted)
{
	if (!(fabsf(got - wanted) <= 1e-5f * (1.0f + fabsf(wanted))))
		test_fail(__FILE__, __LINE__, "%.9g instead of %.9g", got, wanted);
}

TEST(an_array_is_fetched_through_a_reference)
{
	float texels[8], others[8], border[4] = { 0.25f, 0, 0, 0 };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	CUarray array, got = NULL;
	CUarray other;

	for (int i = 0; i < 8; i++) {
		texels[i] = 1.5f * i * i - 3.0f;
		others[i] = 100.0f + i;
	}
	array = make_array(8, 0, CU_AD_FORMAT_FLOAT, 0, texels);
	other = make_array(8, 0, CU_AD_FORMAT_FLOAT, 0, others);
	check_ok(cuTexRefSetArray(bench.t, array, CU_TRSA_OVERRIDE_FORMAT));
	check_ok(cuTexRefGetArray(&got, bench.t));
	check(got == array);
	/* Coordinates that are not normalized; the edge is repeated. */
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = i - 12 + 0.25f;
	check_ok(cuTexRefSetAddressMode(bench.t, 0, CU_TR_ADDRESS_MODE_CLAMP));
	check_ok(run(&bench, "tex_1d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], texels[i < 12 ? 0 : i < 20 ? i - 12 : 7]);
	/* The same with a border. */
	check_ok(cuTexRefSetAddressMode(bench.t, 0, CU_TR_ADDRESS_MODE_BORDER));
	check_ok(cuTexRefSetBorderColor(bench.t, border));
	check_ok(run(&bench, "tex_1d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], i < 12 || i >= 20 ? 0.25f : texels[i - 12]);
	/* Normalized, wrapped, and filtered: x = i - 12 + 1/8, minus a half. */
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = (i - 12) / 8.0f + 1 / 64.0f;
	check_ok(cuTexRefSetFlags(bench.t, CU_TRSF_NORMALIZED_COORDINATES));
	check_ok(cuTexRefSetAddressMode(bench.t, 0, CU_TR_ADDRESS_MODE_WRAP));
	check_ok(cuTexRefSetFilterMode(bench.t, CU_TR_FILTER_MODE_LINEAR));
	check_ok(run(&bench, "tex_1d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], 0.375f * texels[(i - 13 + 32) % 8] +
						0.625f * texels[(i - 12 + 32) % 8]);
	/* Bound anew, all that was set stays. */
	check_ok(cuTexRefSetArray(bench.t, other, CU_TRSA_OVERRIDE_FORMAT));
	check_ok(run(&bench, "tex_1d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], 0.375f * others[(i - 13 + 32) % 8] +
						0.625f * others[(i - 12 + 32) % 8]);
	check_cu(cuTexRefSetArray(bench.t, other, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(references_of_a_module_are_bound_each_by_itself)
{
	float texels[2][4] = { { 1, 2, 3, 4 }, { -1, -2, -3, -4 } };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	CUtexref u, again;

	check_ok(cuModuleGetTexRef(&u, bench.module, "u"));
	check_ok(cuModuleGetTexRef(&again, bench.module, "t"));
	check(again == bench.t);
	check(u != bench.t);
	check_ok(cuTexRefSetArray(bench.t,
		make_array(4, 0, CU_AD_FORMAT_FLOAT, 0, texels[0]),
		CU_TRSA_OVERRIDE_FORMAT));
	check_ok(cuTexRefSetArray(u, make_array(4, 0, CU_AD_FORMAT_FLOAT, 0, texels[1]),
		CU_TRSA_OVERRIDE_FORMAT));
	for (int i = 0; i < THREADS; i++)
		in[i].f[0] = i % 4 + 0.5f;
	for (int k = 0; k < 2; k++) {
		check_ok(run(&bench, k ? "other_1d" : "tex_1d", in, out));
		for (int i = 0; i < THREADS; i++)
			check_near(out[i].f[0], texels[k][i % 4]);
	}
}

/* A binding applies to later launches, not to earlier ones. */
TEST(a_launch_keeps_what_was_bound_when_it_was_made)
{
	enum { ROUNDS = 8 };
	union four in[THREADS] = {}, out[ROUNDS][THREADS];
	CUdeviceptr outs[ROUNDS];
	struct bench bench = bench_new();
	CUfunction function;

	check_ok(cuModuleGetFunction(&function, bench.module, "tex_1d"));
	check_ok(cuMemcpyHtoD(bench.in, in, sizeof(in)));
	for (int k = 0; k < ROUNDS; k++) {
		float texel = 10.0f + k;
		void *parameters[] = { &bench.in, &outs[k] };

		check_ok(cuMemAlloc(&outs[k], sizeof(out[k])));
		check_ok(cuTexRefSetArray(bench.t,
			make_array(1, 0, CU_AD_FORMAT_FLOAT, 0, &texel),
			CU_TRSA_OVERRIDE_FORMAT));
		check_ok(cuLaunchKernel(
			function, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
	}
	for (int k = 0; k < ROUNDS; k++) {
		check_ok(cuMemcpyDtoH(out[k], outs[k], sizeof(out[k])));
		for (int i = 0; i < THREADS; i++)
			check_near(out[k][i].f[0], 10.0f + k);
	}
}

TEST(linear_memory_is_fetched_with_the_format_that_was_set)
{
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	CUdeviceptr memory, got = 0;
	CUarray_format format;
	uint16_t texels[512];
	int n_channels;
	size_t offset = 1;

	for (int i = 0; i < 512; i++)
		texels[i] = i * 509;
	check_ok(cuMemAlloc(&memory, sizeof(texels)));
	check_ok(cuMemcpyHtoD(memory, texels, sizeof(texels)));
	check_ok(cuTexRefSetFormat(bench.t, CU_AD_FORMAT_UNSIGNED_INT16, 2));
	check_ok(cuTexRefSetFlags(bench.t, CU_TRSF_READ_AS_INTEGER));
	check_ok(cuTexRefSetAddress(&offset, bench.t, memory, 256));
	check_eq(offset, 0);
	check_ok(cuTexRefGetAddress(&got, bench.t));
	check_eq(got, memory);
	check_ok(cuTexRefGetFormat(&format, &n_channels, bench.t));
	check_eq(format, CU_AD_FORMAT_UNSIGNED_INT16);
	check_eq(n_channels, 2);
	for (int i = 0; i < THREADS; i++)
		in[i].s[0] = i * 3 - 16;
	check_ok(run(&bench, "fetch_1d", in, out));
	for (int i = 0; i < THREADS; i++) {
		int at = i * 3 - 16;
		bool inside = at >= 0 && at < 64;

		check_eq(out[i].u[0], inside ? texels[2 * at] : 0);
		check_eq(out[i].u[1], inside ? texels[2 * at + 1] : 0);
	}
	/* Not aligned: the program gets the offset to add. */
	check_ok(cuTexRefSetAddress(&offset, bench.t, memory + 520, 128));
	check_eq(offset, 8);
	for (int i = 0; i < THREADS; i++)
		in[i].s[0] = i + (int)offset / 4;
	check_ok(run(&bench, "fetch_1d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_eq(out[i].u[1], texels[261 + 2 * i]);
	check_cu(cuTexRefSetAddress(NULL, bench.t, memory + 520, 128),
		CUDA_ERROR_INVALID_VALUE);
	/* Beyond the end, and an address without memory. */
	check_cu(cuTexRefSetAddress(&offset, bench.t, memory, 1 << 24),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexRefSetAddress(&offset, bench.t, 512, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_rectangle_of_memory_is_filtered)
{
	enum { WIDTH = 12, HEIGHT = 7 };
	CUDA_ARRAY_DESCRIPTOR descriptor = { WIDTH, HEIGHT, CU_AD_FORMAT_FLOAT, 1 };
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	float texels[HEIGHT][WIDTH];
	CUdeviceptr memory, got;
	CUarray array;
	size_t pitch;

	for (int i = 0; i < HEIGHT * WIDTH; i++)
		(&texels[0][0])[i] = (i * 37 % 101) - 50.0f;
	check_ok(cuMemAllocPitch(&memory, &pitch, sizeof(texels[0]), HEIGHT, 4));
	for (int y = 0; y < HEIGHT; y++)
		check_ok(cuMemcpyHtoD(memory + y * pitch, texels[y], sizeof(texels[0])));
	check_ok(cuTexRefSetFilterMode(bench.t, CU_TR_FILTER_MODE_LINEAR));
	for (int form = 0; form < 2; form++) {
		if (form)
			check_ok(CALL("cuTexRefSetAddress2D", 3020,
				(CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr,
					size_t),
				bench.t, &descriptor, memory, pitch));
		else
			check_ok(cuTexRefSetAddress2D(
				bench.t, &descriptor, memory, pitch));
		/* Halfway between four texels. */
		for (int i = 0; i < THREADS; i++) {
			in[i].f[0] = 1 + i % (WIDTH - 1);
			in[i].f[1] = 1 + (i + form) % (HEIGHT - 1);
		}
		check_ok(run(&bench, "tex_2d", in, out));
		for (int i = 0; i < THREADS; i++) {
			int x = i % (WIDTH - 1), y = (i + form) % (HEIGHT - 1);

			check_near(out[i].f[0],
				(texels[y][x] + texels[y][x + 1] + texels[y + 1][x] +
					texels[y + 1][x + 1]) /
					4);
		}
	}
	check_ok(cuTexRefGetAddress(&got, bench.t));
	check_eq(got, memory);
	check_cu(cuTexRefGetArray(&array, bench.t), CUDA_ERROR_INVALID_VALUE);
	/* A rectangle that does not fit its allocation. */
	descriptor.Height = HEIGHT + 100000;
	check_cu(cuTexRefSetAddress2D(bench.t, &descriptor, memory, pitch),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(levels_of_a_mipmapped_array_are_sampled)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 4,
		.Height = 4,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
	};
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	CUmipmappedArray mipmap, got;

	check_ok(cuMipmappedArrayCreate(&mipmap, &descriptor, 3));
	for (unsigned int i = 0; i < 3; i++) {
		CUDA_MEMCPY2D copy = {
			.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcPitch = 16,
			.dstMemoryType = CU_MEMORYTYPE_ARRAY,
			.WidthInBytes = 16 >> i,
			.Height = 4 >> i,
		};
		float texels[16];

		for (int k = 0; k < 16; k++)
			texels[k] = 8.0f * (i + 1);
		copy.srcHost = texels;
		check_ok(cuMipmappedArrayGetLevel(&copy.dstArray, mipmap, i));
		check_ok(cuMemcpy2D(&copy));
	}
	check_ok(cuTexRefSetFlags(bench.t, CU_TRSF_NORMALIZED_COORDINATES));
	check_ok(cuTexRefSetMipmappedArray(bench.t, mipmap, CU_TRSA_OVERRIDE_FORMAT));
	check_ok(cuTexRefSetMipmapLevelClamp(bench.t, 0, 2));
	check_ok(cuTexRefSetMipmapFilterMode(bench.t, CU_TR_FILTER_MODE_LINEAR));
	check_ok(cuTexRefGetMipmappedArray(&got, bench.t));
	check(got == mipmap);
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .f = { 0.5f, 0.5f, i / 8.0f } };
	check_ok(run(&bench, "level_2d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], 8.0f * (1 + fminf(i / 8.0f, 2)));
	check_ok(cuTexRefSetMipmapLevelBias(bench.t, 1));
	check_ok(run(&bench, "level_2d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], 8.0f * (1 + fminf(1 + i / 8.0f, 2)));
}

TEST(references_return_what_was_set)
{
	float border[4] = { 1, 2, 3, 4 }, got[4] = { 0 }, bias = 0, low = 0, high = 0;
	CUtexref references[2], unknown = (CUtexref)(uintptr_t)0x12345;
	struct bench bench = bench_new();
	CUaddress_mode mode;
	CUfilter_mode filter;
	unsigned int flags;
	CUmipmappedArray mipmap;
	CUdeviceptr address;
	int anisotropy;

	references[0] = bench.t;
	check_ok(cuTexRefCreate(&references[1]));
	for (int k = 0; k < 2; k++) {
		CUtexref t = references[k];

		check_cu(cuTexRefGetAddress(&address, t), CUDA_ERROR_INVALID_VALUE);
		check_cu(cuTexRefGetMipmappedArray(&mipmap, t), CUDA_ERROR_INVALID_VALUE);
		for (int i = 0; i < 3; i++)
			check_ok(cuTexRefSetAddressMode(t, i, (CUaddress_mode)(3 - i)));
		for (int i = 0; i < 3; i++) {
			check_ok(cuTexRefGetAddressMode(&mode, t, i));
			check_eq(mode, 3 - i);
		}
		check_ok(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
		check_ok(cuTexRefGetFilterMode(&filter, t));
		check_eq(filter, CU_TR_FILTER_MODE_LINEAR);
		check_ok(cuTexRefGetMipmapFilterMode(&filter, t));
		check_eq(filter, CU_TR_FILTER_MODE_POINT);
		check_ok(cuTexRefSetMipmapFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
		check_ok(cuTexRefGetMipmapFilterMode(&filter, t));
		check_eq(filter, CU_TR_FILTER_MODE_LINEAR);
		check_ok(cuTexRefSetMipmapLevelBias(t, -1.5f));
		check_ok(cuTexRefGetMipmapLevelBias(&bias, t));
		check(bias == -1.5f);
		check_ok(cuTexRefSetMipmapLevelClamp(t, 0.5f, 7.25f));
		check_ok(cuTexRefGetMipmapLevelClamp(&low, &high, t));
		check(low == 0.5f && high == 7.25f);
		check_ok(cuTexRefSetMaxAnisotropy(t, 8));
		check_ok(cuTexRefGetMaxAnisotropy(&anisotropy, t));
		check_eq(anisotropy, 8);
		check_ok(cuTexRefSetBorderColor(t, border));
		check_ok(cuTexRefGetBorderColor(got, t));
		check(!memcmp(border, got, sizeof(got)));
		check_ok(cuTexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES));
		check_ok(cuTexRefGetFlags(&flags, t));
		check_eq(flags, CU_TRSF_NORMALIZED_COORDINATES);
		/* Values that do not exist. */
		check_cu(cuTexRefSetFormat(t, (CUarray_format)0x7f, 1),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 3),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuTexRefSetAddressMode(t, 3, CU_TR_ADDRESS_MODE_WRAP),
			CUDA_ERROR_INVALID_VALUE);
		check_cu(cuTexRefSetFilterMode(t, (CUfilter_mode)2),
			CUDA_ERROR_INVALID_VALUE);
	}
	check_ok(cuTexRefDestroy(references[1]));
	check_cu(cuTexRefDestroy(references[1]), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuTexRefGetFlags(&flags, references[1]), CUDA_ERROR_INVALID_HANDLE);
	check_cu(cuTexRefSetFlags(unknown, 0), CUDA_ERROR_INVALID_HANDLE);
	/* A reference of a module is destroyed with it and not before. */
	check_cu(cuTexRefDestroy(bench.t), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuTexRefGetFlags(&flags, bench.t));
	check_ok(cuModuleUnload(bench.module));
	check_cu(cuTexRefGetFlags(&flags, bench.t), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_reference_begins_with_the_fields_that_its_module_sets)
{
	static const CUaddress_mode modes[3] = { CU_TR_ADDRESS_MODE_WRAP,
		CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER };
	struct bench bench = bench_new();
	CUaddress_mode mode;
	CUfilter_mode filter;
	unsigned int flags;
	CUtexref reference;

	check_ok(cuModuleGetTexRef(&reference, bench.module, "initial"));
	for (int i = 0; i < 3; i++) {
		check_ok(cuTexRefGetAddressMode(&mode, reference, i));
		check_eq(mode, modes[i]);
	}
	check_ok(cuTexRefGetFilterMode(&filter, reference));
	check_eq(filter, CU_TR_FILTER_MODE_LINEAR);
	check_ok(cuTexRefGetFlags(&flags, reference));
	check_eq(flags, CU_TRSF_NORMALIZED_COORDINATES);
	check_ok(cuTexRefSetFilterMode(reference, CU_TR_FILTER_MODE_POINT));
	check_ok(cuModuleGetTexRef(&reference, bench.module, "initial"));
	check_ok(cuTexRefGetFilterMode(&filter, reference));
	check_eq(filter, CU_TR_FILTER_MODE_POINT);
}

TEST(references_are_found_by_kind_and_name)
{
	struct bench bench = bench_new();
	CUfunction function, foreign;
	CUdeviceptr address;
	CUsurfref surface;
	CUtexref texture;
	size_t size;

	check_cu(cuModuleGetTexRef(&texture, bench.module, "none"), CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetTexRef(&texture, bench.module, "s"), CUDA_ERROR_NOT_FOUND);
	check_cu(
		cuModuleGetTexRef(&texture, bench.module, "plain"), CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetSurfRef(&surface, bench.module, "t"), CUDA_ERROR_NOT_FOUND);
	check_cu(cuModuleGetGlobal(&address, &size, bench.module, "t"),
		CUDA_ERROR_NOT_FOUND);
	/* A launch uses the references of its own module, which is all that may be
	 * requested. */
	check_ok(cuModuleGetFunction(&function, bench.module, "tex_1d"));
	check_ok(cuParamSetTexRef(function, CU_PARAM_TR_DEFAULT, bench.t));
	check_cu(cuParamSetTexRef(function, 0, bench.t), CUDA_ERROR_INVALID_VALUE);
	foreign = fixture_function(&bench.fixture, "fill");
	check_cu(cuParamSetTexRef(foreign, CU_PARAM_TR_DEFAULT, bench.t),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_surface_is_written_and_read_through_a_reference)
{
	union four in[THREADS], out[THREADS];
	struct bench bench = bench_new();
	uint32_t words[32] = { 0 }, got[32];
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = got,
		.dstPitch = 32,
		.WidthInBytes = 32,
		.Height = 4,
	};
	CUarray array, bound = NULL;
	CUsurfref s;

	array = make_array(
		8, 4, CU_AD_FORMAT_UNSIGNED_INT32, CUDA_ARRAY3D_SURFACE_LDST, words);
	check_ok(cuModuleGetSurfRef(&s, bench.module, "s"));
	check_ok(cuSurfRefSetArray(s, array, 0));
	check_ok(cuSurfRefGetArray(&bound, s));
	check(bound == array);
	for (int i = 0; i < THREADS; i++)
		in[i] = (union four){ .s = { 4 * (i % 8), i / 8, 1000 + i * i } };
	check_ok(run(&bench, "store_2d", in, out));
	copy.srcArray = array;
	check_ok(cuMemcpy2D(&copy));
	for (int i = 0; i < THREADS; i++)
		check_eq(got[i], 1000 + i * i);
	check_ok(run(&bench, "load_2d", in, out));
	for (int i = 0; i < THREADS; i++)
		check_eq(out[i].u[0], 1000 + i * i);
	/* An array that was not made for it. */
	array = make_array(8, 4, CU_AD_FORMAT_UNSIGNED_INT32, 0, words);
	check_cu(cuSurfRefSetArray(s, array, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuArrayDestroy(array));
	check_cu(cuSurfRefSetArray(s, array, 0), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_reference_that_nothing_is_bound_to_is_a_fault)
{
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();

	check_cu(run(&bench, "tex_1d", in, out), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(an_array_that_ended_is_reached_no_more)
{
	union four in[THREADS] = {}, out[THREADS];
	float texels[4] = { 1, 2, 3, 4 };
	struct bench bench = bench_new();
	CUarray array, got;

	array = make_array(4, 0, CU_AD_FORMAT_FLOAT, 0, texels);
	check_ok(cuTexRefSetArray(bench.t, array, CU_TRSA_OVERRIDE_FORMAT));
	check_ok(cuArrayDestroy(array));
	check_cu(cuTexRefGetArray(&got, bench.t), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuTexRefSetArray(bench.t, array, CU_TRSA_OVERRIDE_FORMAT),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuTexRefSetFilterMode(bench.t, CU_TR_FILTER_MODE_LINEAR));
	check_cu(run(&bench, "tex_1d", in, out), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(code_of_old_compilers_fetches_by_its_own_declaration)
{
	union four in[THREADS] = {}, out[THREADS];
	struct bench bench = bench_new();
	CUdeviceptr memory;
	float texels[64];

	for (int i = 0; i < 64; i++)
		texels[i] = 0.5f * i;
	check_ok(cuModuleLoadData(&bench.module, old_ptx));
	check_ok(cuModuleGetTexRef(&bench.t, bench.module, "old"));
	check_ok(cuMemAlloc(&memory, sizeof(texels)));
	check_ok(cuMemcpyHtoD(memory, texels, sizeof(texels)));
	check_ok(cuTexRefSetFormat(bench.t, CU_AD_FORMAT_FLOAT, 1));
	check_ok(cuTexRefSetAddress(NULL, bench.t, memory, sizeof(texels)));
	for (int i = 0; i < THREADS; i++)
		in[i].s[0] = 2 * i + 1;
	check_ok(run(&bench, "fetch_old", in, out));
	for (int i = 0; i < THREADS; i++)
		check_near(out[i].f[0], texels[2 * i + 1]);
}
