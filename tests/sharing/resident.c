/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest program whose memory may leave the device while it is idle: each line on stdin
 * is a command, answered by a line "= RESULT NUMBER" on stdout.
 *
 *	begin [DEVICE]		makes the context and loads the kernels
 *	take BYTES		allocates; the number is the address
 *	pool BYTES		the same of the default pool
 *	map BYTES		the same by cuMemCreate and cuMemMap; another device, if
 *there is one, may read it
 *	rights			the number: those of the last one, 16 times that of the
 *				second device and that of the first
 *	share			makes the last one available to other processes
 *	give			frees the last one
 *	write SEED		fills all by copies, with what depends on address and seed
 *	check SEED		counts the words that are something else, by copies
 *	add N			adds N to each word, by a kernel without a reply
 *	graph N			makes a graph of a copy of the second half of the first
 *one to its first half, and then a kernel that adds N to that
 *	launch			launches it
 *	touch			launches a kernel and waits; the number: microseconds
 *	busy			the same again and again until the next line; the number:
 *				how often
 *	hold, open		has a stream wait for `open` without a call of the device
 *	end			ends the context
 *	reset			the same, but keeps what was mapped, and makes it again
 */

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#define N_PIECES 64
#define BLOCK (1u << 20)

static const char ptx[] = ".version 7.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry add(.param .u64 at, .param .u32 words,\n"
			  "	.param .u32 by)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .u32 %n, %i, %x, %by, %step;\n"
			  "	.reg .u64 %at, %off;\n"
			  "	ld.param.u64 %at, [at];\n"
			  "	ld.param.u32 %n, [words];\n"
			  "	ld.param.u32 %by, [by];\n"
			  "	mov.u32 %i, %ctaid.x;\n"
			  "	mov.u32 %x, %ntid.x;\n"
			  "	mov.u32 %step, %nctaid.x;\n"
			  "	mul.lo.u32 %step, %step, %x;\n"
			  "	mul.lo.u32 %i, %i, %x;\n"
			  "	mov.u32 %x, %tid.x;\n"
			  "	add.u32 %i, %i, %x;\n"
			  "again:\n"
			  "	setp.ge.u32 %p, %i, %n;\n"
			  "	@%p ret;\n"
			  "	mul.wide.u32 %off, %i, 4;\n"
			  "	add.u64 %off, %at, %off;\n"
			  "	ld.global.u32 %x, [%off];\n"
			  "	add.u32 %x, %x, %by;\n"
			  "	st.global.u32 [%off], %x;\n"
			  "	add.u32 %i, %i, %step;\n"
			  "	bra again;\n"
			  "}\n";

struct piece {
	CUdeviceptr address;
	size_t size;
	CUcontext context;
	enum kind {
		LINEAR,
		OF_POOL,
		MAPPED,
	} kind;
};

static struct piece pieces[N_PIECES];
static int n_pieces;
static CUfunction add;
static CUstream stream;
static CUgraphExec graph;
static int n_devices;
static uint32_t block[BLOCK / 4];
/* Page-locked: a stream waits for its value. */
static volatile uint32_t *gate;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static CUresult begin(CUdevice device)
{
	CUcontext context;
	CUmodule module;
	CUresult r;

	r = cuInit(0);
	if (!r)
		r = cuDeviceGetCount(&n_devices);
	if (!r)
		r = cuDevicePrimaryCtxRetain(&context, device);
	if (!r)
		r = cuCtxSetCurrent(context);
	if (!r)
		r = cuModuleLoadData(&module, ptx);
	if (!r)
		r = cuModuleGetFunction(&add, module, "add");
	if (!r)
		r = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (!r)
		r = cuMemHostAlloc((void **)&gate, 4, CU_MEMHOSTALLOC_DEVICEMAP);
	return r;
}

static CUresult map(size_t size, CUdeviceptr *address)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc access[] = {
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READ },
	};
	CUmemGenericAllocationHandle memory;
	CUresult r;

	r = cuMemAddressReserve(address, size, 0, 0, 0);
	if (!r)
		r = cuMemCreate(&memory, size, &prop, 0);
	if (!r)
		r = cuMemMap(*address, size, 0, memory, 0);
	if (!r)
		r = cuMemRelease(memory);
	if (!r)
		r = cuMemSetAccess(*address, size, access, n_devices > 1 ? 2 : 1);
	return r;
}

static CUresult take(size_t size, enum kind kind, uint64_t *n)
{
	struct piece *piece = &pieces[n_pieces];
	CUresult r;

	if (n_pieces == N_PIECES)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == LINEAR)
		r = cuMemAlloc(&piece->address, size);
	else
		r = kind == MAPPED ? map(size, &piece->address)
				   : cuMemAllocAsync(&piece->address, size, NULL);
	if (r)
		return r;
	piece->size = size;
	piece->kind = kind;
	n_pieces++;
	*n = piece->address;
	return cuCtxGetCurrent(&piece->context);
}

static CUresult give(void)
{
	struct piece *piece;
	CUresult r;

	if (!n_pieces)
		return CUDA_ERROR_INVALID_VALUE;
	piece = &pieces[--n_pieces];
	if (piece->kind != MAPPED)
		return piece->kind == OF_POOL ? cuMemFreeAsync(piece->address, NULL)
					      : cuMemFree(piece->address);
	r = cuMemUnmap(piece->address, piece->size);
	return r ? r : cuMemAddressFree(piece->address, piece->size);
}

