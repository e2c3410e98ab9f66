/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: functions of the guest that were set in them
 */

#include <stdlib.h>

#include "worker/base/session.h"
#include "worker/stream/functions.h"
#include "worker/stream/graph.h"

static uint64_t launches(const struct graph_exec *exec)
{
	return __atomic_load_n(&exec->n_launches, __ATOMIC_RELAXED);
}

/* Each launch since the function was set calls it once. */
static void retire(struct session *session, const struct graph_exec *exec,
	const struct graph_exec_function *function)
{
	function_retire(session, function->token,
		__atomic_load_n(&exec->is_copied, __ATOMIC_RELAXED)
			? FUNCTION_CALLS_UNKNOWN
			: launches(exec) - function->since);
}

CUresult graph_exec_make_room(struct call *call, struct graph_exec *exec)
{
	struct graph_exec_function *functions;

	functions =
		reallocarray(exec->functions, exec->n_functions + 1, sizeof(*functions));
	if (!functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->functions = functions;
	return CUDA_SUCCESS;
}

void graph_exec_set_function(
	struct call *call, struct graph_exec *exec, CUgraphNode node, void *token)
{
	struct graph_exec_function *function = exec->functions;
	uint32_t i;

	for (i = 0; i < exec->n_functions && function->node != node; i++)
		function++;
	if (i < exec->n_functions)
		retire(call->session, exec, function);
	else
		exec->n_functions++;
	*function = (struct graph_exec_function){ node, token, launches(exec) };
}

void graph_exec_take_functions(struct graph_exec *exec, struct graph_exec *taken)
{
	*taken = *exec;
	exec->functions = NULL;
	exec->n_functions = 0;
}

void graph_exec_retire_functions(struct session *session, struct graph_exec *taken)
{
	for (uint32_t i = 0; i < taken->n_functions; i++)
		retire(session, taken, &taken->functions[i]);
	free(taken->functions);
}
