/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: from PTX to code, and the code run
 *
 * The input is a PTX text. Its kernels end at the deadline at the latest, and access only
 * the engine's own memory and one window between closed pages. Their first parameter
 * points into that window, the second is a texture, the third a surface; the fourth is
 * the number 1. Then come a texture with levels, a cube, one of compressed blocks, and a
 * surface of integers. Texts of an odd size are watched for hazards, and for loads of the
 * window, nothing of which is written.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "exec/texel-block.h"
#include "exec/texture.h"
#include "ptx/module.h"

#define N_PAGES 18u
#define ROOM ((N_PAGES - 2) * SOFTGPU_PAGE_SIZE)
#define DEADLINE_NS 5000000
#define SIDE 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct softgpu_space space;
	uint8_t pages[N_PAGES];
	uint8_t *memory; /* after the first page, which is closed, as is the last */
	struct softgpu_texture objects[TEXTURE_CHUNK];
	struct softgpu_textures textures;
	struct softgpu_scratch *scratch;
	uint8_t unwritten[N_PAGES * SOFTGPU_PAGE_SIZE / 8];
	struct softgpu_checks checks;
	bool is_watched;
} device;

static void ignore(void *data, const struct softgpu_fault *finding)
{
}

static void set_object(struct softgpu_texture *object, uint64_t number)
{
	*object = (struct softgpu_texture){
		.number = number,
		.generation = 1,
		.n_levels = 1,
		.levels[0] = {
			.address = (uintptr_t)device.memory,
			.pitch = SIDE * 16,
			.slice = SIDE * SIDE * 16,
			.width = SIDE,
			.height = SIDE,
			.depth = 6,
		},
		.format = TEXEL_F32,
		.n_channels = 4,
		.n_dimensions = 2,
		.is_layered = true,
		.is_normalized = true,
		.filters_linearly = true,
	};
}

static void begin(void)
{
	uint64_t base, size = (N_PAGES + 1) * SOFTGPU_PAGE_SIZE;
	uint8_t *p = mmap(NULL, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || softgpu_scratch_new(&device.scratch, 0))
		abort();
	base = ((uintptr_t)p + SOFTGPU_PAGE_SIZE - 1) & ~(SOFTGPU_PAGE_SIZE - 1);
	device.memory = (uint8_t *)(uintptr_t)(base + SOFTGPU_PAGE_SIZE);
	if (mprotect(device.memory, ROOM, PROT_READ | PROT_WRITE))
		abort();
	memset(device.pages + 1, SOFTGPU_READ | SOFTGPU_WRITE, N_PAGES - 2);
	device.space = (struct softgpu_space){
		.n_windows = 1,
		.windows[0] = { base, N_PAGES * SOFTGPU_PAGE_SIZE, device.pages,
			device.unwritten },
	};
	device.checks = (struct softgpu_checks){
		.kinds = SOFTGPU_CHECK_RACES | SOFTGPU_CHECK_UNWRITTEN,
		.report = ignore,
	};
	device.textures.chunks[0] = device.objects;
	set_object(&device.objects[0], UINT64_C(1) << TEXTURE_INDEX_BITS);
	set_object(&device.objects[1],
		TEXTURE_SURFACE_BIT | UINT64_C(1) << TEXTURE_INDEX_BITS | 1);
	for (unsigned int i = 2; i < 5; i++)
		set_object(&device.objects[i], UINT64_C(1) << TEXTURE_INDEX_BITS | i);
	device.objects[2].n_levels = 2;
	device.objects[2].levels[1] = device.objects[2].levels[0];
	device.objects[2].filters_levels = true;
	device.objects[2].level_max = 1.0f;
	device.objects[2].max_anisotropy = 16;
	device.objects[3].is_cube = true;
	device.objects[3].is_seamless = true;
	device.objects[4].block = TEXEL_BLOCK_BC7;
	set_object(&device.objects[5],
		TEXTURE_SURFACE_BIT | UINT64_C(1) << TEXTURE_INDEX_BITS | 5);
	device.objects[5].format = TEXEL_S32;
	device.objects[5].n_channels = 1;
}

/* Returns: whether all variables have a place, and their values there. */
static bool place_variables(struct softgpu_program *program)
{
	size_t n = softgpu_program_n_variables(program);
	uint64_t used = SOFTGPU_PAGE_SIZE, align, size;
	uint8_t *places[64];
	struct softgpu_message message;

	if (n > sizeof(places) / sizeof(*places))
		return false;
	for (size_t i = 0; i < n; i++) {
		align = softgpu_program_variable(program, i)->align;
		size = softgpu_program_variable(program, i)->size;
		if (align > SOFTGPU_PAGE_SIZE)
			return false;
		used = (used + align - 1) & ~(align - 1);
		if (size > ROOM || used + size > ROOM)
			return false;
		places[i] = device.memory + used;
		used += size;
		softgpu_program_place(program, i, (uintptr_t)places[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (softgpu_program_fill(program, i, places[i], &message))
			return false;
	return true;
}

static uint64_t deadline(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + DEADLINE_NS;
}

static void run(struct softgpu_program *program, const char *name)
{
	uint64_t params[SOFTGPU_PARAMS_MAX / sizeof(uint64_t) + 1] = {
		(uintptr_t)device.memory,
		device.objects[0].number,
		device.objects[1].number,
		1,
		device.objects[2].number,
		device.objects[3].number,
		device.objects[4].number,
		device.objects[5].number,
	};
	struct softgpu_launch launch = {
		.grid = { 1, 1, 1 },
		.block = { 33, 1, 1 },
		.params = params,
		.space = &device.space,
		.textures = &device.textures,
		.checks = device.is_watched ? &device.checks : NULL,
		.n_sms = 1,
		.stack_size = 4096,
	};
	const struct softgpu_kernel_info *info;
	struct softgpu_message message;
	struct softgpu_fault fault;

	if (softgpu_program_kernel(program, name, &launch.kernel, &message))
		return;
	info = softgpu_kernel_info(launch.kernel);
	launch.params_size = info->params_size;
	if (info->required_block[0])
		memcpy(launch.block, info->required_block, sizeof(launch.block));
	if (info->required_cluster[0]) {
		memcpy(launch.cluster, info->required_cluster, sizeof(launch.cluster));
		memcpy(launch.grid, info->required_cluster, sizeof(launch.grid));
	}
	launch.deadline_ns = deadline();
	if (!softgpu_launch_check(&launch))
		softgpu_run_blocks(device.scratch, &launch, 0, 1, &fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct softgpu_program *program;
	struct softgpu_message message;
	struct ptx_module *module;
	struct ptx_error error;

	if (!device.memory)
		begin();
	memset(device.memory, 0, SOFTGPU_PAGE_SIZE);
	device.is_watched = size % 2;
	if (device.is_watched)
		memset(device.unwritten, 0xff, sizeof(device.unwritten));
	if (ptx_module_new(&module, (const char *)data, size, 121, &error))
		return 0;
	if (!softgpu_program_new(&program, module, &message)) {
		if (place_variables(program) &&
			!(device.is_watched && softgpu_program_watch(program)))
			for (size_t i = 0; i < softgpu_program_n_kernels(program); i++)
				run(program, softgpu_program_kernel_name(program, i));
		softgpu_program_free(program);
	}
	ptx_module_free(module);
	return 0;
}
