/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: images that are too large, or unpack to more than they say, and logs that
 * are larger than their buffers
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "e2e.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define BAD_PTX                                                                          \
	".version 7.0\n.target sm_70\n.address_size 64\n"                                \
	".visible .entry f() { add.s32 %r1, %r2, ; }\n"

enum {
	HEADER_SIZE = 16,
	ENTRY_SIZE = 64,
	LZ4 = 0x2000,
};

/* A container whose one entry is PTX in a block of LZ4. */
struct packed {
	uint8_t *bytes;
	size_t size; /* of the block */
};

static void put(struct packed *packed, size_t value)
{
	packed->bytes[HEADER_SIZE + ENTRY_SIZE + packed->size++] = (uint8_t)value;
}

/* The part of a length that does not fit the four bits of a token. */
static void put_length(struct packed *packed, size_t length)
{
	if (length < 15)
		return;
	for (length -= 15; length >= 255; length -= 255)
		put(packed, 255);
	put(packed, length);
}

static void put_token(struct packed *packed, size_t n_literals, size_t n_repeated)
{
	put(packed, (n_literals < 15 ? n_literals : 15) << 4 |
			    (n_repeated < 15 ? n_repeated : 15));
	put_length(packed, n_literals);
}

/*
 * Packs so many empty lines and then a text.
 *
 * @claimed:	what the entry says of its size; 0: the truth
 */
static void *pack(size_t n_lines, const char *text, size_t claimed)
{
	const size_t n_text = strlen(text) + 1;
	struct packed packed = { .bytes = calloc(1, n_lines / 250 + 2 * n_text + 4096) };
	uint64_t padded, total;

	check(packed.bytes);
	/* One line, which is repeated; the least repetition is of 4 bytes. */
	put_token(&packed, 1, n_lines - 5);
	put(&packed, '\n');
	put(&packed, 1);
	put(&packed, 0);
	put_length(&packed, n_lines - 5);
	put_token(&packed, n_text, 0);
	for (size_t i = 0; i < n_text; i++)
		put(&packed, (uint8_t)text[i]);
	padded = (packed.size + 7) & ~7ull;
	total = ENTRY_SIZE + padded;
	claimed = claimed ? claimed : n_lines + n_text;
	memcpy(packed.bytes, &(uint32_t){ 0xba55ed50 }, 4);
	memcpy(packed.bytes + 4, &(uint16_t){ 1 }, 2);
	memcpy(packed.bytes + 6, &(uint16_t){ HEADER_SIZE }, 2);
	memcpy(packed.bytes + 8, &total, 8);
	memcpy(packed.bytes + 16, &(uint16_t){ 1 }, 2); /* PTX */
	memcpy(packed.bytes + 18, &(uint16_t){ 0x101 }, 2);
	memcpy(packed.bytes + 20, &(uint32_t){ ENTRY_SIZE }, 4);
	memcpy(packed.bytes + 24, &padded, 8);
	memcpy(packed.bytes + 32, &(uint32_t){ (uint32_t)packed.size }, 4);
	memcpy(packed.bytes + 42, &(uint16_t){ 7 }, 2);	 /* ISA 7.0 */
	memcpy(packed.bytes + 44, &(uint32_t){ 70 }, 4); /* sm_70 */
	memcpy(packed.bytes + 56, &(uint64_t){ 0x11 | LZ4 }, 8);
	memcpy(packed.bytes + 72, &(uint64_t){ claimed }, 8);
	return packed.bytes;
}

static void check_session(struct fixture *fixture)
{
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	check_ok(launch_fill(fixture_function(fixture, "fill"), p, 17, 1, NULL));
	check_eq(device_word(p), 17);
	check_ok(cuMemFree(p));
}

static void refuses(const void *image)
{
	CUlibrary library;
	CUmodule module;

	check_cu(cuModuleLoadData(&module, image), CUDA_ERROR_INVALID_IMAGE);
	check_cu(cuModuleLoadFatBinary(&module, image), CUDA_ERROR_INVALID_IMAGE);
	check_cu(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_IMAGE);
}

TEST(containers_unpack_to_what_they_say_or_are_refused)
{
	struct fixture fixture = fixture_new();
	CUfunction function;
	CUmodule module;
	void *image;
	CUdeviceptr p;

	/* A large text of little worth is a text. */
	image = pack(40 * MIB, kernels_ptx, 0);
	check_ok(cuModuleLoadData(&module, image));
	check_ok(cuModuleGetFunction(&function, module, "fill"));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(launch_fill(function, p, 3, 1, NULL));
	check_eq(device_word(p), 3);
	check_ok(cuModuleUnload(module));
	free(image);

	/* Less and more than it says, and more than the host accepts of any. */
	image = pack(40 * MIB, kernels_ptx, 4096);
	refuses(image);
	free(image);
	image = pack(1 * MIB, kernels_ptx, 50 * MIB);
	refuses(image);
	free(image);
	image = pack(1 * MIB, kernels_ptx, SIZE_MAX);
	refuses(image);
	free(image);
	image = pack(1024 * MIB, kernels_ptx, 0);
	refuses(image);
	free(image);
	check_session(&fixture);
}

