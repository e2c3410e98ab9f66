/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons, against a host whose every call fails: what is said, how often, and what of it
 * reaches a terminal
 */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"
#include "vgpu/reason.h"
#include "vgpu/ring.h"

#include "fake-host.h"
#include "process/call.h"
#include "wire/reason.h"
#include "wire/sentence.h"

/* The log's file stays open. */
const bool test_keeps_descriptors = true;

static struct {
	struct vgpu_ring_consumer consumer;
	/* The result of its calls, and the reason. */
	uint32_t kind;
	const char *text;
	int32_t result;
	uint32_t n_fetched; /* atomic */
} host;

static uint32_t *state;
static char log_path[128];

static struct vgpu_reply_slot *slot_of(const struct vgpu_frame *frame)
{
	return (struct vgpu_reply_slot *)(shim_channel.slots +
					  (size_t)frame->lane * VGPU_SLOT_SIZE);
}

static void answer(const struct vgpu_frame *frame)
{
	Vgpu__VgpuReasonFetchReply fetched = VGPU__VGPU_REASON_FETCH_REPLY__INIT;
	Vgpu__AnyReply failed = VGPU__ANY_REPLY__INIT;
	const ProtobufCMessage *reply = &failed.base;
	struct vgpu_reply_slot *slot = slot_of(frame);

	if (frame->call == VGPU_CALL_vgpuReasonFetch) {
		fetched.text.data = (uint8_t *)host.text;
		fetched.text.len = strlen(host.text);
		reply = &fetched.base;
		__atomic_add_fetch(&host.n_fetched, 1, __ATOMIC_RELAXED);
	} else {
		failed.result = host.result;
		slot->reason = host.kind;
	}
	slot->size = (uint32_t)protobuf_c_message_pack(reply, slot->body);
	__atomic_store_n(&slot->sequence, frame->sequence, __ATOMIC_RELEASE);
}

static void *host_main(void *argument)
{
	const struct vgpu_frame *frame;

	for (;;) {
		if (vgpu_ring_next(&host.consumer, &frame)) {
			sched_yield();
			continue;
		}
		if (frame->flags & VGPU_FRAME_REPLY)
			answer(frame);
		vgpu_ring_release(&host.consumer);
	}
	return argument;
}

static void begin(const char *level)
{
	state = calloc(1, sizeof(*state));
	check(state);
	*state = SHIM_READY;
	fake_host_start(state, &host.consumer, host_main);
	setenv("VGPU_LOG", level, 1);
	shim_reason_setup();
	snprintf(log_path, sizeof(log_path), "%s/log", test_tmpdir());
	check_eq(vgpu_log_open(log_path), 0);
}

static void end(void)
{
	*state = SHIM_NEW;
}

/* A call with the host's answer set by the test. */
static void call(uint32_t kind, const char *text, CUresult result)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLinkDestroy);
	Vgpu__CuLinkDestroyRequest request = VGPU__CU_LINK_DESTROY_REQUEST__INIT;
	const ProtobufCMessage *reply;

	host.kind = kind;
	host.text = text;
	host.result = (int32_t)result;
	check_eq(shim_call_sync(
			 &call, &request.base, &vgpu__any_reply__descriptor, &reply),
		result);
	/* The reply was fetched to another place. */
	check(reply);
	check_eq(((const Vgpu__AnyReply *)reply)->result, result);
}

static void check_log(const char *expected, int n)
{
	FILE *file = fopen(log_path, "re");
	char line[2048];
	int found = 0;

	check(file);
	while (fgets(line, sizeof(line), file)) {
		for (char *c = line; *c && *c != '\n'; c++)
			check(*c >= ' ' && *c <= '~');
		found += strstr(line, expected) != NULL;
	}
	fclose(file);
	check_eq(found, n);
}

TEST(a_reason_of_the_host_is_said_with_call_and_code)
{
	begin("error");
	call(VGPU_REPLY_REASON_LOAD, "it has no PTX", CUDA_ERROR_NO_BINARY_FOR_GPU);
	check_log(
		"error: cuLinkDestroy fails with CUDA_ERROR_NO_BINARY_FOR_GPU (209): it "
		"has no PTX\n",
		1);
	end();
}

