/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults: errors that break a context
 */

#include "control/flight-text.h"
#include "vgpu/log.h"
#include "worker/base/context.h"
#include "worker/base/flight.h"
#include "worker/base/session.h"
#include "worker/wait/faults.h"

void faults_init(struct session *session)
{
	pthread_mutex_init(&session->faults->lock, NULL);
}

bool fault_is_sticky(CUresult result)
{
	return flight_is_fault((int32_t)result);
}

/* With the lock. */
static void tell_host(struct worker_use *use, CUdevice device, CUresult result)
{
	const uint64_t n = __atomic_load_n(&use->n_faults, __ATOMIC_RELAXED);

	use->faults[n % WORKER_FAULTS].device = (uint32_t)device;
	use->faults[n % WORKER_FAULTS].result = (int32_t)result;
	/* Partner: vgpud's acquire load. */
	__atomic_store_n(&use->n_faults, n + 1, __ATOMIC_RELEASE);
}

void fault_note(struct session *session, struct context *context, CUresult result)
{
	struct vgpu_channel_control *control = session_control(session);
	bool is_known;

	context = context_home(context);
	/* A second thread with the same fault may reply first, so it waits until the
	 * first thread has published the fault. */
	pthread_mutex_lock(&session->faults->lock);
	is_known = __atomic_load_n(&context->fault, __ATOMIC_RELAXED) != CUDA_SUCCESS;
	if (!is_known) {
		__atomic_store_n(&context->fault, (uint32_t)result, __ATOMIC_RELAXED);
		flight_freeze(session->flight);
		tell_host(session->use, context->device, result);
		/* Partner: the guest's acquire load, in each wait and at each call. */
		__atomic_fetch_add(&control->n_faults, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&session->faults->lock);
	if (!is_known)
		vgpu_log_info("work of the guest ended in fault %d", result);
}
