/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of contexts
 */

#include <pthread.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/session.h"
#include "worker/wait/faults.h"

static struct fixture fixture;
static struct context broken, other;

static uint32_t n_published(void)
{
	return session_control(&fixture.session)->n_faults;
}

TEST(errors_of_the_device_break_a_context)
{
	check(fault_is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
	check(fault_is_sticky(CUDA_ERROR_ASSERT));
	check(fault_is_sticky(CUDA_ERROR_LAUNCH_TIMEOUT));
	check(fault_is_sticky(CUDA_ERROR_LAUNCH_FAILED));
}

TEST(errors_of_a_call_do_not)
{
	check(!fault_is_sticky(CUDA_SUCCESS));
	check(!fault_is_sticky(CUDA_ERROR_INVALID_VALUE));
	check(!fault_is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
	check(!fault_is_sticky(CUDA_ERROR_NOT_READY));
	check(!fault_is_sticky(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
	check(!fault_is_sticky((CUresult)123456));
}

TEST(a_fault_is_published_once_and_the_first_is_kept)
{
	fixture_init(&fixture);
	fault_note(&fixture.session, &broken, CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(n_published(), 1);
	fault_note(&fixture.session, &broken, CUDA_ERROR_LAUNCH_FAILED);
	check_eq(n_published(), 1);
	check_eq(broken.fault, CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(other.fault, CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(each_context_has_its_own)
{
	fixture_init(&fixture);
	fault_note(&fixture.session, &broken, CUDA_ERROR_ASSERT);
	fault_note(&fixture.session, &other, CUDA_ERROR_MISALIGNED_ADDRESS);
	check_eq(n_published(), 2);
	check_eq(broken.fault, CUDA_ERROR_ASSERT);
	check_eq(other.fault, CUDA_ERROR_MISALIGNED_ADDRESS);
	fixture_deinit(&fixture);
}

TEST(the_host_is_told_of_the_last_faults)
{
	const int n = WORKER_FAULTS + 1;
	struct context contexts[WORKER_FAULTS + 1] = {};

	fixture_init(&fixture);
	for (int i = 0; i < n; i++) {
		contexts[i].device = i;
		fault_note(&fixture.session, &contexts[i], CUDA_ERROR_ASSERT);
	}
	check_eq(fixture.use.n_faults, n);
	check_eq(fixture.use.faults[0].device, n - 1);
	check_eq(fixture.use.faults[1].device, 1);
	check_eq(fixture.use.faults[1].result, CUDA_ERROR_ASSERT);
	fixture_deinit(&fixture);
}

static void *note_fault(void *unused)
{
	fault_note(&fixture.session, &broken, CUDA_ERROR_ILLEGAL_ADDRESS);
	/* A reply that follows finds the fault published. */
	check_eq(n_published(), 1);
	return NULL;
}

TEST(threads_with_the_same_fault_publish_it_once)
{
	pthread_t threads[8];

	fixture_init(&fixture);
	for (int i = 0; i < 8; i++)
		check_eq(pthread_create(&threads[i], NULL, note_fault, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	check_eq(n_published(), 1);
	fixture_deinit(&fixture);
}
