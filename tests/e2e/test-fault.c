/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: kernels that go wrong, each in its own way
 *
 * Thread 5 of block 1 is the one at fault, so that the host's log can be held to name
 * it (see meson.build). A time limit is the host's to set: see test_timeout.py.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

#define BEGIN(_name)                                                                     \
	".visible .entry " _name "(.param .u64 p) {\n"                                   \
	".reg .pred %q; .reg .b32 %r<9>; .reg .b64 %d<9>; .local .align 8 .b8 own[8];\n" \
	"ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"           \
	"mad.lo.u32 %r1, %r1, 1000, %r2; setp.ne.u32 %q, %r1, 1005; @%q bra END;\n"
#define END "END: ret; }\n"

/* clang-format off */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l,\n"
	".param .b64 g, .param .b64 s);\n"
	".global .align 1 .b8 text[4] = {110, 111, 116, 0};\n"
	".func deeper(.param .b32 n) { .reg .b32 %r; ld.param.b32 %r, [n];\n"
	"{ .param .b32 a; add.u32 %r, %r, 1; st.param.b32 [a], %r;\n"
	"call deeper, (a); } ret; }\n"
	BEGIN("store") "st.global.u32 [%d1], 6;\n" END
	BEGIN("counts") "mov.u64 %d2, own; cvta.local.u64 %d2, %d2;\n"
	"atom.add.u32 %r3, [%d2], 1; st.global.u32 [%d1], %r3;\n" END
	BEGIN("jumps") "{ .param .b32 a; .param .b32 b; st.param.b32 [a], 4;\n"
	"type: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
	"call (b), %d1, (a), type; ld.param.b32 %r3, [b]; }\n" END
	BEGIN("descends") "{ .param .b32 a; st.param.b32 [a], 0;\n"
	"call deeper, (a); }\n" END
	BEGIN("traps") "trap;\n" END
	BEGIN("asserts") "mov.u64 %d2, text; cvta.global.u64 %d2, %d2;\n"
	"{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; .param .b64 s;\n"
	"st.param.b64 [m], %d2; st.param.b64 [f], %d2; st.param.b32 [l], 7;\n"
	"st.param.b64 [g], %d2; st.param.b64 [s], 1;\n"
	"call.uni __assertfail, (m, f, l, g, s); }\n" END;
/* clang-format on */

static CUfunction kernel(const char *name)
{
	CUfunction function;
	CUmodule module;

	check_ok(cuModuleLoadData(&module, ptx));
	check_ok(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUresult launch(CUfunction function, CUdeviceptr argument)
{
	void *parameters[] = { &argument };

	return cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

static void check_works(CUfunction store, CUdeviceptr memory)
{
	check_ok(cuMemsetD32(memory, 1, 1));
	check_ok(launch(store, memory));
	check_eq(device_word(memory), 6);
}

/* Another process, with work before and after what happens to this one. */
struct neighbour {
	int to, from;
	pid_t pid;
};

static void neighbour_run(int from, int to)
{
	CUcontext context;
	CUdeviceptr memory;
	CUfunction store;
	char byte = 0;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuMemAlloc(&memory, 4));
	store = kernel("store");
	check_works(store, memory);
	check_eq(write(to, &byte, 1), 1);
	check_eq(read(from, &byte, 1), 1);
	check_works(store, memory);
	_exit(0);
}

static struct neighbour neighbour_new(void)
{
	struct neighbour neighbour;
	int to[2], from[2];
	char byte;

	check(!pipe(to) && !pipe(from));
	neighbour.pid = fork();
	check(neighbour.pid >= 0);
	if (!neighbour.pid)
		neighbour_run(to[0], from[1]);
	close(to[0]);
	close(from[1]);
	neighbour.to = to[1];
	neighbour.from = from[0];
	check_eq(read(neighbour.from, &byte, 1), 1);
	return neighbour;
}

static void neighbour_check(struct neighbour *neighbour)
{
	int status;

	check_eq(write(neighbour->to, "", 1), 1);
	check_eq(waitpid(neighbour->pid, &status, 0), neighbour->pid);
	check_eq(status, 0);
	close(neighbour->to);
	close(neighbour->from);
}

/* @argument: what the kernel gets; from 4096 on an offset in memory, plus 4096. */
static void check_fault(const char *name, CUdeviceptr argument, CUresult expected)
{
	struct neighbour neighbour = neighbour_new();
	CUcontext context, other;
	CUdeviceptr memory, others, p;
	CUfunction store;
	unsigned int word;

	check_ok(cuInit(0));
	check_ok(cuCtxCreate(&other, NULL, 0, 0));
	store = kernel("store");
	check_ok(cuMemAlloc(&others, 4));
	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuMemAlloc(&memory, 64));
	check_ok(launch(
		kernel(name), argument < 4096 ? argument : memory + argument - 4096));
	check_cu(cuCtxSynchronize(), expected);
	check_cu(cuCtxSynchronize(), expected);
	check_cu(cuMemcpyDtoH(&word, memory, sizeof(word)), expected);
	check_cu(cuMemAlloc(&p, 4), expected);
	check_cu(cuStreamSynchronize(NULL), expected);

	check_ok(cuCtxSetCurrent(other));
	check_works(store, others);
	neighbour_check(&neighbour);
	check_ok(cuCtxSetCurrent(context));
	check_cu(cuCtxSynchronize(), expected);
}

TEST(address_where_nothing_is_gives_700)
{
	check_fault("store", 16, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(failed_assertion_gives_710)
{
	check_fault("asserts", 0, CUDA_ERROR_ASSERT);
}

TEST(recursion_without_end_gives_714)
{
	check_fault("descends", 0, CUDA_ERROR_HARDWARE_STACK_ERROR);
}

TEST(misaligned_address_gives_716)
{
	check_fault("store", 4096 + 2, CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST(atomic_operation_on_local_memory_gives_717)
{
	check_fault("counts", 4096, CUDA_ERROR_INVALID_ADDRESS_SPACE);
}

TEST(call_of_what_is_no_function_gives_718)
{
	check_fault("jumps", 42, CUDA_ERROR_INVALID_PC);
}

TEST(trap_gives_719)
{
	check_fault("traps", 0, CUDA_ERROR_LAUNCH_FAILED);
}
