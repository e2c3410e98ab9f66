/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Show: the tables that a user sees without options, and the list
 */

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "smi/field.h"
#include "smi/library.h"
#include "smi/show.h"

#define WIDTH 79
#define RULE                                                                             \
	"+-------------------------------+----------------------+----------------------" \
	"+"
#define RULE_HEAD                                                                        \
	"|===============================+======================+======================" \
	"|"
#define RULE_WIDE                                                                        \
	"+-----------------------------------------------------------------------------" \
	"+"

/* A line of the wide part: the text, cut or filled up to its width. */
static void put(FILE *out, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

static void put(FILE *out, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	smi_value_clean(text);
	fprintf(out, "| %-*.*s |\n", WIDTH - 4, WIDTH - 4, text);
}

/* A field as it stands in the table, where N/A has no brackets, and without the blank
 * before a unit. */
static const char *cell(nvmlDevice_t device, const char *name, char text[SMI_VALUE_TEXT])
{
	char *blank;

	smi_field_text(device, name, text);
	if (!strcmp(text, "[N/A]"))
		return strcpy(text, "N/A");
	if (*text == '[')
		return strcpy(text, "ERR!");
	blank = strchr(text, '.');
	if (blank && strstr(text, " W"))
		strcpy(blank, "W");
	blank = strrchr(text, ' ');
	if (blank && strcmp(name, "name"))
		memmove(blank, blank + 1, strlen(blank));
	return text;
}

static const char *on_off(nvmlDevice_t device, const char *name)
{
	char text[SMI_VALUE_TEXT];

	return strcmp(cell(device, name, text), "Enabled") ? "Off" : "On";
}

static void put_device(FILE *out, nvmlDevice_t device)
{
	char t[8][SMI_VALUE_TEXT], temperature[SMI_VALUE_TEXT + 1], power[32], memory[48];

	cell(device, "temperature.gpu", temperature);
	if (*temperature >= '0' && *temperature <= '9')
		strcat(temperature, "C");
	snprintf(power, sizeof(power), "%.10s / %.10s", cell(device, "power.draw", t[0]),
		cell(device, "power.limit", t[1]));
	snprintf(memory, sizeof(memory), "%.16s / %.16s",
		cell(device, "memory.used", t[2]), cell(device, "memory.total", t[3]));
	fprintf(out, "| %3.3s  %-20.20s %3s | %-16.16s %3s | %20.20s |\n",
		cell(device, "index", t[0]), cell(device, "name", t[1]),
		on_off(device, "persistence_mode"), cell(device, "pci.bus_id", t[2]),
		on_off(device, "display_active"),
		cell(device, "ecc.errors.uncorrected.volatile.total", t[3]));
	fprintf(out, "| %-4.4s%4.4s  %4.4s %14.14s | %20.20s | %7.7s %12.12s |\n",
		cell(device, "fan.speed", t[0]), temperature,
		cell(device, "pstate", t[1]), power, memory,
		cell(device, "utilization.gpu", t[2]),
		cell(device, "compute_mode", t[3]));
	fprintf(out, "%s\n", RULE);
}

static void put_processes(FILE *out, nvmlDevice_t device, unsigned int *n_shown)
{
	static struct smi_processes processes;
	char index[SMI_VALUE_TEXT], memory[24];

	if (smi_processes_find(&processes, device) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < processes.n; i++) {
		const struct smi_process *process = &processes.all[i];

		snprintf(memory, sizeof(memory), "N/A");
		if (process->has_memory)
			snprintf(
				memory, sizeof(memory), "%lluMiB", process->memory >> 20);
		put(out, "%3.3s  %9u  %4s   %-38.38s %12s", cell(device, "index", index),
			process->pid, process->draws ? "G" : "C", process->name, memory);
		(*n_shown)++;
	}
}

static void put_title(FILE *out)
{
	char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "N/A", text[32];
	time_t now = time(NULL);
	int version = 0;
	struct tm tm;

	strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", localtime_r(&now, &tm));
	SMI_CALL(nvmlSystemGetDriverVersion, driver, sizeof(driver));
	SMI_CALL(nvmlSystemGetCudaDriverVersion, &version);
	fprintf(out, "%s\n%s\n", text, RULE_WIDE);
	put(out, "vgpu-smi %-12.12s  Driver Version: %-15.15s  CUDA Version: %d.%d",
		VGPU_VERSION, driver, version / 1000, version % 1000 / 10);
}

void smi_show_table(FILE *out, const struct smi_devices *devices)
{
	unsigned int n_shown = 0;

	put_title(out);
	fprintf(out, "%s\n", RULE);
	fprintf(out, "| GPU  Name       Persistence-M | Bus-Id        Disp.A | Volatile "
		     "Uncorr. ECC |\n");
	fprintf(out, "| Fan Temp  Perf  Pwr:Usage/Cap |         Memory-Usage | GPU-Util  "
		     "Compute M. |\n");
	fprintf(out, "%s\n", RULE_HEAD);
	for (unsigned int i = 0; i < devices->n; i++)
		put_device(out, devices->all[i]);
	fprintf(out, "\n%s\n", RULE_WIDE);
	put(out, "Processes:");
	put(out, "%3s  %9s  %4s   %-38s %12s", "GPU", "PID", "Type", "Process name",
		"GPU Memory");
	fprintf(out, "|%.*s|\n", WIDTH - 2,
		"======================================================================="
		"===============");
	for (unsigned int i = 0; i < devices->n; i++)
		put_processes(out, devices->all[i], &n_shown);
	if (!n_shown)
		put(out, "  No running processes found");
	fprintf(out, "%s\n", RULE_WIDE);
}

void smi_show_list(FILE *out, const struct smi_devices *devices)
{
	for (unsigned int i = 0; i < devices->n; i++) {
		char index[SMI_VALUE_TEXT], name[SMI_VALUE_TEXT], uuid[SMI_VALUE_TEXT];

		smi_field_text(devices->all[i], "index", index);
		smi_field_text(devices->all[i], "name", name);
		smi_field_text(devices->all[i], "uuid", uuid);
		fprintf(out, "GPU %s: %s (UUID: %s)\n", index, name, uuid);
	}
}
