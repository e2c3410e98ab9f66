/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, against a device that is the test itself
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "test.h"
#include "vgpu/ring-layout.h"

#include "process/call.h"
#include "process/context.h"
#include "process/thread.h"
#include "wait/event.h"
#include "wait/record.h"

static struct shim_context *context, *other;

static uint64_t not_silent(struct shim_transport *transport)
{
	return 0;
}

/* A channel without a host: whatever travels is never answered. */
static void begin(void)
{
	static const struct shim_transport_ops ops = { .silence_ns = not_silent };
	static struct vgpu_channel_entry entry = { .state = VGPU_CHANNEL_OPEN };
	static const uint32_t ready = SHIM_READY;
	uint8_t *area = mmap(NULL, VGPU_AREA_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(area != MAP_FAILED);
	shim_channel.transport.ops = &ops;
	shim_channel.entry = &entry;
	shim_channel.control = (struct vgpu_channel_control *)area;
	shim_channel.records = (uint64_t *)(area + VGPU_RECORDS_OFF);
	shim_statep = &ready;
	check_eq(shim_thread_setup(shim_call_lane_exit, shim_stream_drop_thread), 0);
	shim_context_setup(2);
	context = shim_context_primary(0);
	other = shim_context_primary(1);
	context->is_live = 1;
	other->is_live = 1;
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	/* No query travels, however long the test takes: it asked in a far future. */
	shim_thread_get()->pace.asked_ns = INT64_MAX;
}

/* The function that closes the channel at exit does not know this one. */
static void end(void)
{
	static const uint32_t not_ready = SHIM_NEW;

	shim_statep = &not_ready;
}

static CUevent new_event(void)
{
	return shim_event_new(context, CU_EVENT_DISABLE_TIMING, NULL);
}

/* Records an event, as far as the shim knows. Return: what the device has to write. */
static uint64_t record(CUevent handle)
{
	struct shim_event *event = shim_event_find(handle);
	uint64_t number = shim_event_record_begin(event);

	shim_event_record_done(event, number);
	return number;
}

static void land(uint64_t number)
{
	__atomic_store_n(&shim_channel.records[vgpu_record_slot(number)], number,
		__ATOMIC_RELEASE);
}

TEST(a_handle_is_live_until_it_is_freed)
{
	CUevent event = shim_event_new(NULL, 0, NULL);

	check(event);
	check((uintptr_t)event > 0xffff);
	check(shim_event_exists(event));
	check(shim_event_free(event));
	check(!shim_event_exists(event));
	check(!shim_event_free(event));
}

TEST(a_handle_does_not_come_back)
{
	CUevent seen[64];

	for (int i = 0; i < 64; i++) {
		seen[i] = shim_event_new(NULL, 0, NULL);
		for (int j = 0; j < i; j++)
			check(seen[j] != seen[i]);
		check(shim_event_free(seen[i]));
	}
}

TEST(an_invalid_event_is_detected)
{
	check(!shim_event_exists(NULL));
	check(!shim_event_exists((CUevent)(uintptr_t)0x1234));
	check(!shim_event_free((CUevent)(uintptr_t)(6ull << 52 | 1 << 20)));
}

TEST(many_events_live_at_once)
{
	static CUevent events[5000];

	for (int i = 0; i < 5000; i++)
		check((events[i] = shim_event_new(NULL, 0, NULL)));
	for (int i = 0; i < 5000; i++)
		check(shim_event_exists(events[i]));
	for (int i = 0; i < 5000; i += 2)
		check(shim_event_free(events[i]));
	for (int i = 0; i < 5000; i++)
		check_eq(shim_event_exists(events[i]), i % 2);
}

TEST(an_event_is_over_when_its_word_has_come)
{
	CUevent event;
	uint64_t number;

	begin();
	event = new_event();
	check_eq(shim_event_query(event), CUDA_SUCCESS);
	number = record(event);
	check(shim_record_has_word(number));
	check_eq(shim_event_query(event), CUDA_ERROR_NOT_READY);
	land(number);
	check_eq(shim_event_query(event), CUDA_SUCCESS);
	check_eq(shim_event_synchronize(event), CUDA_SUCCESS);
	end();
}

TEST(an_event_that_is_recorded_again_while_it_runs_is_over_with_the_later_record)
{
	uint64_t first, second;
	CUevent event;

	begin();
	event = new_event();
	first = record(event);
	second = record(event);
	check(vgpu_record_slot(first) != vgpu_record_slot(second));
	land(first);
	check_eq(shim_event_query(event), CUDA_ERROR_NOT_READY);
	land(second);
	check_eq(shim_event_query(event), CUDA_SUCCESS);
	end();
}

TEST(a_word_is_reused_only_after_its_last_record_was_written)
{
	static bool is_pending[VGPU_RECORDS_MAX];
	uint32_t n_wordless = 0;
	CUevent event;

	begin();
	for (uint32_t i = 0; i < 4 * VGPU_RECORDS_MAX; i++) {
		uint64_t number;

		/* Destroyed events leave their words in use until these are written. */
		event = new_event();
		number = record(event);
		check(shim_event_free(event));
		/* Where many words in a row are taken, none is found at times. */
		if (!shim_record_has_word(number)) {
			n_wordless++;
			continue;
		}
		check(!is_pending[vgpu_record_slot(number)]);
		if (i % 8)
			land(number);
		else if (i < VGPU_RECORDS_MAX)
			is_pending[vgpu_record_slot(number)] = true;
		else
			land(number);
	}
	check(n_wordless < VGPU_RECORDS_MAX / 16);
	end();
}

TEST(numbers_of_a_word_only_grow)
{
	static uint64_t last[VGPU_RECORDS_MAX];
	CUevent event;

	begin();
	event = new_event();
	for (uint32_t i = 0; i < 3 * VGPU_RECORDS_MAX; i++) {
		uint64_t number = record(event);
		uint32_t slot = vgpu_record_slot(number);

		check(number > last[slot]);
		last[slot] = number;
		land(number);
	}
	end();
}

TEST(when_no_word_is_free_the_host_is_to_be_asked)
{
	static uint64_t numbers[VGPU_RECORDS_MAX];
	CUevent event;
	uint64_t number;

	begin();
	event = new_event();
	for (uint32_t i = 0; i < VGPU_RECORDS_MAX; i++) {
		numbers[i] = record(event);
		check(shim_record_has_word(numbers[i]));
	}
	number = record(event);
	check(!shim_record_has_word(number));
	for (uint32_t i = 0; i < VGPU_RECORDS_MAX; i++)
		land(numbers[i]);
	check(shim_record_has_word(record(event)));
	/* A reply about that record does not concern the one after it. */
	shim_event_note_over(shim_event_find(event), number);
	check_eq(shim_event_query(event), CUDA_ERROR_NOT_READY);
	end();
}

TEST(an_event_with_timing_gets_words_once_it_was_asked_for)
{
	struct shim_event *event;
	CUevent handle;

	begin();
	handle = shim_event_new(context, CU_EVENT_DEFAULT, NULL);
	event = shim_event_find(handle);
	check(!shim_record_has_word(record(handle)));
	event->is_asked_for = true;
	check(shim_record_has_word(record(handle)));
	end();
}

TEST(a_record_elsewhere_is_not_answered_by_an_old_word)
{
	CUevent handle;

	begin();
	handle = new_event();
	land(record(handle));
	check_eq(shim_event_query(handle), CUDA_SUCCESS);
	shim_event_note_elsewhere(handle);
	check(!shim_record_has_word(shim_event_find(handle)->record));
	check(shim_event_find(handle)->record);
	land(record(handle));
	check_eq(shim_event_query(handle), CUDA_SUCCESS);
	end();
}

TEST(a_context_that_ends_gives_its_words_back_and_no_others)
{
	uint64_t number, kept;

	begin();
	for (uint32_t i = 0; i < 3 * VGPU_RECORDS_MAX; i++) {
		number = shim_record_take(context);
		if (!number) {
			shim_record_drop_context(context);
			number = shim_record_take(context);
		}
		check(number);
		check(!shim_record_is_over(number));
	}
	shim_record_drop_context(context);
	kept = shim_record_take(other);
	number = shim_record_take(context);
	check(kept && number);
	shim_record_drop_context(context);
	check(shim_record_is_over(number));
	check(!shim_record_is_over(kept));
	end();
}

/* Several threads at once: each word belongs to one thread at a time. */
static uint32_t holders[VGPU_RECORDS_MAX];

static void *take_and_land(void *argument)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t number = shim_record_take(context);
		uint32_t slot = vgpu_record_slot(number);

		check(number);
		check_eq(__atomic_add_fetch(&holders[slot], 1, __ATOMIC_RELAXED), 1);
		check_eq(__atomic_sub_fetch(&holders[slot], 1, __ATOMIC_RELAXED), 0);
		land(number);
	}
	return argument;
}

TEST(many_threads_never_share_a_word)
{
	pthread_t threads[8];

	begin();
	for (int i = 0; i < 8; i++)
		check_eq(pthread_create(&threads[i], NULL, take_and_land, NULL), 0);
	for (int i = 0; i < 8; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	end();
}

static void *make_record_and_free(void *argument)
{
	for (int i = 0; i < 5000; i++) {
		CUevent event = new_event();

		check(event);
		land(record(event));
		check_eq(shim_event_query(event), CUDA_SUCCESS);
		check(shim_event_free(event));
		check_eq(shim_event_query(event), CUDA_ERROR_INVALID_HANDLE);
	}
	return argument;
}

TEST(many_threads_make_and_free_events)
{
	pthread_t threads[8];

	begin();
	for (int i = 0; i < 8; i++)
		check_eq(
			pthread_create(&threads[i], NULL, make_record_and_free, NULL), 0);
	for (int i = 0; i < 8; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	end();
}
