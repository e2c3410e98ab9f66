/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Running kernels from text, for the tests of the engine
 *
 * A rig is a piece of device memory with a guard page on either side, a module in it
 * and one scratch. Failures end the test, except where a fault is what is asked for.
 */

#include <stdint.h>

#include "exec/engine.h"
#include "ptx/module.h"

#define RIG_MEMORY (UINT64_C(8) << 20)

struct rig {
	struct ptx_module *module;
	struct softgpu_program *program;
	struct softgpu_scratch *scratch;
	struct softgpu_space space;
	uint8_t *memory; /* RIG_MEMORY bytes, at their device address */
	uint8_t *pages;
	uint64_t used;
	struct softgpu_fault fault;
	uint32_t dynamic_shared_size;
	uint32_t stack_size;
	uint32_t cluster[3]; /* of launches; all 0: none */
	uint32_t rows[2];    /* of the grid, in y and z; 0: one */
	uint64_t deadline_ns;
	uint8_t schedule; /* enum softgpu_schedule; by RIG_SCHEDULE=fair, unless set */
	struct softgpu_hooks hooks;
	const struct softgpu_textures *textures; /* or NULL */
	const struct softgpu_checks *checks;	 /* or NULL */
};

struct rig *rig_new(const char *ptx);
struct rig *rig_free(struct rig *rig);

/* Device memory, zeroed, aligned to 256. */
void *rig_alloc(struct rig *rig, uint64_t size);

const struct softgpu_kernel *rig_kernel(struct rig *rig, const char *name);

/* Returns: the result of the launch; details are in rig->fault. */
int rig_run(struct rig *rig, const char *name, uint32_t grid, uint32_t block,
	const void *params, uint32_t params_size);

/* The same, and it has to work. */
void rig_launch(struct rig *rig, const char *name, uint32_t grid, uint32_t block,
	const void *params, uint32_t params_size);

/* Returns: the code a lookup fails with; the message in *messagep. */
int rig_lookup(const char *ptx, const char *name, struct softgpu_message *messagep);

static inline void rig_freep(struct rig **rigp)
{
	rig_free(*rigp);
}
