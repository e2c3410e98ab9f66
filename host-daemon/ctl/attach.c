/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attach: gives a domain of libvirt a device of vgpud, and takes it away
 *
 * There are four steps: the file, vgpud, the persistent domain, the running one. Each is
 * left out if it is done already, so both verbs may be repeated; attach undoes its own
 * steps if a later one fails. At last attach waits for the guest of a running domain, but
 * what is done is done whether that greets or not.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/domain.h"
#include "ctl/greeting.h"
#include "ctl/output.h"
#include "ctl/seconds.h"
#include "ctl/section.h"
#include "vgpu/cleanup.h"
#include "vgpud/config.h"

/* The first line of the files that are written here. */
#define COMMENT "written by vgpuctl attach"

struct attach {
	const struct ctl_options *options;
	const char *name;
	char found[CONTROL_VM_NAME_MAX]; /* the name, if the domain's device has it */
	struct client client;
	struct domain *domain;
	char socket[CTL_VALUE_MAX + 1];
	char *file;	   /* of the machine */
	char *lost;	   /* what the file should have, if it is missing; or NULL */
	uint64_t size;	   /* of its memory */
	unsigned int wait; /* seconds */
	VgpuCtl__Greeting greeting;
	bool is_known;	/* to vgpud */
	bool is_added;	/* by this call */
	bool in_config; /* the persistent domain had it, or has it now */
	bool is_live;	/* the same for the running one */
	bool is_changed;
};

static void deinit(struct attach *attach)
{
	domain_close(attach->domain);
	client_close(&attach->client);
	free(attach->file);
	free(attach->lost);
}

/* The file of a machine beside the configuration; the socket beside vgpuctl's own. */
static enum ctl_status find_paths(struct attach *attach)
{
	const char *config = attach->client.hello->config;
	char path[PATH_MAX];

	if (!strchr(config, '/'))
		return ctl_fail(CTL_FAILED, "vgpud does not say where its files are");
	attach->file = section_path(config, attach->name);
	if (!attach->file)
		return ctl_fail(CTL_FAILED, "there is no memory");
	if (!realpath(attach->options->socket, path))
		return ctl_fail(CTL_FAILED, "%s: %m", attach->options->socket);
	snprintf(attach->socket, sizeof(attach->socket), "%.*s%s.sock",
		(int)(strrchr(path, '/') + 1 - path), path, attach->name);
	return CTL_OK;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
	const size_t end_size = strlen(end);

	return size >= end_size && !memcmp(text + size - end_size, end, end_size);
}

/* Whether vgpud has the machine from its file, and that is not there. A main file may
 * have a name like it. */
static bool is_lost(const struct attach *attach, const char *place)
{
	const char *colon = strrchr(place, ':'), *config = attach->client.hello->config;
	const char *end = strrchr(attach->file, '/') - strlen(CONFIG_SOURCE_FOLDER);

	return colon && ends_with(place, (size_t)(colon - place), end) &&
	       !ends_with(config, strlen(config), end) &&
	       access(attach->file, F_OK) < 0 && errno == ENOENT;
}

/* The text of a file with the settings that vgpud has. */
static enum ctl_status make_lost(struct attach *attach, const VgpuCtl__Details *details)
{
	size_t size;
	FILE *file = open_memstream(&attach->lost, &size);

	if (!file)
		return ctl_fail(CTL_FAILED, "there is no memory");
	fprintf(file, "# " COMMENT "\n[vm %s]\n", attach->name);
	for (size_t i = 0; i < details->n_settings; i++)
		fprintf(file, "%s = %s\n", details->settings[i]->key,
			details->settings[i]->value);
	return fclose(file) ? ctl_fail(CTL_FAILED, "there is no memory") : CTL_OK;
}

/* The machine as vgpud has it, if it does. */
static enum ctl_status ask_known(struct attach *attach)
{
	_vgpu_cleanup_(ctl_reply_freep) VgpuCtl__Reply *reply = NULL;
	const char *socket, *size;
	enum ctl_status status;

