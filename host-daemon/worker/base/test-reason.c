/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons: the reason of a failed call reaches its lane, and nothing else does
 */

#include <string.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/reason.h"

static struct fixture fixture;
static const char *words; /* of the driver, at its next call */
static CUresult result;

static CUresult synchronize(void)
{
	if (words)
		reason_from_driver(NULL, words, strlen(words));
	return result;
}

static void begin(void)
{
	fixture_init(&fixture);
	for (uint32_t lane = 0; lane < 2; lane++)
		fixture_enter(&fixture, lane);
	fixture.driver.table.cuCtxSynchronize = synchronize;
}

static uint32_t slot_reason(uint32_t lane)
{
	const struct vgpu_reply_slot *slots =
		(const struct vgpu_reply_slot *)(fixture.session.area + VGPU_SLOTS_OFF);

	return slots[lane].reason;
}

/* A call of a lane: the driver's reason, and the result. Returns: the slot's word. */
static uint32_t call(uint32_t lane, const char *said, CUresult ended)
{
	Vgpu__CuCtxSynchronizeRequest request = VGPU__CU_CTX_SYNCHRONIZE_REQUEST__INIT;

	words = said;
	result = ended;
	check_eq(fixture_call(&fixture, lane, VGPU_CALL_cuCtxSynchronize,
			 VGPU_FRAME_REPLY, &request.base),
		0);
	check_eq(fixture.result, ended);
	return slot_reason(lane);
}

static void check_fetched(uint32_t lane, const char *expected)
{
	Vgpu__VgpuReasonFetchRequest request = VGPU__VGPU_REASON_FETCH_REQUEST__INIT;
	Vgpu__VgpuReasonFetchReply *reply;
	char text[VGPU_REASON_TEXT_MAX + 1] = "";

	check_eq(fixture_call(&fixture, lane, VGPU_CALL_vgpuReasonFetch, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	reply = vgpu__vgpu_reason_fetch_reply__unpack(
		NULL, fixture.reply_size, fixture.reply);
	check(reply && reply->text.len <= VGPU_REASON_TEXT_MAX);
	if (reply->text.len)
		memcpy(text, reply->text.data, reply->text.len);
	check_str(text, expected);
	vgpu__vgpu_reason_fetch_reply__free_unpacked(reply, NULL);
}

TEST(the_reason_of_a_failed_call_is_fetched_only_by_its_lane)
{
	begin();
	check_eq(call(0, "it rains", CUDA_ERROR_NOT_SUPPORTED), VGPU_REPLY_REASON_LOAD);
	check_fetched(0, "it rains");
	check_fetched(1, "");
	/* A call that succeeds meanwhile does not remove it. */
	call(0, NULL, CUDA_SUCCESS);
	check_fetched(0, "it rains");
	fixture_deinit(&fixture);
}

TEST(a_failure_of_which_nothing_is_said_has_none)
{
	begin();
	call(0, "it rains", CUDA_ERROR_NOT_SUPPORTED);
	check_eq(call(0, NULL, CUDA_ERROR_NOT_FOUND), VGPU_REPLY_REASON_NONE);
	check_fetched(0, "");
	fixture_deinit(&fixture);
}

TEST(a_reason_noted_by_a_successful_call_is_not_kept_for_the_next)
{
	begin();
	call(0, "no matter", CUDA_SUCCESS);
	check_eq(call(1, NULL, CUDA_ERROR_NOT_FOUND), VGPU_REPLY_REASON_NONE);
	check_fetched(0, "");
	check_fetched(1, "");
	fixture_deinit(&fixture);
}

TEST(the_last_word_counts)
{
	begin();
	reason_say(VGPU_REPLY_REASON_LOAD, "first");
	check_eq(call(0, "second", CUDA_ERROR_NOT_FOUND), VGPU_REPLY_REASON_LOAD);
	check_fetched(0, "second");
	fixture_deinit(&fixture);
}

TEST(text_is_made_printable_and_cut)
{
	char longer[VGPU_REASON_TEXT_MAX + 100];

	begin();
	call(0, "a\x1b[31m\n\xff\t", CUDA_ERROR_NOT_FOUND);
	check_fetched(0, "a?[31m ?");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	call(0, longer, CUDA_ERROR_NOT_FOUND);
	longer[VGPU_REASON_TEXT_MAX] = '\0';
	check_fetched(0, longer);
	/* Nothing is left of blanks alone. */
	check_eq(call(0, "\n \n", CUDA_ERROR_NOT_FOUND), VGPU_REPLY_REASON_NONE);
	fixture_deinit(&fixture);
}

TEST(a_limit_of_the_vm_is_named)
{
	Vgpu__CuMemAllocV2Request request = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;

	begin();
	fixture_limit_memory(&fixture, 1000);
	request.bytesize = 1001;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemAlloc_v2, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(slot_reason(0), VGPU_REPLY_REASON_LIMIT);
	check_fetched(0,
		"1001 bytes more would pass the 1000 bytes of device memory that this VM "
		"may have: device-memory = in vgpud.conf on the host sets that");
	fixture_deinit(&fixture);
}
