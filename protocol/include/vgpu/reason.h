/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons: why a call failed, as far as the host knows
 *
 * A CUresult rarely explains a failure. Where the host knows more, the reply's slot has
 * the kind of reason, and the guest may fetch a sentence by vgpuReasonFetch: it does so
 * only if the sentence is going to be logged, so that failing calls cost nothing more.
 * The sentence consists of printable characters; each side ensures that for itself.
 */

#include <stddef.h>
#include <stdint.h>

enum vgpu_reply_reason {
	VGPU_REPLY_REASON_NONE,
	VGPU_REPLY_REASON_LOAD,	 /* code cannot be loaded, linked or run */
	VGPU_REPLY_REASON_LIMIT, /* the device or the VM has no more of something */
	_VGPU_REPLY_REASON_N,
};

/* Of the sentence, without a final NUL. */
#define VGPU_REASON_TEXT_MAX 512u

/* Makes text printable: replaces line breaks by blanks, and other characters that are not
 * printable ASCII by question marks. Return: its size without trailing blanks. */
static inline size_t vgpu_reason_clean(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t')
			text[i] = ' ';
		else if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	}
	while (size && text[size - 1] == ' ')
		size--;
	return size;
}
