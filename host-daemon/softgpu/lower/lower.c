/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower: one entry function from text to code
 */

#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

void lowering_deinit(struct lowering *l)
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

/* By number, zeros or what the common subroutines have. */
static uint32_t *start_from(const uint32_t *from, uint32_t n)
{
	uint32_t *to = calloc((size_t)n + 1, sizeof(*to));

	if (to && from)
		memcpy(to, from, n * sizeof(*to));
	return to;
}

/* Tables that others use are gone on with; in new ones all begins at 0. */
static int start_tables(struct lowering *l)
{
	static const struct lower_common nothing;
	const struct lower_common *c = l->common ? l->common : &nothing;
	uint32_t n_variables = l->module->n_variables, n = l->module->n_functions;

	memcpy(l->base, c->n, sizeof(l->base));
	l->shared_size = c->shared_size;
	l->shared_align = c->shared_align > 16 ? c->shared_align : 16;
	l->shared_variables = start_from(c->shared_variables, n_variables);
	l->shared_blocks = start_from(c->shared_blocks, n);
	l->subroutines_of = start_from(c->subroutines_of, n);
	l->first_subroutine = l->n_subroutines = c->n[TABLE_SUBROUTINES];
	if (!l->shared_variables || !l->shared_blocks || !l->subroutines_of ||
		lower_reserve(&l->subroutines, &l->subroutines_capacity,
			l->n_subroutines + 1, sizeof(*l->subroutines)))
		return lower_fail(l, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory");
	memset(l->subroutines, 0, l->n_subroutines * sizeof(*l->subroutines));
	return 0;
}

/* Reserved values: none, true, carry. */
int lowering_init(struct lowering *l)
{
	int r = start_tables(l);

	if (r)
		return r;
	l->guard = VALUE_TRUE;
	lower_value_new(l, CLASS_NONE, VALUE_FIXED);
	lower_value_new(l, CLASS_PRED, VALUE_FIXED);
	lower_value_new(l, CLASS_PRED, VALUE_FIXED);
	if (l->error)
		return l->error;
	l->values[VALUE_TRUE].slot = PRED_TRUE;
	l->values[VALUE_CARRY].slot = PRED_CARRY;
	return 0;
}

static void finish_shared(struct lowering *l)
{
	bool used = l->common && l->common->has_shared_end;

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
	uint32_t n_live = l->n_live_max;
	uint64_t threads = 1;

	if (l->common && l->common->n_live_max > n_live)
		n_live = l->common->n_live_max;
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
	info->bound_threads = SOFTGPU_BLOCK_THREADS_MAX;
	for (unsigned int i = 0; i < 3; i++) {
		info->required_block[i] = function->reqntid[i];
		info->required_cluster[i] = function->reqnctapercluster[i];
		threads *= function->reqntid[0] ? function->reqntid[i]
						: function->maxntid[i];
	}
	if (threads && threads < SOFTGPU_BLOCK_THREADS_MAX)
		info->bound_threads = (uint32_t)threads;
	info->max_threads = info->bound_threads;
	if (info->max_threads > threads_of_registers(l->n_slots))
		info->max_threads = threads_of_registers(l->n_slots);
	info->max_cluster = function->maxclusterrank;
	info->is_cluster_explicit = function->is_cluster_explicit;
	info->blocks_are_clusters = function->blocks_are_clusters;
	info->n_registers = n_live < 16 ? 16 : n_live > 255 ? 255 : n_live;
	info->ptx_version = l->module->version;
	info->target = l->module->target;
	info->n_instructions = l->n_ops;
	kernel->local_size = info->local_size;
	kernel->shared_align = l->shared_align;
	kernel->uses_stack = l->uses_stack;
	return 0;
}

static void free_tables(struct softgpu_kernel *kernel)
{
	free(kernel->code);
	free(kernel->lines);
	free(kernel->targets);
	free(kernel->subroutines);
	free(kernel->calls);
	free(kernel->moves);
	free(kernel->candidates);
	free(kernel->saves);
	for (uint32_t i = 0; i < kernel->n_refusals; i++)
		free(kernel->refusals[i]);
	free(kernel->refusals);
}

struct softgpu_kernel *lower_kernel_free(struct softgpu_kernel *kernel)
{
	if (!kernel)
		return NULL;
	free((void *)kernel->info.params);
	free(kernel->constants);
	free(kernel->sregs);
	free(kernel->reported);
	if (!kernel->is_shared)
		free_tables(kernel);
	free(kernel);
	return NULL;
}
static void kernel_freep(struct softgpu_kernel **kernelp)
{
	lower_kernel_free(*kernelp);
}

int lower_code(struct lowering *l, struct softgpu_kernel *kernel, const insn_fn *handlers)
{
	int r = lower_simplify(l);

	if (!r)
		r = lower_notes(l);
	if (!r)
		r = lower_liveness(l);
	if (!r)
		r = lower_slots(l);
	if (r)
		return r;
	finish_shared(l);
	r = lower_saves(l, kernel);
	return r ? r : lower_encode(l, kernel, handlers);
}

static int translate_kernel(struct lowering *l, uint32_t function)
{
	struct frame frame = {
		.function = function,
		.ptx = &l->module->functions[function],
		.return_label = PTX_INDEX_NONE,
	};
	int r = lowering_init(l);

	if (!r)
		r = translate_function(l, &frame);
	l->local_size = l->extent;
	return r ? r : translate_subroutines(l);
}

static int finish_kernel(
	struct softgpu_kernel **kernelp, struct lowering *l, uint32_t function)
{
	_vgpu_cleanup_(kernel_freep) struct softgpu_kernel *kernel =
		calloc(1, sizeof(*kernel));
	int r;

	if (!kernel)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	kernel->is_shared = l->common;
	r = lower_code(l, kernel, l->handlers);
	if (!r)
		r = fill_info(kernel, l, &l->module->functions[function]);
	if (r)
		return r;
	if (l->common) {
		kernel->refusals = l->common->refusals;
	} else {
		kernel->refusals = l->refusals;
		kernel->n_refusals = l->n_refusals;
		l->refusals = NULL;
		l->n_refusals = 0;
	}
	*kernelp = kernel;
	kernel = NULL;
	return 0;
}

/* With the subroutines that it shares, or with its own where common is NULL. */
static int lower_with(struct softgpu_kernel **kernelp, const struct lowering *like,
	uint32_t function, struct lower_common *common)
{
	__attribute__((__cleanup__(lowering_deinit))) struct lowering l = {
		.module = like->module,
		.addresses = like->addresses,
		.cache = like->cache,
		.handlers = like->handlers,
		.messagep = like->messagep,
		.common = common,
	};
	int r = translate_kernel(&l, function);

	return r ? r : finish_kernel(kernelp, &l, function);
}

int lower_kernel(struct softgpu_kernel **kernelp, struct ptx_module *module,
	uint32_t function, const uint64_t *addresses, struct lower_cache *cache,
	const insn_fn *handlers, struct softgpu_message *messagep)
{
	_vgpu_cleanup_(vgpu_freep) bool *wanted =
		calloc((size_t)module->n_functions + 1, sizeof(*wanted));
	__attribute__((__cleanup__(lowering_deinit))) struct lowering l = {
		.module = module,
		.addresses = addresses,
		.cache = cache,
		.handlers = handlers,
		.messagep = messagep,
		.wanted = wanted,
	};
	struct lower_common *common;
	int r;

	if (!wanted)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	r = translate_kernel(&l, function);
	if (!r && !l.wants)
		return finish_kernel(kernelp, &l, function);
	if (!r)
		r = lower_common_get(&l, &common);
	if (r)
		return r;
	r = lower_with(kernelp, &l, function, common);
	/* Together they may be too much where each of them is not. */
	if (r != SOFTGPU_ERROR_NOT_SUPPORTED || !common)
		return r;
	messagep->text[0] = 0;
	return lower_with(kernelp, &l, function, NULL);
}
