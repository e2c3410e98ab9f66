/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words: memory of the guest that the device writes when work is complete
 *
 * The write is queued to a stream after the work, so the guest sees the completion of the
 * work without a message. If the device cannot write words, a host function of the driver
 * does.
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct session;

/* Finds out whether the device can write words. */
void words_init(struct session *session);

/*
 * Makes the device write a word when all earlier work of the stream is complete. The
 * context must be current.
 */
CUresult word_write(
	struct session *session, CUstream stream, uint32_t word, uint64_t value);

/* Writes a word at once, for work that was never submitted. */
void word_write_now(struct session *session, uint32_t word, uint64_t value);

/* The same for the word of a record of an event, see ring-layout.h. */
CUresult word_write_record(struct session *session, CUstream stream, uint64_t record);
void word_write_record_now(struct session *session, uint64_t record);
