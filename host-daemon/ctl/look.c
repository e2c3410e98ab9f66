/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look: the verbs that change nothing: list, show, version
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/output.h"
#include "ctl/sample.h"
#include "vgpu/cleanup.h"
#include "vgpud/config.h"

typedef void (*reply_fn)(const VgpuCtl__Reply *reply, json_t *json);

/* Nanoseconds; null: an older vgpud does not tell. */
static void add_share(json_t *json, const VgpuCtl__Share *share)
{
	json_object_set_new(
		json, "device_time", share ? output_number(share->used_ns) : json_null());
	json_object_set_new(
		json, "held_time", share ? output_number(share->held_ns) : json_null());
	json_object_set_new(
		json, "held", share ? json_boolean(share->is_held) : json_null());
	json_object_set_new(json, "queued_launches",
		share && share->pending ? output_number(share->pending->launches)
					: json_null());
}

static json_t *json_of_vm(const VgpuCtl__Vm *vm)
{
	json_t *json = json_object();

	json_object_set_new(json, "name", json_string(vm->name));
	json_object_set_new(json, "transport", json_string(vm->transport));
	json_object_set_new(json, "place", json_string(vm->place));
	json_object_set_new(json, "connections", output_number(vm->connections));
	json_object_set_new(json, "greeted", output_greeting(vm->greeting));
	json_object_set_new(json, "sessions", output_number(vm->sessions));
	json_object_set_new(json, "max_processes", output_number(vm->max_processes));
	json_object_set_new(json, "device_memory", output_number(vm->device_memory));
	json_object_set_new(
		json, "device_memory_limit", output_limit(vm->device_memory_limit));
	json_object_set_new(
		json, "device_memory_evicted", output_number(vm->device_memory_evicted));
	json_object_set_new(json, "evictions", output_number(vm->evictions));
	json_object_set_new(json, "returns", output_number(vm->returns));
	json_object_set_new(json, "evicted_bytes", output_number(vm->evicted_bytes));
	json_object_set_new(json, "returned_bytes", output_number(vm->returned_bytes));
	json_object_set_new(json, "host_memory", output_number(vm->host_memory));
	json_object_set_new(
		json, "host_memory_limit", output_limit(vm->host_memory_limit));
	json_object_set_new(json, "host_memory_limit_by",
		*vm->host_memory_by ? json_string(vm->host_memory_by) : json_null());
	json_object_set_new(json, "oom_kills", output_number(vm->oom_kills));
	json_object_set_new(json, "cpu_limit", output_limit(vm->cpu));
	json_object_set_new(
		json, "cpu_limit_by", vm->cpu ? json_string(vm->cpu_by) : json_null());
	add_share(json, vm->share);
	return json;
}

/*
 * list
 */

static void print_row(const VgpuCtl__Vm *vm)
{
	char device[64], host[64], sessions[32];

	snprintf(sessions, sizeof(sessions), "%u/%u", vm->sessions, vm->max_processes);
	printf("%-24s %-9s %9u %9s %15s %15s\n", vm->name, vm->transport, vm->connections,
		sessions, output_use(vm->device_memory, vm->device_memory_limit, device),
		output_use(vm->host_memory, vm->host_memory_limit, host));
}

/* Adds one part of the list, and prints it if wanted. Return: whether more follow. */
static bool take_list(
	const VgpuCtl__Vms *list, json_t *array, bool is_printed, char after[static 256])
{
	for (size_t i = 0; i < list->n_vms; i++) {
		json_array_append_new(array, json_of_vm(list->vms[i]));
		if (is_printed)
			print_row(list->vms[i]);
		snprintf(after, 256, "%s", list->vms[i]->name);
	}
	return list->more && list->n_vms;
}

static bool is_listed(const json_t *array, const char *vm)
{
	size_t i;
	json_t *entry;

	json_array_foreach(array, i,
		entry) if (!strcmp(json_string_value(json_object_get(entry, "name")),
				   vm)) return true;
	return false;
}

