/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on softgpu: how fast one processor runs them
 *
 * A figure is instructions of PTX for each second of processor time, each as often as
 * there are lanes, or of products of matrices operations on their elements, or fetches
 * from textures. The number is known from the text. Processor time of the process itself:
 * so softgpu has to be in it.
 */

#include <string.h>

#include "library.h"
#include "native.h"

#define SAMPLES 31

/* Instructions of a thread: all are counted, also those that softgpu has in no code. */
#define VADD_INSTRUCTIONS 22
#define REDUCE_LOOP_INSTRUCTIONS 6
#define REDUCE_OTHER_INSTRUCTIONS (20 + 8 * 10 + 5)
#define MATMUL_TILE_INSTRUCTIONS (10 + 3 * NATIVE_TILE)
#define MATMUL_OTHER_INSTRUCTIONS 33
#define MMA_OPERATIONS(_k)                                                               \
	((double)NATIVE_WARPS * NATIVE_ROUNDS * NATIVE_CHAINS * 2 * 16 * 8 * (_k))
#define DP4A_LOOP_INSTRUCTIONS 7
#define DP4A_OTHER_INSTRUCTIONS 15

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"

static const char vadd_ptx[] = HEAD
	".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n)\n"
	"{\n.reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<10>;\n"
	"ld.param.u64 %rd1, [c];\nld.param.u64 %rd2, [a];\nld.param.u64 %rd3, [b];\n"
	"ld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"
	"mov.u32 %r4, %tid.x;\nmad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"setp.ge.s32 %p, %r5, %r1;\n@%p bra done;\n"
	"cvta.to.global.u64 %rd4, %rd2;\nmul.wide.s32 %rd5, %r5, 4;\n"
	"add.s64 %rd6, %rd4, %rd5;\ncvta.to.global.u64 %rd7, %rd3;\n"
	"add.s64 %rd8, %rd7, %rd5;\nld.global.f32 %f1, [%rd8];\n"
	"ld.global.f32 %f2, [%rd6];\nadd.f32 %f3, %f2, %f1;\n"
	"cvta.to.global.u64 %rd9, %rd1;\nadd.s64 %rd9, %rd9, %rd5;\n"
	"st.global.f32 [%rd9], %f3;\ndone:\nret;\n}\n";

/* Each thread adds up a column, then the block halves 8 times. */
static const char reduce_ptx[] = HEAD
	".visible .entry k(.param .u64 to, .param .u64 from, .param .u32 rounds)\n"
	"{\n.reg .pred %p; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<10>;\n"
	".shared .align 4 .b8 tree[1024];\n"
	"ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [from];\n"
	"ld.param.u32 %r1, [rounds];\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"
	"mov.u32 %r4, %tid.x;\nmad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"cvta.to.global.u64 %rd3, %rd2;\nmul.wide.s32 %rd4, %r5, 4;\n"
	"add.s64 %rd5, %rd3, %rd4;\nmov.u32 %r6, %nctaid.x;\n"
	"mul.lo.s32 %r7, %r6, %r3;\nmul.wide.s32 %rd6, %r7, 4;\n"
	"mov.f32 %f1, 0f00000000;\nmov.u32 %r8, 0;\n"
	"again:\nld.global.f32 %f2, [%rd5];\nadd.f32 %f1, %f1, %f2;\n"
	"add.s64 %rd5, %rd5, %rd6;\nadd.s32 %r8, %r8, 1;\n"
	"setp.lt.s32 %p, %r8, %r1;\n@%p bra again;\n"
	"mov.u32 %r9, tree;\nshl.b32 %r10, %r4, 2;\nadd.s32 %r11, %r9, %r10;\n"
	"st.shared.f32 [%r11], %f1;\nmov.u32 %r12, 128;\n"
	"halve:\nbar.sync 0;\nsetp.ge.u32 %p, %r4, %r12;\n@%p bra next;\n"
	"shl.b32 %r13, %r12, 2;\nadd.s32 %r14, %r11, %r13;\n"
	"ld.shared.f32 %f3, [%r14];\nadd.f32 %f1, %f1, %f3;\n"
	"st.shared.f32 [%r11], %f1;\n"
	"next:\nshr.u32 %r12, %r12, 1;\nsetp.ne.s32 %p, %r12, 0;\n@%p bra halve;\n"
	"setp.ne.s32 %p, %r4, 0;\n@%p bra done;\ncvta.to.global.u64 %rd7, %rd1;\n"
	"atom.global.add.f32 %f4, [%rd7], %f1;\ndone:\nret;\n}\n";

