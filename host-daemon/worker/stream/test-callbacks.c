/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: what a driver and a guest may do to the table
 */

#include <stdlib.h>

#include "test.h"
#include "worker/base/context.h"
#include "worker/base/session.h"
#include "worker/stream/callbacks.h"

/* A driver that calls at the test's command. */
static CUhostFn called;
static void *tokens[CALLBACKS_MAX + 1];
static uint32_t n_tokens;
static CUresult answer;

static CUresult launch_host_function(CUstream stream, CUhostFn fn, void *data)
{
	called = fn;
	tokens[n_tokens++] = data;
	return answer;
}

static struct driver driver;
static struct callbacks state;
static struct session session = { .callbacks = &state };

static struct callbacks *set_up(void)
{
	driver.table.cuLaunchHostFunc = launch_host_function;
	session.driver = &driver;
	callbacks_init(&session);
	return session.callbacks;
}

static CUresult submit(uint64_t cookie, const struct context *context)
{
	return callbacks_submit(&session, NULL, context, cookie, true);
}

static void *call_all(void *data)
{
	uint32_t i;

	for (i = 0; i < n_tokens; i++)
		called(tokens[i]);
	return NULL;
}

TEST(callbacks_are_bounded_and_their_entries_used_again)
{
	struct callback_due due;
	pthread_t thread;
	uint32_t i;

	set_up();
	for (i = 0; i < CALLBACKS_MAX; i++)
		check_eq(submit(i, NULL), CUDA_SUCCESS);
	check_eq(submit(i, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(n_tokens, CALLBACKS_MAX);

	check_eq(pthread_create(&thread, NULL, call_all, NULL), 0);
	for (i = 0; i < CALLBACKS_MAX; i++) {
		check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
		check_eq(due.cookie, i);
		check_eq(due.status, CUDA_SUCCESS);
		check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	}
	pthread_join(thread, NULL);
	n_tokens = 0;
	check_eq(submit(7, NULL), CUDA_SUCCESS);
	check_eq(session.callbacks->n, CALLBACKS_MAX);
	check(tokens[0] != NULL);
	callbacks_deinit(&session);
}

TEST(refused_callback_leaves_nothing_and_is_never_due)
{
	struct callbacks *callbacks = set_up();

	answer = CUDA_ERROR_INVALID_HANDLE;
	check_eq(submit(1, NULL), CUDA_ERROR_INVALID_HANDLE);
	called(tokens[0]);
	check_eq(callbacks->first_due, 0);
	check_eq(callbacks->entries[0].state, CALLBACK_FREE);
	callbacks_deinit(&session);
}

TEST(the_end_of_a_context_voids_its_callbacks)
{
	struct callbacks *callbacks = set_up();
	struct context gone, stays;
	struct callback_due due;
	pthread_t thread;

	check_eq(submit(1, &gone), CUDA_SUCCESS);
	check_eq(submit(2, &stays), CUDA_SUCCESS);
	callbacks_forget_context(&session, &gone);
	/* The guest waits for it, and has it back. */
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, 1);
	check(due.is_void);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	check_eq(callbacks_done(&session, due.token), CUDA_ERROR_INVALID_VALUE);
	/* Its driver calls all the same; the entry may be another's by then. */
	check_eq(submit(3, &stays), CUDA_SUCCESS);
	check_eq(callbacks->n, 2);
	check_eq(pthread_create(&thread, NULL, call_all, NULL), 0);
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, 2);
	check(!due.is_void);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	check_eq(callbacks_done(&session, due.token), CUDA_ERROR_INVALID_VALUE);
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, 3);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	callbacks_deinit(&session);
}

TEST(a_callback_that_was_refused_without_a_reply_is_returned_once)
{
	struct callbacks *callbacks = set_up();
	struct callback_due due;

	callbacks_give_back(&session, 9);
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, 9);
	check(due.is_void);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	check_eq(callbacks->first_due, 0);
	check_eq(callbacks->entries[0].state, CALLBACK_FREE);
	callbacks_deinit(&session);
}

TEST(driver_without_host_functions_is_no_success)
{
	set_up();
	driver.table.cuLaunchHostFunc = NULL;
	check_eq(submit(1, NULL), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(callbacks_submit(&session, NULL, NULL, 1, false),
		CUDA_ERROR_NOT_SUPPORTED);
	callbacks_deinit(&session);
}