/* Why vgpud does not serve the VM of a file, its first mistake, to be freed. */
static char *reason_of(const struct config_source *source, const struct config *config,
	const char *mistakes)
{
	const size_t size = strlen(source->path);
	const char *line = source->is_left_out ? mistakes : NULL;

	while (line && (strncmp(line, source->path, size) || line[size] != ':')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line)
		return strndup(line, strcspn(line, "\n"));
	if (source->is_left_out)
		return strdup("it has mistakes: vgpud --check names them");
	return strdup(config && !config_find_vm(config, source->vm)
			      ? "it has no section"
			      : "vgpud has not read it: systemctl reload vgpud");
}

/* The files of VMs that vgpud does not serve, if this user may read them. */
static json_t *find_left_out(const char *path, const json_t *listed)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL, *mistakes = NULL;
	json_t *array = json_array();

	if (config_sources_read(&sources, path, &failed) ||
		config_new_of_right(&config, &sources, &mistakes) < 0)
		return array;
	for (size_t i = 1; i < sources.n; i++) {
		const struct config_source *source = &sources.list[i];
		_vgpu_cleanup_(vgpu_freep) char *reason = NULL;

		if (is_listed(listed, source->vm))
			continue;
		reason = reason_of(source, config, mistakes);
		json_array_append_new(
			array, json_pack("{s:s,s:s,s:s}", "name", source->vm, "file",
				       source->path, "reason", reason ? reason : ""));
	}
	return array;
}

static void print_left_out(const json_t *array)
{
	size_t i;
	json_t *entry;

	json_array_foreach(array, i, entry)
	{
		const char *name, *file, *reason;

		if (json_unpack(entry, "{s:s,s:s,s:s}", "name", &name, "file", &file,
			    "reason", &reason))
			continue;
		fprintf(stderr, "vgpuctl: %s is not served: %s%s%s\n", name,
			*reason == '/' ? "" : file, *reason == '/' ? "" : ": ", reason);
	}
}

enum ctl_status ctl_list(const struct ctl_options *options, char **arguments)
{
	json_t *array = json_array(), *left_out = NULL;
	struct client client;
	enum ctl_status status;
	char after[256] = "";
	bool more = true;

	status = client_open(&client, options->socket);
	if (!status && !options->is_json)
		printf("%-24s %-9s %9s %9s %15s %15s\n", "NAME", "TRANSPORT", "CONNECTED",
			"SESSIONS", "DEVICE-MEMORY", "HOST-MEMORY");
	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = client_list(&client, after, &reply);
		more = !status && take_list(reply->list, array, !options->is_json, after);
		ctl_reply_freep(&reply);
	}
	if (!status)
		left_out = find_left_out(client.hello->config, array);
	client_close(&client);
	if (!status && options->is_json)
		return output_json(
			json_pack("{s:o,s:o}", "vms", array, "not_served", left_out));
	if (!status)
		print_left_out(left_out);
	json_decref(array);
	json_decref(left_out);
	return output_end(status);
}

/*
 * show
 */

static enum ctl_status ask_show(
	struct client *client, const char *vm, uint64_t after, VgpuCtl__Reply **replyp)
{
	VgpuCtl__Show show = VGPU_CTL__SHOW__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;

	show.vm = (char *)vm;
	show.after = after;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SHOW;
	request.show = &show;
	status = client_ask(client, &request, replyp);
	if (status || (*replyp)->result_case == VGPU_CTL__REPLY__RESULT_SHOW)
		return status;
	ctl_reply_freep(replyp);
	*replyp = NULL;
	return ctl_fail(CTL_FAILED, "vgpud's reply does not show a machine");
}

