/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: kernels with known behaviour
 *
 * The input becomes a kernel whose every step is known, see grammar.h. It has to lower
 * and to run; if a thread accesses memory outside its own the launch ends by a fault and
 * no other memory changes, otherwise all registers and all memory have the expected
 * values. The same if it is watched, and it has no hazard: no thread accesses memory of
 * another one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "grammar-device.h"
#include "grammar.h"
#include "ptx/module.h"

#include "exec/engine.h"
#include "exec/texture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Closed, slots, results, texels, closed. */
#define N_PAGES 5u
#define HOST_SIZE 256u
#define OWN_TEXELS 1024u /* in the page of texels */
#define SLOTS_SIZE (GRAMMAR_THREADS * GRAMMAR_SLOT)

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition)) {                                                     \
			fprintf(stderr, "%snot so: %s\n", text, #_condition);            \
			abort();                                                         \
		}                                                                        \
	} while (0)

static char text[GRAMMAR_TEXT];

static struct {
	struct softgpu_space space;
	uint8_t pages[N_PAGES];
	uint8_t *memory; /* after the first page */
	uint8_t *host;	 /* of this process, and no kernel's */
	uint32_t *own_texels;
	struct grammar_places places;
	struct softgpu_scratch *scratch;
	struct softgpu_texture objects[TEXTURE_CHUNK];
	struct softgpu_textures textures;
} device;

/* Memory is checked to the byte, and no allocation is in a closed page. */
static bool covers_nothing(
	void *data, uint64_t address, uint64_t size, unsigned int access)
{
	return false;
}

/* Linear memory as a texture, and a surface of the same texels. */
static void make_objects(uint32_t *texels)
{
	for (unsigned int i = 0; i < GRAMMAR_TEXELS; i++)
		texels[i] = group_texel(i);
	for (unsigned int i = 1; i <= 3; i++) {
		uint32_t n = i == 3 ? GRAMMAR_THREADS : GRAMMAR_TEXELS;
		uint32_t *first = i == 3 ? device.own_texels : texels;

		device.objects[i] = (struct softgpu_texture){
			.number = UINT64_C(1) << TEXTURE_INDEX_BITS | i |
				  (i > 1 ? TEXTURE_SURFACE_BIT : 0),
			.n_levels = 1,
			.levels[0] = { (uintptr_t)first, n * 4, n * 4, n, 1, 1 },
			.format = TEXEL_U32,
			.n_channels = 1,
			.n_dimensions = 1,
			.is_linear_memory = i == 1,
			.reads_integers = true,
		};
	}
	device.textures.chunks[0] = device.objects;
	device.places.texture = device.objects[1].number;
	device.places.surface = device.objects[2].number;
	device.places.own_texels = device.objects[3].number;
}

static void begin(void)
{
	uint64_t base, size = (N_PAGES + 1) * SOFTGPU_PAGE_SIZE;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	device.host = malloc(HOST_SIZE);
	if (p == MAP_FAILED || !device.host || softgpu_scratch_new(&device.scratch, 0))
		abort();
	base = ((uintptr_t)p + SOFTGPU_PAGE_SIZE - 1) & ~(SOFTGPU_PAGE_SIZE - 1);
	device.memory = (uint8_t *)(uintptr_t)(base + SOFTGPU_PAGE_SIZE);
	memset(device.pages + 1, SOFTGPU_READ | SOFTGPU_WRITE, N_PAGES - 2);
	device.space = (struct softgpu_space){
		.n_windows = 1,
		.windows[0] = { base, N_PAGES * SOFTGPU_PAGE_SIZE, device.pages },
		.covers = covers_nothing,
	};
	device.places = (struct grammar_places){
		.memory = (uintptr_t)device.memory,
		.results = (uintptr_t)device.memory + SOFTGPU_PAGE_SIZE,
		/* These pages are there: only the check keeps kernels off. */
		.outside = {
			base,
			(uintptr_t)device.memory - 16,
			(uintptr_t)device.memory + 3 * SOFTGPU_PAGE_SIZE,
			(uintptr_t)device.host,
			0,
			16,
			UINT64_MAX - 15,
			SOFTGPU_GENERIC_SHARED + SOFTGPU_GENERIC_RANGE,
		},
	};
	device.own_texels =
		(uint32_t *)(device.memory + 2 * SOFTGPU_PAGE_SIZE + OWN_TEXELS);
	make_objects((uint32_t *)(device.memory + 2 * SOFTGPU_PAGE_SIZE));
}

static void check_outside(void)
{
	const uint8_t *before = device.memory - SOFTGPU_PAGE_SIZE;
	const uint8_t *behind = device.memory + 3 * SOFTGPU_PAGE_SIZE;
	const uint32_t *texels = (const uint32_t *)(behind - SOFTGPU_PAGE_SIZE);

	for (unsigned int i = 0; i < HOST_SIZE; i++)
		need(device.host[i] == 0xa5);
	for (unsigned int i = 0; i < 64; i++)
		need(!before[i] && !before[SOFTGPU_PAGE_SIZE - 64 + i] && !behind[i]);
	for (unsigned int i = 0; i < GRAMMAR_TEXELS + 16; i++)
		need(texels[i] == (i < GRAMMAR_TEXELS ? group_texel(i) : 0));
}

