/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quarantine: freed memory that is not used again for a while
 */

#include "mem/memory.h"

static void give(
	struct memory *memory, struct part *part, uint64_t address, uint64_t size)
{
	struct physical *shared = part_give(part, address, size);

	if (shared)
		physical_unref_locked(memory, shared);
}

static void give_oldest(struct memory *memory)
{
	struct quarantine *q = &memory->quarantine;
	const struct quarantine_entry *entry = &q->entries[q->first];

	give(memory, entry->part, entry->address, entry->size);
	q->size -= entry->size;
	q->first = (q->first + 1) % QUARANTINE_MAX;
	q->n--;
}

void quarantine_put(
	struct memory *memory, struct part *part, uint64_t address, uint64_t size)
{
	struct quarantine *q = &memory->quarantine;

	if (size > QUARANTINE_SIZE_MAX) {
		give(memory, part, address, size);
		return;
	}
	while (q->n == QUARANTINE_MAX || q->size > QUARANTINE_SIZE_MAX - size)
		give_oldest(memory);
	q->entries[(q->first + q->n) % QUARANTINE_MAX] =
		(struct quarantine_entry){ part, address, size };
	q->n++;
	q->size += size;
}

bool quarantine_flush(struct memory *memory)
{
	bool any = memory->quarantine.n;

	while (memory->quarantine.n)
		give_oldest(memory);
	return any;
}
