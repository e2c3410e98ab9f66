/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: completion words that the device writes
 */

#include <stdint.h>
#include <stdlib.h>

#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "vgpu/wake.h"
#include "worker/base/session.h"

/* A write made by a host function, where the device cannot. */
struct late_write {
	uint64_t *word;
	uint64_t value;
};

void fence_init(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	int can = 0;

	pthread_mutex_init(&session->fences.lock, NULL);
	pthread_mutex_init(&session->fences.owing_lock, NULL);
	pthread_mutex_init(&session->fences.fault_lock, NULL);
	if (driver->cuStreamWriteValue64_v2 && driver->cuDeviceGetAttribute &&
		driver->cuDeviceGetAttribute(&can,
			CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
			0) == CUDA_SUCCESS)
		session->fences.stream_writes = can;
	if (!session->fences.stream_writes)
		vgpu_log_info("the driver writes no 64-bit words from streams; "
			      "completion words are written by host functions");
}

static uint64_t *word_address(struct session *session, uint32_t word)
{
	struct vgpu_word *words = (struct vgpu_word *)(session->area + VGPU_WORDS_OFF);

	return &words[word].value;
}

static uint64_t *record_address(struct session *session, uint64_t record)
{
	uint64_t *records = (uint64_t *)(session->area + VGPU_RECORDS_OFF);

	return &records[vgpu_record_slot(record)];
}

static void write_late(void *data)
{
	struct late_write *late = data;

	/* Partner: the guest's acquire load of the word. */
	__atomic_store_n(late->word, late->value, __ATOMIC_RELEASE);
	free(late);
}

static CUresult write_by_host(
	struct session *session, CUstream stream, uint64_t *word, uint64_t value)
{
	const struct vgpu_driver *driver = &session->driver->table;
	struct late_write *late;
	CUresult result;

	if (!driver->cuLaunchHostFunc)
		return CUDA_ERROR_NOT_SUPPORTED;
	late = malloc(sizeof(*late));
	if (!late)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*late = (struct late_write){ .word = word, .value = value };
	result = driver->cuLaunchHostFunc(stream, write_late, late);
	if (result != CUDA_SUCCESS)
		free(late);
	return result;
}

static CUresult write_at(
	struct session *session, CUstream stream, uint64_t *address, uint64_t value)
{
	if (!session->fences.stream_writes)
		return write_by_host(session, stream, address, value);
	return session->driver->table.cuStreamWriteValue64_v2(
		stream, (uintptr_t)address, value, 0);
}