TEST(each_kind_is_said_once_and_then_not_even_asked_for)
{
	begin("error");
	for (int i = 0; i < 3; i++) {
		call(VGPU_REPLY_REASON_LOAD, "it has no PTX",
			CUDA_ERROR_NO_BINARY_FOR_GPU);
		call(VGPU_REPLY_REASON_LOAD, "no such thing", CUDA_ERROR_NOT_SUPPORTED);
		call(VGPU_REPLY_REASON_LIMIT, "too much", CUDA_ERROR_OUT_OF_MEMORY);
	}
	check_log("it has no PTX", 1);
	check_log("no such thing", 1);
	check_log("too much", 1);
	check_eq(host.n_fetched, 3);
	end();
}

TEST(repeated_reasons_are_printed_at_level_info)
{
	begin("info");
	call(VGPU_REPLY_REASON_LOAD, "first", CUDA_ERROR_NOT_SUPPORTED);
	call(VGPU_REPLY_REASON_LOAD, "second", CUDA_ERROR_NOT_SUPPORTED);
	check_log("error: cuLinkDestroy fails with CUDA_ERROR_NOT_SUPPORTED (801): first",
		1);
	check_log("info: cuLinkDestroy fails with CUDA_ERROR_NOT_SUPPORTED (801): second",
		1);
	end();
}

TEST(nothing_is_asked_for_where_nobody_reads_it)
{
	begin("none");
	call(VGPU_REPLY_REASON_LOAD, "first", CUDA_ERROR_NOT_SUPPORTED);
	check_eq(host.n_fetched, 0);
	check_log("first", 0);
	end();
}

TEST(a_call_without_a_reason_asks_for_none)
{
	begin("debug");
	call(VGPU_REPLY_REASON_NONE, "unasked", CUDA_ERROR_NOT_SUPPORTED);
	/* Left from a call before; the host writes it with failures only. */
	call(VGPU_REPLY_REASON_LOAD, "unasked", CUDA_SUCCESS);
	/* Answers of a later host version. */
	call(77, "unasked", CUDA_ERROR_NOT_SUPPORTED);
	check_eq(host.n_fetched, 0);
	check_log("unasked", 0);
	end();
}

TEST(text_of_a_host_is_printed_as_plain_text_on_one_line)
{
	char longer[VGPU_REASON_TEXT_MAX + 200];

	begin("error");
	call(VGPU_REPLY_REASON_LOAD, "a\x1b[2Jb\nc\xf0\x9f\x92\xa9",
		CUDA_ERROR_NOT_FOUND);
	check_log(": a?[2Jb c????\n", 1);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	call(VGPU_REPLY_REASON_LOAD, longer, CUDA_ERROR_INVALID_IMAGE);
	longer[VGPU_REASON_TEXT_MAX] = '\0';
	check_log(longer, 1);
	longer[VGPU_REASON_TEXT_MAX] = 'x';
	check_log(longer, 0);
	end();
}

TEST(a_note_is_said_by_cuInit_and_then_forgotten)
{
	begin("error");
	shim_reason_note(SHIM_REASON_TRANSPORT, "first %d", 1);
	shim_reason_note(SHIM_REASON_REFUSED, "last %d", 2);
	shim_reason_tell_init(CUDA_ERROR_NO_DEVICE, "nothing noted");
	check_log("first", 0);
	check_log("error: cuInit fails with CUDA_ERROR_NO_DEVICE (100): last 2\n", 1);
	shim_reason_tell_init(CUDA_ERROR_NO_DEVICE, "nothing noted");
	check_log("nothing noted", 1);
	end();
}

TEST(every_reason_of_a_channel_has_a_distinct_sentence)
{
	char texts[_VGPU_REASON_N][SHIM_SENTENCE_SIZE];
	struct vgpu_channel_entry entry = { .detail = 11 };

	/* Those that never end one are not asked for. */
	for (uint32_t i = VGPU_REASON_NO_DEVICE; i < _VGPU_REASON_N; i++) {
		entry.reason = i;
		shim_sentence_of_channel(texts[i], &entry);
		check(strlen(texts[i]) > 20);
		for (uint32_t j = VGPU_REASON_NO_DEVICE; j < i; j++)
			check(strcmp(texts[i], texts[j]) != 0);
	}
	check(strstr(texts[VGPU_REASON_WORKER_DIED], "(Segmentation fault)"));
	entry.reason = _VGPU_REASON_N + 1;
	shim_sentence_of_channel(texts[0], &entry);
	check_str(texts[0], texts[VGPU_REASON_HOST]);
	/* Nor does a number that is no signal's matter. */
	entry.reason = VGPU_REASON_WORKER_DIED;
	entry.detail = 1ull << 40;
	shim_sentence_of_channel(texts[0], &entry);
	check(strstr(texts[0], "died: "));
}
