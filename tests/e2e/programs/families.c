/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that takes memory of every kind, for tests of quotas and of old contents:
 * each line on stdin is a command, answered by a line "= RESULT NUMBER" on stdout.
 *Kernels print lines "#".
 *
 *	begin [DEVICE]		makes the context
 *	take KIND BYTES		takes a piece of that kind
 *	give KIND		gives the last one back
 *	fill			writes a pattern to everything that was taken
 *	look			counts the words of all that with the pattern
 *	free, total		what cuMemGetInfo says
 *	edge BYTES ROUNDS	allocates and frees in 16 threads at once
 *	most			the most bytes that all processes had in that
 *	share PATH		lets others have the last piece: a file with the
 *				handle of linear memory, or the number of a descriptor
 *	from PATH		such a file or descriptor, for `take`
 *	limit heap|fifo BYTES	changes a limit of the context, and says what it is
 *	reserved, used		what the pool of the device has
 *	keep BYTES		what the pool keeps although it is not in use
 *	trim BYTES		gives back what the pool does not use, down to that
 *	reset			ends the context
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>

#define PATTERN 0x5ca1ab1eu
#define PATTERN_TEXT "0x5ca1ab1e"
#define N_PIECES 4096
#define N_THREADS 16
#define SHARED_WORDS 12288u
#define LOCAL_WORDS 16384u
#define ROW 4096u

typedef unsigned long long number;

struct piece {
	const struct kind *kind;
	CUdeviceptr address;
	size_t size;
	size_t pitch; /* of pitched memory */
	void *object; /* array, module, graph ... */
	CUgraphExec exec;
	uint8_t *host; /* pinned and managed memory */
};

struct kind {
	const char *name;
	CUresult (*take)(struct piece *piece);
	CUresult (*give)(struct piece *piece);
	/* With a pattern written first, or not. *countp: words that have it. */
	CUresult (*scan)(struct piece *piece, int writes, number *countp);
};

static CUcontext context;
static CUmodule kernels;
static CUstream stream;
static struct piece pieces[N_PIECES];
static int n_pieces;
static char source[256];

/* Loops over words of one space: writes the pattern if asked to, then counts the words
 * that have it. */
#define LOOP(_space)                                                                     \
	"loop: setp.ge.u32 %p, %i, %n; @%p bra done;\n"                                  \
	"@%q st." _space ".u32 [%a], " PATTERN_TEXT ";\n"                                \
	"ld." _space ".u32 %v, [%a];\n"                                                  \
	"setp.eq.u32 %e, %v, " PATTERN_TEXT "; @%e add.u32 %c, %c, 1;\n"                 \
	"add.u32 %i, %i, 1; add.u64 %a, %a, 4; bra loop;\n"                              \
	"done:\n"
#define HEAD(_name)                                                                      \
	".visible .entry " _name "(.param .u64 out, .param .u32 n, .param .u32 write)\n" \
	"{ .reg .u64 %o, %a, %b; .reg .u32 %i, %n, %w, %v, %c; .reg .pred %p, %q, %e;\n" \
	"ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; ld.param.u32 %w, [write];\n"      \
	"setp.ne.u32 %q, %w, 0; mov.u32 %i, 0; mov.u32 %c, 0;\n"
#define TAIL "st.global.u32 [%o], %c; ret; }\n"

static const char kernels_text[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b64 result) malloc (.param .b64 size);\n"
	".extern .func free (.param .b64 address);\n"
	".extern .shared .align 16 .b8 room[];\n" HEAD(
		"shared_words") "mov.u64 %a, room;\n" LOOP("shared") TAIL
		HEAD("local_words") ".local .align 16 .b8 depot[65536];\nmov.u64 %a, "
				    "depot;\n" LOOP("local") TAIL HEAD(
					    "heap_words") ".param .b64 size; .param .b64 "
							  "result;\nmul.wide.u32 %b, %n, "
							  "4;\n"
							  "st.param.b64 [size], %b; call "
							  "(result), malloc, (size);\n"
							  "ld.param.b64 %b, [result]; "
							  "mov.u64 %a, %b;\n"
							  "setp.eq.u64 %p, %a, 0; @%p "
							  "bra done;\n" LOOP(
								  "global") "st.param."
									    "b64 [size], "
									    "%b; call "
									    "free, "
									    "(size);"
									    "\n" TAIL;

static void write_words(uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] = PATTERN;
}

static number count_words(const uint32_t *words, size_t n)
{
	number count = 0;

	for (size_t i = 0; i < n; i++)
		count += words[i] == PATTERN;
	return count;
}