static CUresult read_rights(uint64_t *n)
{
	CUresult r = CUDA_SUCCESS;

	for (int i = n_devices > 1 ? 1 : 0; i >= 0 && !r; i--) {
		const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, i };
		unsigned long long flags = 0;

		r = cuMemGetAccess(&flags, &location, pieces[n_pieces - 1].address);
		*n = 16 * *n + flags;
	}
	return r;
}

static CUresult share(void)
{
	CUipcMemHandle handle;

	return cuIpcGetMemHandle(&handle, pieces[n_pieces - 1].address);
}

static uint32_t word_at(CUdeviceptr address, uint32_t seed)
{
	return (uint32_t)(address / 4) * 2654435761u + seed;
}

static CUresult scan(uint32_t seed, int writes, uint64_t *n)
{
	CUresult r = CUDA_SUCCESS;

	for (int i = 0; i < n_pieces && !r; i++) {
		r = cuCtxSetCurrent(pieces[i].context);
		for (size_t at = 0; at < pieces[i].size && !r; at += BLOCK) {
			const CUdeviceptr from = pieces[i].address + at;
			const size_t rest = pieces[i].size - at;
			const size_t size = rest < BLOCK ? rest : BLOCK;

			if (!writes)
				r = cuMemcpyDtoH(block, from, size);
			for (size_t k = 0; k < size / 4 && !r; k++) {
				if (writes)
					block[k] = word_at(from + 4 * k, seed);
				else
					*n += block[k] != word_at(from + 4 * k, seed);
			}
			if (writes)
				r = cuMemcpyHtoD(from, block, size);
		}
	}
	return r;
}

static CUresult add_to(const struct piece *piece, uint32_t words, uint32_t by)
{
	CUdeviceptr address = piece->address;
	void *params[] = { &address, &words, &by };

	return cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

static CUresult add_to_all(uint32_t by)
{
	CUresult r = CUDA_SUCCESS;

	for (int i = 0; i < n_pieces && !r; i++)
		r = add_to(&pieces[i], (uint32_t)(pieces[i].size / 4), by);
	return r ? r : cuCtxSynchronize();
}

static CUresult make_graph(uint32_t by)
{
	struct piece *piece = &pieces[0];
	uint32_t words = (uint32_t)(piece->size / 8);
	void *params[] = { &piece->address, &words, &by };
	CUgraph made;
	CUresult r;

	r = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	if (!r)
		r = cuMemcpyDtoDAsync(piece->address, piece->address + piece->size / 2,
			piece->size / 2, stream);
	if (!r)
		r = cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, stream, params, NULL);
	if (!r)
		r = cuStreamEndCapture(stream, &made);
	return r ? r : cuGraphInstantiate(&graph, made, 0);
}

static CUresult touch(uint64_t *us)
{
	const uint64_t began = now_us();
	CUresult r;

	r = add_to(&pieces[0], 1, 0);
	if (!r)
		r = cuCtxSynchronize();
	*us = now_us() - began;
	return r;
}

static CUresult be_busy(uint64_t *n)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	uint64_t us;
	CUresult r = CUDA_SUCCESS;

	puts("= 0 0");
	fflush(stdout);
	while (poll(&input, 1, 0) <= 0 && !r) {
		r = touch(&us);
		++*n;
	}
	return r;
}

static CUresult hold(void)
{
	CUdeviceptr at;
	CUresult r;

	*gate = 0;
	r = cuMemHostGetDevicePointer(&at, (void *)gate, 0);
	return r ? r : cuStreamWaitValue32(stream, at, 1, CU_STREAM_WAIT_VALUE_GEQ);
}

static CUresult run(const char *command, const char *word, uint64_t *n)
{
	const uint64_t number = strtoull(word, NULL, 0);

	if (!strcmp(command, "begin"))
		return begin((CUdevice)number);
	if (!strcmp(command, "take"))
		return take(number, LINEAR, n);
	if (!strcmp(command, "pool"))
		return take(number, OF_POOL, n);
	if (!strcmp(command, "map"))
		return take(number, MAPPED, n);
	if (!strcmp(command, "rights"))
		return read_rights(n);
	if (!strcmp(command, "share"))
		return share();
	if (!strcmp(command, "graph"))
		return make_graph((uint32_t)number);
	if (!strcmp(command, "launch")) {
		CUresult r = cuGraphLaunch(graph, stream);

		return r ? r : cuStreamSynchronize(stream);
	}
	if (!strcmp(command, "give"))
		return give();
	if (!strcmp(command, "write") || !strcmp(command, "check"))
		return scan((uint32_t)number, *command == 'w', n);
	if (!strcmp(command, "add"))
		return add_to_all((uint32_t)number);
	if (!strcmp(command, "touch"))
		return touch(n);
	if (!strcmp(command, "busy"))
		return be_busy(n);
	if (!strcmp(command, "hold"))
		return hold();
	if (!strcmp(command, "open")) {
		*gate = 1;
		return CUDA_SUCCESS;
	}
	if (!strcmp(command, "reset")) {
		CUresult r = cuDevicePrimaryCtxReset(0);

		return r ? r : begin(0);
	}
	if (!strcmp(command, "end")) {
		n_pieces = 0;
		return cuDevicePrimaryCtxReset(0);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int main(void)
{
	char line[128], command[32], word[32];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t n = 0;
		CUresult r;

		*word = '\0';
		if (sscanf(line, "%31s %31s", command, word) < 1)
			continue;
		if (!strcmp(command, "quit"))
			return 0;
		r = run(command, word, &n);
		printf("= %d %llu\n", r, (unsigned long long)n);
		fflush(stdout);
	}
	return 0;
}