static void check_thread(const struct grammar_thread *thread, uint32_t tid)
{
	const uint8_t *slot = device.memory + tid * GRAMMAR_SLOT;
	const uint8_t *result = slot + SOFTGPU_PAGE_SIZE;

	need(!memcmp(slot, thread->slots[GRAMMAR_GLOBAL], GRAMMAR_SLOT));
	need(!memcmp(result, thread->registers, sizeof(thread->registers)));
	need(device.own_texels[tid] == thread->texel);
}

static void find(void *data, const struct softgpu_fault *finding)
{
	need(strstr(finding->text, "that nothing has written"));
}

static const struct softgpu_checks checks = {
	.kinds = SOFTGPU_CHECK_RACES | SOFTGPU_CHECK_UNWRITTEN,
	.report = find,
};

/* The parameter buffer of a thread is its slot; a launch changes its first word. */
static int serve(const struct softgpu_launch *launch, struct softgpu_request *request)
{
	static const uint32_t ones[3] = { 1, 1, 1 };
	uint8_t *slot = device.memory + request->thread * GRAMMAR_SLOT;
	uint64_t word;

	need(!request->block && request->thread < GRAMMAR_THREADS);
	switch (request->service) {
	case SERVICE_STREAM_CREATE:
		if ((uint32_t)request->words[1] > 1)
			return SERVICE_INVALID_VALUE;
		word = device_stream(request->thread);
		memcpy(request->out, &word, sizeof(word));
		request->out_size = sizeof(word);
		return SERVICE_OK;
	case SERVICE_GET_BUFFER_V2:
		need(!memcmp(&request->words[1], ones, sizeof(ones)));
		need(!memcmp(&request->words[3], ones, sizeof(ones)));
		need(!(uint32_t)request->words[5]);
		request->address = (uintptr_t)slot;
		return SERVICE_OK;
	default:
		need(request->service == SERVICE_LAUNCH_V2);
		need(request->words[0] == (uintptr_t)slot);
		memcpy(&word, slot, sizeof(word));
		word = device_launched(word, request->words[1]);
		if (!device_result(request->words[1]))
			memcpy(slot, &word, sizeof(word));
		return device_result(request->words[1]);
	}
}

static const struct softgpu_hooks hooks = { .serve = serve };

static int run(struct softgpu_program *program, bool is_watched)
{
	struct softgpu_launch launch = {
		.grid = { 1, 1, 1 },
		.block = { GRAMMAR_THREADS, 1, 1 },
		.params = text,
		.space = &device.space,
		.checks = is_watched ? &checks : NULL,
		.textures = &device.textures,
		.hooks = &hooks,
		.n_sms = 1,
		.stack_size = 1024,
	};
	struct softgpu_message message = { "" };
	struct softgpu_fault fault;
	int code;

	if (softgpu_program_kernel(program, "k", &launch.kernel, &message)) {
		fprintf(stderr, "%s\n", message.text);
		need(!"it is lowered");
	}
	need(!softgpu_launch_check(&launch));
	code = softgpu_run_blocks(device.scratch, &launch, 0, 1, &fault);
	need(!code || code == SOFTGPU_ERROR_ILLEGAL_ADDRESS ||
		code == SOFTGPU_ERROR_MISALIGNED_ADDRESS);
	return code;
}

static void run_text(const struct grammar *grammar, size_t size, bool is_watched)
{
	static struct grammar_thread threads[GRAMMAR_THREADS];
	struct softgpu_message message = { "" };
	struct softgpu_program *program;
	struct ptx_module *module;
	struct ptx_error error;
	bool faults = false;
	int code;

	memset(device.memory, 0, SLOTS_SIZE);
	memset(device.memory + SOFTGPU_PAGE_SIZE, 0, SLOTS_SIZE);
	memset(device.own_texels, 0, GRAMMAR_THREADS * sizeof(uint32_t));
	memset(device.host, 0xa5, HOST_SIZE);
	need(!ptx_module_new(&module, text, size, 121, &error));
	need(!softgpu_program_new(&program, module, &message));
	if (is_watched)
		need(!softgpu_program_watch(program));
	code = run(program, is_watched);
	grammar_run(grammar, threads);
	for (uint32_t i = 0; i < GRAMMAR_THREADS; i++)
		faults |= threads[i].faults;
	need(faults == (code != 0));
	for (uint32_t i = 0; !faults && i < GRAMMAR_THREADS; i++)
		check_thread(&threads[i], i);
	check_outside();
	softgpu_program_free(program);
	ptx_module_free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader reader = { data, size };
	struct grammar grammar;

	if (!device.memory)
		begin();
	grammar_read(&grammar, &reader);
	size = grammar_write(&grammar, &device.places, text);
	run_text(&grammar, size, false);
	run_text(&grammar, size, true);
	return 0;
}
