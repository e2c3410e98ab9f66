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
#include "ctl/guest.h"
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
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "vgpud",
			status == CTL_DENIED
				? "ask as root, or as a member of vgpu-monitor"
				: "systemctl start vgpud, or set ctl-socket in "
				  "vgpud.conf",
			"%s does not answer", options->socket);
		return;
	}
	doctor->pid = client->hello->pid;
	if (strcmp(client->hello->release, VGPUD_VERSION))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "vgpud",
			"restart vgpud",
			"vgpud is of release %s, vgpuctl of " VGPUD_VERSION,
			client->hello->release);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "vgpud", NULL,
			"release %s, pid %u", client->hello->release, client->hello->pid);
}

/* Each mistake is a finding. Modifies the text. */
static void add_mistakes(struct doctor *doctor, char *text)
{
	for (char *line = text; line;) {
		const char *mistake = strsep(&line, "\n");

		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "configuration",
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
	mistakes_deinit(&mistakes);
	if (text)
		add_mistakes(doctor, text);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "configuration", NULL,
			"%s, %u machines", path, doctor->config->n_vms);
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
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "configuration",
			"write it; vgpud(8) has an example", "%s: %s",
			failed ? failed : path, strerror(-r));
		return;
	}
	r = config_new_of_right(configp, &sources, &error);
	if (error)
		add_mistakes(doctor, error);
	if (!r)
		r = paths_complete(*configp);
	if (r)
		return;
	doctor->config = *configp;
	look_at_host(doctor, path);
}

enum ctl_status ctl_doctor(const struct ctl_options *options, char **arguments)
{
	struct doctor doctor = { .root = "" };
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	struct client client;
	enum ctl_status status;

	if (options->is_guest)
		return guest_doctor(options, arguments[0]);
	look_at_vgpud(&doctor, &client, options);
	look_at_config(&doctor,
		client.hello && *client.hello->config ? client.hello->config
						      : DEFAULT_CONFIG,
		&config);
	doctor_look_at_kvm(&doctor);
	doctor_look_at_io_uring(&doctor);
	doctor_look_at_driver(&doctor);
	doctor_look_at_memory(&doctor);
	doctor_look_at_groups(&doctor);
	doctor_look_at_hugepages(&doctor);
	doctor_look_at_files(&doctor);
	doctor_look_at_programs(&doctor);
	status = output_findings(&doctor.found, options->is_json);
	vgpu_findings_deinit(&doctor.found);
	client_close(&client);
	return status;
}