CUresult fence_write_word(
	struct session *session, CUstream stream, uint32_t word, uint64_t value)
{
	if (word >= VGPU_WORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return write_at(session, stream, word_address(session, word), value);
}

CUresult fence_write_record(struct session *session, CUstream stream, uint64_t record)
{
	if (vgpu_record_slot(record) >= VGPU_RECORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return write_at(session, stream, record_address(session, record), record);
}

void fence_write_record_now(struct session *session, uint64_t record)
{
	/* Partner: the guest's acquire load of the record's word. */
	if (vgpu_record_slot(record) < VGPU_RECORDS_MAX)
		__atomic_store_n(
			record_address(session, record), record, __ATOMIC_RELEASE);
}

void fence_write_word_now(struct session *session, uint32_t word, uint64_t value)
{
	/* Partner: the guest's acquire load of the word. */
	if (word < VGPU_WORDS_MAX)
		__atomic_store_n(word_address(session, word), value, __ATOMIC_RELEASE);
}

CUresult fence_bind(struct session *session, struct stream *stream, uint32_t word)
{
	if (word >= VGPU_WORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stream->word = word;
	stream->has_word = true;
	__atomic_store_n(&stream->issued, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&stream->issued_by_lanes, 0, __ATOMIC_RELAXED);
	stream->marked = 0;
	return CUDA_SUCCESS;
}

uint64_t fence_issued(const struct stream *stream)
{
	return __atomic_load_n(&stream->issued, __ATOMIC_RELAXED) +
	       __atomic_load_n(&stream->issued_by_lanes, __ATOMIC_RELAXED);
}

static bool is_blocked(struct session *session)
{
	/* Partners: the decrement in fence_lane_done(), the end of a capture. */
	return __atomic_load_n(&session->fences.n_pending, __ATOMIC_SEQ_CST) > 0 ||
	       captures_are_live(session);
}

/* With the lock of the list that it is put on: what has ended is not, since who ends a
 * stream looks through the lists afterwards, and then has the driver destroy it. */
static bool is_live(const struct stream *stream)
{
	/* Partner: withdraw() of objects.c. */
	return stream->is_entry ? __atomic_load_n(&stream->object.generation,
					  __ATOMIC_ACQUIRE) != 0
				: stream->context != NULL;
}

static void put_off(struct session *session, struct stream *stream)
{
	struct fences *fences = &session->fences;

	pthread_mutex_lock(&fences->lock);
	if (!stream->due && fences->n_due < FENCE_DUE_MAX && is_live(stream)) {
		stream->due = true;
		fences->due[fences->n_due] = stream;
		/* Partner: the load in fence_lane_done(). */
		__atomic_store_n(&fences->n_due, fences->n_due + 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&fences->lock);
}

static void make_mark(
	struct session *session, struct runner *runner, struct stream *stream)
{
	uint64_t issued = fence_issued(stream);
	CUresult result;

	if (issued == stream->marked)
		return;
	__atomic_store_n(&stream->marked, issued, __ATOMIC_RELAXED);
	result = context_enter(session, runner, stream->context);
	if (result == CUDA_SUCCESS) {
		result = fence_write_word(
			session, stream->object.driver, stream->word, issued);
		fence_owe(session, stream);
	}
	if (fence_is_fault(result))
		fence_note_fault(session, stream->context, result);
	else if (result != CUDA_SUCCESS)
		vgpu_log_debug("a mark was refused with %d", result);
}

void fence_mark(struct session *session, struct runner *runner, struct stream *stream)
{
	if (!stream->has_word)
		return;
	if (is_blocked(session))
		put_off(session, stream);
	else
		make_mark(session, runner, stream);
}

void fence_count(struct session *session, struct runner *runner, struct stream *stream)
{
	uint64_t issued;

	/* The dispatcher is the only one to write its count, and one thread. */
	if (runner->is_dispatcher)
		__atomic_store_n(&stream->issued, stream->issued + 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&stream->issued_by_lanes, 1, __ATOMIC_RELAXED);
	issued = fence_issued(stream);
	if (issued - __atomic_load_n(&stream->marked, __ATOMIC_RELAXED) <
			FENCE_INTERVAL ||
		!stream->has_word)
		return;
	fence_want_mark(session, runner, stream);
}

void fence_want_mark(
	struct session *session, struct runner *runner, struct stream *stream)
{
	if (!stream->has_word)
		return;
	if (runner->is_dispatcher)
		fence_mark(session, runner, stream);
	else
		put_off(session, stream);
}

void fence_cover(struct session *session, struct stream *stream, uint64_t target)
{
	/* While a lane has calls of its own to count, ours is behind for good reason. */
	if (!is_blocked(session) && target > fence_issued(stream))
		__atomic_store_n(&stream->issued,
			target - __atomic_load_n(
					 &stream->issued_by_lanes, __ATOMIC_RELAXED),
			__ATOMIC_RELAXED);
}

bool fence_has_due(struct session *session)
{
	return __atomic_load_n(&session->fences.n_due, __ATOMIC_SEQ_CST) &&
	       !is_blocked(session);
}

void fence_run_due(struct session *session, struct runner *runner)
{
	struct fences *fences = &session->fences;
	uint32_t i;

	if (!fence_has_due(session))
		return;
	pthread_mutex_lock(&fences->lock);
	/* A capture may be about to begin. Partner: captures_hold(). */
	if (is_blocked(session)) {
		pthread_mutex_unlock(&fences->lock);
		return;
	}
	for (i = 0; i < fences->n_due; i++) {
		fences->due[i]->due = false;
		make_mark(session, runner, fences->due[i]);
	}
	__atomic_store_n(&fences->n_due, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&fences->lock);
}

void fence_owe(struct session *session, struct stream *stream)
{
	struct fences *fences = &session->fences;

	if (__atomic_load_n(&stream->owes, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&fences->owing_lock);
	if (!stream->owes && fences->n_owing < FENCE_OWING_MAX && is_live(stream)) {
		__atomic_store_n(&stream->owes, true, __ATOMIC_RELAXED);
		fences->owing[fences->n_owing] = stream;
		__atomic_store_n(&fences->n_owing, fences->n_owing + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&fences->owing_lock);
}

/* Whether nothing more is owed. The driver's own answer is why the call that follows
 * does not block, whatever the guest's words say. */
static bool pay(struct session *session, struct runner *runner, struct stream *stream)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUresult result;

	result = context_enter(session, runner, stream->context);
	if (result == CUDA_SUCCESS)
		result = driver->cuStreamQuery(stream->object.driver);
	if (result == CUDA_ERROR_NOT_READY)
		return false;
	if (result == CUDA_SUCCESS)
		result = driver->cuStreamSynchronize(stream->object.driver);
	if (fence_is_fault(result))
		fence_note_fault(session, stream->context, result);
	return true;
}

void fence_pay(struct session *session, struct runner *runner)
{
	struct fences *fences = &session->fences;
	uint32_t i, n_kept = 0;

	/* Lanes are the others who give streams work: with none at it, a stream that is
	 * done stays so until the dispatcher takes its next frame. */
	if (!__atomic_load_n(&fences->n_owing, __ATOMIC_RELAXED) ||
		__atomic_load_n(&fences->n_running, __ATOMIC_ACQUIRE) ||
		!session->driver->table.cuStreamQuery)
		return;
	pthread_mutex_lock(&fences->owing_lock);
	/* To ask a captured stream would spoil its capture, which may just be about to
	 * begin. Partner: captures_hold(). */
	if (captures_are_live(session)) {
		pthread_mutex_unlock(&fences->owing_lock);
		return;
	}
	for (i = 0; i < fences->n_owing; i++) {
		if (pay(session, runner, fences->owing[i]))
			__atomic_store_n(
				&fences->owing[i]->owes, false, __ATOMIC_RELAXED);
		else
			fences->owing[n_kept++] = fences->owing[i];
	}
	__atomic_store_n(&fences->n_owing, n_kept, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&fences->owing_lock);
}

/* Takes streams off the lists: that one, or all of that context. */
static void forget(struct session *session, const struct stream *stream,
	const struct context *context)
{
	struct fences *fences = &session->fences;
	uint32_t i, n_kept = 0;

	pthread_mutex_lock(&fences->lock);
	for (i = 0; i < fences->n_due; i++) {
		if (fences->due[i] != stream && fences->due[i]->context != context)
			fences->due[n_kept++] = fences->due[i];
		else
			fences->due[i]->due = false;
	}
	__atomic_store_n(&fences->n_due, n_kept, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&fences->lock);

	n_kept = 0;
	pthread_mutex_lock(&fences->owing_lock);
	for (i = 0; i < fences->n_owing; i++) {
		if (fences->owing[i] != stream && fences->owing[i]->context != context)
			fences->owing[n_kept++] = fences->owing[i];
		else
			__atomic_store_n(
				&fences->owing[i]->owes, false, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&fences->n_owing, n_kept, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&fences->owing_lock);
}

void fence_forget(struct session *session, const struct stream *stream)
{
	forget(session, stream, NULL);
}

void fence_forget_context(struct session *session, const struct context *context)
{
	forget(session, NULL, context);
}

void fence_lane_begins(struct session *session)
{
	__atomic_fetch_add(&session->fences.n_pending, 1, __ATOMIC_RELAXED);
}

void fence_kick(struct session *session)
{
	if (!__atomic_load_n(&session->fences.n_due, __ATOMIC_SEQ_CST) ||
		session->doorbell < 0)
		return;
	if (vgpu_wake_eventfd(session->doorbell))
		vgpu_log_debug("the dispatcher cannot be woken");
}

void fence_lane_done(struct session *session)
{
	/* What this lane issued and counted comes before; partner: is_blocked(). The
	 * order of this and the load below against put_off() and its caller's last look
	 * before sleeping is why they are seq_cst. */
	if (!__atomic_sub_fetch(&session->fences.n_pending, 1, __ATOMIC_SEQ_CST))
		fence_kick(session);
}

bool fence_is_fault(CUresult result)
{
	switch ((int)result) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_UNKNOWN:
		return true;
	default:
		return false;
	}
}

void fence_note_fault(struct session *session, struct context *context, CUresult result)
{
	struct vgpu_channel_control *control = session_control(session);
	bool is_known;

	/* Whoever comes second may be the first to answer, so it waits for the first. */
	pthread_mutex_lock(&session->fences.fault_lock);
	is_known = __atomic_load_n(&context->fault, __ATOMIC_RELAXED) != CUDA_SUCCESS;
	if (!is_known) {
		__atomic_store_n(&context->fault, (uint32_t)result, __ATOMIC_RELAXED);
		/* Partner: the guest's acquire load, in each wait and at each call. */
		__atomic_fetch_add(&control->n_faults, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&session->fences.fault_lock);
	if (!is_known)
		vgpu_log_info("work of the guest ended with fault %d", result);
}