/*
 * Ordinary memory
 */

static CUresult scan_linear(struct piece *piece, int writes, number *countp)
{
	uint32_t *words = calloc(1, piece->size + 4);
	CUresult r = CUDA_SUCCESS;

	if (writes)
		r = cuMemsetD8(piece->address, 0, piece->size);
	if (writes && !r)
		r = cuMemsetD32(piece->address, PATTERN, piece->size / 4);
	if (!r)
		r = cuMemcpyDtoH(words, piece->address, piece->size);
	*countp = count_words(words, piece->size / 4);
	free(words);
	return r;
}

static CUresult take_linear(struct piece *piece)
{
	return cuMemAlloc(&piece->address, piece->size);
}

static CUresult give_linear(struct piece *piece)
{
	return cuMemFree(piece->address);
}

/* Rows of 4 KiB less a word, so that there is a gap after each. */
static CUresult take_pitched(struct piece *piece)
{
	size_t rows = piece->size / ROW;

	return cuMemAllocPitch(&piece->address, &piece->pitch, ROW - 4, rows, 4);
}

static CUresult take_pool(struct piece *piece)
{
	CUresult r = cuMemAllocAsync(&piece->address, piece->size, stream);

	return r ? r : cuStreamSynchronize(stream);
}

static CUresult give_pool(struct piece *piece)
{
	CUresult r = cuMemFreeAsync(piece->address, stream);

	return r ? r : cuStreamSynchronize(stream);
}

static CUresult take_managed(struct piece *piece)
{
	return cuMemAllocManaged(&piece->address, piece->size, CU_MEM_ATTACH_GLOBAL);
}

static CUresult take_pinned(struct piece *piece)
{
	return cuMemHostAlloc((void **)&piece->host, piece->size, 0);
}

static CUresult give_pinned(struct piece *piece)
{
	return cuMemFreeHost(piece->host);
}

static CUresult scan_pinned(struct piece *piece, int writes, number *countp)
{
	if (writes)
		write_words((uint32_t *)piece->host, piece->size / 4);
	*countp = count_words((uint32_t *)piece->host, piece->size / 4);
	return CUDA_SUCCESS;
}

static CUresult map(struct piece *piece, CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUresult r;

	r = cuMemAddressReserve(&piece->address, piece->size, 0, 0, 0);
	if (!r)
		r = cuMemMap(piece->address, piece->size, 0, handle, 0);
	if (!r)
		r = cuMemSetAccess(piece->address, piece->size, &access, 1);
	/* What is mapped lives on. */
	cuMemRelease(handle);
	return r;
}

static CUresult take_created(struct piece *piece, CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUmemGenericAllocationHandle handle;
	CUresult r = cuMemCreate(&handle, piece->size, &prop, 0);

	return r ? r : map(piece, handle);
}

static CUresult take_virtual(struct piece *piece)
{
	return take_created(piece, CU_MEM_HANDLE_TYPE_NONE);
}