	status = client_find(&attach->client, attach->name, &reply);
	if (status || !reply)
		return status;
	attach->is_known = true;
	socket = section_value(reply->show, "socket");
	size = section_value(reply->show, "size");
	if (!socket || strcmp(reply->show->vm->transport, "ivshmem"))
		return ctl_fail(CTL_REFUSED,
			"%s: [vm %s] has transport = %s, which is not attached so",
			reply->show->vm->place, attach->name, reply->show->vm->transport);
	snprintf(attach->socket, sizeof(attach->socket), "%s", socket);
	if (size)
		config_parse_size(size, &attach->size);
	if (is_lost(attach, reply->show->vm->place))
		return make_lost(attach, reply->show);
	return CTL_OK;
}

/* A domain that was renamed has a device of its old name. */
static enum ctl_status take_name_of_device(struct attach *attach)
{
	char socket[sizeof(attach->socket)], *end;

	if (!domain_find_socket(attach->domain, attach->socket, socket, sizeof(socket)))
		return CTL_OK;
	end = strrchr(socket, '.');
	if (!end || strcmp(end, ".sock") != 0 ||
		(size_t)snprintf(attach->found, sizeof(attach->found), "%.*s",
			(int)(end - strrchr(socket, '/') - 1),
			strrchr(socket, '/') + 1) >= sizeof(attach->found))
		return CTL_OK;
	attach->name = attach->found;
	free(attach->file);
	attach->file = section_path(attach->client.hello->config, attach->name);
	if (!attach->file)
		return ctl_fail(CTL_FAILED, "there is no memory");
	strcpy(attach->socket, socket);
	return ask_known(attach);
}

static enum ctl_status look_at_domain(struct attach *attach)
{
	enum ctl_status status = CTL_OK;

	if (!attach->is_known)
		status = take_name_of_device(attach);
	if (status)
		return status;
	if (domain_is_persistent(attach->domain))
		status = domain_has_device(
			attach->domain, false, attach->socket, &attach->in_config);
	if (!status && domain_is_active(attach->domain))
		status = domain_has_device(
			attach->domain, true, attach->socket, &attach->is_live);
	return status;
}

static enum ctl_status init(
	struct attach *attach, const struct ctl_options *options, const char *name)
{
	enum ctl_status status;
	uint64_t vram;

	*attach = (struct attach){ .options = options, .name = name };
	attach->client = CLIENT_NULL;
	if (config_parse_size(
		    options->size ? options->size : SECTION_SIZE, &attach->size))
		return ctl_fail(CTL_USAGE, "'%s' is not a size", options->size);
	if (options->vram && config_parse_size(options->vram, &vram))
		return ctl_fail(CTL_USAGE, "'%s' is not a size", options->vram);
	if (seconds_parse(options->wait ? options->wait : CTL_WAIT, &attach->wait))
		return ctl_fail(CTL_USAGE,
			"'%s' is not a number of seconds, which is at most a day",
			options->wait);
	if (!*name)
		return ctl_fail(CTL_NO_VM, "a domain has a name");
	status = client_open(&attach->client, options->socket);
	if (!status && attach->client.hello->access != VGPU_CTL__ACCESS__ADMIN)
		status = ctl_fail(CTL_DENIED, "only administrators may attach domains");
	if (!status)
		status = find_paths(attach);
	if (!status)
		status = ask_known(attach);
	if (!status)
		status = domain_open(&attach->domain, options->uri, name);
	return status ? status : look_at_domain(attach);
}

/*
 * attach
 */

/* Adds the machine to vgpud and to its files. */
static enum ctl_status add(struct attach *attach)
{
	const char *vram = attach->options->vram;
	_vgpu_cleanup_(vgpu_freep) char *settings = NULL;
	struct section section = {
		.name = attach->name,
		.socket = attach->socket,
		.comment = COMMENT,
		.group = domain_group(attach->domain),
		.size = attach->size,
	};
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	enum ctl_status status;

	if (asprintf(&settings, "%s%s%s", vram ? "device-memory = " : "",
		    vram ? vram : "", vram ? "\n" : "") < 0)
		settings = NULL;
	section.settings = settings;
	text = settings ? section_text(&section) : NULL;
	if (!text)
		return ctl_fail(CTL_FAILED, "there is no memory");
	status = section_add(&attach->client, attach->name, attach->file, text, COMMENT);
	attach->is_added = !status;
	attach->is_changed |= !status;
	return status;
}

/* Writes the file of a machine that vgpud has: an attach that was cut short had added it
 * to vgpud only. */
static enum ctl_status restore(struct attach *attach)
{
	const enum ctl_status status = section_write(attach->file, attach->lost, COMMENT);

