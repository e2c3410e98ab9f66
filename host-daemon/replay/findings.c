/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: where a replay differs from its recording
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/flight-text.h"
#include "replay/findings.h"
#include "vgpu/cuda.h"
#include "vgpu/g-calls.h"

void findings_begin(struct findings *findings, uint64_t number, uint16_t call)
{
	findings->calls[number % FINDINGS_CALLS] = call;
}

const char *findings_name(const struct findings *findings, uint64_t number)
{
	return vgpu_call_name(findings->calls[number % FINDINGS_CALLS]);
}

void findings_differ(struct findings *findings, uint64_t number, const char *format, ...)
{
	va_list list;

	if (!findings->first || number < findings->first)
		findings->first = number;
	if (findings->n_different++ >= findings->n_lines_max || findings->is_quiet)
		return;
	printf("call #%" PRIu64 " ", number);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
}

bool findings_is_of_time(uint32_t call)
{
	switch (call) {
	case VGPU_CALL_cuStreamQuery:
	case VGPU_CALL_cuEventQuery:
	case VGPU_CALL_cuEventElapsedTime:
	case VGPU_CALL_cuEventElapsedTime_v2:
	case VGPU_CALL_cuMemGetInfo:
	case VGPU_CALL_cuMemGetInfo_v2:
	case VGPU_CALL_vgpuCallbackNext:
	case VGPU_CALL_vgpuNoticeNext:
	case VGPU_CALL_vgpuPrintFetch:
		return true;
	default:
		return false;
	}
}

/*
 * Results
 */

bool findings_add_end(struct findings *findings, const struct recording_end *end)
{
	if (findings->n_ends == FINDINGS_PENDING_MAX)
		return false;
	findings->ends[findings->n_ends++] = *end;
	return true;
}

static uint32_t find_end(const struct findings *findings, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < findings->n_ends; i++)
		if (findings->ends[i].number == number)
			break;
	return i;
}

bool findings_get_end(const struct findings *findings, uint64_t number, int32_t *resultp)
{
	const uint32_t i = find_end(findings, number);

	if (i < findings->n_ends)
		*resultp = findings->ends[i].result;
	return i < findings->n_ends;
}

bool findings_has_end(const struct findings *findings, uint64_t number)
{
	return find_end(findings, number) < findings->n_ends;
}

/* Calls without a reply: the guest does not learn whether the fault was there already,
 * and what they asked for is not done in either case. */
static bool is_before_or_after_fault(const struct findings *findings,
	const struct recording_end *a, const struct recording_end *b)
{
	return findings->n_faults_expected && a->call == b->call &&
	       a->reply_size == UINT32_MAX && b->reply_size == UINT32_MAX &&
	       ((flight_is_fault(a->result) && b->result == CUDA_SUCCESS) ||
		       (flight_is_fault(b->result) && a->result == CUDA_SUCCESS));
}

/* A call that returns a fault is the first that does so of all that were not named. */
static void name_faults(struct findings *findings, const struct recording_end *end)
{
	if (!flight_is_fault(end->result))
		return;
	while (findings->n_faults_named < findings->n_faults_expected)
		findings->faults[findings->n_faults_named++].number = end->number;
}

void findings_expect_end(struct findings *findings, const struct recording_end *expected)
{
	const uint32_t i = find_end(findings, expected->number);
	const char *name = vgpu_call_name((uint16_t)expected->call);
	char texts[2][32];
	struct recording_end found;

	if (i == findings->n_ends)
		return;
	found = findings->ends[i];
	findings->ends[i] = findings->ends[--findings->n_ends];
	name_faults(findings, expected);
	if (findings_is_of_time(expected->call) ||
		is_before_or_after_fault(findings, &found, expected)) {
		findings->n_ignored++;
		return;
	}
	findings->n_compared++;
	if (found.result != expected->result)
		findings_differ(findings, expected->number,
			"%s: it returns %s, and returned %s when it was recorded", name,
			flight_result(found.result, texts[0]),
			flight_result(expected->result, texts[1]));
	else if (found.call != expected->call ||
		 found.reply_size != expected->reply_size ||
		 found.digest != expected->digest)
		findings_differ(findings, expected->number,
			"%s: its reply has %u bytes with digest %016" PRIx64
			", and had %u bytes with digest %016" PRIx64
			" when it was recorded",
			name, found.reply_size, found.digest, expected->reply_size,
			expected->digest);
}

/*
 * Faults
 */