static CUresult take_exportable(struct piece *piece)
{
	return take_created(piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static CUresult give_virtual(struct piece *piece)
{
	CUresult r = cuMemUnmap(piece->address, piece->size);

	return r ? r : cuMemAddressFree(piece->address, piece->size);
}

/*
 * Memory of other processes
 */

static CUresult share(const struct piece *piece, const char *path, number *fdp)
{
	CUmemGenericAllocationHandle memory;
	CUipcMemHandle handle;
	CUresult r;
	int fd;

	if (piece->kind->take == take_exportable) {
		r = cuMemRetainAllocationHandle(&memory, (void *)piece->address);
		if (r)
			return r;
		r = cuMemExportToShareableHandle(
			&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		*fdp = fd;
		cuMemRelease(memory);
		return r;
	}
	r = cuIpcGetMemHandle(&handle, piece->address);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &handle, sizeof(handle)) != sizeof(handle))
		exit(2);
	close(fd);
	return r;
}

static int open_source(void)
{
	int fd = open(source, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		perror(source);
		exit(2);
	}
	return fd;
}

static CUresult take_opened(struct piece *piece)
{
	int fd = open_source();
	CUipcMemHandle handle;

	if (read(fd, &handle, sizeof(handle)) != sizeof(handle))
		exit(2);
	close(fd);
	return cuIpcOpenMemHandle(
		&piece->address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static CUresult give_opened(struct piece *piece)
{
	return cuIpcCloseMemHandle(piece->address);
}

static CUresult take_imported(struct piece *piece)
{
	CUmemGenericAllocationHandle handle;
	int fd = open_source();
	CUresult r;

	r = cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	return r ? r : map(piece, handle);
}

/*
 * Arrays
 */

static CUresult scan_level(CUarray array, size_t size, int writes, number *countp)
{
	CUDA_MEMCPY2D copy = { .WidthInBytes = ROW, .Height = size / ROW };
	uint32_t *words = calloc(1, size);
	CUresult r = CUDA_SUCCESS;

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = words;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	write_words(words, writes ? size / 4 : 0);
	if (writes)
		r = cuMemcpy2D(&copy);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = words;
	if (!r) {
		memset(words, 0, size);
		r = cuMemcpy2D(&copy);
	}
	*countp = count_words(words, size / 4);
	free(words);
	return r;
}

static CUresult take_array(struct piece *piece)
{
	CUDA_ARRAY_DESCRIPTOR shape = {
		.Width = ROW / 4,
		.Height = piece->size / ROW,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1,
	};

	return cuArrayCreate((CUarray *)&piece->object, &shape);
}

static CUresult give_array(struct piece *piece)
{
	return cuArrayDestroy(piece->object);
}

static CUresult scan_array(struct piece *piece, int writes, number *countp)
{
	return scan_level(piece->object, piece->size, writes, countp);
}

static CUresult take_mipmap(struct piece *piece)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = ROW / 4,
		.Height = piece->size / ROW,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1,
	};

	return cuMipmappedArrayCreate((CUmipmappedArray *)&piece->object, &shape, 3);
}

static CUresult give_mipmap(struct piece *piece)
{
	return cuMipmappedArrayDestroy(piece->object);
}

static CUresult scan_mipmap(struct piece *piece, int writes, number *countp)
{
	CUarray level;
	CUresult r = cuMipmappedArrayGetLevel(&level, piece->object, 0);

	return r ? r : scan_level(level, piece->size, writes, countp);
}

/*
 * Memory of modules, graphs and kernels
 */

static CUresult take_module(struct piece *piece)
{
	char text[256];
	size_t size;
	CUresult r;

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .global .align 512 .b8 room[%zu];\n",
		piece->size);
	r = cuModuleLoadData((CUmodule *)&piece->object, text);
	return r ? r : cuModuleGetGlobal(&piece->address, &size, piece->object, "room");
}

static CUresult give_module(struct piece *piece)
{
	return cuModuleUnload(piece->object);
}

static CUresult take_graph(struct piece *piece)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		},
		.bytesize = piece->size,
	};
	CUgraphNode node;
	CUresult r;

	r = cuGraphCreate((CUgraph *)&piece->object, 0);
	if (!r)
		r = cuGraphAddMemAllocNode(&node, piece->object, NULL, 0, &alloc);
	piece->address = alloc.dptr;
	if (!r)
		r = cuGraphInstantiate(&piece->exec, piece->object, 0);
	if (!r)
		r = cuGraphLaunch(piece->exec, stream);
	if (!r)
		r = cuStreamSynchronize(stream);
	if (r && piece->object)
		cuGraphDestroy(piece->object);
	return r;
}

static CUresult give_graph(struct piece *piece)
{
	CUresult r = cuMemFree(piece->address);

	if (!r)
		r = cuGraphExecDestroy(piece->exec);
	if (!r)
		r = cuGraphDestroy(piece->object);
	return r ? r : cuDeviceGraphMemTrim(0);
}

static CUresult run_kernel(const char *name, unsigned int n, unsigned int writes,
	unsigned int shared, number *countp)
{
	CUdeviceptr out = 0;
	void *parameters[] = { &out, &n, &writes };
	unsigned int count = 0;
	CUfunction function;
	CUresult r;

	r = cuModuleGetFunction(&function, kernels, name);
	if (!r)
		r = cuMemAlloc(&out, 4);
	if (!r)
		r = cuLaunchKernel(
			function, 1, 1, 1, 1, 1, 1, shared, stream, parameters, NULL);
	if (!r)
		r = cuStreamSynchronize(stream);
	if (!r)
		r = cuMemcpyDtoH(&count, out, 4);
	if (!r)
		r = cuMemFree(out);
	*countp = count;
	return r;
}

static CUresult nothing(struct piece *piece)
{
	return CUDA_SUCCESS;
}

static CUresult scan_shared(struct piece *piece, int writes, number *countp)
{
	return run_kernel("shared_words", SHARED_WORDS, writes, 4 * SHARED_WORDS, countp);
}

