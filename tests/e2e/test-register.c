/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory of the program that it registers
 *
 * Whether the pages survive being moved under other threads is tested beside the mover;
 * here, what program and device see of them.
 */

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

#define PAGE 4096u
#define WORDS 100000u
#define BYTES (WORDS * sizeof(uint32_t))

static bool has_register(const struct fixture *fixture)
{
	int has = 0;

	check_ok(cuDeviceGetAttribute(
		&has, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, fixture->device));
	return has;
}

static struct fixture begin(void)
{
	struct fixture fixture = fixture_new();

	if (!has_register(&fixture))
		test_skip("the device cannot have memory registered in this process");
	return fixture;
}

static void *anonymous(size_t size)
{
	void *memory = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(memory != MAP_FAILED);
	return memory;
}

static CUdeviceptr device_of(void *memory)
{
	CUdeviceptr address;

	check_ok(cuMemHostGetDevicePointer(&address, memory, 0));
	return address;
}

static CUstream stream_new(void)
{
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

TEST(kernels_and_program_share_registered_memory)
{
	struct fixture fixture = begin();
	uint32_t *words = malloc(BYTES), *last = words + WORDS - 1;
	CUdeviceptr p;

	check(words);
	*words = 5;
	*last = 6;
	check_ok(cuMemHostRegister(words, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
	check_eq(*words, 5);
	p = device_of(words);
	check_eq(device_of(last), p + BYTES - 4);
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 3, NULL));
	check_ok(launch_step(fixture_function(&fixture, "step"), p + BYTES - 4, 2, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(*words, stepped(5, 3));
	check_eq(*last, stepped(6, 2));
	*words = 1;
	check_eq(device_word(p), 1);
	check_ok(launch_fill(fixture_function(&fixture, "fill"), p, 9, WORDS, NULL));
	/* Waits for the kernel, whose words are the program's then. */
	check_ok(cuMemHostUnregister(words));
	for (uint32_t i = 0; i < WORDS; i++)
		check_eq(words[i], 9);
	check_cu(cuMemHostGetDevicePointer(&p, words, 0), CUDA_ERROR_INVALID_VALUE);
	free(words);
}

/* Of pageable memory, an asynchronous copy has what it held when the call was made. */
TEST(copies_of_registered_memory_are_made_when_the_stream_comes_to_them)
{
	uint32_t *words, *flag;
	CUdeviceptr p, mapped;
	CUstream stream;

	begin();
	words = anonymous(BYTES);
	stream = stream_new();
	check_ok(cuMemHostAlloc((void **)&flag, PAGE, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&mapped, flag, 0));
	check_ok(cuMemAlloc(&p, BYTES));
	check_ok(cuMemHostRegister(words, BYTES, 0));
	*flag = 0;
	words[7] = 1;
	check_ok(cuStreamWaitValue32(stream, mapped, 1, CU_STREAM_WAIT_VALUE_GEQ));
	check_ok(cuMemcpyHtoDAsync(p, words, BYTES, stream));
	check_ok(cuMemcpyDtoHAsync(words + 20, p + 7 * 4, 4, stream));
	words[7] = 2;
	check_eq(words[20], 0);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p + 7 * 4), 2);
	check_eq(words[20], 2);
	check_ok(cuMemHostUnregister(words));
	check_eq(words[20], 2);
}

TEST(copies_of_every_form_take_registered_memory)
{
	const CUDA_ARRAY_DESCRIPTOR descriptor = {
		.Width = 16,
		.Height = 4,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1,
	};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcPitch = 256,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 512,
		.WidthInBytes = 64,
		.Height = 4,
	};
	uint32_t *words, out[64] = {};
	CUdeviceptr p;
	CUarray array;

	begin();
	words = anonymous(BYTES);
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = i;
	check_ok(cuMemHostRegister(words, BYTES, 0));
	check_ok(cuMemAlloc(&p, 4 * 512));
	copy.srcHost = words;
	copy.dstDevice = p;
	check_ok(cuMemcpy2D(&copy));
	check_eq(device_word(p + 512 + 4), 65);
	check_ok(cuMemcpy((CUdeviceptr)(uintptr_t)words, p, 8));
	check_ok(cuArrayCreate(&array, &descriptor));
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	check_ok(cuMemcpy2D(&copy));
	copy = (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = words + 1000,
		.dstPitch = 64,
		.WidthInBytes = 64,
		.Height = 4,
	};
	check_ok(cuMemcpy2D(&copy));
	check_eq(words[1000 + 17], 65);
	/* Between registered and ordinary memory. */
	memset(out, 1, sizeof(out));
	check_ok(cuMemcpy((CUdeviceptr)(uintptr_t)out,
		(CUdeviceptr)(uintptr_t)(words + 100), sizeof(out)));
	check_eq(out[63], 163);
	/* Half of it is registered. */
	check_ok(cuMemcpyHtoD(p, words + WORDS - 4, 16));
	check_eq(device_word(p + 12), WORDS - 1);
}