void findings_add_fault(struct findings *findings, const struct recording_fault *found)
{
	if (findings->n_faults_found < FINDINGS_FAULTS)
		findings->faults[findings->n_faults_found++].found = *found;
}

void findings_expect_fault(
	struct findings *findings, const struct recording_fault *expected)
{
	if (findings->n_faults_expected < FINDINGS_FAULTS)
		findings->faults[findings->n_faults_expected++].expected = *expected;
}

bool findings_fault_differs(const struct findings *findings, uint32_t i)
{
	return i >= findings->n_faults_found ||
	       findings->faults[i].found.result != findings->faults[i].expected.result;
}

/* One that is the same. */
static void tell_fault(const struct findings *findings, uint32_t i)
{
	const struct findings_fault *fault = &findings->faults[i];
	char text[32];

	if (findings->is_quiet || i >= findings->n_lines_max)
		return;
	if (fault->number)
		printf("call #%" PRIu64 " %s: ", fault->number,
			findings_name(findings, fault->number));
	printf("the same fault, %s: %s\n", flight_result(fault->found.result, text),
		fault->found.text);
	if (strcmp(fault->found.text, fault->expected.text))
		printf("  when it was recorded: %s\n", fault->expected.text);
}

void findings_tell_faults(struct findings *findings)
{
	char texts[2][32];

	for (uint32_t i = 0; i < findings->n_faults_expected; i++) {
		const struct findings_fault *fault = &findings->faults[i];

		if (!findings_fault_differs(findings, i))
			tell_fault(findings, i);
		else if (i < findings->n_faults_found)
			findings_differ(findings, fault->number,
				"%s: the fault is %s, %s; it was %s, %s",
				findings_name(findings, fault->number),
				flight_result(fault->found.result, texts[0]),
				fault->found.text,
				flight_result(fault->expected.result, texts[1]),
				fault->expected.text);
		else
			findings_differ(findings, fault->number,
				"%s: no kernel fails; when it was recorded one did with "
				"%s: %s",
				findings_name(findings, fault->number),
				flight_result(fault->expected.result, texts[0]),
				fault->expected.text);
	}
	/* The recording may have ended before them: a call that returned one differs. */
	if (findings->n_faults_found > findings->n_faults_expected && !findings->is_quiet)
		printf("kernels fail that did not until the recording ended: %s\n",
			findings->faults[findings->n_faults_expected].found.text);
}

/*
 * Outputs
 */

static bool is_same_place(
	const struct recording_output *a, const struct recording_output *b)
{
	return a->number == b->number && a->offset == b->offset && a->size == b->size;
}

/* Takes the counterpart out of a list. Return: whether there was one. */
static bool take(struct findings_list *list, const struct recording_output *output,
	struct recording_output *other)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (!is_same_place(&list->outputs[i], output))
			continue;
		*other = list->outputs[i];
		list->outputs[i] = list->outputs[--list->n];
		return true;
	}
	return false;
}

static void compare(struct findings *findings, const struct recording_output *expected,
	const struct recording_output *found)
{
	findings->n_outputs++;
	if (expected->digest == found->digest)
		return;
	findings_differ(findings, expected->number,
		"%s: the %" PRIu64 " bytes that it copied have digest %016" PRIx64
		", and had %016" PRIx64 " when it was recorded",
		findings_name(findings, expected->number), expected->size, found->digest,
		expected->digest);
}

static void miss(struct findings *findings, const struct recording_output *expected)
{
	findings_differ(findings, expected->number,
		"%s: its copy of %" PRIu64 " bytes does not complete",
		findings_name(findings, expected->number), expected->size);
}

void findings_add_output(struct findings *findings, const struct recording_output *found)
{
	struct recording_output expected;

	if (take(&findings->expected, found, &expected))
		compare(findings, &expected, found);
	else if (findings->found.n < FINDINGS_PENDING_MAX)
		findings->found.outputs[findings->found.n++] = *found;
	/* Else the recording ends before them, or they are missed below. */
}

void findings_expect_output(
	struct findings *findings, const struct recording_output *expected)
{
	struct recording_output found;

	if (take(&findings->found, expected, &found))
		compare(findings, expected, &found);
	else if (findings->expected.n < FINDINGS_PENDING_MAX)
		findings->expected.outputs[findings->expected.n++] = *expected;
	else
		miss(findings, expected);
}

bool findings_wait(const struct findings *findings)
{
	return findings->expected.n;
}

void findings_give_up(struct findings *findings)
{
	for (uint32_t i = 0; i < findings->expected.n; i++)
		miss(findings, &findings->expected.outputs[i]);
	findings->expected.n = 0;
}