	attach->is_changed |= !status;
	return status;
}

static enum ctl_status check(const struct attach *attach, bool wants_live)
{
	enum ctl_status status = CTL_OK;

	if (domain_is_persistent(attach->domain) && !attach->in_config)
		status = domain_check(attach->domain, false, attach->size);
	if (!status && wants_live)
		status = domain_check(attach->domain, true, attach->size);
	return status;
}

static void undo(struct attach *attach, bool was_in_config)
{
	if (attach->in_config && !was_in_config)
		domain_detach(attach->domain, false, attach->socket);
	if (!attach->is_added)
		return;
	section_remove(&attach->client, attach->name);
	section_unlink(attach->file);
}

static enum ctl_status attach_all(struct attach *attach)
{
	const bool wants_live = domain_is_active(attach->domain) && !attach->is_live &&
				!attach->options->is_config_only;
	const bool was_in_config = attach->in_config;
	enum ctl_status status;

	status = check(attach, wants_live);
	if (!status && !attach->is_known)
		status = add(attach);
	else if (!status && attach->lost)
		status = restore(attach);
	if (!status && domain_is_persistent(attach->domain) && !attach->in_config) {
		status = domain_attach(attach->domain, false, attach->socket);
		attach->in_config = !status;
		attach->is_changed |= !status;
	}
	if (!status && wants_live) {
		status = domain_attach(attach->domain, true, attach->socket);
		attach->is_live = !status;
		attach->is_changed |= !status;
	}
	if (status)
		undo(attach, was_in_config);
	return status;
}

/* Only who asked for it gets another exit status: for all others the domain has its
 * device, as it should. */
static enum ctl_status wait_for_guest(struct attach *attach)
{
	enum ctl_status status;

	if (!attach->is_live)
		return CTL_OK;
	status = greeting_wait(
		&attach->client, attach->name, attach->wait, &attach->greeting);
	return status == CTL_SILENT && !attach->options->wait ? CTL_OK : status;
}

/* A guest of a domain that does not run has not greeted. */
static json_t *json_of_greeting(const struct attach *attach)
{
	return attach->is_live ? output_greeting(attach->greeting) : json_false();
}

static json_t *json_of(const struct attach *attach)
{
	return json_pack("{s:b, s:s, s:s, s:b, s:b}", "changed", attach->is_changed, "vm",
		attach->name, "socket", attach->socket, "config", attach->in_config,
		"live", attach->is_live);
}

static enum ctl_status report(const struct attach *attach, json_t *json)
{
	if (json)
		return output_json(json);
	if (!attach->is_changed)
		puts("it was so already");
	return output_end(CTL_OK);
}

enum ctl_status ctl_attach(const struct ctl_options *options, char **arguments)
{
	enum ctl_status status, greeted = CTL_OK;
	struct attach attach;
	json_t *json = NULL;

	status = init(&attach, options, arguments[0]);
	if (!status)
		status = attach_all(&attach);
	if (!status)
		greeted = wait_for_guest(&attach);
	if (!status && options->is_json) {
		json = json_of(&attach);
		json_object_set_new(json, "greeted", json_of_greeting(&attach));
	}
	if (!status)
		status = report(&attach, json);
	deinit(&attach);
	return status ? status : greeted;
}

/*
 * detach
 */

static enum ctl_status detach_all(struct attach *attach)
{
	enum ctl_status status = section_check_unlink(attach->file);

	attach->is_changed = attach->in_config || attach->is_live || attach->is_known;
	if (status)
		return status;
	if (attach->in_config)
		status = domain_detach(attach->domain, false, attach->socket);
	attach->in_config &= status != CTL_OK;
	if (!status && attach->is_live)
		status = domain_detach(attach->domain, true, attach->socket);
	attach->is_live &= status != CTL_OK;
	if (!status && attach->is_known)
		status = section_remove(&attach->client, attach->name);
	return status ? status : section_unlink(attach->file);
}

enum ctl_status ctl_detach(const struct ctl_options *options, char **arguments)
{
	struct attach attach;
	enum ctl_status status;

	status = init(&attach, options, arguments[0]);
	if (!status)
		status = detach_all(&attach);
	if (!status)
		status = report(&attach, options->is_json ? json_of(&attach) : NULL);
	deinit(&attach);
	return status;
}
