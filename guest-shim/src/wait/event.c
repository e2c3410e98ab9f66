/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events
 *
 * They are in a table by the index of their handle, read without a lock: an entry, once
 * allocated, stays. The index that has been free longest is reused first, with the next
 * generation, so a stale handle differs from a live one.
 *
 * Polling is answered from memory, but now and then the host is asked all the same: the
 * driver reports a fault only to calls, and a host that is gone is noticed only by calls.
 */

#include <stdlib.h>
#include <time.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"

#include "process/call.h"
#include "process/context.h"
#include "process/print.h"
#include "process/words.h"
#include "wait/event.h"
#include "wait/record.h"
#include "wire/lock.h"
#include "wire/table.h"
#include "wire/wait.h"

#define EVENTS_MAX (VGPU_HANDLE_INDEX_MAX + 1)

static struct {
	struct shim_lock lock;
	struct shim_table table;
	uint32_t n;
	/* Queue of free indices, each + 1; 0 ends it. */
	uint32_t first_free;
	uint32_t last_free;
} events;

static struct shim_event *at(uint32_t index)
{
	return shim_table_get(&events.table, index);
}

static bool add_entry(uint32_t *indexp)
{
	struct shim_event *event;

	if (events.n == EVENTS_MAX)
		return false;
	event = calloc(1, sizeof(*event));
	if (!event)
		return false;
	if (!shim_table_set(&events.table, events.n, event)) {
		free(event);
		return false;
	}
	*indexp = events.n++;
	return true;
}

CUevent shim_event_new(
	struct shim_context *context, unsigned int flags, struct shim_event_share *share)
{
	struct shim_event *event;
	uint32_t index;
	uint64_t handle;

	SHIM_LOCKED(&events.lock);
	if (events.first_free) {
		index = events.first_free - 1;
		events.first_free = at(index)->next_free;
		if (!events.first_free)
			events.last_free = 0;
	} else if (!add_entry(&index)) {
		return NULL;
	}
	event = at(index);
	event->generation++;
	event->next_free = 0;
	event->context = context;
	event->context_epoch = context ? context->epoch : 0;
	event->flags = flags;
	event->share = share;
	shim_event_forget_order(event);
	__atomic_store_n(&event->record, SHIM_RECORD_NONE, __ATOMIC_RELAXED);
	__atomic_store_n(&event->is_of_graph, false, __ATOMIC_RELAXED);
	__atomic_store_n(&event->is_asked_for, !!(flags & CU_EVENT_DISABLE_TIMING),
		__ATOMIC_RELAXED);
	handle = vgpu_handle_make(VGPU_HANDLE_EVENT, index, event->generation);
	/* Partner: the load in shim_event_find(). */
	__atomic_store_n(&event->handle, handle, __ATOMIC_RELEASE);
	return (CUevent)(uintptr_t)handle;
}

struct shim_event *shim_event_find(CUevent handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct shim_event *event;

	if (vgpu_handle_kind(number) != VGPU_HANDLE_EVENT)
		return NULL;
	event = at(vgpu_handle_index(number));
	return event && __atomic_load_n(&event->handle, __ATOMIC_ACQUIRE) == number
		       ? event
		       : NULL;
}

bool shim_event_free(CUevent handle)
{
	struct shim_event *event;
	uint32_t link;

	SHIM_LOCKED(&events.lock);
	event = shim_event_find(handle);
	if (!event)
		return false;
	__atomic_store_n(&event->handle, 0, __ATOMIC_RELEASE);
	link = vgpu_handle_index((uint64_t)(uintptr_t)handle) + 1;
	if (events.last_free)
		at(events.last_free - 1)->next_free = link;
	else
		events.first_free = link;
	events.last_free = link;
	return true;
}

/* A number for a record without a word, unique per event. */
static uint64_t wordless(struct shim_event *event)
{
	uint64_t n = __atomic_add_fetch(&event->n_wordless, 1, __ATOMIC_RELAXED);

	return n << VGPU_RECORD_SLOT_BITS | VGPU_RECORDS_MAX;
}

uint64_t shim_event_record_begin(struct shim_event *event)
{
	uint64_t record = SHIM_RECORD_NONE;

	if (shim_words_answer() &&
		__atomic_load_n(&event->is_asked_for, __ATOMIC_RELAXED) &&
		!__atomic_load_n(&event->is_of_graph, __ATOMIC_RELAXED))
		record = shim_record_take(event->context);
	return record ? record : wordless(event);
}

void shim_event_record_done(struct shim_event *event, uint64_t record)
{
	/* Of two threads that record at once either may be last, here as on the ring. */
	__atomic_store_n(&event->record, record, __ATOMIC_RELEASE);
}