/* One piece of memory at many addresses, so that gigabytes cost little. */
static uint8_t *repeat(uint8_t byte, size_t size)
{
	int fd = memfd_create("repeated", MFD_CLOEXEC);
	uint8_t *bytes = mmap(NULL, size + MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(fd >= 0 && bytes != MAP_FAILED && !ftruncate(fd, MIB));
	for (size_t at = 0; at < size; at += MIB)
		check(mmap(bytes + at, MIB, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd, 0) == bytes + at);
	memset(bytes, byte, MIB);
	close(fd);
	return bytes;
}

TEST(images_of_gigabytes_are_refused)
{
	const size_t size = 2 * GIB;
	struct fixture fixture = fixture_new();
	uint8_t *text = repeat('/', size);
	uint64_t total = size - HEADER_SIZE;
	uint8_t *container;
	CUlinkState link;

	/* The text has no end before these sizes. */
	refuses(text);
	check_ok(cuLinkCreate(0, NULL, NULL, &link));
	check_cu(cuLinkAddData(link, CU_JIT_INPUT_PTX, text, size, "text", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuLinkDestroy(link));
	check_eq(munmap(text, size + MIB), 0);

	container = pack(1 * MIB, kernels_ptx, 0);
	memcpy(container + 8, &total, 8);
	refuses(container);
	memcpy(container + 8, &(uint64_t){ UINT64_MAX }, 8);
	refuses(container);
	free(container);
	check_session(&fixture);
}

TEST(files_of_gigabytes_are_refused)
{
	struct fixture fixture = fixture_new();
	CUlibrary library;
	CUlinkState link;
	CUmodule module;
	char path[256];
	FILE *file;

	/* It has a beginning, and takes no space. */
	snprintf(path, sizeof(path), "%s/large.ptx", test_tmpdir());
	file = fopen(path, "w");
	check(file && fputs(kernels_ptx, file) >= 0);
	check(!fflush(file) && !ftruncate(fileno(file), 2 * GIB) && !fclose(file));
	check_cu(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
	check_cu(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_IMAGE);
	check_ok(cuLinkCreate(0, NULL, NULL, &link));
	check(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL) != CUDA_SUCCESS);
	check_ok(cuLinkDestroy(link));
	check_session(&fixture);
}

/* Whatever the size of its buffer, a log ends in it and fills no byte behind it. */
static void check_log(const char *whole, const char *log, size_t size, size_t told)
{
	size_t n = strnlen(log, size);

	check(n < size && told <= size);
	check(!strncmp(log, whole, n));
	check_eq(n, size - 1 < strlen(whole) ? size - 1 : strlen(whole));
	check_eq(log[size], 'x');
}

TEST(logs_end_where_their_buffers_do)
{
	static const size_t sizes[] = { 1, 2, 7, 16, 40 };
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	char whole[1024] = "", log[64];
	void *values[] = { whole, (void *)sizeof(whole) };
	struct fixture fixture = fixture_new();
	CUlinkState link;
	CUmodule module;

	check_cu(cuModuleLoadDataEx(&module, BAD_PTX, 2, options, values),
		CUDA_ERROR_INVALID_PTX);
	check(strlen(whole) > 40);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(log, 'x', sizeof(log));
		values[0] = log;
		values[1] = (void *)sizes[i];
		check_cu(cuModuleLoadDataEx(&module, BAD_PTX, 2, options, values),
			CUDA_ERROR_INVALID_PTX);
		check_log(whole, log, sizes[i], (size_t)values[1]);
	}
	/* No room at all. */
	memset(log, 'x', sizeof(log));
	values[1] = NULL;
	check_cu(cuModuleLoadDataEx(&module, BAD_PTX, 2, options, values),
		CUDA_ERROR_INVALID_PTX);
	check_eq(log[0], 'x');
	/* A linker fills its log later, at a call without options. */
	values[1] = (void *)(size_t)9;
	check_ok(cuLinkCreate(2, options, values, &link));
	check_cu(cuLinkAddData(link, CU_JIT_INPUT_PTX, BAD_PTX, sizeof(BAD_PTX), "bad", 0,
			 NULL, NULL),
		CUDA_ERROR_INVALID_PTX);
	check_ok(cuLinkDestroy(link));
	check(strnlen(log, 9) == 8 && log[9] == 'x');
	check_session(&fixture);
}
