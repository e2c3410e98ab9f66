/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event handles
 *
 * Per index its generation: an index is used again, longest unused
 * first, with the next generation, so a stale handle is told from a live one.
 */

#include <stdlib.h>

#include "vgpu/handle.h"

#include "event.h"
#include "lock.h"

#define EVENTS_MAX (VGPU_HANDLE_INDEX_MAX + 1)
#define EVENTS_FIRST 1024u

struct event_slot {
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
	bool is_live;
};

static struct {
	struct shim_lock lock;
	struct event_slot *slots;
	uint32_t n;
	uint32_t max;
	/* Queue of free indices, each + 1; 0 ends it. */
	uint32_t first_free;
	uint32_t last_free;
} events;

static bool add_slot(uint32_t *indexp)
{
	if (events.n == events.max) {
		uint32_t max = events.max ? events.max * 2 : EVENTS_FIRST;
		struct event_slot *slots;

		if (max > EVENTS_MAX)
			return false;
		slots = realloc(events.slots, max * sizeof(*slots));
		if (!slots)
			return false;
		events.slots = slots;
		events.max = max;
	}
	*indexp = events.n++;
	events.slots[*indexp] = (struct event_slot){};
	return true;
}

CUevent shim_event_new(void)
{
	struct event_slot *slot;
	uint32_t index;

	SHIM_LOCKED(&events.lock);
	if (events.first_free) {
		index = events.first_free - 1;
		events.first_free = events.slots[index].next_free;
		if (!events.first_free)
			events.last_free = 0;
	} else if (!add_slot(&index)) {
		return NULL;
	}
	slot = &events.slots[index];
	slot->generation++;
	slot->next_free = 0;
	slot->is_live = true;
	return (CUevent)(uintptr_t)vgpu_handle_make(
		VGPU_HANDLE_EVENT, index, slot->generation);
}

static struct event_slot *find(CUevent event)
{
	uint64_t number = (uint64_t)(uintptr_t)event;
	uint32_t index = vgpu_handle_index(number);

	if (vgpu_handle_kind(number) != VGPU_HANDLE_EVENT || index >= events.n ||
		!events.slots[index].is_live ||
		events.slots[index].generation != vgpu_handle_generation(number))
		return NULL;
	return &events.slots[index];
}

bool shim_event_exists(CUevent event)
{
	SHIM_LOCKED(&events.lock);
	return find(event);
}

bool shim_event_free(CUevent event)
{
	struct event_slot *slot;
	uint32_t link;

	SHIM_LOCKED(&events.lock);
	slot = find(event);
	if (!slot)
		return false;
	slot->is_live = false;
	link = (uint32_t)(slot - events.slots) + 1;
	if (events.last_free)
		events.slots[events.last_free - 1].next_free = link;
	else
		events.first_free = link;
	events.last_free = link;
	return true;
}
