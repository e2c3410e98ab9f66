/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set: changes settings of a running vgpud, and of the file that it will read next
 *
 * With --persistent the new file is on the disk under another name before vgpud changes
 * anything, and gets its name afterwards: so a full disk, a file that is wrong and a
 * value that vgpud refuses each leave both as they were.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/drop-in.h"
#include "ctl/output.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/config-edit.h"
#include "vgpud/config.h"

/* key=value arguments, as pairs of texts in one allocation. */
struct settings {
	VgpuCtl__Setting list[CTL_SETTINGS_MAX];
	VgpuCtl__Setting *pointers[CTL_SETTINGS_MAX];
	size_t n;
};

/* Modifies the arguments. */
static enum ctl_status parse(struct settings *settings, char **arguments)
{
	for (; *arguments; arguments++) {
		VgpuCtl__Setting *setting = &settings->list[settings->n];
		char *sign = strchr(*arguments, '=');

		if (!sign || sign == *arguments)
			return ctl_fail(CTL_USAGE, "'%s' is not KEY=VALUE", *arguments);
		if (settings->n == CTL_SETTINGS_MAX)
			return ctl_fail(
				CTL_USAGE, "more than %u settings", CTL_SETTINGS_MAX);
		*sign = '\0';
		vgpu_ctl__setting__init(setting);
		setting->key = *arguments;
		setting->value = sign + 1;
		settings->pointers[settings->n++] = setting;
	}
	return CTL_OK;
}

/*
 * The file
 */

static enum ctl_status edit_all(
	struct config_source *source, const char *vm, const struct settings *settings)
{
	char section[CONTROL_VM_NAME_MAX + 8], *edited;
	int r;

	snprintf(section, sizeof(section), "vm %s", vm);
	for (size_t i = 0; i < settings->n; i++) {
		const VgpuCtl__Setting *setting = &settings->list[i];

		r = config_edit(
			source->text, section, setting->key, setting->value, &edited);
		if (r == CONFIG_EDIT_E_ABSENT)
			return ctl_fail(CTL_REFUSED, "%s:1: there is no section [%s]",
				source->path, section);
		if (r == CONFIG_EDIT_E_VALUE)
			return ctl_fail(CTL_REFUSED,
				"%s = %s: a value has no semicolon, and no blank at an "
				"end",
				setting->key, setting->value);
		if (r)
			return ctl_fail(CTL_FAILED, "there is no memory");
		free(source->text);
		source->text = edited;
	}
	return CTL_OK;
}

/* Whether vgpud would accept all files with this change. */
static enum ctl_status check_files(const struct config_sources *sources)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_freep) char *error = NULL;
	const int r = config_new(&config, sources, &error);

	if (r == CONFIG_E_INVALID)
		return ctl_fail(CTL_REFUSED, "%s", error);
	return r ? ctl_fail(CTL_FAILED, "%s", strerror(-r)) : CTL_OK;
}

static struct config_source *find_file(struct config_sources *sources, const char *vm)
{
	for (size_t i = 1; i < sources->n; i++)
		if (!strcmp(sources->list[i].vm, vm))
			return &sources->list[i];
	return NULL;
}

static enum ctl_status read_files(struct config_sources *sources, const char *config,
	const char *vm, struct config_source **sourcep)
{
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL;
	const int r = config_sources_read(sources, config, &failed);

	if (r)
		return ctl_fail(
			CTL_FAILED, "%s: %s", failed ? failed : config, strerror(-r));
	*sourcep = find_file(sources, vm);
	return *sourcep ? CTL_OK
			: ctl_fail(CTL_REFUSED,
				  "%s: there is no file " CONFIG_SOURCE_FOLDER
				  "/%s" CONFIG_SOURCE_SUFFIX
				  " beside it, and vgpuctl writes no other: move [vm %s] "
				  "there",
				  config, vm, vm);
}

/* Keeps other changes of the file out, from before it is read. */
static enum ctl_status open_file(
	struct drop_in *drop_in, const char *config, const char *vm)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	struct config_source *source;
	enum ctl_status status;
	int r;

	status = read_files(&sources, config, vm, &source);
	if (status)
		return status;
	r = drop_in_open(drop_in, source->path);
	return r ? output_unwritten(source->path, r) : CTL_OK;
}

