/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: calls of a library of the loader, in a process of their own
 */

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "doctor/child.h"
#include "doctor/way.h"

bool child_load(struct child *child, int out, const char *name)
{
	struct link_map *map;

	/* What the library reports is the reason of a failure. */
	setenv("VGPU_LOG", "error", 1);
	child->out = out;
	dprintf(out, "step dlopen\n");
	child->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!child->library) {
		dprintf(out, "failed dlopen: %s\n", dlerror());
		return false;
	}
	if (!dlinfo(child->library, RTLD_DI_LINKMAP, &map))
		dprintf(out, "path %s\n", map->l_name);
	return true;
}

void *child_find(const struct child *child, const char *function)
{
	void *address = dlsym(child->library, function);

	if (!address)
		dprintf(child->out, "failed dlsym: the library has no %s\n", function);
	return address;
}

void child_step(const struct child *child, const char *function)
{
	dprintf(child->out, "step %s\n", function);
}

bool child_check(
	const struct child *child, const char *function, int result, const char *name)
{
	if (result)
		dprintf(child->out, "failed %s: %s (%d)\n", function,
			name ? name : "error", result);
	return !result;
}

/* The sentence of the last line that the library logged; NULL: it logged none. */
static const char *find_reason(char *errors)
{
	static const char mark[] = "] error: ", fails[] = " fails with ";
	char *found = NULL, *sentence;

	for (char *line; (line = strsep(&errors, "\n"));)
		if ((line = strstr(line, mark)))
			found = line + sizeof(mark) - 1;
	if (!found || !strstr(found, fails))
		return found;
	/* "cuInit fails with NAME (100): SENTENCE": the call is known already. */
	sentence = strstr(found, ": ");
	return sentence ? sentence + 2 : found;
}

static void tell_failure(struct doctor *doctor, struct probe *probe, const char *subject,
	const char *failed)
{
	const char *reason = find_reason(probe->errors);
	char before[CHILD_FIELD_SIZE + 4];

	if (!reason) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
			strncmp(failed, "dl", 2)
				? "see the log of vgpud on the host"
				: "correct what is said of the libraries above",
			"%s", failed);
		return;
	}
	snprintf(before, sizeof(before), "%s; ", failed);
	doctor_add_sentence(doctor, subject, before, reason);
}

static void tell_end(struct doctor *doctor, const struct probe *probe,
	const char *subject, const char *step)
{
	if (probe->is_late)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
			"see the log of vgpud on the host, and the load of both machines",
			"%s does not return within %u seconds", step, doctor->seconds);
	else if (WIFSIGNALED(probe->status))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
			"report it, with this output",
			"the process died in %s by signal %d (%s)", step,
			WTERMSIG(probe->status), strsignal(WTERMSIG(probe->status)));
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
			"report it, with this output",
			"the process ended in %s, with status %d", step,
			WEXITSTATUS(probe->status));
}

bool child_run(struct doctor *doctor, struct probe *probe, const char *subject,
	void (*function)(int out, const void *data))
{
	char step[CHILD_FIELD_SIZE], failed[CHILD_FIELD_SIZE];
	int r = probe_call(probe, function, NULL, doctor->seconds);

	if (r) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
			"free memory, or end processes", "no process can be started: %s",
			strerror(-r));
		return false;
	}
	probe_get(probe, "step", step, sizeof(step));
	if (probe_get(probe, "failed", failed, sizeof(failed)))
		tell_failure(doctor, probe, subject, failed);
	else if (probe->is_late || probe->status || strcmp(step, "done"))
		tell_end(doctor, probe, subject, *step ? step : "its start");
	else
		return true;
	return false;
}