#define PRODUCT(_k, _a, _b)                                                              \
	"ld.shared.f32 %f3, [%r20+" _a "];\nld.shared.f32 %f4, [%r21+" _b "];\n"         \
	"fma.rn.f32 %f1, %f4, %f3, %f1;\n"

/* Tiles of 16 by 16 in shared memory, as in CUDA's programming guide. */
static const char matmul_ptx[] = HEAD
	".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n)\n"
	"{\n.reg .pred %p; .reg .b32 %r<30>; .reg .f32 %f<9>; .reg .b64 %rd<20>;\n"
	".shared .align 4 .b8 as[1024];\n.shared .align 4 .b8 bs[1024];\n"
	"ld.param.u64 %rd1, [c];\nld.param.u64 %rd2, [a];\nld.param.u64 %rd3, [b];\n"
	"ld.param.u32 %r1, [n];\ncvta.to.global.u64 %rd1, %rd1;\n"
	"cvta.to.global.u64 %rd2, %rd2;\ncvta.to.global.u64 %rd3, %rd3;\n"
	"mov.u32 %r2, %tid.x;\nmov.u32 %r3, %tid.y;\nmov.u32 %r4, %ctaid.x;\n"
	"mov.u32 %r5, %ctaid.y;\nshl.b32 %r6, %r5, 4;\nadd.s32 %r6, %r6, %r3;\n"
	"shl.b32 %r7, %r4, 4;\nadd.s32 %r7, %r7, %r2;\n"
	"mad.lo.s32 %r8, %r6, %r1, %r2;\nmad.lo.s32 %r9, %r3, %r1, %r7;\n"
	"mad.lo.s32 %r10, %r6, %r1, %r7;\nshl.b32 %r11, %r1, 4;\n"
	"mov.u32 %r12, as;\nmov.u32 %r13, bs;\nshl.b32 %r20, %r3, 6;\n"
	"add.s32 %r20, %r20, %r12;\nshl.b32 %r21, %r2, 2;\nadd.s32 %r22, %r20, %r21;\n"
	"add.s32 %r21, %r21, %r13;\nshl.b32 %r23, %r3, 6;\nadd.s32 %r23, %r23, %r21;\n"
	"mov.f32 %f1, 0f00000000;\nmov.u32 %r14, 0;\n"
	"again:\nmul.wide.s32 %rd4, %r8, 4;\nadd.s64 %rd5, %rd2, %rd4;\n"
	"ld.global.f32 %f2, [%rd5];\nst.shared.f32 [%r22], %f2;\n"
	"mul.wide.s32 %rd6, %r9, 4;\nadd.s64 %rd7, %rd3, %rd6;\n"
	"ld.global.f32 %f2, [%rd7];\nst.shared.f32 [%r23], %f2;\nbar.sync 0;\n" PRODUCT(
		0, "0", "0") PRODUCT(1, "4", "64") PRODUCT(2, "8", "128") PRODUCT(3, "12",
		"192") PRODUCT(4, "16", "256") PRODUCT(5, "20", "320") PRODUCT(6, "24",
		"384") PRODUCT(7, "28", "448") PRODUCT(8, "32", "512") PRODUCT(9, "36",
		"576") PRODUCT(10, "40", "640") PRODUCT(11, "44", "704") PRODUCT(12, "48",
		"768") PRODUCT(13, "52", "832") PRODUCT(14, "56", "896") PRODUCT(15, "60",
		"960") "bar.sync 0;\nadd.s32 %r8, %r8, 16;\nadd.s32 %r9, %r9, %r11;\n"
		       "add.s32 %r14, %r14, 16;\nsetp.lt.s32 %p, %r14, %r1;\n@%p bra "
		       "again;\n"
		       "mul.wide.s32 %rd8, %r10, 4;\nadd.s64 %rd9, %rd1, %rd8;\n"
		       "st.global.f32 [%rd9], %f1;\nret;\n}\n";