/* Writes the changed file beside the old one. */
static enum ctl_status prepare(struct drop_in *drop_in, const char *config,
	const char *vm, const struct settings *settings)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	struct config_source *source;
	enum ctl_status status;
	int r;

	status = open_file(drop_in, config, vm);
	if (!status)
		status = read_files(&sources, config, vm, &source);
	if (!status)
		status = edit_all(source, vm, settings);
	if (!status)
		status = check_files(&sources);
	if (status)
		return status;
	r = drop_in_write(drop_in, source->text);
	return r ? output_unwritten(source->path, r) : CTL_OK;
}

/*
 * The running vgpud
 */

static enum ctl_status ask_set(struct client *client, const char *vm,
	struct settings *settings, bool *is_changedp)
{
	VgpuCtl__Set set = VGPU_CTL__SET__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	set.vm = (char *)vm;
	set.n_settings = settings->n;
	set.settings = settings->pointers;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SET;
	request.set = &set;
	status = client_ask(client, &request, &reply);
	*is_changedp = !status && reply->result_case == VGPU_CTL__REPLY__RESULT_CHANGED &&
		       reply->changed->changed;
	ctl_reply_freep(&reply);
	return status;
}

static enum ctl_status commit(struct drop_in *drop_in)
{
	const int r = drop_in->path ? drop_in_commit(drop_in) : 0;

	return r ? ctl_fail(CTL_FAILED,
			   "the change is in force until vgpud reads its files again: "
			   "%s cannot be replaced: %s",
			   drop_in->path, strerror(-r))
		 : CTL_OK;
}

static enum ctl_status report(
	const struct ctl_options *options, bool is_changed, const char *file)
{
	if (options->is_json)
		return output_json(
			json_pack("{s:b, s:s?}", "changed", is_changed, "file", file));
	if (!is_changed)
		puts("it was so already");
	return output_end(CTL_OK);
}

static enum ctl_status set(
	const struct ctl_options *options, const char *vm, struct settings *settings)
{
	struct drop_in drop_in = DROP_IN_NULL;
	struct client client;
	enum ctl_status status;
	bool is_changed = false;

	status = client_open(&client, options->socket);
	if (!status && options->is_persistent)
		status = prepare(&drop_in, client.hello->config, vm, settings);
	if (!status)
		status = ask_set(&client, vm, settings, &is_changed);
	if (!status)
		status = commit(&drop_in);
	if (!status)
		status = report(options, is_changed, drop_in.path);
	drop_in_close(&drop_in);
	client_close(&client);
	return status;
}

enum ctl_status ctl_set(const struct ctl_options *options, char **arguments)
{
	struct settings *settings = calloc(1, sizeof(*settings));
	enum ctl_status status;

	if (!settings)
		return ctl_fail(CTL_FAILED, "there is no memory");
	/* An empty name is vgpud itself. */
	if (!*arguments[0])
		status = ctl_fail(CTL_NO_VM, "a virtual machine has a name");
	else
		status = parse(settings, arguments + 1);
	if (!status)
		status = set(options, arguments[0], settings);
	free(settings);
	return status;
}

/* @vm:	empty: of vgpud itself */
static enum ctl_status set_one(const struct ctl_options *options, const char *vm,
	const char *key, const char *value)
{
	struct settings *settings = calloc(1, sizeof(*settings));
	enum ctl_status status;

	if (!settings)
		return ctl_fail(CTL_FAILED, "there is no memory");
	vgpu_ctl__setting__init(&settings->list[0]);
	settings->list[0].key = (char *)key;
	settings->list[0].value = (char *)value;
	settings->pointers[0] = &settings->list[0];
	settings->n = 1;
	status = set(options, vm, settings);
	free(settings);
	return status;
}

static enum ctl_status set_paused(
	const struct ctl_options *options, const char *vm, const char *value)
{
	if (!*vm)
		return ctl_fail(CTL_NO_VM, "a virtual machine has a name");
	return set_one(options, vm, "paused", value);
}

enum ctl_status ctl_pause(const struct ctl_options *options, char **arguments)
{
	return set_paused(options, arguments[0], "yes");
}

enum ctl_status ctl_resume(const struct ctl_options *options, char **arguments)
{
	return set_paused(options, arguments[0], "no");
}

enum ctl_status ctl_log_level(const struct ctl_options *options, char **arguments)
{
	if (vgpu_log_level_from_string(arguments[0]) < 0)
		return ctl_fail(CTL_USAGE,
			"'%s' is not none, error, warning, info or debug", arguments[0]);
	return set_one(options, "", "log-level", arguments[0]);
}
