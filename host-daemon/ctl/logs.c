/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs: the lines of the log that are about one virtual machine
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/output.h"
#include "vgpu/cleanup.h"
#include "vgpud/config.h"

/* Whether a line has vm=NAME as one of its words. */
static bool is_about(const char *line, const char *vm)
{
	const size_t size = strlen(vm);

	for (const char *at = line; (at = strstr(at, "vm=")); at += 3)
		if ((at == line || at[-1] == ' ') && !strncmp(at + 3, vm, size) &&
			(!at[3 + size] || strchr(" :\n", at[3 + size])))
			return true;
	return false;
}

/* Lines of guests have no control characters, those of other programs may. */
static void clean(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == 0x7f)
			*line = '?';
}

static enum ctl_status read_file(
	const struct ctl_options *options, const char *path, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	json_t *array = options->is_json ? json_array() : NULL;
	FILE *file = fopen(path, "re");
	size_t size = 0;

	if (!file) {
		json_decref(array);
		return ctl_fail(errno == EACCES ? CTL_DENIED : CTL_FAILED, "%s: %s", path,
			strerror(errno));
	}
	while (getline(&line, &size, file) > 0) {
		if (!is_about(line, vm))
			continue;
		clean(line);
		if (array)
			json_array_append_new(array, json_string(line));
		else
			puts(line);
	}
	fclose(file);
	if (!array)
		return output_end(CTL_OK);
	return output_json(json_pack("{s:s, s:o}", "file", path, "lines", array));
}

/* Return: the unit of systemd that a process belongs to, to be freed, or NULL. */
static char *unit_of(unsigned int pid)
{
	char path[64], line[512], *unit = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *name = strrchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (name && strlen(name) > 8 &&
			!strcmp(name + strlen(name) - 8, ".service")) {
			unit = strdup(name + 1);
			break;
		}
	}
	if (file)
		fclose(file);
	return unit;
}

/* Becomes journalctl. */
static enum ctl_status read_journal(
	const struct ctl_options *options, const char *unit, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *match = NULL;

	if (asprintf(&match, "VGPU_VM=%s", vm) < 0)
		return ctl_fail(CTL_FAILED, "there is no memory");
	execlp("journalctl", "journalctl", "--no-pager", "-u", unit,
		options->is_json ? "--output=json" : "--output=short", match,
		(char *)NULL);
	return ctl_fail(CTL_FAILED, "journalctl cannot be run: %s", strerror(errno));
}

/* Return: the log file of the configuration, to be freed; NULL: none, or it is unknown.
 */
static char *log_file_of(const char *path)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL, *error = NULL;

	if (config_sources_read(&sources, path, &failed) ||
		config_new_of_right(&config, &sources, &error) || !config->log_file)
		return NULL;
	return strdup(config->log_file);
}

static enum ctl_status read_log(
	const struct ctl_options *options, const VgpuCtl__Hello *hello, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *file = log_file_of(hello->config);
	_vgpu_cleanup_(vgpu_freep) char *unit = file ? NULL : unit_of(hello->pid);

	if (file)
		return read_file(options, file, vm);
	if (unit)
		return read_journal(options, unit, vm);
	return ctl_fail(CTL_FAILED,
		"the log of vgpud goes to its standard error, process %u, which is no "
		"service of systemd; log-file in %s keeps it",
		hello->pid, hello->config);
}

static enum ctl_status check_vm(struct client *client, const char *vm)
{
	VgpuCtl__Show show = VGPU_CTL__SHOW__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	enum ctl_status status;

	show.vm = (char *)vm;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SHOW;
	request.show = &show;
	status = client_ask(client, &request, &reply);
	ctl_reply_freep(&reply);
	return status;
}

enum ctl_status ctl_logs(const struct ctl_options *options, char **arguments)
{
	struct client client;
	enum ctl_status status;

	status = client_open(&client, options->socket);
	if (!status)
		status = check_vm(&client, arguments[0]);
	if (!status)
		status = read_log(options, client.hello, arguments[0]);
	client_close(&client);
	return status;
}
