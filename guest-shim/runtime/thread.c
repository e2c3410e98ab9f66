/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a thread
 */

#include "runtime/thread.h"

__thread struct rt_thread rt_thread;

int rt_leave(int error)
{
	if (error && error != cudaErrorNotReady)
		rt_thread.last_error = error;
	return error;
}
