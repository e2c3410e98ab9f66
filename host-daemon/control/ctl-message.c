/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl message: what vgpuctl and vgpud send each other
 *
 * protobuf-c reads nothing beyond the packet, and allocates a small multiple of it. It
 * does not look into texts: control characters would reach logs and terminals.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/ctl-message.h"
#include "control/packet.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

static const char not_unpacked[] = "the message cannot be unpacked";
static const char wrong_text[] = "a text is too long or has control characters";
static const char long_list[] = "a list is too long";
static const char wrong_buckets[] = "the buckets of a histogram are wrong";

/* Texts of several lines may have newlines and tabs. */
static bool is_text(const char *text, size_t size_max, const char *also)
{
	const size_t size = strnlen(text, size_max + 1);

	if (size > size_max)
		return false;
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)text[i] < ' ' && !strchr(also, text[i])) ||
			text[i] == 0x7f)
			return false;
	return true;
}

static bool is_line(const char *text, size_t size_max)
{
	return is_text(text, size_max, "");
}

static bool is_name(const char *text)
{
	return is_line(text, CONTROL_VM_NAME_MAX - 1);
}

static bool are_settings(size_t n, VgpuCtl__Setting **settings)
{
	for (size_t i = 0; i < n; i++)
		if (!is_name(settings[i]->key) ||
			!is_line(settings[i]->value, CTL_VALUE_MAX))
			return false;
	return true;
}

static bool is_hello(const VgpuCtl__Hello *hello)
{
	return is_line(hello->release, CTL_VALUE_MAX) &&
	       is_line(hello->reason, CTL_VALUE_MAX) &&
	       is_line(hello->config, CTL_TEXT_MAX);
}

static const char *check_request(const VgpuCtl__Request *request)
{
	bool is_right = true;

	switch (request->verb_case) {
	case VGPU_CTL__REQUEST__VERB_HELLO:
		is_right = is_hello(request->hello);
		break;
	case VGPU_CTL__REQUEST__VERB_LIST:
		is_right = is_name(request->list->after);
		break;
	case VGPU_CTL__REQUEST__VERB_SHOW:
		is_right = is_name(request->show->vm);
		break;
	case VGPU_CTL__REQUEST__VERB_TRACE:
		is_right = is_name(request->trace->vm);
		break;
	case VGPU_CTL__REQUEST__VERB_RECORD:
		is_right = is_name(request->record->vm) &&
			   is_line(request->record->command, CTL_VALUE_MAX);
		break;
	case VGPU_CTL__REQUEST__VERB_SET:
		if (request->set->n_settings > CTL_SETTINGS_MAX)
			return long_list;
		is_right = is_name(request->set->vm) &&
			   are_settings(request->set->n_settings, request->set->settings);
		break;
	case VGPU_CTL__REQUEST__VERB_ADD:
		is_right = is_name(request->add->vm) &&
			   is_text(request->add->text, CTL_TEXT_MAX, "\n\t");
		break;
	case VGPU_CTL__REQUEST__VERB_REMOVE:
		is_right = is_name(request->remove->vm);
		break;
	case VGPU_CTL__REQUEST__VERB_STATS:
		is_right = is_name(request->stats->vm);
		break;
	case VGPU_CTL__REQUEST__VERB__NOT_SET:
	default:
		/* Of a later release: the reply says so. */
		break;
	}
	return is_right ? NULL : wrong_text;
}

static bool are_endings(size_t n, VgpuCtl__Ending **endings)
{
	if (n > CTL_REASONS_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_name(endings[i]->reason))
			return false;
	return true;
}

static bool are_totals(const VgpuCtl__Totals *totals)
{
	return !totals || (are_endings(totals->n_ended, totals->ended) &&
				  are_endings(totals->n_refused, totals->refused));
}

static bool is_vm(const VgpuCtl__Vm *vm)
{
	return is_name(vm->name) && is_line(vm->transport, CTL_VALUE_MAX) &&
	       is_line(vm->place, CTL_TEXT_MAX) && are_totals(vm->totals);
}

static const char *check_list(const VgpuCtl__Vms *list)
{
	if (list->n_vms > CTL_VMS_MAX)
		return long_list;
	for (size_t i = 0; i < list->n_vms; i++)
		if (!is_vm(list->vms[i]))
			return wrong_text;
	return NULL;
}

