/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of vgpuctl and vgpud
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/ctl-message.h"
#include "control/packet.h"
#include "test.h"

static uint8_t packet[2 * CTL_REPLY_MAX];

/* Return: whether the request is accepted after it was packed. */
static bool accepts(const VgpuCtl__Request *request)
{
	const size_t size = vgpu_ctl__request__pack(request, packet);
	const char *reason;
	VgpuCtl__Request *unpacked = ctl_request_new(packet, size, &reason);

	check((unpacked == NULL) == (reason != NULL));
	ctl_request_freep(&unpacked);
	return !reason;
}

static bool accepts_reply(const VgpuCtl__Reply *reply)
{
	const size_t size = vgpu_ctl__reply__pack(reply, packet);
	const char *reason;
	VgpuCtl__Reply *unpacked = ctl_reply_new(packet, size, &reason);

	check((unpacked == NULL) == (reason != NULL));
	ctl_reply_freep(&unpacked);
	return !reason;
}

/* Return: a text of that many letters, to be freed. */
static char *letters(size_t n)
{
	char *text = malloc(n + 1);

	check(text != NULL);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

static bool accepts_vm(char *name)
{
	VgpuCtl__Show show = VGPU_CTL__SHOW__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	show.vm = name;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SHOW;
	request.show = &show;
	return accepts(&request);
}

TEST(a_request_arrives_as_it_was_sent)
{
	VgpuCtl__Setting setting = VGPU_CTL__SETTING__INIT, *settings[] = { &setting };
	VgpuCtl__Set set = VGPU_CTL__SET__INIT;
	VgpuCtl__Request sent = VGPU_CTL__REQUEST__INIT, *request;
	const char *reason;
	int pair[2], fds[1];
	size_t size, n_fds;
	bool cut;

	setting.key = (char *)"device-memory";
	setting.value = (char *)"4G";
	set.vm = (char *)"one";
	set.n_settings = 1;
	set.settings = settings;
	sent.id = 7;
	sent.verb_case = VGPU_CTL__REQUEST__VERB_SET;
	sent.set = &set;
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	check_eq(ctl_send(pair[0], &sent.base, CTL_REQUEST_MAX), 0);
	check_eq(packet_receive(
			 pair[1], packet, sizeof(packet), &size, fds, 1, &n_fds, &cut),
		0);
	request = ctl_request_new(packet, size, &reason);
	check(request != NULL);
	check_eq(request->id, 7);
	check_eq(request->verb_case, VGPU_CTL__REQUEST__VERB_SET);
	check_str(request->set->vm, "one");
	check_eq(request->set->n_settings, 1);
	check_str(request->set->settings[0]->value, "4G");
	ctl_request_freep(&request);
	close(pair[0]);
	close(pair[1]);
}

TEST(a_message_of_too_many_bytes_is_not_sent)
{
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	reply.reason = letters(CTL_REPLY_MAX);
	check_eq(ctl_send(-1, &reply.base, CTL_REPLY_MAX), -EMSGSIZE);
	free(reply.reason);
}

TEST(texts_have_limits)
{
	char *name = letters(64);

	check(!accepts_vm(name));
	name[63] = '\0';
	check(accepts_vm(name));
	free(name);
}

TEST(control_characters_are_refused)
{
	check(accepts_vm((char *)"one"));
	check(!accepts_vm((char *)"one\n"));
	check(!accepts_vm((char *)"one\033[2J"));
	check(!accepts_vm((char *)"one\x7f"));
}

TEST(a_section_may_have_lines_but_no_escapes)
{
	VgpuCtl__Add add = VGPU_CTL__ADD__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;

	request.verb_case = VGPU_CTL__REQUEST__VERB_ADD;
	request.add = &add;
	add.text = (char *)"[vm one]\n\tsize = 4G\n";
	check(accepts(&request));
	add.text = (char *)"[vm one]\r\n";
	check(!accepts(&request));
	add.text = letters(CTL_TEXT_MAX + 1);
	check(!accepts(&request));
	add.text[CTL_TEXT_MAX] = '\0';
	check(accepts(&request));
	free(add.text);
}

TEST(lists_have_limits)
{
	VgpuCtl__Setting setting = VGPU_CTL__SETTING__INIT;
	VgpuCtl__Setting *settings[CTL_SETTINGS_MAX + 1];
	VgpuCtl__Vm vm = VGPU_CTL__VM__INIT, *vms[CTL_VMS_MAX + 1];
	VgpuCtl__Set set = VGPU_CTL__SET__INIT;
	VgpuCtl__Vms list = VGPU_CTL__VMS__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	for (size_t i = 0; i <= CTL_SETTINGS_MAX; i++)
		settings[i] = &setting;
	for (size_t i = 0; i <= CTL_VMS_MAX; i++)
		vms[i] = &vm;
	set.settings = settings;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SET;
	request.set = &set;
	list.vms = vms;
	reply.result_case = VGPU_CTL__REPLY__RESULT_LIST;
	reply.list = &list;
	for (unsigned int more = 0; more < 2; more++) {
		set.n_settings = CTL_SETTINGS_MAX + more;
		list.n_vms = CTL_VMS_MAX + more;
		check_eq(accepts(&request), !more);
		check_eq(accepts_reply(&reply), !more);
	}
}

TEST(details_without_a_vm_are_refused)
{
	VgpuCtl__Details details = VGPU_CTL__DETAILS__INIT;
	VgpuCtl__Vm vm = VGPU_CTL__VM__INIT;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	reply.result_case = VGPU_CTL__REPLY__RESULT_SHOW;
	reply.show = &details;
	check(!accepts_reply(&reply));
	details.vm = &vm;
	check(accepts_reply(&reply));
}

TEST(what_is_no_message_is_refused)
{
	const char *reason;

	memset(packet, 0xff, sizeof(packet));
	check(!ctl_request_new(packet, 64, &reason));
	check_str(reason, "the message cannot be unpacked");
	check(!ctl_reply_new(packet, 64, &reason));
	check(!ctl_hello_new(packet, 64, &reason));
}

TEST(a_packet_has_a_limit)
{
	VgpuCtl__Request *request;
	const char *reason;

	/* Field 103, which nobody knows and which is ignored, of 16380 and 16381 bytes.
	 */
	memcpy(packet, "\xba\x06\xfc\x7f", 4);
	memset(packet + 4, 0, CTL_REQUEST_MAX);
	request = ctl_request_new(packet, CTL_REQUEST_MAX, &reason);
	check(request != NULL);
	ctl_request_freep(&request);
	packet[2] = 0xfd;
	check(!ctl_request_new(packet, CTL_REQUEST_MAX + 1, &reason));
	check_str(reason, "the message cannot be unpacked");
}

TEST(a_verb_of_a_later_release_is_a_request_without_a_verb)
{
	VgpuCtl__Request *request;
	const char *reason;

	/* Field 1: the number 5; field 31, which is reserved: an empty message. */
	memcpy(packet, "\x08\x05\xfa\x01\x00", 5);
	request = ctl_request_new(packet, 5, &reason);
	check(request != NULL);
	check_eq(request->id, 5);
	check_eq(request->verb_case, VGPU_CTL__REQUEST__VERB__NOT_SET);
	ctl_request_freep(&request);
}

/* Return: whether a reply with a histogram of these bounds is accepted. */
static bool accepts_bounds(size_t n_bounds, uint64_t *bounds, size_t n_counts)
{
	VgpuCtl__CallTimes call = VGPU_CTL__CALL_TIMES__INIT, *calls[] = { &call };
	VgpuCtl__Times times = VGPU_CTL__TIMES__INIT;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT;

	call.name = (char *)"cuInit";
	call.n_bounds = n_bounds;
	call.bounds = bounds;
	call.n_counts = n_counts;
	call.counts = bounds;
	times.n_calls = 1;
	times.calls = calls;
	reply.result_case = VGPU_CTL__REPLY__RESULT_STATS;
	reply.stats = &times;
	return accepts_reply(&reply);
}

TEST(bounds_of_histograms_ascend_and_each_has_a_count)
{
	static uint64_t bounds[CTL_BUCKETS_MAX + 1];

	for (size_t i = 0; i < CTL_BUCKETS_MAX + 1; i++)
		bounds[i] = i + 1;
	check(accepts_bounds(0, bounds, 0));
	check(accepts_bounds(CTL_BUCKETS_MAX, bounds, CTL_BUCKETS_MAX));
	check(!accepts_bounds(CTL_BUCKETS_MAX + 1, bounds, CTL_BUCKETS_MAX + 1));
	check(!accepts_bounds(3, bounds, 2));
	bounds[2] = bounds[1];
	check(!accepts_bounds(3, bounds, 3));
	check(accepts_bounds(2, bounds, 2));
}
