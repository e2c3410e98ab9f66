/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attach: gives a domain of libvirt a device of vgpud, and takes it away
 *
 * There are four steps: the file, vgpud, the persistent domain, the running one. Each is
 * left out if it is done already, so both verbs may be repeated; attach undoes its own
 * steps if a later one fails.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/domain.h"
#include "ctl/drop-in.h"
#include "ctl/output.h"
#include "vgpu/cleanup.h"
#include "vgpud/config-show.h"
#include "vgpud/config.h"
#include "vgpud/layout.h"

#define SIZE_DEFAULT "4G"
/* The first line of the files that are written here. */
#define MARK "# written by vgpuctl attach\n"

struct attach {
	const struct ctl_options *options;
	const char *name;
	struct client client;
	struct domain *domain;
	char socket[CTL_VALUE_MAX + 1];
	char *file;	/* of the machine */
	char *lost;	/* what the file should have, if it is missing; or NULL */
	uint64_t size;	/* of its memory */
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
	const char *config = attach->client.hello->config, *slash = strrchr(config, '/');
	char path[PATH_MAX];

	if (!slash)
		return ctl_fail(CTL_FAILED, "vgpud does not say where its files are");
	if (asprintf(&attach->file, "%.*s" CONFIG_SOURCE_FOLDER "/%s%s",
		    (int)(slash + 1 - config), config, attach->name,
		    CONFIG_SOURCE_SUFFIX) < 0) {
		attach->file = NULL;
		return ctl_fail(CTL_FAILED, "there is no memory");
	}
	if (!realpath(attach->options->socket, path))
		return ctl_fail(CTL_FAILED, "%s: %m", attach->options->socket);
	snprintf(attach->socket, sizeof(attach->socket), "%.*s%s.sock",
		(int)(strrchr(path, '/') + 1 - path), path, attach->name);
	return CTL_OK;
}

static const char *value_of(const VgpuCtl__Details *details, const char *key)
{
	for (size_t i = 0; i < details->n_settings; i++)
		if (!strcmp(details->settings[i]->key, key))
			return details->settings[i]->value;
	return NULL;
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
	fprintf(file, MARK "[vm %s]\n", attach->name);
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
	socket = value_of(reply->show, "socket");
	size = value_of(reply->show, "size");
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

static enum ctl_status look_at_domain(struct attach *attach)
{
	enum ctl_status status = CTL_OK;

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
		    options->size ? options->size : SIZE_DEFAULT, &attach->size))
		return ctl_fail(CTL_USAGE, "'%s' is not a size", options->size);
	if (options->vram && config_parse_size(options->vram, &vram))
		return ctl_fail(CTL_USAGE, "'%s' is not a size", options->vram);
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

/* Of a small memory: as many processes as have room. */
static unsigned int find_processes(const struct attach *attach)
{
	const uint32_t n = layout_n_channels(attach->size);

	return n && n < VGPU_CHANNELS_MAX ? n : VGPU_CHANNELS_MAX;
}

/* Return: the text of the file, to be freed, or NULL without memory. */
static char *make_text(const struct attach *attach)
{
	const char *vram = attach->options->vram;
	const gid_t group = domain_group(attach->domain);
	char *text, group_line[48] = "", size[32];

	if (group != (gid_t)-1)
		snprintf(group_line, sizeof(group_line), "socket-group = %u\n",
			(unsigned int)group);
	config_show_size(attach->size, size, sizeof(size));
	if (asprintf(&text,
		    MARK "[vm %s]\ntransport = ivshmem\n"
			 "socket = %s\n%ssize = %s\nmax-processes = %u\n%s%s%s",
		    attach->name, attach->socket, group_line, size,
		    find_processes(attach), vram ? "device-memory = " : "",
		    vram ? vram : "", vram ? "\n" : "") < 0)
		return NULL;
	return text;
}

/* A file of the administrator that vgpud has not read is not replaced. */
static enum ctl_status check_file(const struct attach *attach)
{
	char line[sizeof(MARK)] = "";
	FILE *file = fopen(attach->file, "re");
	const bool is_there = file || errno != ENOENT;

	if (file && !fgets(line, sizeof(line), file))
		*line = '\0';
	if (file)
		fclose(file);
	return !is_there || !strcmp(line, MARK)
		       ? CTL_OK
		       : ctl_fail(CTL_REFUSED,
				 "%s:1: vgpud has not read this file, and attach did not "
				 "write it: reload vgpud, or remove the file",
				 attach->file);
}

