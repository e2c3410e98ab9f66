/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words: memory of the guest that the device writes when work is done
 *
 * A write is put into a stream behind the work, so the guest sees the end of the work
 * without a message. Where the device cannot write them, a host function of the driver
 * does.
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct session;

/* Learns whether the device can write words. */
void words_init(struct session *session);

/*
 * Makes the device write a word when the work in front of it in the stream is done.
 * The context is current.
 */
CUresult word_write(
	struct session *session, CUstream stream, uint32_t word, uint64_t value);

/* Writes a word here and now, for work that was never begun. */
void word_write_now(struct session *session, uint32_t word, uint64_t value);

/* The same for the word of a record of an event, see ring-layout.h. */
CUresult word_write_record(struct session *session, CUstream stream, uint64_t record);
void word_write_record_now(struct session *session, uint64_t record);