static CUresult scan_local(struct piece *piece, int writes, number *countp)
{
	return run_kernel("local_words", LOCAL_WORDS, writes, 0, countp);
}

static CUresult scan_heap(struct piece *piece, int writes, number *countp)
{
	return run_kernel("heap_words", piece->size / 4, writes, 0, countp);
}

/* A line that is no answer. */
static CUresult scan_print(struct piece *piece, int writes, number *countp)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".extern .func (.param .b32 n) vprintf (.param .b64 text, .param .b64 "
		"list);\n"
		".global .align 1 .b8 line[3] = {35, 10, 0};\n"
		".visible .entry prints()\n"
		"{ .reg .u64 %a; .reg .u32 %v;\n"
		"mov.u64 %a, line; cvta.global.u64 %a, %a;\n"
		".param .b64 text; .param .b64 list; .param .b32 n;\n"
		"st.param.b64 [text], %a; st.param.b64 [list], 0;\n"
		"call (n), vprintf, (text, list);\n"
		"ld.param.b32 %v, [n]; ret; }\n";
	CUfunction function;
	CUmodule module;
	CUresult r;

	r = cuModuleLoadData(&module, text);
	if (!r)
		r = cuModuleGetFunction(&function, module, "prints");
	if (!r)
		r = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	if (!r)
		r = cuStreamSynchronize(stream);
	return r ? r : cuModuleUnload(module);
}

static const struct kind kinds[] = {
	{ "linear", take_linear, give_linear, scan_linear },
	{ "pitched", take_pitched, give_linear, scan_linear },
	{ "array", take_array, give_array, scan_array },
	{ "mipmap", take_mipmap, give_mipmap, scan_mipmap },
	{ "pool", take_pool, give_pool, scan_linear },
	{ "virtual", take_virtual, give_virtual, scan_linear },
	{ "exportable", take_exportable, give_virtual, scan_linear },
	{ "opened", take_opened, give_opened, scan_linear },
	{ "imported", take_imported, give_virtual, scan_linear },
	{ "managed", take_managed, give_linear, scan_linear },
	{ "pinned", take_pinned, give_pinned, scan_pinned },
	{ "module", take_module, give_module, scan_linear },
	{ "graph", take_graph, give_graph, scan_linear },
	{ "shared", nothing, nothing, scan_shared },
	{ "local", nothing, nothing, scan_local },
	{ "heap", nothing, nothing, scan_heap },
	{ "print", nothing, nothing, scan_print },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	fprintf(stderr, "there is no kind of memory %s\n", name);
	exit(2);
}

static CUresult take(const char *name, number size)
{
	struct piece *piece = &pieces[n_pieces];
	CUresult r;

	if (n_pieces == N_PIECES)
		exit(2);
	*piece = (struct piece){ .kind = find_kind(name), .size = size };
	r = piece->kind->take(piece);
	n_pieces += !r;
	return r;
}

