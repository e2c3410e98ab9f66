/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for words
 */

#include <pthread.h>
#include <time.h>

#include "test.h"

#include "wait.h"

/* Who spins for as long as this never ends the test. */
#define FOR_EVER_NS 3600000000000ull
/* As many waits as a thread needs to learn that they are long. */
#define MANY 1000u
/* Others may want the processor at any one of them. */
#define TRIES 20

static uint64_t word;

TEST(what_has_come_is_not_waited_for)
{
	const uint64_t come = 7;
	struct shim_pace pace = { .n_late = 3 };

	shim_wait_setup();
	check(shim_wait_word(&pace, &come, 7, false));
	check(shim_wait_word(&pace, &come, 6, true));
	check(shim_wait_work(&pace, &come, 7, FOR_EVER_NS));
	check_eq(pace.n_late, 0);
}

TEST(who_gives_up_does_not_spin)
{
	struct shim_pace pace = {};

	shim_wait_setup();
	check(!shim_wait_word(&pace, &word, 1, true));
}

TEST(work_is_not_spun_for_where_it_was_late)
{
	struct shim_pace pace = {};

	shim_wait_setup();
	check(!shim_wait_work(&pace, &word, 1, 1000));
	/* Where others wanted the processor meanwhile, nothing is known of the device. */
	check(pace.n_late || pace.n_crowded);
	pace = (struct shim_pace){ .n_late = 1 };
	check(!shim_wait_work(&pace, &word, 1, FOR_EVER_NS));
	/* Or it would be late for ever. */
	check_eq(pace.n_late, 1);
}

TEST(work_is_not_spun_for_where_others_want_the_processor)
{
	struct shim_pace pace = { .n_crowded = 1 };

	shim_wait_setup();
	check(!shim_wait_work(&pace, &word, 1, FOR_EVER_NS));
	check_eq(pace.n_late, 0);
}

static void *write_soon(void *written)
{
	const struct timespec time = { .tv_nsec = 1000000 };

	nanosleep(&time, NULL);
	__atomic_store_n((uint64_t *)written, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(work_is_spun_for_also_after_long_waits)
{
	struct shim_pace pace;
	bool came = false;

	shim_wait_setup();
	for (int i = 0; i < TRIES && !came; i++) {
		uint64_t written = 0;
		pthread_t thread;

		pace = (struct shim_pace){ .n_long = MANY };
		check_eq(pthread_create(&thread, NULL, write_soon, &written), 0);
		came = shim_wait_work(&pace, &written, 1, FOR_EVER_NS);
		check_eq(pthread_join(thread, NULL), 0);
		/* There is one reason to give up. */
		check(came || pace.n_crowded);
	}
	if (!came)
		test_skip("others wanted the processor each of %d times", TRIES);
	check_eq(pace.n_long, 0);
}