static json_t *json_of_details(const VgpuCtl__Details *details)
{
	json_t *json = json_of_vm(details->vm), *settings = json_object();
	json_t *live = json_array();

	for (size_t i = 0; i < details->n_settings; i++) {
		const VgpuCtl__Setting *setting = details->settings[i];

		json_object_set_new(settings, setting->key, json_string(setting->value));
		if (setting->live)
			json_array_append_new(live, json_string(setting->key));
	}
	json_object_set_new(json, "settings", settings);
	json_object_set_new(json, "live", live);
	json_object_set_new(json, "processes", json_array());
	return json;
}

static void add_session(const VgpuCtl__Session *session, json_t *json)
{
	json_t *entry = json_object();

	json_object_set_new(entry, "number", output_number(session->number));
	json_object_set_new(entry, "channel", output_number(session->channel));
	json_object_set_new(entry, "pid", output_number(session->pid));
	json_object_set_new(entry, "name", json_string(session->name));
	json_object_set_new(entry, "worker", output_number(session->worker));
	json_object_set_new(entry, "phase", json_string(session->phase));
	json_object_set_new(
		entry, "device_memory", output_number(session->device_memory));
	json_object_set_new(entry, "host_memory", output_number(session->host_memory));
	json_object_set_new(
		entry, "device_memory_seen", output_number(session->device_memory_seen));
	json_object_set_new(entry, "device_memory_evicted",
		output_number(session->device_memory_evicted));
	json_object_set_new(
		entry, "guest_protocol", json_string(session->guest_protocol));
	json_object_set_new(entry, "host_protocol", json_string(session->host_protocol));
	add_share(entry, session->share);
	json_object_set_new(entry, "queued_bytes",
		session->queue ? output_number(session->queue->bytes) : json_null());
	json_object_set_new(entry, "last_error", output_last_error(session->last_error));
	json_array_append_new(json_object_get(json, "processes"), entry);
}

/* An older vgpud does not tell. */
static const char *describe_guest(const VgpuCtl__Vm *vm)
{
	if (!vm->connections || vm->greeting == VGPU_CTL__GREETING__UNTOLD)
		return "-";
	return vm->greeting == VGPU_CTL__GREETING__GREETED ? "has greeted"
							   : "has not greeted yet";
}

static const char *describe_cpu(const char *by)
{
	if (!strcmp(by, "cgroup"))
		return "by a control group";
	return strcmp(by, "kernels") ? "nothing keeps it" : "kernels only";
}

/* An older vgpud does not tell. */
static const char *describe_host_memory(const char *by)
{
	if (!strcmp(by, "cgroup"))
		return ", by a control group and measured";
	return *by ? ", measured" : "";
}

static void print_details(const VgpuCtl__Details *details)
{
	const VgpuCtl__Vm *vm = details->vm;
	char use[64];

	printf("%s (%s)\n", vm->name, vm->place);
	printf("  connections    %u\n", vm->connections);
	printf("  guest          %s\n", describe_guest(vm));
	printf("  sessions       %u/%u\n", vm->sessions, vm->max_processes);
	printf("  device memory  %s\n",
		output_use(vm->device_memory, vm->device_memory_limit, use));
	if (vm->evictions)
		printf("  made room      %s now; %" PRIu64 " times, back %" PRIu64
		       " times\n",
			output_size(vm->device_memory_evicted, use), vm->evictions,
			vm->returns);
	printf("  host memory    %s%s\n",
		output_use(vm->host_memory, vm->host_memory_limit, use),
		describe_host_memory(vm->host_memory_by));
	if (vm->oom_kills)
		printf("  out of memory  %" PRIu64 " workers ended by the kernel\n",
			vm->oom_kills);
	if (vm->share)
		printf("  device time    %.3f s, held %.3f s%s\n",
			(double)vm->share->used_ns / 1e9,
			(double)vm->share->held_ns / 1e9, vm->paused ? ", paused" : "");
	if (vm->share && vm->share->pending)
		printf("  queued         %" PRIu64 " launches\n",
			vm->share->pending->launches);
	if (vm->cpu)
		printf("  cpu limit      %u %%, %s\n", vm->cpu, describe_cpu(vm->cpu_by));
	puts("settings (* can change while it is connected)");
	for (size_t i = 0; i < details->n_settings; i++)
		printf("%s %s = %s\n", details->settings[i]->live ? " *" : "  ",
			details->settings[i]->key, details->settings[i]->value);
	if (details->n_sessions)
		printf("%8s %8s %8s %-16s %-9s %5s %13s %13s  %-10s  %s\n", "CHANNEL",
			"PID", "WORKER", "NAME", "PHASE", "QUEUE", "DEVICE-MEMORY",
			"HOST-MEMORY", "PROTOCOL", "LAST-ERROR");
}

