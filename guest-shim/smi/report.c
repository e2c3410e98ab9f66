/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Show: everything of a device, by sections (-q), and in JSON
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "smi/field.h"
#include "smi/library.h"
#include "smi/show.h"

static const struct {
	const char *name;
	const char *title;
} sections[_SMI_SECTION_N] = {
	[SMI_GENERAL] = { "GENERAL", "General" },
	[SMI_MEMORY] = { "MEMORY", "FB Memory Usage" },
	[SMI_UTILIZATION] = { "UTILIZATION", "Utilization" },
	[SMI_ECC] = { "ECC", "ECC" },
	[SMI_TEMPERATURE] = { "TEMPERATURE", "Temperature" },
	[SMI_POWER] = { "POWER", "Power" },
	[SMI_CLOCK] = { "CLOCK", "Clocks" },
	[SMI_COMPUTE] = { "COMPUTE", "Compute" },
	[SMI_PERFORMANCE] = { "PERFORMANCE", "Performance" },
	[SMI_PAGE_RETIREMENT] = { "PAGE_RETIREMENT", "Retired Pages" },
	[SMI_ROW_REMAPPER] = { "ROW_REMAPPER", "Remapped Rows" },
	[SMI_ACCOUNTING] = { "ACCOUNTING", "Accounting" },
	[SMI_ENCODER_STATS] = { "ENCODER_STATS", "Encoder Stats" },
	[SMI_PIDS] = { "PIDS", "Processes" },
};

unsigned int smi_show_parse_sections(const char *list)
{
	char *words = strdup(list), *rest;
	unsigned int bits = 0;

	for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word;
		word = strtok_r(NULL, ",", &rest)) {
		unsigned int i = 0;

		while (i < _SMI_SECTION_N && strcasecmp(sections[i].name, word))
			i++;
		if (i == _SMI_SECTION_N) {
			bits = 0;
			break;
		}
		bits |= 1u << i;
	}
	free(words);
	return bits;
}

static void put(FILE *out, int depth, const char *label, const char *text)
{
	fprintf(out, "%*s%-*s : %s\n", 4 * depth, "", 40 - 4 * depth, label, text);
}

static void put_fields(FILE *out, nvmlDevice_t device, enum smi_section section)
{
	fprintf(out, "    %s\n", sections[section].title);
	for (size_t i = 0; i < smi_n_fields; i++) {
		char text[SMI_VALUE_TEXT];

		if (smi_fields[i].section != section || !smi_fields[i].label)
			continue;
		smi_field_text(device, smi_fields[i].name, text);
		put(out, 2, smi_fields[i].label, text);
	}
}

static void put_processes(FILE *out, nvmlDevice_t device)
{
	static struct smi_processes processes;
	char text[32];

	if (smi_processes_find(&processes, device) != NVML_SUCCESS) {
		put(out, 1, sections[SMI_PIDS].title, "[Unknown Error]");
		return;
	}
	if (!processes.n)
		put(out, 1, sections[SMI_PIDS].title, "None");
	else
		fprintf(out, "    %s\n", sections[SMI_PIDS].title);
	for (unsigned int i = 0; i < processes.n; i++) {
		const struct smi_process *process = &processes.all[i];

		snprintf(text, sizeof(text), "%u", process->pid);
		put(out, 2, "Process ID", text);
		put(out, 3, "Type", process->draws ? "G" : "C");
		put(out, 3, "Name", process->name);
		snprintf(text, sizeof(text), "[N/A]");
		if (process->has_memory)
			snprintf(text, sizeof(text), "%llu MiB", process->memory >> 20);
		put(out, 3, "Used GPU Memory", text);
	}
}

void smi_show_report(FILE *out, const struct smi_devices *devices, unsigned int wanted)
{
	char text[SMI_VALUE_TEXT];
	struct smi_value value;
	int version = 0;

	smi_field_get(smi_field_find("timestamp"), NULL, &value);
	put(out, 0, "Timestamp", value.text);
	smi_field_get(smi_field_find("driver_version"), NULL, &value);
	smi_value_print(&value, NULL, text);
	put(out, 0, "Driver Version", text);
	SMI_CALL(nvmlSystemGetCudaDriverVersion, &version);
	snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
	put(out, 0, "CUDA Version", text);
	smi_field_get(smi_field_find("count"), NULL, &value);
	smi_value_print(&value, NULL, text);
	put(out, 0, "Attached GPUs", text);
	for (unsigned int i = 0; i < devices->n; i++) {
		smi_field_text(devices->all[i], "pci.bus_id", text);
		fprintf(out, "GPU %s\n", text);
		for (int section = 0; section < SMI_PIDS; section++)
			if (wanted >> section & 1)
				put_fields(
					out, devices->all[i], (enum smi_section)section);
		if (wanted >> SMI_PIDS & 1)
			put_processes(out, devices->all[i]);
		fputc('\n', out);
	}
}

/*
 * JSON
 */

static void put_member(FILE *out, const char *name, const struct smi_value *value)
{
	smi_value_quote_json(out, name);
	fputs(": ", out);
	smi_value_print_json(out, value);
}

static void put_json_processes(FILE *out, nvmlDevice_t device)
{
	static struct smi_processes processes;

	if (smi_processes_find(&processes, device) != NVML_SUCCESS)
		processes.n = 0;
	fputs("      \"processes\": [", out);
	for (unsigned int i = 0; i < processes.n; i++) {
		const struct smi_process *process = &processes.all[i];

		fprintf(out, "%s\n        {\"pid\": %u, \"type\": \"%s\", \"name\": ",
			i ? "," : "", process->pid, process->draws ? "G" : "C");
		smi_value_quote_json(out, process->name);
		fputs(", \"memory.used\": ", out);
		if (process->has_memory)
			fprintf(out, "%.3f", (double)process->memory / (1 << 20));
		else
			fputs("null", out);
		fputs(", \"utilization.gpu\": ", out);
		if (process->has_utilisation)
			fprintf(out, "%u}", process->sm);
		else
			fputs("null}", out);
	}
	fprintf(out, "%s]\n", processes.n ? "\n      " : "");
}

void smi_show_json(FILE *out, const struct smi_devices *devices)
{
	struct smi_value value;
	int version = 0;

	SMI_CALL(nvmlSystemGetCudaDriverVersion, &version);
	fputs("{\n  ", out);
	smi_field_get(smi_field_find("driver_version"), NULL, &value);
	put_member(out, "driver_version", &value);
	fprintf(out, ",\n  \"cuda_version\": \"%d.%d\",\n  \"gpus\": [", version / 1000,
		version % 1000 / 10);
	for (unsigned int i = 0; i < devices->n; i++) {
		fprintf(out, "%s\n    {\n", i ? "," : "");
		for (size_t j = 0; j < smi_n_fields; j++) {
			smi_field_get(&smi_fields[j], devices->all[i], &value);
			fputs("      ", out);
			put_member(out, smi_fields[j].name, &value);
			fputs(",\n", out);
		}
		put_json_processes(out, devices->all[i]);
		fputs("    }", out);
	}
	fprintf(out, "%s]\n}\n", devices->n ? "\n  " : "");
}
