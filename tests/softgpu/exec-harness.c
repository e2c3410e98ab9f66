/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running kernels from text
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exec-harness.h"
#include "test.h"

static void map_memory(struct rig *rig)
{
	uint64_t n_pages = RIG_MEMORY / SOFTGPU_PAGE_SIZE + 2;
	uint64_t size = (n_pages + 1) * SOFTGPU_PAGE_SIZE, base;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(p != MAP_FAILED);
	base = ((uint64_t)(uintptr_t)p + SOFTGPU_PAGE_SIZE - 1) &
	       ~(SOFTGPU_PAGE_SIZE - 1);
	rig->pages = calloc(n_pages, 1);
	check(rig->pages);
	memset(rig->pages + 1, SOFTGPU_READ | SOFTGPU_WRITE, n_pages - 2);
	rig->space = (struct softgpu_space){
		.n_windows = 1,
		.windows[0] = { base, n_pages * SOFTGPU_PAGE_SIZE, rig->pages },
	};
	rig->memory = (uint8_t *)(uintptr_t)(base + SOFTGPU_PAGE_SIZE);
}

static void place_variables(struct rig *rig)
{
	struct softgpu_message message;
	size_t n = softgpu_program_n_variables(rig->program);
	void *places[64];

	check(n <= 64);
	for (size_t i = 0; i < n; i++) {
		places[i] =
			rig_alloc(rig, softgpu_program_variable(rig->program, i)->size);
		softgpu_program_place(rig->program, i, (uintptr_t)places[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (softgpu_program_fill(rig->program, i, places[i], &message))
			test_fail(__FILE__, __LINE__, "%s", message.text);
}

struct rig *rig_new(const char *ptx)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	const char *schedule = getenv("RIG_SCHEDULE");
	struct softgpu_message message = {};
	struct ptx_error error = {};

	check(rig);
	if (schedule && !strcmp(schedule, "fair"))
		rig->schedule = SOFTGPU_SCHEDULE_FAIR;
	if (ptx_module_new(&rig->module, ptx, strlen(ptx), 121, &error))
		test_fail(__FILE__, __LINE__, "line %u: %s", error.line, error.message);
	if (softgpu_program_new(&rig->program, rig->module, &message))
		test_fail(__FILE__, __LINE__, "%s", message.text);
	map_memory(rig);
	place_variables(rig);
	check(!softgpu_scratch_new(&rig->scratch, 3));
	return rig;
}

struct rig *rig_free(struct rig *rig)
{
	if (!rig)
		return NULL;
	softgpu_scratch_free(rig->scratch);
	softgpu_program_free(rig->program);
	ptx_module_free(rig->module);
	free(rig->pages);
	free(rig);
	return NULL;
}

void *rig_alloc(struct rig *rig, uint64_t size)
{
	uint8_t *p = rig->memory + rig->used;

	rig->used += (size + 255) & ~UINT64_C(255);
	check(rig->used <= RIG_MEMORY);
	memset(p, 0, size);
	return p;
}

const struct softgpu_kernel *rig_kernel(struct rig *rig, const char *name)
{
	const struct softgpu_kernel *kernel = NULL;
	struct softgpu_message message = {};

	if (softgpu_program_kernel(rig->program, name, &kernel, &message))
		test_fail(__FILE__, __LINE__, "%s", message.text);
	return kernel;
}

int rig_run(struct rig *rig, const char *name, uint32_t grid, uint32_t block,
	const void *params, uint32_t params_size)
{
	struct softgpu_launch launch = {
		.kernel = rig_kernel(rig, name),
		.grid = { grid, rig->rows[0] ? rig->rows[0] : 1,
			rig->rows[1] ? rig->rows[1] : 1 },
		.block = { block, 1, 1 },
		.params = params,
		.params_size = params_size,
		.space = &rig->space,
		.hooks = &rig->hooks,
		.textures = rig->textures,
		.checks = rig->checks,
		.n_sms = 4,
		.dynamic_shared_size = rig->dynamic_shared_size,
		.stack_size = rig->stack_size,
		.schedule = rig->schedule,
		.deadline_ns = rig->deadline_ns,
	};

	memcpy(launch.cluster, rig->cluster, sizeof(launch.cluster));
	check_eq(softgpu_launch_check(&launch), 0);
	return softgpu_run_blocks(
		rig->scratch, &launch, 0, softgpu_launch_count(&launch), &rig->fault);
}

void rig_launch(struct rig *rig, const char *name, uint32_t grid, uint32_t block,
	const void *params, uint32_t params_size)
{
	if (rig_run(rig, name, grid, block, params, params_size))
		test_fail(__FILE__, __LINE__, "%s", rig->fault.text);
}

int rig_lookup(const char *ptx, const char *name, struct softgpu_message *messagep)
{
	struct ptx_module *module;
	struct softgpu_program *program;
	const struct softgpu_kernel *kernel;
	struct ptx_error error = {};
	int r;

	if (ptx_module_new(&module, ptx, strlen(ptx), 121, &error))
		test_fail(__FILE__, __LINE__, "line %u: %s", error.line, error.message);
	r = softgpu_program_new(&program, module, messagep);
	check_eq(r, 0);
	r = softgpu_program_kernel(program, name, &kernel, messagep);
	softgpu_program_free(program);
	ptx_module_free(module);
	return r;
}
