/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common: subroutines that kernels of a module share
 *
 * A call through a pointer may lead to each function of its type, so all kernels with
 * such calls need the same subroutines: in modules of compilers that outline, most of the
 * module. Those are lowered once, followed by the code of each kernel. Their slots come
 * first, the kernel's own follow. The set of functions that pointers may lead to is
 * closed: none of these subroutines refers to code or slots of a kernel.
 *
 * Tables never move and are only added to, under the program's lock, so that kernels may
 * run meanwhile: each has its part of one reservation of addresses.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* Sets of subroutines a module keeps; kernels that need another one have their own. */
#define COMMONS_MAX 8u

static const struct {
	size_t size;
	uint32_t max;
} tables[_TABLE_N] = {
	[TABLE_CODE] = { sizeof(struct insn), 2 * LOWER_OPS_MAX },
	[TABLE_LINES] = { sizeof(uint32_t), 2 * LOWER_OPS_MAX },
	[TABLE_TARGETS] = { sizeof(uint32_t), 2 * TABLES_MAX },
	[TABLE_SUBROUTINES] = { sizeof(struct code_subroutine), 1u << 18 },
	[TABLE_CALLS] = { sizeof(struct code_call), 1u << 19 },
	[TABLE_MOVES] = { sizeof(struct code_move), 1u << 20 },
	[TABLE_CANDIDATES] = { sizeof(uint32_t), 2 * CANDIDATES_MAX },
	[TABLE_SAVES] = { sizeof(struct code_save), 2 * SAVES_MAX },
};

struct lower_common *lower_common_free(struct lower_common *c)
{
	if (!c)
		return NULL;
	if (c->reservation)
		munmap(c->reservation, c->reserved_size);
	for (uint32_t i = 0; i < c->n_refusals; i++)
		free(c->refusals[i]);
	free(c->refusals);
	free(c->wanted);
	free(c->subroutines_of);
	free(c->shared_variables);
	free(c->shared_blocks);
	free(c->constants);
	free(c->sregs);
	free(c);
	return NULL;
}

static void common_freep(struct lower_common **commonp)
{
	lower_common_free(*commonp);
}

void lower_cache_deinit(struct lower_cache *cache)
{
	while (cache->commons) {
		struct lower_common *next = cache->commons->next;

		lower_common_free(cache->commons);
		cache->commons = next;
	}
	free(cache->pointed);
}

/* Addresses alone: memory comes with what is written. */
static bool reserve(struct lower_common *c)
{
	size_t size = 0;
	uint8_t *at;

	for (unsigned int i = 0; i < _TABLE_N; i++)
		size += tables[i].size * tables[i].max;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	c->reservation = at;
	c->reserved_size = size;
	for (unsigned int i = 0; i < _TABLE_N; i++) {
		c->tables[i] = at;
		at += tables[i].size * tables[i].max;
	}
	return true;
}

int lower_room(struct lowering *l, enum lower_table table, uint32_t n, void **basep,
	void **roomp)
{
	struct lower_common *c = l->common;

	if (!c) {
		*roomp = *basep = calloc((size_t)n + 1, tables[table].size);
		return *basep ? 0 : SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	if (n > tables[table].max - c->n[table])
		return lower_fail(
			l, SOFTGPU_ERROR_NOT_SUPPORTED, "too much code for one module");
	*basep = c->tables[table];
	*roomp = (uint8_t *)c->tables[table] + c->n[table] * tables[table].size;
	c->n[table] += n;
	return 0;
}

static bool is_same(const struct lower_common *c, const bool *wanted, uint32_t n)
{
	return !memcmp(c->wanted, wanted, n * sizeof(*wanted));
}

static int keep_fixed(struct lower_common *c, const struct lowering *l,
	const struct softgpu_kernel *kernel)
{
	uint32_t n = 0;

	c->constants = calloc((size_t)kernel->n_constants + 1, sizeof(*c->constants));
	c->sregs = calloc((size_t)kernel->n_sregs + 1, sizeof(*c->sregs));
	if (!c->constants || !c->sregs)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	/* In the order in which encode.c met them. */
	for (uint32_t i = 1; i < l->n_values; i++) {
		const struct value *v = &l->values[i];

		if (v->kind != VALUE_CONSTANT || v->start == UINT32_MAX)
			continue;
		c->constants[n].constant = kernel->constants[n];
		c->constants[n].is_shared_end = v->is_shared_end;
		if (v->is_shared_end)
			c->constants[n].constant.bits = v->bits;
		c->has_shared_end |= v->is_shared_end;
		n++;
	}
	c->n_constants = n;
	memcpy(c->sregs, kernel->sregs, kernel->n_sregs * sizeof(*c->sregs));
	c->n_sregs = kernel->n_sregs;
	return 0;
}

/* The state from which kernels continue. */
static int keep(
	struct lower_common *c, struct lowering *l, const struct softgpu_kernel *kernel)
{
	c->n_slots = l->n_slots;
	c->n_preds = l->n_preds;
	c->n_live_max = l->n_live_max;
	c->shared_size = l->shared_size;
	c->shared_align = l->shared_align;
	c->subroutines_of = l->subroutines_of;
	c->shared_variables = l->shared_variables;
	c->shared_blocks = l->shared_blocks;
	c->refusals = l->refusals;
	c->n_refusals = l->n_refusals;
	l->subroutines_of = l->shared_variables = l->shared_blocks = NULL;
	l->refusals = NULL;
	l->n_refusals = 0;
	return keep_fixed(c, l, kernel);
}

/* Frees memory outside the common tables. */
static void part_freep(struct softgpu_kernel **kernelp)
{
	lower_kernel_free(*kernelp);
}

static int build(struct lower_common *c, const struct lowering *of,
	struct softgpu_message *messagep)
{
	__attribute__((__cleanup__(lowering_deinit))) struct lowering l = {
		.module = of->module,
		.addresses = of->addresses,
		.cache = of->cache,
		.messagep = messagep,
		.common = c,
	};
	_vgpu_cleanup_(part_freep) struct softgpu_kernel *part = calloc(1, sizeof(*part));
	int r;

	if (!part)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	part->is_shared = true;
	r = lowering_init(&l);
	for (uint32_t i = 0; i < l.module->n_functions && !r; i++)
		if (c->wanted[i])
			r = lower_wanted(&l, i);
	if (!r)
		r = lower_wanted_done(&l);
	if (!r)
		r = lower_code(&l, part, of->handlers);
	return r ? r : keep(c, &l, part);
}

int lower_common_get(struct lowering *l, struct lower_common **commonp)
{
	_vgpu_cleanup_(common_freep) struct lower_common *c = NULL;
	struct softgpu_message message = { 0 };
	uint32_t n = l->module->n_functions, n_known = 0;
	int r;

	*commonp = NULL;
	for (c = l->cache->commons; c; c = c->next, n_known++)
		if (is_same(c, l->wanted, n))
			break;
	if (c) {
		*commonp = c->refusal ? NULL : c;
		c = NULL;
		return 0;
	}
	if (n_known >= COMMONS_MAX)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	c->wanted = calloc((size_t)n + 1, sizeof(*c->wanted));
	if (!c->wanted)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	memcpy(c->wanted, l->wanted, n * sizeof(*c->wanted));
	r = reserve(c) ? build(c, l, &message) : SOFTGPU_ERROR_NOT_SUPPORTED;
	if (r == SOFTGPU_ERROR_OUT_OF_MEMORY)
		return r;
	c->refusal = r;
	if (!r)
		*commonp = c;
	c->next = l->cache->commons;
	l->cache->commons = c;
	c = NULL;
	return 0;
}