static CUresult give(const char *name)
{
	const struct kind *kind = find_kind(name);
	struct piece piece;

	for (int i = n_pieces - 1; i >= 0; i--) {
		if (pieces[i].kind != kind)
			continue;
		piece = pieces[i];
		memmove(&pieces[i], &pieces[i + 1],
			(size_t)(n_pieces - i - 1) * sizeof(piece));
		n_pieces--;
		return kind->give(&piece);
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult scan(int writes, number *countp)
{
	CUresult r = CUDA_SUCCESS;
	number count;

	for (int i = 0; i < n_pieces && !r; i++) {
		r = pieces[i].kind->scan(&pieces[i], writes, &count);
		*countp += count;
	}
	return r;
}

/*
 * Threads
 */

static size_t edge_size;
static int edge_rounds;
static number n_taken;
/* Bytes that all processes have now, and had at most: in the file FAMILIES_COUNTERS, if
 * there is one. */
static number own_counters[2], *counters = own_counters;

static void map_counters(void)
{
	const char *path = getenv("FAMILIES_COUNTERS");
	int fd = path ? open(path, O_RDWR) : -1;

	if (!path)
		return;
	counters = mmap(
		NULL, sizeof(own_counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counters == MAP_FAILED)
		exit(2);
}

/* Counted after the allocation and until before it is freed: never more than there is. */
static void count(size_t size)
{
	number now = __atomic_add_fetch(&counters[0], size, __ATOMIC_SEQ_CST);
	number most = __atomic_load_n(&counters[1], __ATOMIC_SEQ_CST);

	while (now > most && !__atomic_compare_exchange_n(&counters[1], &most, now, 0,
				     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void *run_at_edge(void *unused)
{
	CUdeviceptr address;

	if (cuCtxSetCurrent(context))
		return context;
	for (int i = 0; i < edge_rounds; i++) {
		CUresult r = cuMemAlloc(&address, edge_size);

		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			continue;
		if (r)
			return context;
		count(edge_size);
		__atomic_sub_fetch(&counters[0], edge_size, __ATOMIC_SEQ_CST);
		if (cuMemFree(address))
			return context;
		__atomic_add_fetch(&n_taken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static CUresult run_edge(size_t size, int rounds, number *countp)
{
	CUresult r = CUDA_SUCCESS;
	pthread_t threads[N_THREADS];
	void *failed;

	edge_size = size;
	edge_rounds = rounds;
	n_taken = 0;
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_at_edge, NULL))
			exit(2);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], &failed);
		r = failed ? CUDA_ERROR_UNKNOWN : r;
	}
	*countp = n_taken;
	return r;
}

static CUresult begin(int device)
{
	CUresult r = cuInit(0);

	if (!r)
		r = cuDevicePrimaryCtxRetain(&context, device);
	if (!r)
		r = cuCtxSetCurrent(context);
	if (!r)
		r = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	return r ? r : cuModuleLoadData(&kernels, kernels_text);
}

static CUresult set_limit(const char *name, size_t value, number *n)
{
	CUlimit limit = strcmp(name, "heap") ? CU_LIMIT_PRINTF_FIFO_SIZE
					     : CU_LIMIT_MALLOC_HEAP_SIZE;
	CUresult r = cuCtxSetLimit(limit, value), other;
	size_t now = 0;

	other = cuCtxGetLimit(&now, limit);
	*n = now;
	return r ? r : other;
}

/* Return: whether the command is one of the pool's. */
static int run_pool(const char *command, size_t size, number *n, CUresult *resultp)
{
	CUmemoryPool pool = NULL;
	cuuint64_t value = size;

	*resultp = cuDeviceGetDefaultMemPool(&pool, 0);
	if (!strcmp(command, "reserved"))
		*resultp = cuMemPoolGetAttribute(
			pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
	else if (!strcmp(command, "used"))
		*resultp = cuMemPoolGetAttribute(
			pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
	else if (!strcmp(command, "keep"))
		*resultp = cuMemPoolSetAttribute(
			pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
	else if (!strcmp(command, "trim"))
		*resultp = cuMemPoolTrimTo(pool, size);
	else
		return 0;
	*n = value;
	return 1;
}

static CUresult run(const char *command, const char *first, const char *second, number *n)
{
	size_t left = 0, total = 0;
	CUresult r;

	if (!strcmp(command, "begin"))
		return begin(atoi(first));
	if (!strcmp(command, "take"))
		return take(first, strtoull(second, NULL, 0));
	if (!strcmp(command, "give"))
		return give(first);
	if (!strcmp(command, "fill") || !strcmp(command, "look"))
		return scan(!strcmp(command, "fill"), n);
	if (!strcmp(command, "edge"))
		return run_edge(strtoull(first, NULL, 0), atoi(second), n);
	if (!strcmp(command, "most")) {
		*n = counters[1];
		return CUDA_SUCCESS;
	}
	if (!strcmp(command, "share"))
		return n_pieces ? share(&pieces[n_pieces - 1], first, n)
				: CUDA_ERROR_NOT_FOUND;
	if (!strcmp(command, "from")) {
		strcpy(source, first);
		return CUDA_SUCCESS;
	}
	if (!strcmp(command, "limit"))
		return set_limit(first, strtoull(second, NULL, 0), n);
	if (run_pool(command, strtoull(first, NULL, 0), n, &r))
		return r;
	if (!strcmp(command, "reset")) {
		n_pieces = 0;
		return cuDevicePrimaryCtxReset(0);
	}
	r = cuMemGetInfo(&left, &total);
	*n = !strcmp(command, "free") ? left : total;
	return r;
}

int main(void)
{
	char line[512], command[32], first[sizeof(source)], second[32];
	number n;
	CUresult r;

	map_counters();
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		first[0] = second[0] = '\0';
		if (sscanf(line, "%31s %255s %31s", command, first, second) < 1)
			continue;
		if (!strcmp(command, "quit"))
			return 0;
		r = run(command, first, second, &n);
		printf("= %d %llu\n", r, n);
		fflush(stdout);
	}
	return 1;
}
