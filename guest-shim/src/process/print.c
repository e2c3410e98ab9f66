/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of kernels
 *
 * One thread fetches, others that find output wait for it: when their call returns,
 * everything printed before has been written. The call that fetches follows another one
 * of the same thread, whose reply is still needed: its memory is preserved.
 */

#include <pthread.h>
#include <stdio.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"

#include "process/call.h"
#include "process/print.h"
#include "process/thread.h"
#include "wire/lock.h"

uint64_t shim_print_position;

static struct shim_lock print_lock;

/* Return: whether there may be more. */
static bool fetch_piece(uint64_t *positionp)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuPrintFetch);
	Vgpu__VgpuPrintFetchRequest request = VGPU__VGPU_PRINT_FETCH_REQUEST__INIT;
	const Vgpu__VgpuPrintFetchReply *piece;
	const ProtobufCMessage *reply;

	if (shim_call_sync(&call, &request.base,
		    &vgpu__vgpu_print_fetch_reply__descriptor, &reply) != CUDA_SUCCESS)
		return false;
	piece = (const Vgpu__VgpuPrintFetchReply *)reply;
	if (piece->lost)
		vgpu_log_warning("%llu bytes that kernels printed were lost",
			(unsigned long long)piece->lost);
	if (piece->text.len)
		fwrite(piece->text.data, 1, piece->text.len,
			piece->is_error ? stderr : stdout);
	*positionp = piece->position;
	return piece->text.len;
}

/* @asks: whether the host is asked even if it has announced nothing */
static void fetch(const struct vgpu_channel_control *control, bool asks)
{
	uint64_t position = shim_print_position;
	/* Up to here: what kernels print meanwhile is for the next to wait. */
	uint64_t end = __atomic_load_n(&control->printed, __ATOMIC_ACQUIRE);

	while ((asks || position < end) && fetch_piece(&position))
		;
	/* The program may redirect stdout next, and unbuffered output must not be
	 * delayed. */
	fflush(stdout);
	/* Partner: the load in shim_print_check(). */
	__atomic_store_n(&shim_print_position, position, __ATOMIC_RELEASE);
}

static void fetch_in_thread(struct shim_thread *thread, bool asks)
{
	int cancel_state;

	if (thread->is_fetching || shim_thread_must_not_call())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	thread->is_fetching = true;
	thread->arena_kept = thread->arena_used;
	shim_lock(&print_lock);
	fetch(shim_channel.control, asks);
	shim_unlock(&print_lock);
	thread->arena_kept = 0;
	thread->is_fetching = false;
	pthread_setcancelstate(cancel_state, NULL);
}

void shim_print_fetch(struct shim_thread *thread)
{
	fetch_in_thread(thread, false);
}

void shim_print_finish(struct shim_thread *thread)
{
	fetch_in_thread(thread, shim_print_is_owed(&shim_channel));
}
