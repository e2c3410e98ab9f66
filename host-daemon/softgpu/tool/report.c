/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/code.h"
#include "exec/engine.h"
#include "exec/warp.h"
#include "lower/lower.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "tool/report.h"

/* The addresses of variables are not known: no kernel runs. */
struct examination {
	struct report *report;
	struct ptx_module *module;
	uint64_t *addresses;
	const insn_fn *handlers;
	struct lower_cache cache;
};

struct report *report_free(struct report *report)
{
	if (!report)
		return NULL;
	for (uint32_t i = 0; i < report->n_kernels; i++) {
		struct report_kernel *kernel = &report->kernels[i];

		for (uint32_t k = 0; k < kernel->n_refusals; k++)
			free(kernel->refusals[k].text);
		free(kernel->refusals);
	}
	free(report->kernels);
	ptx_module_free(report->module);
	free(report);
	return NULL;
}

/* The line in a message of the form "FUNCTION, line N: REASON", 0 for others. */
static uint32_t line_of(const char *message, const char **reasonp)
{
	static const char word[] = ", line ";
	const char *at = strstr(message, word);
	char *end;
	unsigned long line;

	*reasonp = message;
	if (!at)
		return 0;
	line = strtoul(at + sizeof(word) - 1, &end, 10);
	if (end[0] != ':' || end[1] != ' ' || line > UINT32_MAX)
		return 0;
	*reasonp = end + 2;
	return line;
}

/*
 * Instructions of a line become hints without operands, which do nothing. Returns:
 * whether there was one to change.
 */
static bool silence(struct ptx_module *module, uint32_t line)
{
	bool found = false;

	for (uint32_t i = 0; i < module->n_functions; i++) {
		struct ptx_body *body = module->functions[i].body;

		for (uint32_t k = 0; body && k < body->n_instrs; k++) {
			struct ptx_instr *instr = &body->instrs[k];

			if (instr->line != line || instr->op == PTX_OP_GRIDDEPCONTROL)
				continue;
			instr->op = PTX_OP_GRIDDEPCONTROL;
			found = true;
		}
	}
	return found;
}

static int note_refusal(struct report_kernel *kernel, uint32_t line, const char *reason)
{
	struct report_refusal *refusals =
		realloc(kernel->refusals, (kernel->n_refusals + 1) * sizeof(*refusals));

	if (!refusals)
		return vgpu_error_origin(-ENOMEM);
	kernel->refusals = refusals;
	refusals[kernel->n_refusals] = (struct report_refusal){ line, strdup(reason) };
	if (!refusals[kernel->n_refusals].text)
		return vgpu_error_origin(-ENOMEM);
	kernel->n_refusals++;
	return 0;
}

static bool has_barriers(const struct ptx_body *body)
{
	for (uint32_t i = 0; body && i < body->n_instrs; i++)
		if (body->instrs[i].op == PTX_OP_BAR ||
			body->instrs[i].op == PTX_OP_BARRIER)
			return true;
	return false;
}

static void note_sizes(struct report_kernel *kernel, const struct softgpu_kernel *code)
{
	const struct softgpu_kernel_info *info = softgpu_kernel_info(code);

	kernel->n_registers = info->n_registers;
	kernel->shared_size = info->static_shared_size;
	kernel->local_size = info->local_size;
	kernel->max_threads = info->max_threads;
}

static int examine_kernel(
	struct examination *x, struct report_kernel *kernel, uint32_t function)
{
	struct softgpu_message message = { "" };
	struct softgpu_kernel *code = NULL;
	const char *reason;
	uint32_t line;
	int r;

	for (;;) {
		r = lower_kernel(&code, x->module, function, x->addresses, &x->cache,
			x->handlers, &message);
		if (!r)
			break;
		if (r == SOFTGPU_ERROR_OUT_OF_MEMORY)
			return vgpu_error_origin(-ENOMEM);
		if (!kernel->n_refusals)
			kernel->result = r;
		line = line_of(message.text, &reason);
		r = note_refusal(kernel, line, reason);
		if (r)
			return vgpu_error_trace(r);
		if (kernel->n_refusals == REPORT_REFUSALS_MAX || !line ||
			!silence(x->module, line))
			return 0;
	}
	note_sizes(kernel, code);
	kernel->uses_barriers = has_barriers(x->module->functions[function].body);
	lower_kernel_free(code);
	return 0;
}

/* Changed instructions are another kernel's, too: each function is parsed anew. */
static int examine_kernels(struct examination *x)
{
	struct report *report = x->report;
	struct ptx_module *module = x->module;
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++) {
		const struct ptx_function *function = &module->functions[i];
		struct report_kernel *kernel = &report->kernels[report->n_kernels];

		if (!function->is_entry || !function->is_defined)
			continue;
		*kernel = (struct report_kernel){
			.name = function->name,
			.params_size = function->params_size,
		};
		report->n_kernels++;
		r = examine_kernel(x, kernel, i);
		report->n_running += !r && !kernel->result;
		if (kernel->n_refusals) {
			lower_cache_deinit(&x->cache);
			x->cache = (struct lower_cache){};
			for (uint32_t k = 0; k < module->n_functions; k++)
				ptx_function_drop(module, k);
		}
	}
	return r < 0 ? vgpu_error_trace(r) : 0;
}

static void note_variables(struct report *report, const struct ptx_module *module)
{
	for (uint32_t i = 0; i < module->n_variables; i++) {
		const struct ptx_variable *v = &module->variables[i];

		if (v->space == PTX_SPACE_CONST)
			report->const_size += v->size;
		else if (v->space == PTX_SPACE_GLOBAL && v->linkage != PTX_LINKAGE_EXTERN)
			report->global_size += v->size;
	}
}

/* Text that is no PTX is refused when it is loaded, whichever function it is in. */
static int check_bodies(struct report *report)
{
	struct ptx_module *module = report->module;
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++) {
		if (!module->functions[i].is_defined)
			continue;
		r = ptx_function_parse(module, i, &report->error);
		ptx_function_drop(module, i);
	}
	return r;
}

static int examine(struct report *report)
{
	struct ptx_module *module = report->module;
	struct examination x = { .report = report, .module = module };
	const char *name;
	int r;

	report->version = module->version;
	report->target = module->target;
	report->target_kind = module->target_kind;
	note_variables(report, module);
	r = check_bodies(report);
	if (r > 0)
		report->result = ptx_result(r);
	if (r)
		return r < 0 ? vgpu_error_trace(r) : 0;
	report->kernels =
		calloc((size_t)module->n_functions + 1, sizeof(*report->kernels));
	x.addresses = calloc((size_t)module->n_variables + 1, sizeof(*x.addresses));
	x.handlers = softgpu_handlers_for(false, &name);
	r = report->kernels && x.addresses ? examine_kernels(&x)
					   : vgpu_error_origin(-ENOMEM);
	lower_cache_deinit(&x.cache);
	free(x.addresses);
	return r;
}

int report_new(struct report **reportp, const char *text, size_t size, unsigned int cc)
{
	_vgpu_cleanup_(report_freep) struct report *report = calloc(1, sizeof(*report));
	int r;

	if (!report)
		return vgpu_error_origin(-ENOMEM);
	r = ptx_module_new(&report->module, text, size, cc, &report->error);
	if (r > 0)
		report->result = ptx_result(r);
	else if (!r)
		r = examine(report);
	if (r < 0)
		return vgpu_error_trace(r);
	*reportp = report;
	report = NULL;
	return 0;
}
