/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of events: the words that show completion
 *
 * Each record of an event takes a word of its own, to which the device writes the
 * record's number when the work before it is complete. The word is reused only after that
 * write has arrived, so no write of an earlier record is ever mistaken for that of a
 * later one; whether the event still exists does not matter.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

#include "process/shim.h"

struct shim_context;

/* No record: an event that was never recorded, or is known to be over. */
#define SHIM_RECORD_NONE 0ull

/* Takes a word for a record in a context. Return: the record's number, or
 * SHIM_RECORD_NONE if no word is free. */
uint64_t shim_record_take(struct shim_context *context);

/* Returns the word of a record that was not sent to the host. */
void shim_record_give_unused(uint64_t record);

/* All work of a context has ended: no record of it will be written any more. */
void shim_record_drop_context(const struct shim_context *context);

/* Whether a record has a word; if not, the host has to be asked. */
static inline bool shim_record_has_word(uint64_t record)
{
	return vgpu_record_slot(record) < VGPU_RECORDS_MAX;
}

static inline uint64_t *shim_record_word(uint64_t record)
{
	return &shim_channel.records[vgpu_record_slot(record)];
}

/* Whether the device has written it. */
static inline bool shim_record_is_over(uint64_t record)
{
	/* Partner: the device, or the worker on its behalf, after the work in front. */
	return __atomic_load_n(shim_record_word(record), __ATOMIC_ACQUIRE) >= record;
}