/*
 * Four chains of products. @_form: the shape and the types; @_c: the letter of the
 * registers of C and D; @_d: those of a chain
 */
#define MMA_PTX(_form, _c, _d)                                                           \
	HEAD ".visible .entry k(.param .u64 to, .param .u32 rounds)\n"                   \
	     "{\n.reg .pred %p; .reg .b32 %r<12>; .reg .b32 %c<40>; .reg .f32 %f<40>;\n" \
	     ".reg .b64 %rd<4>;\nld.param.u64 %rd1, [to];\n"                             \
	     "ld.param.u32 %r9, [rounds];\n"                                             \
	     "mov.u32 %r10, 0;\nmov.u32 %r8, %tid.x;\nadd.s32 %r1, %r8, 0x38003c00;\n"   \
	     "mov.b32 %r2, %r1;\nmov.b32 %r3, %r1;\nmov.b32 %r4, %r1;\n"                 \
	     "mov.b32 %r5, %r1;\nmov.b32 %r6, %r1;\nagain:\n" MMA(                       \
		     _form, _d(_c, "")) MMA(_form, _d(_c, "1")) MMA(_form, _d(_c, "2"))  \
		     MMA(_form, _d(_c, "3")) "add.s32 %r10, %r10, 1;\nsetp.lt.s32 %p, "  \
					     "%r10, %r9;\n@%p bra again;\n"              \
					     "st.global.b32 [%rd1], %" _c                \
					     "0;\nst.global.b32 [%rd1], %" _c "10;\n"    \
					     "st.global.b32 [%rd1], %" _c                \
					     "20;\nst.global.b32 [%rd1], %" _c "30;\n"   \
					     "ret;\n}\n"

#define MMA(_form, _d)                                                                   \
	"mma.sync.aligned." _form " {" _d "}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {" _d "};\n"
#define TWO(_c, _n) "%" _c _n "0,%" _c _n "1"
#define FOUR(_c, _n) TWO(_c, _n) ",%" _c _n "2,%" _c _n "3"

static const char mma_ptx[] = MMA_PTX("m16n8k16.row.col.f32.f16.f16.f32", "f", FOUR);
static const char mma_f16_ptx[] = MMA_PTX("m16n8k16.row.col.f16.f16.f16.f16", "c", TWO);
static const char mma_tf32_ptx[] =
	MMA_PTX("m16n8k8.row.col.f32.tf32.tf32.f32", "f", FOUR);
static const char mma_s8_ptx[] = MMA_PTX("m16n8k32.row.col.s32.s8.s8.s32", "c", FOUR);

/* Chains of sums of products of bytes. */
#define DP4A(_d) "dp4a.s32.s32 " _d ", %r1, %r2, " _d ";\n"

static const char dp4a_ptx[] = HEAD
	".visible .entry k(.param .u64 to, .param .u32 rounds)\n"
	"{\n.reg .pred %p; .reg .b32 %r<12>; .reg .b32 %c<8>; .reg .b64 %rd<4>;\n"
	"ld.param.u64 %rd1, [to];\nld.param.u32 %r9, [rounds];\nmov.u32 %r10, 0;\n"
	"mov.u32 %r8, %tid.x;\nadd.s32 %r1, %r8, 0x38003c00;\nmov.b32 %r2, %r1;\n"
	"mov.b32 %c0, 0;\nmov.b32 %c1, 0;\nmov.b32 %c2, 0;\nmov.b32 %c3, 0;\n"
	"again:\n" DP4A("%c0") DP4A("%c1") DP4A("%c2")
		DP4A("%c3") "add.s32 %r10, %r10, 1;\nsetp.lt.s32 %p, %r10, %r9;\n@%p bra "
			    "again;\n"
			    "st.global.u32 [%rd1], %c0;\nst.global.u32 [%rd1], %c1;\n"
			    "st.global.u32 [%rd1], %c2;\nst.global.u32 [%rd1], "
			    "%c3;\nret;\n}\n";

