/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of events: the words that show completion
 *
 * Words are taken in turn, so the next one is the one that was taken longest ago, and
 * most likely landed. Only as many take part as were ever needed, which keeps them in
 * the cache. No lock: the thread that swaps a word's number for the next one owns it.
 */

#include "wait/record.h"

#define RECORDS_FIRST 1024u
/* Words looked at in a row before more are made to take part, or where all do, before it
 * is gone on elsewhere: work that takes long leaves its words pending side by side. After
 * so many leaps none is said to be free; the host is asked then, which costs no more. */
#define LOOKS 32u
#define LEAPS 16u
/* Words from the one that is taken to the one whose line is asked for meanwhile: the
 * other side wrote it, and waiting for it is half of what a record costs. Two lines, so
 * that several are on their way. */
#define AHEAD 16u
#define STEP (1ull << VGPU_RECORD_SLOT_BITS)

/* All atomic. */
struct slot {
	uint64_t last; /* the number that was taken last */
	const struct shim_context *context;
};

static struct slot slots[VGPU_RECORDS_MAX];
static uint32_t n_slots = RECORDS_FIRST;
static uint32_t next_slot;

static bool try_take(
	uint32_t number, const struct shim_context *context, uint64_t *recordp)
{
	struct slot *slot = &slots[number];
	uint64_t last = __atomic_load_n(&slot->last, __ATOMIC_ACQUIRE);

	if (last && !shim_record_is_over(last))
		return false;
	*recordp = last ? last + STEP : STEP + number;
	if (!__atomic_compare_exchange_n(&slot->last, &last, *recordp, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&slot->context, context, __ATOMIC_RELEASE);
	return true;
}

/* Lets more words take part, beginning with them. Return: false where all do. */
static bool grow(uint32_t n)
{
	if (n == VGPU_RECORDS_MAX)
		return false;
	if (__atomic_compare_exchange_n(
		    &n_slots, &n, n * 2, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&next_slot, n, __ATOMIC_RELAXED);
	return true;
}

static bool look(uint32_t n, const struct shim_context *context, uint64_t *recordp)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t turn = __atomic_fetch_add(&next_slot, 1, __ATOMIC_RELAXED);

		__builtin_prefetch(shim_record_word((turn + AHEAD) % n));
		if (try_take(turn % n, context, recordp))
			return true;
	}
	return false;
}

uint64_t shim_record_take(struct shim_context *context)
{
	uint64_t record;
	uint32_t n;

	do {
		n = __atomic_load_n(&n_slots, __ATOMIC_RELAXED);
		if (look(n, context, &record))
			return record;
	} while (grow(n));
	for (uint32_t i = 0; i < LEAPS; i++) {
		__atomic_fetch_add(&next_slot, n / LEAPS, __ATOMIC_RELAXED);
		if (look(n, context, &record))
			return record;
	}
	return SHIM_RECORD_NONE;
}

static void land(uint64_t record)
{
	/* Partner: the acquire load in shim_record_is_over(). */
	__atomic_store_n(shim_record_word(record), record, __ATOMIC_RELEASE);
}

void shim_record_give_unused(uint64_t record)
{
	if (record && shim_record_has_word(record))
		land(record);
}

void shim_record_drop_context(const struct shim_context *context)
{
	uint32_t n = __atomic_load_n(&n_slots, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t last = __atomic_load_n(&slots[i].last, __ATOMIC_ACQUIRE);

		if (last && !shim_record_is_over(last) &&
			__atomic_load_n(&slots[i].context, __ATOMIC_ACQUIRE) == context)
			land(last);
	}
}
