/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the compiler, for the driver
 */

#include <stdlib.h>
#include <string.h>

#include "worker/base/call.h"
#include "worker/code/images.h"
#include "worker/code/jit.h"
#include "worker/memory/arena.h"

/* Options whose value is a number; others point into the guest's memory. */
static bool is_plain(uint32_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_WALL_TIME:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_NEW_SM3X_OPT:
	case CU_JIT_FAST_COMPILE:
	case CU_JIT_LTO:
	case CU_JIT_FTZ:
	case CU_JIT_PREC_DIV:
	case CU_JIT_PREC_SQRT:
	case CU_JIT_FMA:
	case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
	case CU_JIT_POSITION_INDEPENDENT_CODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
	case CU_JIT_SPLIT_COMPILE:
		return true;
	default:
		return false;
	}
}

static void add_option(struct jit *jit, CUjit_option option, void *value)
{
	jit->options[jit->n_options] = option;
	jit->values[jit->n_options++] = value;
}

static void add_log(struct jit *jit, CUjit_option buffer, CUjit_option size, char *log,
	uint32_t log_size)
{
	if (!log_size)
		return;
	add_option(jit, buffer, log);
	add_option(jit, size, (void *)(uintptr_t)log_size);
}

CUresult jit_init(struct jit *jit, struct session *session, const struct vgpu_load *load)
{
	uint64_t size = (uint64_t)load->info_size + load->error_size;

	memset(jit, 0, sizeof(*jit));
	if (load->n_options > VGPU_LOAD_OPTIONS_MAX ||
		load->info_size > VGPU_LOAD_LOG_MAX ||
		load->error_size > VGPU_LOAD_LOG_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < load->n_options; i++) {
		if (!is_plain(load->options[i].option))
			return CUDA_ERROR_NOT_SUPPORTED;
		add_option(jit, load->options[i].option,
			(void *)(uintptr_t)load->options[i].value);
	}
	if (!size)
		return CUDA_SUCCESS;
	if (!images_charge(session, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	jit->logs = calloc(1, size);
	if (!jit->logs) {
		images_refund(session, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	jit->info_size = load->info_size;
	jit->error_size = load->error_size;
	add_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, jit->logs,
		jit->info_size);
	add_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		jit->logs + jit->info_size, jit->error_size);
	return CUDA_SUCCESS;
}

void jit_add_error_log(struct jit *jit, char *log, uint32_t size)
{
	add_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, log,
		size);
}

void jit_deinit(struct jit *jit, struct session *session)
{
	if (!jit->logs)
		return;
	free(jit->logs);
	jit->logs = NULL;
	images_refund(session, (uint64_t)jit->info_size + jit->error_size);
}

static void report_value(
	const struct jit *jit, CUjit_option option, void *to, size_t size)
{
	for (unsigned int i = 0; i < jit->n_options; i++)
		if (jit->options[i] == option)
			memcpy(to, &jit->values[i], size);
}

void jit_report(struct call *call, const struct jit *jit, const struct vgpu_load *load,
	struct vgpu_load_result *result)
{
	uint64_t size = (uint64_t)jit->info_size + jit->error_size;

	*result = (struct vgpu_load_result){};
	report_value(jit, CU_JIT_WALL_TIME, &result->wall_time, sizeof(float));
	report_value(jit, CU_JIT_THREADS_PER_BLOCK, &result->threads_per_block,
		sizeof(uint32_t));
	if (!size || load->info_size != jit->info_size ||
		load->error_size != jit->error_size ||
		!arena_covers(call->session, load->log_address, size))
		return;
	memcpy((void *)(uintptr_t)load->log_address, jit->logs, size);
	result->info_size = strnlen(jit->logs, jit->info_size);
	result->error_size = strnlen(jit->logs + jit->info_size, jit->error_size);
}