/* Each thread fetches along its own row, between texels. */
static const char texture_ptx[] = HEAD
	".visible .entry k(.param .u64 to, .param .u64 tex, .param .u32 rounds)\n"
	"{\n.reg .pred %p; .reg .b32 %r<12>; .reg .f32 %f<12>; .reg .b64 %rd<4>;\n"
	"ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [tex];\n"
	"ld.param.u32 %r9, [rounds];\nmov.u32 %r10, 0;\nmov.u32 %r1, %tid.x;\n"
	"mov.u32 %r2, %ctaid.x;\ncvt.rn.f32.u32 %f1, %r1;\ncvt.rn.f32.u32 %f2, %r2;\n"
	"add.f32 %f1, %f1, 0f3E800000;\nadd.f32 %f2, %f2, 0f3E800000;\n"
	"mov.f32 %f3, 0f00000000;\n"
	"again:\ntex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%rd2, {%f1,%f2}];\n"
	"add.f32 %f3, %f3, %f4;\nadd.f32 %f1, %f1, 0f3F000000;\n"
	"add.s32 %r10, %r10, 1;\nsetp.lt.s32 %p, %r10, %r9;\n@%p bra again;\n"
	"st.global.f32 [%rd1], %f3;\nret;\n}\n";

/* A kernel, with up to three pieces of memory and a number as its parameters. */
struct kernel {
	const char *name;
	const char *text;
	uint32_t grid[2], block[2];
	unsigned int n_pieces;
	size_t size;	  /* of each piece */
	bool has_texture; /* of the last piece: the parameter is its object */
	uint32_t number;
	double work; /* of a launch */
};

#define REDUCE_ROUNDS 64

static const struct kernel kernels[] = {
	{ "soft_kernel_vadd", vadd_ptx, { NATIVE_VADD / 256, 1 }, { 256, 1 }, 3,
		4 * NATIVE_VADD, false, NATIVE_VADD,
		(double)NATIVE_VADD *VADD_INSTRUCTIONS },
	{ "soft_kernel_reduce", reduce_ptx, { 16, 1 }, { 256, 1 }, 2,
		(size_t)4 * 16 * 256 * REDUCE_ROUNDS, false, REDUCE_ROUNDS,
		16.0 * 256 *
			(REDUCE_ROUNDS * REDUCE_LOOP_INSTRUCTIONS +
				REDUCE_OTHER_INSTRUCTIONS) },
	{ "soft_kernel_matmul", matmul_ptx,
		{ NATIVE_N / NATIVE_TILE, NATIVE_N / NATIVE_TILE },
		{ NATIVE_TILE, NATIVE_TILE }, 3, (size_t)4 * NATIVE_N *NATIVE_N, false,
		NATIVE_N,
		(double)NATIVE_N *NATIVE_N *(
			NATIVE_N / NATIVE_TILE * MATMUL_TILE_INSTRUCTIONS +
			MATMUL_OTHER_INSTRUCTIONS) },
	{ "soft_kernel_dp4a", dp4a_ptx, { 16, 1 }, { 128, 1 }, 1, 4, false, NATIVE_ROUNDS,
		(double)NATIVE_THREADS *(NATIVE_ROUNDS *DP4A_LOOP_INSTRUCTIONS +
					 DP4A_OTHER_INSTRUCTIONS) },
	{ "soft_kernel_mma", mma_ptx, { 16, 1 }, { 128, 1 }, 1, 4, false, NATIVE_ROUNDS,
		MMA_OPERATIONS(16) },
	{ "soft_kernel_mma_f16", mma_f16_ptx, { 16, 1 }, { 128, 1 }, 1, 4, false,
		NATIVE_ROUNDS, MMA_OPERATIONS(16) },
	{ "soft_kernel_mma_tf32", mma_tf32_ptx, { 16, 1 }, { 128, 1 }, 1, 4, false,
		NATIVE_ROUNDS, MMA_OPERATIONS(8) },
	{ "soft_kernel_mma_s8", mma_s8_ptx, { 16, 1 }, { 128, 1 }, 1, 4, false,
		NATIVE_ROUNDS, MMA_OPERATIONS(32) },
	{ "soft_kernel_texture", texture_ptx, { 16, 1 }, { 128, 1 }, 2,
		(size_t)4 * NATIVE_TEXTURE *NATIVE_TEXTURE, true, NATIVE_ROUNDS,
		(double)NATIVE_THREADS *NATIVE_ROUNDS },
};