static enum ctl_status ask_add(struct attach *attach, const char *text)
{
	VgpuCtl__Add add = VGPU_CTL__ADD__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	add.vm = (char *)attach->name;
	add.text = (char *)text;
	request.verb_case = VGPU_CTL__REQUEST__VERB_ADD;
	request.add = &add;
	status = client_ask(&attach->client, &request, &reply);
	ctl_reply_freep(&reply);
	return status;
}

static enum ctl_status ask_remove(struct attach *attach)
{
	VgpuCtl__Remove remove = VGPU_CTL__REMOVE__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	remove.vm = (char *)attach->name;
	request.verb_case = VGPU_CTL__REQUEST__VERB_REMOVE;
	request.remove = &remove;
	/* It is gone already if the answer to a first request was lost. */
	status = client_ask_permitting(
		&attach->client, &request, VGPU_CTL__STATUS__UNKNOWN, &reply);
	ctl_reply_freep(&reply);
	return status;
}

static enum ctl_status prepare(
	struct attach *attach, struct drop_in *drop_in, const char *text)
{
	enum ctl_status status;
	int r;

	if (!text)
		return ctl_fail(CTL_FAILED, "there is no memory");
	r = drop_in_open(drop_in, attach->file);
	if (r)
		return output_unwritten(attach->file, r);
	status = check_file(attach);
	if (status)
		return status;
	r = drop_in_write(drop_in, text);
	return r ? output_unwritten(attach->file, r) : CTL_OK;
}

static enum ctl_status commit(struct attach *attach, struct drop_in *drop_in)
{
	const int r = drop_in_commit(drop_in);

	return r ? output_unwritten(attach->file, r) : CTL_OK;
}

/* Adds the machine to vgpud and to its files. */
static enum ctl_status add(struct attach *attach)
{
	_vgpu_cleanup_(vgpu_freep) char *text = make_text(attach);
	_vgpu_cleanup_(drop_in_close) struct drop_in drop_in = DROP_IN_NULL;
	enum ctl_status status;

	status = prepare(attach, &drop_in, text);
	if (!status)
		status = ask_add(attach, text);
	if (status)
		return status;
	attach->is_added = attach->is_changed = true;
	return commit(attach, &drop_in);
}

/* Writes the file of a machine that vgpud has: an attach that was cut short had added it
 * to vgpud only. */
static enum ctl_status restore(struct attach *attach)
{
	_vgpu_cleanup_(drop_in_close) struct drop_in drop_in = DROP_IN_NULL;
	enum ctl_status status;

	status = prepare(attach, &drop_in, attach->lost);
	if (!status)
		status = commit(attach, &drop_in);
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
	ask_remove(attach);
	drop_in_remove(attach->file);
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

static enum ctl_status report(const struct attach *attach)
{
	if (attach->options->is_json)
		return output_json(json_pack("{s:b, s:s, s:s, s:b, s:b}", "changed",
			attach->is_changed, "vm", attach->name, "socket", attach->socket,
			"config", attach->in_config, "live", attach->is_live));
	if (!attach->is_changed)
		puts("it was so already");
	return output_end(CTL_OK);
}

enum ctl_status ctl_attach(const struct ctl_options *options, char **arguments)
{
	struct attach attach;
	enum ctl_status status;

	status = init(&attach, options, arguments[0]);
	if (!status)
		status = attach_all(&attach);
	if (!status)
		status = report(&attach);
	deinit(&attach);
	return status;
}

/*
 * detach
 */

static enum ctl_status detach_all(struct attach *attach)
{
	enum ctl_status status = CTL_OK;
	int r;

	attach->is_changed = attach->in_config || attach->is_live || attach->is_known;
	r = drop_in_check_remove(attach->file);
	if (r)
		return output_unremoved(attach->file, r);
	if (attach->in_config)
		status = domain_detach(attach->domain, false, attach->socket);
	attach->in_config &= status != CTL_OK;
	if (!status && attach->is_live)
		status = domain_detach(attach->domain, true, attach->socket);
	attach->is_live &= status != CTL_OK;
	if (!status && attach->is_known)
		status = ask_remove(attach);
	if (status)
		return status;
	r = drop_in_remove(attach->file);
	return r ? output_unremoved(attach->file, r) : CTL_OK;
}

enum ctl_status ctl_detach(const struct ctl_options *options, char **arguments)
{
	struct attach attach;
	enum ctl_status status;

	status = init(&attach, options, arguments[0]);
	if (!status)
		status = detach_all(&attach);
	if (!status)
		status = report(&attach);
	deinit(&attach);
	return status;
}
