/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace of waits, from observations that are made up
 */

#include "test.h"

#include "wire/pace.h"

#define US 1000ull
#define MS 1000000ull
/* More than any number of waits that something is believed for. */
#define MANY 100000u

TEST(a_thread_spins_until_it_knows_better)
{
	struct shim_pace pace = {};

	for (uint32_t i = 0; i < MANY; i++) {
		check(shim_pace_yields(&pace));
		shim_pace_note_come(&pace, 0);
	}
}

/* Waits long until the thread has learned it. */
static void wait_long(struct shim_pace *pace)
{
	uint32_t n = 0;

	for (; shim_pace_yields(pace) && n < MANY; n++)
		shim_pace_note_woken(pace, 5 * MS);
	check(n > 1 && n < MANY);
}

TEST(long_waits_are_not_spun_for)
{
	struct shim_pace pace = {};

	wait_long(&pace);
	for (uint32_t i = 0; i < MANY; i++) {
		check(!shim_pace_yields(&pace));
		shim_pace_note_woken(&pace, 5 * MS);
	}
}

TEST(one_short_wait_ends_a_row_of_long_ones)
{
	struct shim_pace pace = {};

	wait_long(&pace);
	check(!shim_pace_yields(&pace));
	shim_pace_note_woken(&pace, 20 * US);
	check(shim_pace_yields(&pace));

	wait_long(&pace);
	shim_pace_note_come(&pace, 0);
	check(shim_pace_yields(&pace));
}

TEST(a_processor_that_was_away_for_a_slice_is_not_given_up_for_a_while)
{
	struct shim_pace pace = {};
	uint32_t n = 0;

	shim_pace_note_away(&pace, 10 * US);
	check(shim_pace_yields(&pace));
	shim_pace_note_away(&pace, 3 * MS);
	for (; !shim_pace_yields(&pace) && n < MANY; n++)
		shim_pace_note_woken(&pace, 100 * US);
	check(n > 1 && n < MANY);
}

TEST(wake_ups_are_not_taken_for_long_waits)
{
	struct shim_pace pace = {};

	for (uint32_t i = 0; i < MANY; i++) {
		shim_pace_note_woken(&pace, 200 * US);
		check(shim_pace_yields(&pace));
	}
}

TEST(a_reply_during_a_yield_was_made_on_this_processor)
{
	struct shim_pace pace = {};
	uint32_t n = 0;

	shim_pace_note_come(&pace, 1 * US);
	check(!pace.n_together);
	shim_pace_note_come(&pace, 20 * US);
	for (; pace.n_together && n < MANY; n++)
		shim_pace_note_come(&pace, 0);
	check(n > 1 && n < MANY);
	check(shim_pace_yields(&pace));
}

TEST(a_reply_in_a_time_slice_of_others_was_not_made_on_this_processor)
{
	struct shim_pace pace = {};

	shim_pace_note_come(&pace, 3 * MS);
	check(!pace.n_together);
	check(!shim_pace_yields(&pace));
}

TEST(late_work_is_remembered_for_a_while_unless_there_was_no_time_to_look)
{
	struct shim_pace pace = {};
	uint32_t n = 0;

	shim_pace_note_late(&pace);
	for (; pace.n_late && n < MANY; n++)
		shim_pace_note_woken(&pace, 5 * MS);
	check(n > 1 && n < MANY);

	shim_pace_note_away(&pace, 3 * MS);
	shim_pace_note_late(&pace);
	check(!pace.n_late);
}
