/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words: memory of the guest that the device writes when work is complete
 */

#include <stdint.h>
#include <stdlib.h>

#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/wait/words.h"

/* A write by a host function, for devices that cannot. */
struct late_write {
	uint64_t *word;
	uint64_t value;
};

void words_init(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	int can = 0;

	if (driver->cuStreamWriteValue64_v2 && driver->cuDeviceGetAttribute &&
		driver->cuDeviceGetAttribute(&can,
			CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
			0) == CUDA_SUCCESS)
		session->writes_words = can;
	if (!session->writes_words)
		vgpu_log_info("the driver writes no 64-bit words from streams; "
			      "completion words are written by host functions");
}

static uint64_t *word_address(struct session *session, uint32_t word)
{
	struct vgpu_word *words = (struct vgpu_word *)(session->area + VGPU_WORDS_OFF);

	if (session_is_recorded(session))
		recorder_note_word(session->recorder,
			VGPU_WORDS_OFF + word * (uint32_t)sizeof(*words));
	return &words[word].value;
}

static uint64_t *record_address(struct session *session, uint64_t record)
{
	uint64_t *records = (uint64_t *)(session->area + VGPU_RECORDS_OFF);

	if (session_is_recorded(session))
		recorder_note_word(session->recorder,
			VGPU_RECORDS_OFF +
				vgpu_record_slot(record) * (uint32_t)sizeof(*records));
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
	if (!session->writes_words)
		return write_by_host(session, stream, address, value);
	return session->driver->table.cuStreamWriteValue64_v2(
		stream, (uintptr_t)address, value, 0);
}

CUresult word_write(
	struct session *session, CUstream stream, uint32_t word, uint64_t value)
{
	if (word >= VGPU_WORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return write_at(session, stream, word_address(session, word), value);
}

CUresult word_write_record(struct session *session, CUstream stream, uint64_t record)
{
	if (vgpu_record_slot(record) >= VGPU_RECORDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return write_at(session, stream, record_address(session, record), record);
}

void word_write_record_now(struct session *session, uint64_t record)
{
	/* Partner: the guest's acquire load of the record's word. */
	if (vgpu_record_slot(record) < VGPU_RECORDS_MAX)
		__atomic_store_n(
			record_address(session, record), record, __ATOMIC_RELEASE);
}

void word_write_now(struct session *session, uint32_t word, uint64_t value)
{
	/* Partner: the guest's acquire load of the word. */
	if (word < VGPU_WORDS_MAX)
		__atomic_store_n(word_address(session, word), value, __ATOMIC_RELEASE);
}
