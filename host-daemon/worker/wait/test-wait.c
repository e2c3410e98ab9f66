/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's part of waits by words
 */

#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/context.h"
#include "worker/base/session.h"
#include "worker/wait/debts.h"

#define REPLY VGPU_FRAME_REPLY

static struct fixture fixture;
static const uint64_t event_handle = (uint64_t)VGPU_HANDLE_EVENT << 52 | 1ull << 20 | 7;

/* Calls of the driver in their order, as letters. */
static char order[64];
static CUresult query_result;

static void note(char what)
{
	size_t n = strlen(order);

	check(n + 1 < sizeof(order));
	order[n] = what;
}

static CUresult noted_record(CUevent event, CUstream stream)
{
	note('r');
	return CUDA_SUCCESS;
}

static CUresult noted_write(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	uint64_t records = (uintptr_t)fixture.session.area + VGPU_RECORDS_OFF;
	uint64_t words = (uintptr_t)fixture.session.area + VGPU_WORDS_OFF;

	check((address >= records && address < records + VGPU_RECORDS_MAX * 8) ||
		(address >= words &&
			address < words + VGPU_WORDS_MAX * sizeof(struct vgpu_word)));
	*(uint64_t *)(uintptr_t)address = value;
	note('w');
	return CUDA_SUCCESS;
}

static CUresult noted_query(CUstream stream)
{
	note('q');
	return query_result;
}

static CUresult noted_wait(CUstream stream)
{
	note('s');
	return CUDA_SUCCESS;
}

static uint64_t *record_word(uint32_t slot)
{
	return (uint64_t *)(fixture.session.area + VGPU_RECORDS_OFF) + slot;
}

static void begin(unsigned int flags)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	struct vgpu_driver *table;

	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	table = &fixture.driver.table;
	table->cuEventRecord = noted_record;
	table->cuStreamWriteValue64_v2 = noted_write;
	table->cuStreamQuery = noted_query;
	table->cuStreamSynchronize = noted_wait;
	request.event = event_handle;
	request.flags = flags;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
}

static void record(uint64_t event, uint64_t number, uint32_t flags)
{
	Vgpu__CuEventRecordRequest request = VGPU__CU_EVENT_RECORD_REQUEST__INIT;

	request.h_event = event;
	request.record = number;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventRecord, flags, &request.base),
		0);
}

TEST(a_word_is_in_front_of_a_record_without_timing)
{
	begin(CU_EVENT_DISABLE_TIMING);
	record(event_handle, 5ull << 16 | 123, 0);
	check(!strcmp(order, "wr"));
	check_eq(*record_word(123), 5ull << 16 | 123);
	fixture_deinit(&fixture);
}

static CUresult failing_query(CUevent event)
{
	return query_result;
}

TEST(a_fault_that_is_found_by_querying_an_event_is_reported)
{
	Vgpu__CuEventQueryRequest request = VGPU__CU_EVENT_QUERY_REQUEST__INIT;

	begin(CU_EVENT_DISABLE_TIMING);
	fixture.driver.table.cuEventQuery = failing_query;
	query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	request.h_event = event_handle;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventQuery, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(session_control(&fixture.session)->n_faults, 1);
	check_eq(context_find(&fixture.session, fixture.context)->fault,
		CUDA_ERROR_ILLEGAL_ADDRESS);
	fixture_deinit(&fixture);
}

TEST(the_word_of_a_record_with_timing_is_written_after_it)
{
	begin(CU_EVENT_DEFAULT);
	record(event_handle, 5ull << 16 | 123, 0);
	check(!strcmp(order, "rw"));
	check_eq(*record_word(123), 5ull << 16 | 123);
	fixture_deinit(&fixture);
}

TEST(a_record_without_a_number_writes_none)
{
	begin(CU_EVENT_DISABLE_TIMING);
	record(event_handle, 0, 0);
	check(!strcmp(order, "r"));
	fixture_deinit(&fixture);
}

