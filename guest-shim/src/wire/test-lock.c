/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock
 */

#include <pthread.h>

#include "test.h"

#include "wire/lock.h"

#define THREADS 4
#define ROUNDS 50000

static struct shim_lock lock;
static unsigned long counter;

static void *count(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		shim_lock(&lock);
		counter++;
		shim_unlock(&lock);
	}
	return NULL;
}

TEST(nobody_is_lost_and_nobody_waits_for_ever)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		check_eq(pthread_create(&threads[i], NULL, count, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	check_eq(counter, (unsigned long)THREADS * ROUNDS);
	check_eq(lock.is_held, 0);
}

static void hold(void)
{
	SHIM_LOCKED(&lock);

	check_eq(lock.is_held, 1);
}

TEST(a_scope_gives_the_lock_back)
{
	hold();
	check_eq(lock.is_held, 0);
}
