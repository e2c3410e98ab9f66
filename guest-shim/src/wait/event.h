/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events: their handles are allocated here, so that creating one needs no reply
 *
 * An event remembers its last record. If that has a word (record.h), a query reads
 * memory; else the host is asked. Records get words if the event has no timing, as
 * programs create events for queries, or if one of its records was queried before.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "process/order.h"
#include "wire/lock.h"

struct shim_context;
struct shim_event_share;

struct shim_event {
	/* Atomic: 0 while there is no such event. */
	uint64_t handle;

	/* Constant while the event lives. */
	struct shim_context *context;
	uint32_t context_epoch; /* the context's when the event was created */
	unsigned int flags;
	/* Of an event that other processes may use, which has no records here
	 * (entry/event-share.h). */
	struct shim_event_share *share;

	/* Atomic: the last record, and whether the next one gets a word. */
	uint64_t record;
	bool is_asked_for;
	/* Atomic: a graph records it, in launches that do not name it. */
	bool is_of_graph;
	/* Atomic: counts records without a word, which are numbered as well. */
	uint32_t n_wordless;

	/* What was in front of the last record, if it is known: see entry/event-order.h.
	 */
	struct shim_lock order_lock;
	uint32_t n_records;
	struct shim_order order;

	/* Under the lock of events. */
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
};

/*
 * Makes an event.
 *
 * @share:	of an event that other processes may use, or NULL
 *
 * Return: NULL without memory, or when there are 2^20 events.
 */
CUevent shim_event_new(
	struct shim_context *context, unsigned int flags, struct shim_event_share *share);

/* Gives an event up. Return: false where there is no such event. */
bool shim_event_free(CUevent handle);

/* Returns: NULL where there is no such event. Takes no lock. */
struct shim_event *shim_event_find(CUevent handle);

static inline bool shim_event_exists(CUevent handle)
{
	return shim_event_find(handle);
}

/* Returns: the number of a new record of an event, see record.h. */
uint64_t shim_event_record_begin(struct shim_event *event);

/* The record has been sent. */
void shim_event_record_done(struct shim_event *event, uint64_t record);

/* The event was recorded by other means than cuEventRecord outside capture: in capture,
 * by a launch, for a whole context. The host is asked until its next record. */
void shim_event_note_elsewhere(CUevent handle);

/* A node of a graph records the event: from now on the host is asked. */
void shim_event_note_graph(CUevent handle);

/* What was in front of the last record is unknown from now on. Return: a number of this
 * state, until it is forgotten the next time. */
uint32_t shim_event_forget_order(struct shim_event *event);

/* Sets it unless it was forgotten again. */
void shim_event_set_order(
	struct shim_event *event, uint32_t n_records, const struct shim_order *order);

/* Reads it. Return: whether anything is known. */
bool shim_event_get_order(
	struct shim_event *event, uint32_t *n_recordsp, struct shim_order *orderp);

/* Returns: whether it is still of that number. */
bool shim_event_has_order(struct shim_event *event, uint32_t n_records);

/* That record of the event is over, says the host. */
void shim_event_note_over(struct shim_event *event, uint64_t record);

/* Asks whether the last record is over, or waits for it. */
CUresult shim_event_query(CUevent handle);
CUresult shim_event_synchronize(CUevent handle);
