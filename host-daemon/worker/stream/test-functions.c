/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that graphs name: who ends them, and when
 */

#include <string.h>

#include "test.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/functions.h"
#include "worker/stream/graph.h"

static struct driver driver;
static struct callbacks callbacks;
static struct functions functions;
static struct session session = {
	.driver = &driver,
	.callbacks = &callbacks,
	.functions = &functions,
};

/* The one user object of the driver. */
static struct {
	CUhostFn destroy;
	void *data;
	unsigned int n_refs;
} user;

static CUresult user_create(CUuserObject *object, void *data, CUhostFn destroy,
	unsigned int n, unsigned int flags)
{
	user.destroy = destroy;
	user.data = data;
	user.n_refs = n;
	*object = (CUuserObject)&user;
	return CUDA_SUCCESS;
}

static CUresult user_release(CUuserObject object, unsigned int n)
{
	check(object == (CUuserObject)&user && n <= user.n_refs);
	user.n_refs -= n;
	if (!user.n_refs)
		user.destroy(user.data);
	return CUDA_SUCCESS;
}

static CUresult graph_retain(
	CUgraph graph, CUuserObject object, unsigned int n, unsigned int flags)
{
	return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult graph_release(CUgraph graph, CUuserObject object, unsigned int n)
{
	return user_release(object, n);
}

static void set_up(void)
{
	memset(&callbacks, 0, sizeof(callbacks));
	memset(&functions, 0, sizeof(functions));
	driver.table.cuUserObjectCreate = user_create;
	driver.table.cuUserObjectRelease = user_release;
	driver.table.cuGraphRetainUserObject = graph_retain;
	driver.table.cuGraphReleaseUserObject = graph_release;
	callbacks_init(&session);
	functions_init(&session);
}

static void tear_down(void)
{
	functions_deinit(&session);
	callbacks_deinit(&session);
}

static void *add(uint64_t cookie)
{
	void *token = NULL;

	check_eq(function_add(&session, cookie, &token), CUDA_SUCCESS);
	check(token);
	return token;
}

/* The guest takes what is due, and completes it. */
static void take(uint64_t cookie, bool is_void)
{
	struct callback_due due;

	check(callbacks.first_due);
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, cookie);
	check_eq(due.is_void, is_void);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
}

static void *run(void *token)
{
	function_run(token);
	return NULL;
}

static void call(void *token, uint64_t cookie)
{
	struct callback_due due;
	pthread_t thread;

	check_eq(pthread_create(&thread, NULL, run, token), 0);
	check_eq(callbacks_next(&session, &due), CUDA_SUCCESS);
	check_eq(due.cookie, cookie);
	check(!due.is_void);
	check_eq(callbacks_done(&session, due.token), CUDA_SUCCESS);
	pthread_join(thread, NULL);
}

TEST(a_function_is_called_until_its_graph_has_no_use_for_it)
{
	const CUgraph graph = (CUgraph)0x1000;
	uint64_t cookie = 0;
	void *token;

	set_up();
	token = add(7);
	check_eq(function_tie(&session, graph, token), CUDA_SUCCESS);
	check(functions_any(&session));
	for (int i = 0; i < 3; i++)
		call(token, 7);
	check(function_find(&session, token, &cookie) && cookie == 7);
	check(!callbacks.first_due);
	function_untie(&session, graph, token);
	take(7, true);
	check(!functions_any(&session));
	/* The driver is late: nothing happens. */
	function_run(token);
	function_end(token);
	check(!function_find(&session, token, &cookie));
	check(!callbacks.first_due);
	/* The next in its place has another token. */
	check(add(8) != token);
	check(!function_find(&session, token, &cookie));
	tear_down();
}

TEST(a_graph_that_cannot_keep_a_function_ends_it)
{
	void *token;

	set_up();
	token = add(7);
	check_eq(function_tie(&session, NULL, token), CUDA_ERROR_INVALID_VALUE);
	take(7, true);
	/* A driver without user objects: it stays. */
	driver.table.cuUserObjectCreate = NULL;
	token = add(8);
	check_eq(function_tie(&session, NULL, token), CUDA_SUCCESS);
	function_untie(&session, NULL, token);
	check(functions_any(&session));
	tear_down();
}

TEST(a_function_of_an_executable_graph_ends_with_its_last_launch)
{
	struct graph_exec exec = {}, taken;
	struct call some_call = { .session = &session };
	const CUgraphNode node = (CUgraphNode)0x1000;
	void *first, *second;

	set_up();
	first = add(1);
	check_eq(graph_exec_make_room(&some_call, &exec), CUDA_SUCCESS);
	graph_exec_set_function(&some_call, &exec, node, first);
	exec.n_launches = 2;
	second = add(2);
	check_eq(graph_exec_make_room(&some_call, &exec), CUDA_SUCCESS);
	graph_exec_set_function(&some_call, &exec, node, second);
	check_eq(exec.n_functions, 1);
	check(!callbacks.first_due);
	call(first, 1);
	check(!callbacks.first_due);
	call(first, 1);
	take(1, true);
	/* The second was launched once, which is done when the graph is destroyed. */
	exec.n_launches = 3;
	call(second, 2);
	graph_exec_take_functions(&exec, &taken);
	check(!exec.n_functions);
	check(!callbacks.first_due);
	graph_exec_retire_functions(&session, &taken);
	take(2, true);
	/* What a capture has copied may be called any number of times. */
	second = add(3);
	check_eq(graph_exec_make_room(&some_call, &exec), CUDA_SUCCESS);
	graph_exec_set_function(&some_call, &exec, node, second);
	exec.is_copied = true;
	graph_exec_take_functions(&exec, &taken);
	graph_exec_retire_functions(&session, &taken);
	call(second, 3);
	check(!callbacks.first_due);
	tear_down();
}

TEST(a_destructor_is_due_once)
{
	void *token;

	set_up();
	token = add(9);
	function_destroy(token);
	function_destroy(token);
	take(9, false);
	check(!callbacks.first_due);
	token = add(10);
	function_withdraw(&session, token);
	function_destroy(token);
	check(!callbacks.first_due);
	check(!functions_any(&session));
	tear_down();
}

TEST(functions_are_bounded)
{
	void *token;

	set_up();
	for (uint32_t i = 0; i < FUNCTIONS_MAX; i++)
		token = add(i);
	check_eq(function_add(&session, 0, &token), CUDA_ERROR_OUT_OF_MEMORY);
	function_withdraw(&session, token);
	check_eq(function_add(&session, 0, &token), CUDA_SUCCESS);
	tear_down();
}
