/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower: one entry function from text to code
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

static void lowering_deinit(struct lowering *l)
{
	free(l->ops);
	free(l->values);
	free(l->constants);
	free(l->labels);
	free(l->tables);
	free(l->shared_variables);
	free(l->shared_blocks);
	free(l->subroutines);
	free(l->subroutines_of);
	free(l->calls);
	free(l->moves);
	free(l->candidates);
	for (uint32_t i = 0; i < l->n_refusals; i++)
		free(l->refusals[i]);
	free(l->refusals);
}

/* Values with a meaning of their own: none, true, carry. */
static int lowering_init(struct lowering *l)
{
	l->guard = VALUE_TRUE;
	l->shared_align = 16;
	l->shared_variables =
		calloc((size_t)l->module->n_variables + 1, sizeof(uint32_t));
	l->shared_blocks = calloc((size_t)l->module->n_functions + 1, sizeof(uint32_t));
	l->subroutines_of = calloc((size_t)l->module->n_functions + 1, sizeof(uint32_t));
	if (!l->shared_variables || !l->shared_blocks || !l->subroutines_of)
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	new_value(l, CLASS_NONE, VALUE_FIXED);
	new_value(l, CLASS_PRED, VALUE_FIXED);
	new_value(l, CLASS_PRED, VALUE_FIXED);
	if (l->error)
		return l->error;
	l->values[VALUE_TRUE].slot = PRED_TRUE;
	l->values[VALUE_CARRY].slot = PRED_CARRY;
	return 0;
}

static void finish_shared(struct lowering *l)
{
	bool used = false;

	for (uint32_t i = 1; i < l->n_values; i++)
		used |= l->values[i].is_shared_end;
	if (used)
		l->shared_size =
			(l->shared_size + l->shared_align - 1) & ~(l->shared_align - 1);
}

/* Where a kernel has very many, its blocks are smaller, as on any device. */
static uint32_t threads_of_registers(uint32_t n_slots)
{
	return REGISTERS_SIZE_MAX / SLOT_BYTES / (n_slots ? n_slots : 1) * 32;
}

static int fill_info(struct softgpu_kernel *kernel, const struct lowering *l,
	const struct ptx_function *function)
{
	struct softgpu_kernel_info *info = &kernel->info;
	struct softgpu_param *params =
		calloc((size_t)function->n_params + 1, sizeof(*params));
	uint64_t threads = 1;

	if (!params)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < function->n_params; i++)
		params[i] = (struct softgpu_param){
			.offset = function->params[i].offset,
			.size = function->params[i].size,
			.align = function->params[i].align,
		};
	info->name = function->name;
	info->n_params = function->n_params;
	info->params = params;
	info->params_size = function->params_size;
	info->static_shared_size = l->shared_size;
	info->local_size = (l->local_size + 15) & ~15u;
	info->max_threads = SOFTGPU_BLOCK_THREADS_MAX;
	for (unsigned int i = 0; i < 3; i++) {
		info->required_block[i] = function->reqntid[i];
		threads *= function->reqntid[0] ? function->reqntid[i]
						: function->maxntid[i];
	}
	if (threads && threads < SOFTGPU_BLOCK_THREADS_MAX)
		info->max_threads = (uint32_t)threads;
	if (info->max_threads > threads_of_registers(l->n_slots))
		info->max_threads = threads_of_registers(l->n_slots);
	info->n_registers = l->n_live_max < 16	  ? 16
			    : l->n_live_max > 255 ? 255
						  : l->n_live_max;
	info->ptx_version = l->module->version;
	info->target = l->module->target;
	info->n_instructions = l->n_ops;
	kernel->local_size = info->local_size;
	kernel->shared_align = l->shared_align;
	kernel->uses_stack = l->uses_stack;
	return 0;
}

struct softgpu_kernel *lower_kernel_free(struct softgpu_kernel *kernel)
{
	if (!kernel)
		return NULL;
	free((void *)kernel->info.params);
	free(kernel->code);
	free(kernel->lines);
	free(kernel->constants);
	free(kernel->sregs);
	free(kernel->targets);
	free(kernel->subroutines);
	free(kernel->calls);
	free(kernel->moves);
	free(kernel->candidates);
	free(kernel->saves);
	for (uint32_t i = 0; i < kernel->n_refusals; i++)
		free(kernel->refusals[i]);
	free(kernel->refusals);
	free(kernel);
	return NULL;
}

static void kernel_freep(struct softgpu_kernel **kernelp)
{
	lower_kernel_free(*kernelp);
}

int lower_kernel(struct softgpu_kernel **kernelp, struct ptx_module *module,
	uint32_t function, const uint64_t *addresses, uint32_t **pointedp,
	const insn_fn *handlers, struct softgpu_message *messagep)
{
	__attribute__((__cleanup__(lowering_deinit))) struct lowering l = {
		.module = module,
		.addresses = addresses,
		.pointedp = pointedp,
		.messagep = messagep,
	};
	_vgpu_cleanup_(kernel_freep) struct softgpu_kernel *kernel =
		calloc(1, sizeof(*kernel));
	struct frame frame = {
		.function = function,
		.ptx = &module->functions[function],
		.return_label = PTX_INDEX_NONE,
	};
	int r;

	if (!kernel)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	r = lowering_init(&l);
	if (!r)
		r = translate_function(&l, &frame);
	l.local_size = l.extent;
	if (!r)
		r = translate_subroutines(&l);
	if (!r)
		r = lower_liveness(&l);
	if (!r)
		r = lower_slots(&l);
	if (r)
		return r;
	finish_shared(&l);
	r = lower_saves(&l, kernel);
	if (!r)
		r = lower_emit(&l, kernel, handlers);
	if (!r)
		r = fill_info(kernel, &l, frame.ptx);
	if (r)
		return r;
	kernel->refusals = l.refusals;
	kernel->n_refusals = l.n_refusals;
	l.refusals = NULL;
	l.n_refusals = 0;
	*kernelp = kernel;
	kernel = NULL;
	return 0;
}
