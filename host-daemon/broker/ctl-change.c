/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl change: another configuration by vgpuctl
 *
 * The broker has the texts from which its configuration was parsed. A request changes one
 * of them, and all are parsed again: so a change meets the same checks as a file, and a
 * mistake is reported with the line that it would have there. The files themselves are
 * vgpuctl's: writing them takes time that this process does not have.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/ctl-change.h"
#include "broker/ctl-server.h"
#include "broker/state.h"
#include "control/ctl-message.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/config-edit.h"
#include "vgpud/config-show.h"
#include "vgpud/link.h"

/* Refuses the request. Return: false. */
static bool __attribute__((__format__(__printf__, 3, 4)))
refuse(VgpuCtl__Reply *reply, VgpuCtl__Status status, const char *format, ...)
{
	char text[CTL_TEXT_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	/* Values of a file may have any bytes. */
	for (char *c = text; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f)
			*c = '?';
	reply->status = status;
	reply->reason = strdup(text);
	if (!reply->reason)
		reply->reason = (char *)protobuf_c_empty_string;
	return false;
}

void ctl_change_free(VgpuCtl__Reply *reply)
{
	if (reply->reason != (char *)protobuf_c_empty_string)
		free(reply->reason);
	if (reply->result_case == VGPU_CTL__REPLY__RESULT_CHANGED)
		free(reply->changed);
}

static bool refuse_for_memory(VgpuCtl__Reply *reply)
{
	return refuse(reply, VGPU_CTL__STATUS__FAILED, "vgpud has no memory for it");
}

static bool reply_unchanged(VgpuCtl__Reply *reply)
{
	reply->changed = calloc(1, sizeof(*reply->changed));
	if (!reply->changed)
		return refuse_for_memory(reply);
	vgpu_ctl__changed__init(reply->changed);
	reply->result_case = VGPU_CTL__REPLY__RESULT_CHANGED;
	return false;
}

/*
 * Texts
 */

static const struct config_vm *find_vm(const struct config *config, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (!strcmp(vm->name, name))
			return vm;
	return NULL;
}

/* Return: the text that a place of the configuration is in, or NULL. */
static struct config_source *find_source(struct config_sources *sources, const char *file)
{
	for (size_t i = 0; file && i < sources->n; i++)
		if (!strcmp(sources->list[i].path, file))
			return &sources->list[i];
	return NULL;
}

static bool edit(struct config_source *source, const char *section,
	const VgpuCtl__Setting *setting, VgpuCtl__Reply *reply)
{
	char *edited;
	int r;

	r = config_edit(source->text, section, setting->key, setting->value, &edited);
	if (r == CONFIG_EDIT_E_ABSENT)
		return refuse(reply, VGPU_CTL__STATUS__INVALID, "%s has no section [%s]",
			source->path, section);
	if (r == CONFIG_EDIT_E_VALUE)
		return refuse(reply, VGPU_CTL__STATUS__INVALID,
			"%s = %s: a value has no semicolon, and no blank at an end",
			setting->key, setting->value);
	if (r)
		return refuse_for_memory(reply);
	free(source->text);
	source->text = edited;
	return true;
}

static bool set(const struct broker *broker, struct config_sources *sources,
	const VgpuCtl__Set *request, VgpuCtl__Reply *reply)
{
	const bool is_vm = *request->vm;
	const struct config_vm *vm = is_vm ? find_vm(broker->config, request->vm) : NULL;
	const struct text_place place = vm ? vm->place : broker->config->place;
	struct config_source *source = find_source(sources, place.file);
	char section[CONTROL_VM_NAME_MAX + 8] = "vgpud";

	if (is_vm && !vm)
		return refuse(reply, VGPU_CTL__STATUS__UNKNOWN,
			"there is no virtual machine %s", request->vm);
	if (!source)
		return refuse(reply, VGPU_CTL__STATUS__FAILED, "its section is lost");
	if (vm)
		snprintf(section, sizeof(section), "vm %s", vm->name);
	for (size_t i = 0; i < request->n_settings; i++) {
		const VgpuCtl__Setting *setting = request->settings[i];

		if (!config_is_live(is_vm, setting->key))
			return refuse(reply, VGPU_CTL__STATUS__INVALID,
				"[%s] has no key %s that can change while vgpud serves",
				section, setting->key);
		if (!edit(source, section, setting, reply))
			return false;
	}
	return true;
}

/* The file of a machine in the folder beside the main file. */
static char *path_of(const struct config_sources *sources, const char *vm)
{
	const char *main_path = sources->list[0].path, *end = strrchr(main_path, '/');
	char *path;

	if (asprintf(&path, "%.*s%s/%s%s", end ? (int)(end - main_path) + 1 : 0,
		    main_path, CONFIG_SOURCE_FOLDER, vm, CONFIG_SOURCE_SUFFIX) < 0)
		return NULL;
	return path;
}

/* In the order of names, as if all had been read from the folder. */
static bool insert(struct config_sources *sources, const char *vm, const char *text)
{
	struct config_source source = { path_of(sources, vm), strdup(text), strdup(vm) };
	struct config_source *list =
		reallocarray(sources->list, sources->n + 1, sizeof(*list));
	size_t i = sources->n;

	if (list)
		sources->list = list;
	if (!list || !source.path || !source.text || !source.vm) {
		free(source.path);
		free(source.text);
		free(source.vm);
		return false;
	}
	while (i > 1 && strcmp(list[i - 1].path, source.path) > 0) {
		list[i] = list[i - 1];
		i--;
	}
	list[i] = source;
	sources->n++;
	sources->has_folder = true;
	return true;
}

static struct config_source *find_own(struct config_sources *sources, const char *vm)
{
	for (size_t i = 1; i < sources->n; i++)
		if (!strcmp(sources->list[i].vm, vm))
			return &sources->list[i];
	return NULL;
}

static bool add(struct config_sources *sources, const VgpuCtl__Add *request,
	VgpuCtl__Reply *reply)
{
	struct config_source *source = find_own(sources, request->vm);
	char *text;

	if (!source)
		return insert(sources, request->vm, request->text)
			       ? true
			       : refuse_for_memory(reply);
	text = strdup(request->text);
	if (!text)
		return refuse_for_memory(reply);
	free(source->text);
	source->text = text;
	return true;
}

static bool remove_vm(const struct broker *broker, struct config_sources *sources,
	const VgpuCtl__Remove *request, VgpuCtl__Reply *reply)
{
	const struct config_vm *vm = find_vm(broker->config, request->vm);
	struct config_source *source = find_own(sources, request->vm);

	if (!vm)
		return refuse(reply, VGPU_CTL__STATUS__UNKNOWN,
			"there is no virtual machine %s", request->vm);
	if (!source)
		return refuse(reply, VGPU_CTL__STATUS__INVALID,
			"%s:%d: [vm %s] is in a file that vgpuctl does not write",
			vm->place.file, vm->place.line, vm->name);
	free(source->path);
	free(source->text);
	free(source->vm);
	sources->n--;
	memmove(source, source + 1,
		(size_t)(sources->list + sources->n - source) * sizeof(*source));
	return true;
}

/*
 * The whole
 */

/* An administrator who is not root must not have vgpud, which may be, make files of any
 * path, or hand memory of other users to a guest. */
static bool is_permitted(const struct broker *broker, const struct ctl_client *client,
	const struct config *config, const char *name, VgpuCtl__Reply *reply)
{
	const struct config_vm *vm = find_vm(config, name);
	const char *path = config_ctl_socket(broker->config);
	const size_t size = path ? (size_t)(strrchr(path, '/') + 1 - path) : 0;

	if (!vm || ctl_peer_is_root(&client->peer))
		return true;
	if (vm->socket && size && !strncmp(vm->socket, path, size) &&
		!strchr(vm->socket + size, '/'))
		return true;
	return refuse(reply, VGPU_CTL__STATUS__DENIED,
		"%s:%d: only root may have other than sockets in the folder of %s",
		vm->place.file, vm->place.line, path ? path : "vgpuctl's");
}

static bool is_right(const struct broker *broker, const struct ctl_client *client,
	const struct config_sources *sources, const VgpuCtl__Request *request,
	VgpuCtl__Reply *reply)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_freep) char *error = NULL;
	const int r = config_new(&config, sources, &error);

	if (r == CONFIG_E_INVALID)
		return refuse(reply, VGPU_CTL__STATUS__INVALID, "%s", error);
	if (r)
		return refuse_for_memory(reply);
	if (request->verb_case != VGPU_CTL__REQUEST__VERB_ADD)
		return true;
	if (!find_vm(config, request->add->vm))
		return refuse(reply, VGPU_CTL__STATUS__INVALID,
			"the text has no section [vm %s]", request->add->vm);
	return is_permitted(broker, client, config, request->add->vm, reply);
}

