/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event handles
 */

#include <stdint.h>

#include "test.h"

#include "event.h"

TEST(a_handle_is_live_until_it_is_freed)
{
	CUevent event = shim_event_new();

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
		seen[i] = shim_event_new();
		for (int j = 0; j < i; j++)
			check(seen[j] != seen[i]);
		check(shim_event_free(seen[i]));
	}
}

TEST(what_is_no_event_is_told)
{
	check(!shim_event_exists(NULL));
	check(!shim_event_exists((CUevent)(uintptr_t)0x1234));
	check(!shim_event_free((CUevent)(uintptr_t)(6ull << 52 | 1 << 20)));
}

TEST(many_events_live_at_once)
{
	static CUevent events[5000];

	for (int i = 0; i < 5000; i++)
		check((events[i] = shim_event_new()));
	for (int i = 0; i < 5000; i++)
		check(shim_event_exists(events[i]));
	for (int i = 0; i < 5000; i += 2)
		check(shim_event_free(events[i]));
	for (int i = 0; i < 5000; i++)
		check_eq(shim_event_exists(events[i]), i % 2);
}
