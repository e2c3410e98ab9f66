/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables
 *
 * Of a library there is one set, whatever contexts use it; of a module loaded into a
 * context, its own. All variables of a set share one block.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "api/api.h"
#include "ptx/module.h"

#define MANAGED_ALIGN 256

struct managed {
	struct softgpu_program *program; /* of declarations only */
	const struct ptx_module *ptx;
	uint64_t address;
	uint64_t size;
	uint64_t *offsets; /* by variable of the program; UINT64_MAX: it is not managed */
};

static CUresult managed_take(struct managed *managed)
{
	struct device *device = &softgpu_device;
	struct range range = {
		.kind = RANGE_MANAGED,
		.size = managed->size,
		.owner = managed,
	};
	CUresult result;

	if (device->managed_alloc) {
		managed->address = (uintptr_t)device->managed_alloc(
			device->managed_data, managed->size);
		return managed->address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = device_begin();
	if (!result && memory_alloc(&device->memory, &range, &managed->address))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

void managed_free(struct managed *managed)
{
	struct device *device = &softgpu_device;

	if (!managed)
		return;
	if (managed->address && device->managed_free)
		device->managed_free(device->managed_data,
			(void *)(uintptr_t)managed->address, managed->size);
	else if (managed->address)
		memory_free(
			&device->memory, managed->address, MEMORY_KIND(RANGE_MANAGED));
	softgpu_program_free(managed->program);
	free(managed->offsets);
	free(managed);
}

static CUresult managed_lay_out(struct managed *managed)
{
	size_t n = softgpu_program_n_variables(managed->program);

	managed->offsets = calloc(n + 1, sizeof(*managed->offsets));
	if (!managed->offsets)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const struct softgpu_variable *variable =
			softgpu_program_variable(managed->program, i);
		uint64_t align =
			variable->align > MANAGED_ALIGN ? variable->align : MANAGED_ALIGN;

		managed->offsets[i] = UINT64_MAX;
		if (!variable->is_managed)
			continue;
		/* The block itself is aligned no better. */
		if (align > MANAGED_ALIGN)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!vgpu_align_u64(managed->size, align, &managed->size))
			return CUDA_ERROR_INVALID_PTX;
		managed->offsets[i] = managed->size;
		if (!vgpu_add_u64(managed->size, variable->size, &managed->size))
			return CUDA_ERROR_INVALID_PTX;
	}
	return CUDA_SUCCESS;
}

static bool managed_is_needed(const struct ptx_module *ptx)
{
	for (uint32_t i = 0; i < ptx->n_variables; i++)
		if (ptx->variables[i].managed)
			return true;
	return false;
}

CUresult managed_new(struct managed **managedp, const struct ptx_module *ptx)
{
	struct softgpu_message message = { 0 };
	struct managed *managed;
	CUresult result;

	*managedp = NULL;
	if (!managed_is_needed(ptx))
		return CUDA_SUCCESS;
	managed = calloc(1, sizeof(*managed));
	if (!managed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	managed->ptx = ptx;
	result = softgpu_program_new(
		&managed->program, (struct ptx_module *)ptx, &message);
	if (!result)
		result = managed_lay_out(managed);
	if (!result)
		result = managed_take(managed);
	if (result) {
		managed_free(managed);
		return result;
	}
	*managedp = managed;
	return CUDA_SUCCESS;
}

/* An initialiser with the address of an object of one context cannot be shared by all. */
static bool managed_is_constant(
	const struct ptx_module *ptx, const struct ptx_variable *variable)
{
	const struct ptx_reloc *reloc = &ptx->relocs[variable->first_reloc];

	for (uint32_t i = 0; i < variable->n_relocs; i++)
		if (reloc[i].symbol != PTX_SYMBOL_VARIABLE ||
			!ptx->variables[reloc[i].index].managed)
			return false;
	return true;
}

CUresult managed_fill(struct managed *managed, struct softgpu_message *message)
{
	size_t n = softgpu_program_n_variables(managed->program);
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < managed->ptx->n_variables; i++)
		if (managed->ptx->variables[i].managed &&
			!managed_is_constant(managed->ptx, &managed->ptx->variables[i]))
			return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n; i++)
		if (managed->offsets[i] != UINT64_MAX)
			softgpu_program_place(managed->program, i,
				managed->address + managed->offsets[i]);
	for (size_t i = 0; i < n && !result; i++)
		if (managed->offsets[i] != UINT64_MAX)
			result = softgpu_program_fill(managed->program, i,
				(void *)(uintptr_t)(managed->address +
						    managed->offsets[i]),
				message);
	return result;
}

uint64_t managed_find(const struct managed *managed, const char *name, size_t *sizep)
{
	size_t n = managed ? softgpu_program_n_variables(managed->program) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct softgpu_variable *variable =
			softgpu_program_variable(managed->program, i);

		if (managed->offsets[i] == UINT64_MAX || strcmp(variable->name, name))
			continue;
		if (sizep)
			*sizep = variable->size;
		return managed->address + managed->offsets[i];
	}
	return 0;
}
