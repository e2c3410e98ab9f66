/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section: a virtual machine that vgpuctl adds to vgpud, with a file of its own
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/drop-in.h"
#include "ctl/output.h"
#include "ctl/section.h"
#include "vgpu/cleanup.h"
#include "vgpud/config-show.h"
#include "vgpud/config.h"
#include "vgpud/layout.h"

char *section_path(const char *config, const char *name)
{
	const char *slash = strrchr(config, '/');
	char *path;

	if (asprintf(&path, "%.*s" CONFIG_SOURCE_FOLDER "/%s" CONFIG_SOURCE_SUFFIX,
		    slash ? (int)(slash + 1 - config) : 0, config, name) < 0)
		return NULL;
	return path;
}

/* Of a small memory: as many processes as have room. */
static unsigned int find_processes(uint64_t size)
{
	const uint32_t n = layout_n_channels(size);

	return n && n < VGPU_CHANNELS_MAX ? n : VGPU_CHANNELS_MAX;
}

char *section_text(const struct section *section)
{
	char *text, group[48] = "", processes[48] = "", size[32];

	if (section->group != (gid_t)-1)
		snprintf(group, sizeof(group), "socket-group = %u\n",
			(unsigned int)section->group);
	if (!strstr(section->settings, "max-processes = "))
		snprintf(processes, sizeof(processes), "max-processes = %u\n",
			find_processes(section->size));
	config_show_size(section->size, size, sizeof(size));
	if (asprintf(&text,
		    "# %s\n[vm %s]\ntransport = ivshmem\nsocket = %s\n%ssize = %s\n%s%s",
		    section->comment, section->name, section->socket, group, size,
		    processes, section->settings) < 0)
		return NULL;
	return text;
}

static enum ctl_status ask_add(struct client *client, const char *name, const char *text)
{
	VgpuCtl__Add add = VGPU_CTL__ADD__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	add.vm = (char *)name;
	add.text = (char *)text;
	request.verb_case = VGPU_CTL__REQUEST__VERB_ADD;
	request.add = &add;
	status = client_ask(client, &request, &reply);
	ctl_reply_freep(&reply);
	return status;
}

enum ctl_status section_remove(struct client *client, const char *name)
{
	VgpuCtl__Remove remove = VGPU_CTL__REMOVE__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	remove.vm = (char *)name;
	request.verb_case = VGPU_CTL__REQUEST__VERB_REMOVE;
	request.remove = &remove;
	/* It is gone already if the answer to a first request was lost. */
	status = client_ask_permitting(
		client, &request, VGPU_CTL__STATUS__UNKNOWN, &reply);
	ctl_reply_freep(&reply);
	return status;
}

/* A file of somebody else that vgpud has not read is not replaced. */
static enum ctl_status check_author(const char *path, const char *comment)
{
	char line[256] = "";
	FILE *file = fopen(path, "re");
	const bool is_there = file || errno != ENOENT;
	const size_t size = strlen(comment);

	if (file && !fgets(line, sizeof(line), file))
		*line = '\0';
	if (file)
		fclose(file);
	if (!is_there || (!strncmp(line, "# ", 2) && !strncmp(line + 2, comment, size) &&
				 line[2 + size] == '\n'))
		return CTL_OK;
	return ctl_fail(CTL_REFUSED,
		"%s:1: vgpud has not read this file, and it was not %s: reload vgpud, or "
		"remove the file",
		path, comment);
}

static enum ctl_status prepare(
	struct drop_in *drop_in, const char *path, const char *text, const char *comment)
{
	enum ctl_status status = CTL_OK;
	int r = drop_in_open(drop_in, path);

	if (r)
		return output_unwritten(path, r);
	if (comment)
		status = check_author(path, comment);
	if (status)
		return status;
	r = drop_in_write(drop_in, text);
	return r ? output_unwritten(path, r) : CTL_OK;
}

enum ctl_status section_write(const char *path, const char *text, const char *comment)
{
	_vgpu_cleanup_(drop_in_close) struct drop_in drop_in = DROP_IN_NULL;
	enum ctl_status status = prepare(&drop_in, path, text, comment);
	int r;

	if (status)
		return status;
	r = drop_in_commit(&drop_in);
	return r ? output_unwritten(path, r) : CTL_OK;
}

enum ctl_status section_add(struct client *client, const char *name, const char *path,
	const char *text, const char *comment)
{
	_vgpu_cleanup_(drop_in_close) struct drop_in drop_in = DROP_IN_NULL;
	enum ctl_status status = prepare(&drop_in, path, text, comment);
	int r;

	if (!status)
		status = ask_add(client, name, text);
	if (status)
		return status;
	r = drop_in_commit(&drop_in);
	if (!r)
		return CTL_OK;
	status = output_unwritten(path, r);
	section_remove(client, name);
	return status;
}

enum ctl_status section_check_unlink(const char *path)
{
	const int r = drop_in_check_remove(path);

	return r ? output_unremoved(path, r) : CTL_OK;
}

enum ctl_status section_unlink(const char *path)
{
	const int r = drop_in_remove(path);

	return r ? output_unremoved(path, r) : CTL_OK;
}

const char *section_value(const VgpuCtl__Details *details, const char *key)
{
	for (size_t i = 0; i < details->n_settings; i++)
		if (!strcmp(details->settings[i]->key, key))
			return details->settings[i]->value;
	return NULL;
}