TEST(captured_copies_have_what_registered_memory_holds_at_the_launch)
{
	uint32_t *words;
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr p;

	begin();
	words = anonymous(PAGE);
	stream = stream_new();
	check_ok(cuMemAlloc(&p, PAGE));
	check_ok(cuMemHostRegister(words, PAGE, 0));
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(cuMemcpyHtoDAsync(p, words, PAGE, stream));
	check_ok(cuStreamEndCapture(stream, &graph));
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	for (uint32_t i = 1; i < 4; i++) {
		words[5] = i;
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuStreamSynchronize(stream));
		check_eq(device_word(p + 20), i);
	}
}

TEST(pointers_tell_what_is_registered)
{
	struct fixture fixture = begin();
	uint8_t *bytes = anonymous(3 * PAGE);
	unsigned int type = 0, flags = 0;
	CUdeviceptr device, told = 0;
	CUcontext context = NULL;
	void *host = NULL;

	check_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			 (CUdeviceptr)(uintptr_t)bytes),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemHostRegister(bytes + 100, 2 * PAGE, CU_MEMHOSTREGISTER_PORTABLE));
	device = device_of(bytes + 200);
	check_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		(CUdeviceptr)(uintptr_t)(bytes + 200)));
	check_eq(type, CU_MEMORYTYPE_HOST);
	check_ok(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		(CUdeviceptr)(uintptr_t)(bytes + 200)));
	check_eq(told, device);
	check_ok(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
	check(host == bytes + 200);
	check_ok(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER,
		(CUdeviceptr)(uintptr_t)(bytes + 200)));
	check(host == bytes + 200);
	check_ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device));
	check(context == fixture.context);
	check_ok(cuMemHostGetFlags(&flags, bytes + 100));
	check(flags & CU_MEMHOSTREGISTER_PORTABLE);
	/* The rest of its pages is not. */
	check_cu(cuMemHostGetDevicePointer(&device, bytes, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemHostUnregister(bytes + 100));
	check_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			 (CUdeviceptr)(uintptr_t)(bytes + 200)),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(memory_that_cannot_be_registered_is_refused)
{
	uint8_t *bytes, *shared, on_stack[PAGE], *pinned;
	CUdeviceptr p;

	begin();
	bytes = anonymous(4 * PAGE);
	shared = mmap(
		NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	check_cu(cuMemHostRegister(shared, PAGE, 0), CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuMemHostRegister(on_stack, sizeof(on_stack), 0),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(
		cuMemHostRegister((void *)kernels_ptx, 100, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemHostRegister(bytes, PAGE, CU_MEMHOSTREGISTER_IOMEMORY),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuMemHostRegister(bytes, PAGE, CU_MEMHOSTREGISTER_READ_ONLY),
		CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuMemHostRegister(bytes, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemHostAlloc((void **)&pinned, PAGE, 0));
	check_cu(cuMemHostRegister(pinned, PAGE, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	check_ok(cuMemAlloc(&p, PAGE));
	check_cu(cuMemHostRegister((void *)(uintptr_t)p, PAGE, 0),
		CUDA_ERROR_INVALID_VALUE);

	check_ok(cuMemHostRegister(bytes + PAGE, 2 * PAGE, 0));
	check_cu(cuMemHostRegister(bytes + PAGE, 2 * PAGE, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	check_cu(cuMemHostRegister(bytes, 4 * PAGE, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	/* Other bytes, in a page of it. */
	check_ok(cuMemHostUnregister(bytes + PAGE));
	check_ok(cuMemHostRegister(bytes + PAGE + 100, PAGE, 0));
	check_cu(cuMemHostRegister(bytes + PAGE, 100, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	check_ok(cuMemHostUnregister(bytes + PAGE + 100));
	check_ok(cuMemHostRegister(bytes + PAGE, 2 * PAGE, 0));
	check_cu(cuMemHostUnregister(bytes), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	check_cu(cuMemHostUnregister(bytes + 2 * PAGE),
		CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	check_cu(cuMemFreeHost(bytes + PAGE), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFree(device_of(bytes + PAGE)), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemHostUnregister(bytes + PAGE));
	check_cu(
		cuMemHostUnregister(bytes + PAGE), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	/* What a refusal leaves can be registered. */
	check_ok(cuMemHostRegister(bytes, 4 * PAGE, 0));
}

/* Blocks of malloc() in the same pages, and its books. */
TEST(neighbours_of_registered_memory_keep_their_bytes)
{
	enum { N = 64, SIZE = 1000 };
	struct fixture fixture = begin();
	uint8_t *blocks[N], *mine;

	for (int i = 0; i < N; i++) {
		blocks[i] = malloc(SIZE);
		check(blocks[i]);
		memset(blocks[i], i, SIZE);
	}
	mine = blocks[N / 2];
	check_ok(cuMemHostRegister(mine, SIZE, 0));
	blocks[N / 2 - 1][3] = 77;
	check_ok(launch_fill(fixture_function(&fixture, "fill"), device_of(mine),
		0x01010101, SIZE / 4, NULL));
	check_ok(cuCtxSynchronize());
	free(blocks[N / 2 + 1]);
	blocks[N / 2 + 1] = malloc(SIZE);
	check(blocks[N / 2 + 1]);
	memset(blocks[N / 2 + 1], N / 2 + 1, SIZE);
	check_ok(cuMemHostUnregister(mine));
	check_eq(blocks[N / 2 - 1][3], 77);
	blocks[N / 2 - 1][3] = N / 2 - 1;
	memset(mine, mine[SIZE - 1] == 1 ? N / 2 : 0, SIZE);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < SIZE; k++)
			check_eq(blocks[i][k], i);
		free(blocks[i]);
	}
}

TEST(a_forked_child_has_its_own_copy)
{
	struct fixture fixture = begin();
	uint32_t *words = anonymous(BYTES);
	int go[2], status;
	pid_t pid;
	char c;

	check(!pipe(go));
	words[0] = words[WORDS - 1] = 5;
	check_ok(cuMemHostRegister(words, BYTES, 0));
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		bool is_right;

		/* Until the parent's kernel is complete. */
		close(go[1]);
		is_right =
			read(go[0], &c, 1) == 1 && words[0] == 5 && words[WORDS - 1] == 5;
		words[0] = 99;
		_exit(is_right && words[0] == 99 ? 0 : 1);
	}
	check_ok(launch_fill(
		fixture_function(&fixture, "fill"), device_of(words), 6, WORDS, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(write(go[1], "g", 1), 1);
	check(waitpid(pid, &status, 0) == pid);
	check_eq(status, 0);
	for (uint32_t i = 0; i < WORDS; i++)
		check_eq(words[i], 6);
	check_ok(cuMemHostUnregister(words));
	check_eq(words[0], 6);
}

TEST(memory_is_moved_back_with_its_context)
{
	struct fixture fixture = begin();
	uint32_t *words = anonymous(BYTES);
	CUcontext context;

	check_ok(cuCtxCreate(&context, NULL, 0, 0));
	check_ok(cuMemHostRegister(words, BYTES, 0));
	words[3] = 4;
	check_ok(cuCtxDestroy(context));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_eq(words[3], 4);
	check_cu(cuMemHostUnregister(words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	check_ok(cuMemHostRegister(words, BYTES, 0));
	check_eq(device_word(device_of(words + 3)), 4);
}

/* As a program that frees its memory first. */
TEST(memory_that_is_gone_can_still_be_unregistered)
{
	uint8_t *bytes;

	begin();
	bytes = anonymous(4 * PAGE);
	check_ok(cuMemHostRegister(bytes, 4 * PAGE, 0));
	check(!munmap(bytes, 4 * PAGE));
	check(mmap(bytes, PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == bytes);
	bytes[0] = 3;
	check_ok(cuMemHostUnregister(bytes));
	check_eq(bytes[0], 3);
}
