/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report: the description of a fault, or of a finding
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exec/report.h"
#include "ptx/place.h"

void softgpu_report_block(struct softgpu_fault *faultp, int code,
	const struct block *block, const char *text)
{
	*faultp = (struct softgpu_fault){ .code = code,
		.kernel = block->kernel->info.name };
	memcpy(faultp->block, block->ctaid, sizeof(faultp->block));
	snprintf(faultp->text, sizeof(faultp->text), "%s in %s, block (%u, %u, %u)", text,
		faultp->kernel, block->ctaid[0], block->ctaid[1], block->ctaid[2]);
}

void softgpu_report_add(struct softgpu_fault *faultp, const char *format, ...)
{
	size_t n = strlen(faultp->text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(faultp->text + n, sizeof(faultp->text) - n, format, ap);
	va_end(ap);
}

/* The place in the program's source, and what there is near the address. */
static void describe_surroundings(
	struct softgpu_fault *faultp, const struct block *block, bool has_address)
{
	const struct softgpu_space *space = &block->space;
	char text[192];

	if (ptx_place_find(block->kernel->text, faultp->line, text, sizeof(text)))
		softgpu_report_add(faultp, ", %s", text);
	if (has_address && faultp->address < SOFTGPU_GLOBAL_LOWEST &&
		ptx_line_has(block->kernel->text, faultp->line, ".shared"))
		softgpu_report_add(faultp,
			"; shared memory has %u bytes, %u of them dynamic",
			block->kernel->info.static_shared_size +
				block->launch->dynamic_shared_size,
			block->launch->dynamic_shared_size);
	if (!has_address || !space->describe || faultp->address < SOFTGPU_GLOBAL_LOWEST)
		return;
	space->describe(space->data, faultp->address, text, sizeof(text));
	softgpu_report_add(faultp, "; the address is %s", text);
}

/* An access to shared memory that has no place may be one to a block that is missing. */
static const char *text_of(const struct block *block, const struct warp *w)
{
	uint64_t off = w->fault_address - SOFTGPU_GENERIC_SHARED;

	return w->fault_code == SOFTGPU_ERROR_ILLEGAL_ADDRESS &&
			       off < SOFTGPU_GENERIC_RANGE &&
			       off / SOFTGPU_CLUSTER_STRIDE > block->cluster->n_blocks
		       ? "shared memory of a block that the cluster does not have"
		       : w->fault_text;
}

void softgpu_report_fault(
	struct softgpu_fault *faultp, const struct block *block, const struct warp *w)
{
	const char *sentence = text_of(block, w);
	const uint32_t *dim = block->launch->block;
	uint32_t thread = w->first_thread + w->fault_lane;

	softgpu_report_block(faultp, w->fault_code, block, sentence);
	faultp->thread[0] = thread % dim[0];
	faultp->thread[1] = thread / dim[0] % dim[1];
	faultp->thread[2] = thread / dim[0] / dim[1];
	faultp->line = block->kernel->lines[w->at - block->kernel->code];
	faultp->address = w->fault_address;
	snprintf(faultp->text, sizeof(faultp->text),
		"%s (0x%llx) in %.48s, block (%u, %u, %u), thread (%u, %u, %u), line %u",
		sentence, (unsigned long long)w->fault_address, faultp->kernel,
		block->ctaid[0], block->ctaid[1], block->ctaid[2], faultp->thread[0],
		faultp->thread[1], faultp->thread[2], faultp->line);
	describe_surroundings(faultp, block,
		w->fault_code == SOFTGPU_ERROR_ILLEGAL_ADDRESS ||
			w->fault_code == SOFTGPU_ERROR_MISALIGNED_ADDRESS);
}