TEST(a_record_names_a_word_of_its_own_kind_and_no_other_memory)
{
	begin(CU_EVENT_DISABLE_TIMING);
	record(event_handle, 5ull << 16 | VGPU_RECORDS_MAX, REPLY);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	record(event_handle, UINT64_MAX, REPLY);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	record(event_handle, 5ull << 16 | (VGPU_RECORDS_MAX - 1), REPLY);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(*record_word(VGPU_RECORDS_MAX - 1), 5ull << 16 | (VGPU_RECORDS_MAX - 1));
	fixture_deinit(&fixture);
}

TEST(a_record_that_is_refused_gives_its_word_back)
{
	begin(CU_EVENT_DISABLE_TIMING);
	record(event_handle + 1, 5ull << 16 | 9, 0);
	check(!strcmp(order, ""));
	check_eq(*record_word(9), 5ull << 16 | 9);
	record(event_handle + 1, UINT64_MAX, 0);
	check(!strcmp(order, ""));
	fixture_deinit(&fixture);
}

static void mark(uint32_t word, uint32_t flags)
{
	Vgpu__VgpuStreamMarkRequest request = VGPU__VGPU_STREAM_MARK_REQUEST__INIT;

	request.word = word;
	request.value = 77;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_vgpuStreamMark, flags, &request.base),
		0);
}

TEST(a_mark_names_a_completion_word_and_no_other_memory)
{
	begin(0);
	mark(VGPU_WORDS_MAX, REPLY);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	mark(UINT32_MAX, REPLY);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check(!strcmp(order, ""));
	mark(VGPU_WORDS_MAX - 1, REPLY);
	check_eq(fixture.result, CUDA_SUCCESS);
	check(!strcmp(order, "w"));
	fixture_deinit(&fixture);
}

static void pay(void)
{
	debts_pay(&fixture.session, &fixture.session.runner);
}

TEST(the_debt_of_a_wait_by_word_is_paid_once_the_stream_is_complete)
{
	begin(0);
	pay();
	check(!strcmp(order, ""));
	mark(3, 0);
	mark(3, 0);
	query_result = CUDA_ERROR_NOT_READY;
	pay();
	check(!strcmp(order, "wwq"));
	query_result = CUDA_SUCCESS;
	pay();
	check(!strcmp(order, "wwqqs"));
	pay();
	check(!strcmp(order, "wwqqs"));
	mark(3, 0);
	pay();
	check(!strcmp(order, "wwqqswqs"));
	fixture_deinit(&fixture);
}

TEST(nothing_is_paid_while_a_lane_may_give_streams_work)
{
	begin(0);
	mark(3, 0);
	__atomic_add_fetch(&fixture.session.debts->n_running, 1, __ATOMIC_RELAXED);
	pay();
	check(!strcmp(order, "w"));
	__atomic_sub_fetch(&fixture.session.debts->n_running, 1, __ATOMIC_RELAXED);
	pay();
	check(!strcmp(order, "wqs"));
	fixture_deinit(&fixture);
}

TEST(a_context_that_ends_owes_nothing)
{
	Vgpu__CuDevicePrimaryCtxResetV2Request request =
		VGPU__CU_DEVICE_PRIMARY_CTX_RESET_V2_REQUEST__INIT;

	begin(0);
	mark(3, 0);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuDevicePrimaryCtxReset_v2, REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	pay();
	check(!strcmp(order, "w"));
	fixture_deinit(&fixture);
}

TEST(a_fault_that_is_found_when_a_debt_is_paid_is_reported)
{
	uint32_t n_faults;

	begin(0);
	mark(3, 0);
	n_faults = session_control(&fixture.session)->n_faults;
	query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	pay();
	check_eq(session_control(&fixture.session)->n_faults, n_faults + 1);
	fixture_deinit(&fixture);
}
