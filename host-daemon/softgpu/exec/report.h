/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Report: the description of a fault, or of a finding
 */

#include "exec/warp.h"

/* Of a block as a whole. */
void softgpu_report_block(struct softgpu_fault *faultp, int code,
	const struct block *block, const char *text);

/* Of the instruction and the lane that w->at and the members for a fault name. */
void softgpu_report_fault(
	struct softgpu_fault *faultp, const struct block *block, const struct warp *w);

/* Appends to the sentence; what does not fit is left out. */
__attribute__((__format__(__printf__, 2, 3))) void softgpu_report_add(
	struct softgpu_fault *faultp, const char *format, ...);
