/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing: whether code that a guest loads may print
 */

#include "worker/base/session.h"
#include "worker/code/image-check.h"
#include "worker/code/printing.h"

bool printing_note(struct session *session, const uint8_t *bytes, size_t size)
{
	uint32_t *may_print = &session_control(session)->may_print;

	if (__atomic_load_n(may_print, __ATOMIC_RELAXED))
		return false;
	if (!image_may_print(bytes, size))
		return true;
	/* Partner: the guest's loads, after the reply to this call. */
	__atomic_store_n(may_print, 1, __ATOMIC_RELEASE);
	return false;
}
