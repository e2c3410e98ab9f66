/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of events: threads that take words and a device that writes them
 */

#include <pthread.h>

#include "test.h"

#include "wait/record.h"

#define THREADS 4
#define ROUNDS 20000
/* A thread's words that the device has not written yet. */
#define PENDING 64

struct shim_channel shim_channel;

static uint64_t words[VGPU_RECORDS_MAX];
static uint32_t holders[VGPU_RECORDS_MAX];
/* Plain memory that a word's owner writes: each reads what the previous one wrote. */
static uint64_t left[VGPU_RECORDS_MAX];

static void hold(uint64_t record)
{
	uint32_t slot = vgpu_record_slot(record);

	check_eq(__atomic_fetch_add(&holders[slot], 1, __ATOMIC_RELAXED), 0);
	check(left[slot] < record);
	left[slot] = record;
}

static void land(uint64_t record)
{
	uint32_t slot = vgpu_record_slot(record);

	__atomic_fetch_sub(&holders[slot], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&words[slot], record, __ATOMIC_RELEASE);
}

static void *take_and_land(void *context)
{
	uint64_t pending[PENDING] = {};

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t *recordp = &pending[i % PENDING];

		if (*recordp)
			land(*recordp);
		*recordp = shim_record_take(context);
		check(*recordp);
		hold(*recordp);
	}
	for (int i = 0; i < PENDING; i++)
		land(pending[i]);
	return NULL;
}

TEST(a_word_is_one_thread_s_at_a_time_and_shows_what_the_last_one_did)
{
	pthread_t threads[THREADS];
	int contexts[THREADS];

	shim_channel.records = words;
	for (int i = 0; i < THREADS; i++)
		check_eq(pthread_create(&threads[i], NULL, take_and_land, &contexts[i]),
			0);
	for (int i = 0; i < THREADS; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
}

TEST(a_free_word_is_found_after_many_used_ones)
{
	uint64_t records[VGPU_RECORDS_MAX];
	int context;

	shim_channel.records = words;
	for (uint32_t i = 0; i < VGPU_RECORDS_MAX; i++)
		check((records[i] = shim_record_take((void *)&context)));
	check_eq(shim_record_take((void *)&context), SHIM_RECORD_NONE);
	/* The half that is taken first next stays as it is. */
	for (uint32_t i = VGPU_RECORDS_MAX / 2; i < VGPU_RECORDS_MAX; i++)
		land(records[i]);
	for (uint32_t i = 0; i < VGPU_RECORDS_MAX / 4; i++)
		check(shim_record_take((void *)&context));
}
