/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output: what vgpuctl prints for programs and for people
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/output.h"

static bool is_quiet;

void ctl_set_quiet(bool quiet)
{
	is_quiet = quiet;
}

enum ctl_status ctl_fail(enum ctl_status status, const char *format, ...)
{
	va_list ap;

	if (is_quiet)
		return status;
	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

enum ctl_status output_end(enum ctl_status status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	return ctl_fail(CTL_FAILED, "the output cannot be written: %s", strerror(errno));
}

enum ctl_status output_json(json_t *object)
{
	int r;

	if (!object)
		return ctl_fail(CTL_FAILED, "there is no memory");
	r = json_dumpf(object, stdout, JSON_INDENT(2));
	json_decref(object);
	putchar('\n');
	return output_end(r ? CTL_FAILED : CTL_OK);
}

/* -EBUSY is of drop-in.c. */
static const char *reason_of(int error)
{
	return error == -EBUSY ? "another vgpuctl changes it" : strerror(-error);
}

enum ctl_status output_unwritten(const char *path, int error)
{
	return ctl_fail(CTL_FAILED, "%s cannot be written: %s", path, reason_of(error));
}

enum ctl_status output_unremoved(const char *path, int error)
{
	return ctl_fail(CTL_FAILED, "%s cannot be removed: %s", path, reason_of(error));
}

enum ctl_status output_findings(const struct vgpu_findings *findings, bool is_json)
{
	if (is_json)
		vgpu_findings_print_json(findings, stdout);
	else
		vgpu_findings_print(findings, stdout);
	return output_end(findings->worst == VGPU_FINDING_FAIL ? CTL_FAILED : CTL_OK);
}

json_t *output_number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

json_t *output_limit(uint64_t value)
{
	return value ? output_number(value) : json_null();
}

json_t *output_greeting(VgpuCtl__Greeting greeting)
{
	if (greeting == VGPU_CTL__GREETING__UNTOLD)
		return json_null();
	return json_boolean(greeting == VGPU_CTL__GREETING__GREETED);
}

json_t *output_last_error(const VgpuCtl__LastError *error)
{
	if (!error)
		return json_null();
	return json_pack("{s:i,s:s,s:s,s:o}", "result", (int)error->result, "name",
		error->name, "call", error->call, "age_ms", output_number(error->age_ms));
}

const char *output_error_text(
	const VgpuCtl__LastError *error, char text[static OUTPUT_ERROR_MAX])
{
	static const char prefix[] = "CUDA_ERROR_";
	const char *name;

	if (!error)
		return "-";
	name = error->name;
	if (!strncmp(name, prefix, sizeof(prefix) - 1))
		name += sizeof(prefix) - 1;
	snprintf(text, OUTPUT_ERROR_MAX, "%s in %s, %" PRIu64 " s ago", name, error->call,
		error->age_ms / 1000);
	return text;
}

const char *output_size(uint64_t size, char text[static 24])
{
	static const char units[] = "KMGTPE";
	unsigned int unit = 0;
	double value = (double)size;

	while (value >= 1024 && unit < sizeof(units) - 1) {
		value /= 1024;
		unit++;
	}
	if (unit)
		snprintf(text, 24, "%.1f%c", value, units[unit - 1]);
	else
		snprintf(text, 24, "%" PRIu64, size);
	return text;
}

const char *output_use(uint64_t size, uint64_t limit, char text[static 64])
{
	char used[24], most[24];

	if (limit)
		snprintf(text, 64, "%s/%s", output_size(size, used),
			output_size(limit, most));
	else
		snprintf(text, 64, "%s/-", output_size(size, used));
	return text;
}