void shim_event_note_elsewhere(CUevent handle)
{
	struct shim_event *event = shim_event_find(handle);

	if (!event)
		return;
	shim_event_forget_order(event);
	shim_event_record_done(event, wordless(event));
}

void shim_event_note_graph(CUevent handle)
{
	struct shim_event *event = shim_event_find(handle);

	if (event)
		__atomic_store_n(&event->is_of_graph, true, __ATOMIC_RELAXED);
}

void shim_event_note_over(struct shim_event *event, uint64_t record)
{
	/* Unless it was recorded again meanwhile. */
	__atomic_compare_exchange_n(&event->record, &record, SHIM_RECORD_NONE, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

uint32_t shim_event_forget_order(struct shim_event *event)
{
	SHIM_LOCKED(&event->order_lock);
	event->order.n = 0;
	return ++event->n_records;
}

void shim_event_set_order(
	struct shim_event *event, uint32_t n_records, const struct shim_order *order)
{
	SHIM_LOCKED(&event->order_lock);
	if (event->n_records == n_records)
		event->order = *order;
}

bool shim_event_get_order(
	struct shim_event *event, uint32_t *n_recordsp, struct shim_order *orderp)
{
	SHIM_LOCKED(&event->order_lock);
	*n_recordsp = event->n_records;
	*orderp = event->order;
	return event->order.n;
}

bool shim_event_has_order(struct shim_event *event, uint32_t n_records)
{
	SHIM_LOCKED(&event->order_lock);
	return event->n_records == n_records;
}

/* Checks a program's event handle as the host would. */
static CUresult find_for_wait(
	CUevent handle, struct shim_thread **threadp, struct shim_event **eventp)
{
	*threadp = shim_thread_get();
	if (!*threadp)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (__atomic_load_n(&shim_channel.dead, __ATOMIC_RELAXED))
		return SHIM_ERROR_HOST_GONE;
	*eventp = shim_event_find(handle);
	return *eventp ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Whether memory has the state of a record: not if its context has a fault or ended. */
static bool has_own_word(const struct shim_event *event, uint64_t record)
{
	return shim_words_answer() && event->context &&
	       !__atomic_load_n(&event->is_of_graph, __ATOMIC_RELAXED) &&
	       event->context_epoch == event->context->epoch &&
	       !shim_context_fault(event->context) &&
	       (!record || shim_record_has_word(record));
}

static CUresult ask(struct shim_event *event, uint64_t record)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventQuery);
	Vgpu__CuEventQueryRequest request = VGPU__CU_EVENT_QUERY_REQUEST__INIT;
	CUresult result;

	__atomic_store_n(&event->is_asked_for, true, __ATOMIC_RELAXED);
	request.h_event = event->handle;
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_event_query_reply__descriptor, NULL);
	if (result == CUDA_SUCCESS)
		shim_event_note_over(event, record);
	return result;
}

CUresult shim_event_query(CUevent handle)
{
	struct shim_thread *thread;
	struct shim_event *event;
	uint64_t record;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_for_wait(handle, &thread, &event);
	if (result != CUDA_SUCCESS)
		return result;
	record = __atomic_load_n(&event->record, __ATOMIC_ACQUIRE);
	if (!has_own_word(event, record))
		return ask(event, record);
	if (!record || shim_record_is_over(record))
		return CUDA_SUCCESS;
	return shim_wait_take_poll(&thread->pace) ? CUDA_ERROR_NOT_READY
						  : ask(event, record);
}

/* @has_spun: whether the caller has, so that there is no sense in doing it again */
static CUresult park(struct shim_event *event, uint64_t record, bool has_spun)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuEventSynchronize);
	Vgpu__CuEventSynchronizeRequest request =
		VGPU__CU_EVENT_SYNCHRONIZE_REQUEST__INIT;
	CUresult result;

	__atomic_store_n(&event->is_asked_for, true, __ATOMIC_RELAXED);
	call.parks = has_spun;
	request.h_event = event->handle;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_event_synchronize_reply__descriptor, NULL);
	if (result == CUDA_SUCCESS)
		shim_event_note_over(event, record);
	return result;
}

CUresult shim_event_synchronize(CUevent handle)
{
	struct shim_thread *thread;
	struct shim_event *event;
	uint64_t record;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_for_wait(handle, &thread, &event);
	if (result != CUDA_SUCCESS)
		return result;
	record = __atomic_load_n(&event->record, __ATOMIC_ACQUIRE);
	if (!has_own_word(event, record) || shim_print_is_owed(&shim_channel))
		return park(event, record, false);
	if (!record)
		return CUDA_SUCCESS;
	if (shim_wait_word(&thread->pace, shim_record_word(record), record,
		    event->flags & CU_EVENT_BLOCKING_SYNC ||
			    shim_context_blocks(event->context)))
		return CUDA_SUCCESS;
	return park(event, record, true);
}