static bool apply(const struct broker *broker, struct config_sources *sources,
	const VgpuCtl__Request *request, VgpuCtl__Reply *reply)
{
	switch (request->verb_case) {
	case VGPU_CTL__REQUEST__VERB_SET:
		return set(broker, sources, request->set, reply);
	case VGPU_CTL__REQUEST__VERB_ADD:
		return add(sources, request->add, reply);
	case VGPU_CTL__REQUEST__VERB_REMOVE:
		return remove_vm(broker, sources, request->remove, reply);
	default:
		return refuse(reply, VGPU_CTL__STATUS__UNKNOWN, "it changes nothing");
	}
}

static bool is_same(const struct config_sources *a, const struct config_sources *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->list[i].path, b->list[i].path) ||
			strcmp(a->list[i].text, b->list[i].text))
			return false;
	return true;
}

static const char *subject_of(const VgpuCtl__Request *request)
{
	switch (request->verb_case) {
	case VGPU_CTL__REQUEST__VERB_SET:
		return *request->set->vm ? request->set->vm : "vgpud";
	case VGPU_CTL__REQUEST__VERB_ADD:
		return request->add->vm;
	default:
		return request->remove->vm;
	}
}

static bool send_to_keeper(const struct broker *broker, const struct ctl_client *client,
	const struct config_sources *sources, const VgpuCtl__Request *request,
	VgpuCtl__Reply *reply)
{
	const struct link_message message = {
		.type = LINK_CONFIGURE,
		.id = request->id,
	};
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	r = config_sources_keep(sources, &fd);
	if (r)
		return refuse(reply, VGPU_CTL__STATUS__FAILED,
			"the configuration cannot be kept in memory: %s", strerror(-r));
	r = link_send(broker->link, &message, (int[]){ fd, client->fd }, 2);
	if (r)
		return refuse(reply, VGPU_CTL__STATUS__FAILED,
			"the keeper does not take the change");
	vgpu_log_info("ctl uid=%u pid=%d: it changes the configuration of %s",
		(unsigned int)client->peer.who.uid, (int)client->peer.who.pid,
		subject_of(request));
	return true;
}

bool ctl_change(struct broker *broker, const struct ctl_client *client,
	const VgpuCtl__Request *request, VgpuCtl__Reply *reply)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources old =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;

	if (broker->draining)
		return refuse(reply, VGPU_CTL__STATUS__FAILED, "vgpud is about to end");
	if (broker->sources < 0 || config_sources_take(&old, broker->sources) ||
		config_sources_take(&sources, broker->sources))
		return refuse(reply, VGPU_CTL__STATUS__FAILED,
			"vgpud cannot read its copy of the configuration");
	if (!apply(broker, &sources, request, reply))
		return false;
	if (is_same(&old, &sources))
		return reply_unchanged(reply);
	return is_right(broker, client, &sources, request, reply) &&
	       send_to_keeper(broker, client, &sources, request, reply);
}
