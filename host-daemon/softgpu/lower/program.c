/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: a module's variables and kernels
 *
 * Kernels are decoded at their first look-up, under the lock, and then never change. The
 * address of each variable is known by then: it is an immediate in the code. A refusal is
 * remembered with its reason, except for a lack of memory.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/check.h"
#include "lower/lower.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"

struct entry {
	uint32_t function;
	struct softgpu_kernel *kernel; /* NULL until looked up */
	int refusal;		       /* the code it cannot be decoded with, or 0 */
	char *reason;		       /* or NULL */
};

struct softgpu_program {
	struct ptx_module *module;
	const insn_fn *handlers;
	insn_fn *checked; /* instead of those, where kernels can be watched; or NULL */

	struct softgpu_variable *variables;
	uint32_t *numbers; /* of each, in the module */
	uint32_t n_variables;
	uint64_t *addresses; /* by number in the module */

	pthread_mutex_t lock; /* kernels, parsing of bodies */
	struct lower_cache cache;
	struct entry *entries;
	uint32_t n_entries;
	uint32_t const_size;
};

static uint64_t next_serial;

/* The best handlers for this machine; SOFTGPU_ISA=base and =v3 are for tests of the plain
 * set, and of the other without vectors of 512 bits. */
static const insn_fn *choose_handlers(void)
{
	static bool is_told;
	const char *wanted = getenv("SOFTGPU_ISA"), *name;
	enum machine machine = softgpu_machine();
	const insn_fn *handlers;

	if (wanted && !strcmp(wanted, "base"))
		machine = MACHINE_BASE;
	if (wanted && !strcmp(wanted, "v3") && machine > MACHINE_V3)
		machine = MACHINE_V3;
	handlers = softgpu_handlers_for(machine, &name);
	if (!__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
		vgpu_log_debug("kernels are run by handlers for %s", name);
	return handlers;
}

static int fail(
	struct softgpu_message *messagep, int code, const char *what, const char *name)
{
	snprintf(messagep->text, sizeof(messagep->text), "%s: %.200s", what, name);
	return code;
}

/* An array of references has no name for each. */
static enum softgpu_reference reference_of(const struct ptx_variable *v)
{
	if (v->size != sizeof(uint64_t))
		return SOFTGPU_NO_REFERENCE;
	switch (v->type) {
	case PTX_TYPE_TEXREF:
		return SOFTGPU_TEXTURE_REFERENCE;
	case PTX_TYPE_SURFREF:
		return SOFTGPU_SURFACE_REFERENCE;
	default:
		return SOFTGPU_NO_REFERENCE;
	}
}

static int note_variable(struct softgpu_program *program, uint32_t number,
	struct softgpu_message *messagep)
{
	const struct ptx_variable *v = &program->module->variables[number];

	switch (v->space) {
	case PTX_SPACE_SHARED:
		return 0;
	case PTX_SPACE_GLOBAL:
	case PTX_SPACE_CONST:
	case PTX_SPACE_TEX:
		break;
	default:
		return fail(messagep, SOFTGPU_ERROR_NOT_SUPPORTED,
			"variables of this kind are not supported", v->name);
	}
	/* References to it are refused: those of kernels when they are launched. */
	if (v->linkage == PTX_LINKAGE_EXTERN)
		return 0;
	if (!v->size)
		return fail(messagep, SOFTGPU_ERROR_INVALID_PTX,
			"variable without a size", v->name);
	if (v->space == PTX_SPACE_CONST)
		program->const_size += (uint32_t)v->size;
	program->numbers[program->n_variables] = number;
	program->variables[program->n_variables++] = (struct softgpu_variable){
		.name = v->name,
		.size = v->size,
		.align = v->align ? v->align : 1,
		.is_const = v->space == PTX_SPACE_CONST,
		.is_managed = v->managed,
		.is_local_symbol = v->linkage == PTX_LINKAGE_NONE,
		.has_init = v->init_size || v->n_relocs,
		.reference = reference_of(v),
		.sampling = v->sampling,
	};
	return 0;
}

static void program_freep(struct softgpu_program **programp)
{
	softgpu_program_free(*programp);
}

int softgpu_program_new(struct softgpu_program **programp, struct ptx_module *module,
	struct softgpu_message *messagep)
{
	_vgpu_cleanup_(program_freep) struct softgpu_program *program =
		calloc(1, sizeof(*program));
	int r;

	if (!program)
		return fail(messagep, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory",
			"program");
	program->module = module;
	program->handlers = choose_handlers();
	pthread_mutex_init(&program->lock, NULL);
	program->variables =
		calloc((size_t)module->n_variables + 1, sizeof(*program->variables));
	program->numbers =
		calloc((size_t)module->n_variables + 1, sizeof(*program->numbers));
	program->addresses =
		calloc((size_t)module->n_variables + 1, sizeof(*program->addresses));
	program->entries =
		calloc((size_t)module->n_functions + 1, sizeof(*program->entries));
	if (!program->variables || !program->numbers || !program->addresses ||
		!program->entries)
		return fail(messagep, SOFTGPU_ERROR_OUT_OF_MEMORY, "out of memory",
			"program");
	for (uint32_t i = 0; i < module->n_variables; i++) {
		r = note_variable(program, i, messagep);
		if (r)
			return r;
	}
	for (uint32_t i = 0; i < module->n_functions; i++)
		if (module->functions[i].is_entry && module->functions[i].is_defined)
			program->entries[program->n_entries++].function = i;
	*programp = program;
	program = NULL;
	return SOFTGPU_SUCCESS;
}

struct softgpu_program *softgpu_program_free(struct softgpu_program *program)
{
	if (!program)
		return NULL;
	for (uint32_t i = 0; i < program->n_entries; i++) {
		lower_kernel_free(program->entries[i].kernel);
		free(program->entries[i].reason);
	}
	lower_cache_deinit(&program->cache);
	pthread_mutex_destroy(&program->lock);
	free(program->variables);
	free(program->numbers);
	free(program->addresses);
	free(program->entries);
	free(program->checked);
	free(program);
	return NULL;
}

size_t softgpu_program_n_variables(const struct softgpu_program *program)
{
	return program->n_variables;
}

const struct softgpu_variable *softgpu_program_variable(
	const struct softgpu_program *program, size_t index)
{
	return &program->variables[index];
}

void softgpu_program_place(
	struct softgpu_program *program, size_t index, uint64_t address)
{
	program->addresses[program->numbers[index]] = address;
}

int softgpu_program_watch(struct softgpu_program *program)
{
	program->checked = calloc(_OP_N, sizeof(*program->checked));
	if (!program->checked)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	program->cache.is_watched = true;
	for (unsigned int i = 0; i < _OP_N; i++) {
		insn_fn checked = softgpu_checked_handler(i);

		program->checked[i] = checked ? checked : program->handlers[i];
	}
	return SOFTGPU_SUCCESS;
}

static int relocate(const struct softgpu_program *program, const struct ptx_variable *v,
	const struct ptx_reloc *reloc, uint8_t *to, struct softgpu_message *messagep)
{
	const struct ptx_module *module = program->module;
	uint64_t value;

	if (reloc->symbol == PTX_SYMBOL_FUNCTION) {
		value = FUNCTION_HANDLE_BASE + (uint64_t)reloc->index;
	} else if (reloc->symbol == PTX_SYMBOL_VARIABLE) {
		const struct ptx_variable *target = &module->variables[reloc->index];

		if (target->linkage == PTX_LINKAGE_EXTERN)
			return fail(messagep, SOFTGPU_ERROR_INVALID_PTX,
				"initialised with an undefined external variable",
				target->name);
		if (target->space != PTX_SPACE_GLOBAL && target->space != PTX_SPACE_CONST)
			return fail(messagep, SOFTGPU_ERROR_NOT_SUPPORTED,
				"initialised with an address that is not global",
				v->name);
		value = program->addresses[reloc->index] + (uint64_t)reloc->addend;
	} else {
		return fail(messagep, SOFTGPU_ERROR_INVALID_PTX,
			"initialised with what has no address", v->name);
	}
	if (reloc->size > 8 || reloc->size > v->size ||
		reloc->offset > v->size - reloc->size || reloc->shift > 63)
		return fail(messagep, SOFTGPU_ERROR_INVALID_PTX,
			"initialised outside of its size", v->name);
	value >>= reloc->shift;
	memcpy(to + reloc->offset, &value, reloc->size);
	return SOFTGPU_SUCCESS;
}

int softgpu_program_fill(const struct softgpu_program *program, size_t index, void *to,
	struct softgpu_message *messagep)
{
	const struct ptx_variable *v =
		&program->module->variables[program->numbers[index]];
	uint64_t n = v->init_size < v->size ? v->init_size : v->size;
	int r;

	if (v->init && n)
		memcpy(to, v->init, n);
	else
		n = 0;
	memset((uint8_t *)to + n, 0, v->size - n);
	for (uint32_t i = 0; i < v->n_relocs; i++) {
		r = relocate(program, v, &program->module->relocs[v->first_reloc + i], to,
			messagep);
		if (r)
			return r;
	}
	return SOFTGPU_SUCCESS;
}

size_t softgpu_program_n_kernels(const struct softgpu_program *program)
{
	return program->n_entries;
}

const char *softgpu_program_kernel_name(
	const struct softgpu_program *program, size_t index)
{
	return program->module->functions[program->entries[index].function].name;
}

/* Frees the kernel if there is no memory. */
static int make_watchable(
	struct softgpu_program *program, struct softgpu_kernel **kernelp)
{
	struct softgpu_kernel *kernel = *kernelp;

	kernel->handlers = program->handlers;
	kernel->reported = calloc(kernel->n_code, 1);
	if (kernel->reported)
		return SOFTGPU_SUCCESS;
	*kernelp = lower_kernel_free(kernel);
	return SOFTGPU_ERROR_OUT_OF_MEMORY;
}

size_t softgpu_program_find_kernel(
	const struct softgpu_program *program, uint64_t address)
{
	uint64_t number = address - FUNCTION_HANDLE_BASE;
	uint32_t function;

	if (number >= program->module->n_functions)
		return SIZE_MAX;
	/* Declared before it was defined, it has two numbers. */
	function = ptx_module_find_function(
		program->module, program->module->functions[number].name);
	for (uint32_t i = 0; i < program->n_entries; i++)
		if (program->entries[i].function == function)
			return i;
	return SIZE_MAX;
}

/* Called with the lock held. */
static int decode(struct softgpu_program *program, struct entry *entry,
	struct softgpu_message *messagep)
{
	struct softgpu_kernel *kernel;
	int r;

	if (entry->refusal) {
		snprintf(messagep->text, sizeof(messagep->text), "%s",
			entry->reason ? entry->reason : "");
		return entry->refusal;
	}
	r = lower_kernel(&kernel, program->module, entry->function, program->addresses,
		&program->cache, program->checked ? program->checked : program->handlers,
		messagep);
	if (!r && program->checked)
		r = make_watchable(program, &kernel);
	if (r && r != SOFTGPU_ERROR_OUT_OF_MEMORY) {
		entry->refusal = r;
		entry->reason = strdup(messagep->text);
	}
	if (r)
		return r;
	kernel->info.const_size = program->const_size;
	kernel->text = program->module->text;
	kernel->serial = __atomic_add_fetch(&next_serial, 1, __ATOMIC_RELAXED);
	entry->kernel = kernel;
	return SOFTGPU_SUCCESS;
}

int softgpu_program_kernel(struct softgpu_program *program, const char *name,
	const struct softgpu_kernel **kernelp, struct softgpu_message *messagep)
{
	uint32_t function = ptx_module_find_function(program->module, name);
	int r = SOFTGPU_ERROR_NOT_FOUND;

	pthread_mutex_lock(&program->lock);
	for (uint32_t i = 0; i < program->n_entries; i++) {
		struct entry *entry = &program->entries[i];

		if (entry->function != function)
			continue;
		messagep->text[0] = 0;
		r = entry->kernel ? SOFTGPU_SUCCESS : decode(program, entry, messagep);
		*kernelp = entry->kernel;
		break;
	}
	pthread_mutex_unlock(&program->lock);
	if (r == SOFTGPU_ERROR_NOT_FOUND)
		fail(messagep, r, "no such kernel", name);
	return r;
}

uint64_t softgpu_program_n_subroutines(struct softgpu_program *program)
{
	uint64_t n;

	pthread_mutex_lock(&program->lock);
	n = program->cache.n_subroutines;
	pthread_mutex_unlock(&program->lock);
	return n;
}

const struct softgpu_kernel_info *softgpu_kernel_info(const struct softgpu_kernel *kernel)
{
	return &kernel->info;
}
