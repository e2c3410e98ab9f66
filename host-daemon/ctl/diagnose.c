/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnose: the verb doctor
 *
 * The configuration is that of the vgpud that runs, or of the default place.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/doctor.h"
#include "ctl/output.h"
#include "vgpu/cleanup.h"
#include "vgpud/config-check.h"
#include "vgpud/paths.h"

#define DEFAULT_CONFIG "/etc/vgpu/vgpud.conf"

/* client_open() prints the reason of a failure, which is a finding like others. */
static void look_at_vgpud(
	struct doctor *doctor, struct client *client, const struct ctl_options *options)
{
	const enum ctl_status status = client_open(client, options->socket);

	if (status) {
		doctor_find(doctor, FINDING_FAIL, "vgpud",
			status == CTL_DENIED
				? "ask as root, or as a member of vgpu-monitor"
				: "systemctl start vgpud, or set ctl-socket in "
				  "vgpud.conf",
			"%s does not answer", options->socket);
		return;
	}
	doctor->pid = client->hello->pid;
	if (strcmp(client->hello->release, VGPUD_VERSION))
		doctor_find(doctor, FINDING_WARN, "vgpud", "restart vgpud",
			"vgpud is of release %s, vgpuctl of " VGPUD_VERSION,
			client->hello->release);
	else
		doctor_find(doctor, FINDING_OK, "vgpud", NULL, "release %s, pid %u",
			client->hello->release, client->hello->pid);
}

/* Each mistake is a finding. Modifies the text. */
static void add_mistakes(struct doctor *doctor, char *text)
{
	for (char *line = text; line;) {
		const char *mistake = strsep(&line, "\n");

		doctor_find(doctor, FINDING_FAIL, "configuration",
			"correct the file; vgpud --check says whether it is right", "%s",
			mistake);
	}
}

static void look_at_host(struct doctor *doctor, const char *path)
{
	struct mistakes mistakes = { 0 };
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	config_check_host(doctor->config, &mistakes);
	text = mistakes_take(&mistakes);
	if (text)
		add_mistakes(doctor, text);
	else
		doctor_find(doctor, FINDING_OK, "configuration", NULL, "%s, %u machines",
			path, doctor->config->n_vms);
}

static void look_at_config(
	struct doctor *doctor, const char *path, struct config **configp)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL, *error = NULL;
	int r;

	r = config_sources_read(&sources, path, &failed);
	if (r) {
		doctor_find(doctor, FINDING_FAIL, "configuration",
			"write it; vgpud(8) has an example", "%s: %s",
			failed ? failed : path, strerror(-r));
		return;
	}
	r = config_new(configp, &sources, &error);
	if (r == CONFIG_E_INVALID)
		add_mistakes(doctor, error);
	else if (!r)
		r = paths_complete(*configp);
	if (r)
		return;
	doctor->config = *configp;
	look_at_host(doctor, path);
}

static enum ctl_status print_json(const struct doctor *doctor)
{
	static const char *const levels[_FINDING_N] = { "ok", "warn", "fail" };
	json_t *array = json_array();

	for (size_t i = 0; i < doctor->n; i++) {
		const struct finding *finding = &doctor->findings[i];

		json_array_append_new(array,
			json_pack("{s:s, s:s, s:s?, s:s?}", "level",
				levels[finding->level], "subject", finding->subject,
				"text", finding->text, "advice", finding->advice));
	}
	return output_json(json_pack(
		"{s:s, s:o}", "level", levels[doctor_worst(doctor)], "findings", array));
}

static enum ctl_status print(const struct doctor *doctor)
{
	static const char *const levels[_FINDING_N] = { "ok  ", "WARN", "FAIL" };

	for (size_t i = 0; i < doctor->n; i++) {
		const struct finding *finding = &doctor->findings[i];

		printf("%s  %s: %s\n", levels[finding->level], finding->subject,
			finding->text ? finding->text : "");
		if (finding->advice)
			printf("      %s\n", finding->advice);
	}
	return output_end(CTL_OK);
}

enum ctl_status ctl_doctor(const struct ctl_options *options, char **arguments)
{
	struct doctor doctor = { .root = "" };
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	struct client client;
	enum ctl_status status;

	look_at_vgpud(&doctor, &client, options);
	look_at_config(&doctor,
		client.hello && *client.hello->config ? client.hello->config
						      : DEFAULT_CONFIG,
		&config);
	doctor_look_at_kvm(&doctor);
	doctor_look_at_io_uring(&doctor);
	doctor_look_at_driver(&doctor);
	doctor_look_at_memory(&doctor);
	doctor_look_at_hugepages(&doctor);
	doctor_look_at_files(&doctor);
	doctor_look_at_programs(&doctor);
	status = options->is_json ? print_json(&doctor) : print(&doctor);
	if (!status && doctor_worst(&doctor) == FINDING_FAIL)
		status = CTL_FAILED;
	doctor_deinit(&doctor);
	client_close(&client);
	return status;
}