/* An older vgpud does not tell. */
static const char *output_protocol(const char *protocol)
{
	return *protocol ? protocol : "-";
}

/* How full the ring is. */
static const char *describe_queue(const VgpuCtl__Queue *queue, char text[static 16])
{
	const int percent = sample_queued(queue);

	snprintf(text, 16, percent < 0 ? "-" : "%d%%", percent);
	return text;
}

static void print_session(const VgpuCtl__Session *session)
{
	char device[24], host[24], protocol[32], queue[16], error[OUTPUT_ERROR_MAX];

	snprintf(protocol, sizeof(protocol), "%.8s on %.8s",
		output_protocol(session->guest_protocol),
		output_protocol(session->host_protocol));
	printf("%8u %8u %8u %-16s %-9s %5s %13s %13s  %-10s  %s\n", session->channel,
		session->pid, session->worker, session->name, session->phase,
		describe_queue(session->queue, queue),
		output_size(session->device_memory, device),
		output_size(session->host_memory, host), protocol,
		output_error_text(session->last_error, error));
}

/* The first part has all but further sessions. Return: whether more follow. */
static bool take_details(
	const VgpuCtl__Details *details, bool is_json, json_t **jsonp, uint64_t *afterp)
{
	if (!*afterp && is_json)
		*jsonp = json_of_details(details);
	else if (!*afterp)
		print_details(details);
	for (size_t i = 0; i < details->n_sessions; i++) {
		if (is_json)
			add_session(details->sessions[i], *jsonp);
		else
			print_session(details->sessions[i]);
		*afterp = details->sessions[i]->number;
	}
	return details->more && details->n_sessions;
}

enum ctl_status ctl_show(const struct ctl_options *options, char **arguments)
{
	struct client client;
	enum ctl_status status;
	json_t *json = NULL;
	uint64_t after = 0;
	bool more = true;

	status = client_open(&client, options->socket);
	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = ask_show(&client, arguments[0], after, &reply);
		more = !status &&
		       take_details(reply->show, options->is_json, &json, &after);
		ctl_reply_freep(&reply);
	}
	client_close(&client);
	if (status || !options->is_json) {
		json_decref(json);
		return output_end(status);
	}
	return output_json(json);
}

/*
 * version
 */

enum ctl_status ctl_version(const struct ctl_options *options, char **arguments)
{
	static const char *const accesses[] = { "none", "monitor", "admin" };
	struct client client;
	enum ctl_status status;
	const char *access;

	status = client_open(&client, options->socket);
	if (status) {
		if (!options->is_json)
			puts("vgpuctl " VGPUD_VERSION);
		return output_end(status);
	}
	access = (unsigned int)client.hello->access < 3 ? accesses[client.hello->access]
							: "unknown";
	if (options->is_json)
		status =
			output_json(json_pack("{s:s, s:s, s:i, s:i, s:s, s:s}", "vgpuctl",
				VGPUD_VERSION, "vgpud", client.hello->release, "protocol",
				(int)client.hello->version, "pid", (int)client.hello->pid,
				"access", access, "config", client.hello->config));
	else
		printf("vgpuctl %s\nvgpud %s, pid %u, %s\nyour rights: %s\n",
			VGPUD_VERSION, client.hello->release, client.hello->pid,
			client.hello->config, access);
	client_close(&client);
	return output_end(status);
}