/* The processor time of all threads of the process, in ns. */
static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* An object for floats in memory, which are filtered. */
static CUtexObject make_texture(CUdeviceptr piece)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_PITCH2D };
	CUDA_TEXTURE_DESC texture = { .filterMode = CU_TR_FILTER_MODE_LINEAR };
	CUtexObject object = 0;

	resource.res.pitch2D.devPtr = piece;
	resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
	resource.res.pitch2D.numChannels = 1;
	resource.res.pitch2D.width = NATIVE_TEXTURE;
	resource.res.pitch2D.height = NATIVE_TEXTURE;
	resource.res.pitch2D.pitchInBytes = 4 * NATIVE_TEXTURE;
	for (int i = 0; i < 3; i++)
		texture.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	must(cuTexObjectCreate(&object, &resource, &texture, NULL));
	return object;
}

static void measure_kernel(struct bench *bench, const struct kernel *kernel)
{
	const struct bench_sink *sink = bench->sink;
	CUdeviceptr pieces[3] = { 0 };
	uint32_t number = kernel->number;
	struct bench_samples samples = {};
	void *params[4], *zeros = calloc(1, kernel->size);
	CUtexObject texture = 0;
	CUfunction function;
	CUmodule module;
	double start;

	if (!zeros)
		return;
	must(cuModuleLoadData(&module, kernel->text));
	must(cuModuleGetFunction(&function, module, "k"));
	for (unsigned int i = 0; i < kernel->n_pieces; i++) {
		must(cuMemAlloc(&pieces[i], kernel->size));
		must(cuMemcpyHtoD(pieces[i], zeros, kernel->size));
		params[i] = &pieces[i];
	}
	free(zeros);
	params[kernel->n_pieces] = &number;
	if (kernel->has_texture) {
		texture = make_texture(pieces[kernel->n_pieces - 1]);
		params[kernel->n_pieces - 1] = &texture;
	}
	/* The first sample is thrown away: it lowers the kernel. */
	for (unsigned int n = 0;
		n == 0 || bench_more(&samples, bench_count(sink, SAMPLES, 3)); n++) {
		start = used();
		must(cuLaunchKernel(function, kernel->grid[0], kernel->grid[1], 1,
			kernel->block[0], kernel->block[1], 1, 0, bench->stream, params,
			NULL));
		must(cuStreamSynchronize(bench->stream));
		if (n)
			bench_sample(&samples, kernel->work * 1e9 / (used() - start));
	}
	bench_report(sink, kernel->name, "1/s", &samples);
	if (texture)
		must(cuTexObjectDestroy(texture));
	for (unsigned int i = 0; i < kernel->n_pieces; i++)
		must(cuMemFree(pieces[i]));
}

void measure_soft(struct bench *bench)
{
	if (strcmp(bench->sink->driver, "soft-direct"))
		return;
	for (size_t i = 0; i < BENCH_N(kernels); i++)
		if (bench_wanted(bench->sink->options, kernels[i].name) &&
			(cuda.has_textures || !kernels[i].has_texture))
			measure_kernel(bench, &kernels[i]);
}

/*
 * The same loops, compiled for this machine
 */

/* The work of the kernel that does the same. */
static double work_of(const struct native_loop *loop)
{
	const char *name = loop->name + strlen("loop_");

	for (size_t i = 0; i < BENCH_N(kernels); i++)
		if (!strcmp(kernels[i].name + strlen("soft_kernel_"), name))
			return kernels[i].work;
	abort();
}

void bench_native(const struct bench_sink *sink)
{
	for (size_t i = 0; i < NATIVE_LOOPS; i++) {
		const struct native_loop *loop = &native_loops[i];
		struct bench_samples samples = {};
		double start, work = work_of(loop);

		if (!bench_wanted(sink->options, loop->name))
			continue;
		if (!native_prepare())
			break;
		loop->run();
		while (bench_more(&samples, bench_count(sink, SAMPLES, 3))) {
			start = used();
			loop->run();
			bench_sample(&samples, work * 1e9 / (used() - start));
		}
		bench_report(sink, loop->name, "1/s", &samples);
	}
	native_free();
}