static const char *check_details(const VgpuCtl__Details *details)
{
	if (details->n_settings > CTL_SETTINGS_MAX ||
		details->n_sessions > CTL_SESSIONS_MAX)
		return long_list;
	if (!details->vm || !is_vm(details->vm) ||
		!are_settings(details->n_settings, details->settings))
		return wrong_text;
	for (size_t i = 0; i < details->n_sessions; i++)
		if (!is_line(details->sessions[i]->name, CTL_VALUE_MAX) ||
			!is_line(details->sessions[i]->phase, CTL_VALUE_MAX))
			return wrong_text;
	return NULL;
}

/* Bounds have to ascend, so that a reader may add up. */
static bool is_histogram(const VgpuCtl__CallTimes *call)
{
	if (call->n_bounds > CTL_BUCKETS_MAX || call->n_bounds != call->n_counts)
		return false;
	for (size_t i = 1; i < call->n_bounds; i++)
		if (call->bounds[i] <= call->bounds[i - 1])
			return false;
	return true;
}

static const char *check_times(const VgpuCtl__Times *times)
{
	if (times->n_calls > CTL_CALLS_MAX)
		return long_list;
	for (size_t i = 0; i < times->n_calls; i++) {
		if (!is_name(times->calls[i]->name))
			return wrong_text;
		if (!is_histogram(times->calls[i]))
			return wrong_buckets;
	}
	return NULL;
}

static const char *check_reply(const VgpuCtl__Reply *reply)
{
	if (!is_text(reply->reason, CTL_TEXT_MAX, "\n\t"))
		return wrong_text;
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_LIST)
		return check_list(reply->list);
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_SHOW)
		return check_details(reply->show);
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_STATS)
		return check_times(reply->stats);
	return NULL;
}

VgpuCtl__Request *ctl_request_new(const void *packet, size_t size, const char **reasonp)
{
	VgpuCtl__Request *request = NULL;

	if (size <= CTL_REQUEST_MAX)
		request = vgpu_ctl__request__unpack(NULL, size, packet);
	*reasonp = request ? check_request(request) : not_unpacked;
	if (*reasonp)
		ctl_request_freep(&request);
	return *reasonp ? NULL : request;
}

VgpuCtl__Reply *ctl_reply_new(const void *packet, size_t size, const char **reasonp)
{
	VgpuCtl__Reply *reply = NULL;

	if (size <= CTL_REPLY_MAX)
		reply = vgpu_ctl__reply__unpack(NULL, size, packet);
	*reasonp = reply ? check_reply(reply) : not_unpacked;
	if (*reasonp)
		ctl_reply_freep(&reply);
	return *reasonp ? NULL : reply;
}

VgpuCtl__Hello *ctl_hello_new(const void *packet, size_t size, const char **reasonp)
{
	VgpuCtl__Hello *hello = NULL;

	if (size <= CTL_REPLY_MAX)
		hello = vgpu_ctl__hello__unpack(NULL, size, packet);
	*reasonp = !hello ? not_unpacked : is_hello(hello) ? NULL : wrong_text;
	if (*reasonp)
		ctl_hello_freep(&hello);
	return *reasonp ? NULL : hello;
}

void ctl_request_freep(VgpuCtl__Request **requestp)
{
	vgpu_ctl__request__free_unpacked(*requestp, NULL);
}

void ctl_reply_freep(VgpuCtl__Reply **replyp)
{
	vgpu_ctl__reply__free_unpacked(*replyp, NULL);
}

void ctl_hello_freep(VgpuCtl__Hello **hellop)
{
	vgpu_ctl__hello__free_unpacked(*hellop, NULL);
}

int ctl_send(int fd, const ProtobufCMessage *message, size_t size_max)
{
	return ctl_send_fd(fd, message, size_max, -1);
}

int ctl_send_fd(int fd, const ProtobufCMessage *message, size_t size_max, int descriptor)
{
	const size_t size = protobuf_c_message_get_packed_size(message);
	_vgpu_cleanup_(vgpu_freep) uint8_t *packet = NULL;

	if (size > size_max)
		return vgpu_error_origin(-EMSGSIZE);
	/* An empty packet would be the end of the connection. */
	packet = malloc(size + 1);
	if (!packet)
		return vgpu_error_origin(-ENOMEM);
	protobuf_c_message_pack(message, packet);
	return packet_send(fd, packet, size, &descriptor, descriptor >= 0);
}
