/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV: columns by name
 */

#include <stdlib.h>
#include <string.h>

#include "smi/csv.h"
#include "smi/field.h"

/* A column of processes: one of the process, or a field of its device. */
struct column {
	const char *name;
	const char *other_name; /* or NULL */
	const char *unit;
	const char *field; /* or NULL */
	void (*get)(const struct smi_process *process, struct smi_value *value);
};

static void get_pid(const struct smi_process *process, struct smi_value *value)
{
	smi_value_set_number(value, NVML_SUCCESS, process->pid);
}

static void get_name(const struct smi_process *process, struct smi_value *value)
{
	smi_value_set_text(value, NVML_SUCCESS, "%s", process->name);
}

static void get_memory(const struct smi_process *process, struct smi_value *value)
{
	smi_value_set_number(value,
		process->has_memory ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED,
		(double)process->memory / (1 << 20));
}

static const struct column columns[] = {
	{ "timestamp", NULL, NULL, "timestamp", NULL },
	{ "gpu_name", NULL, NULL, "name", NULL },
	{ "gpu_bus_id", NULL, NULL, "pci.bus_id", NULL },
	{ "gpu_serial", NULL, NULL, "serial", NULL },
	{ "gpu_uuid", NULL, NULL, "uuid", NULL },
	{ "pid", NULL, NULL, NULL, get_pid },
	{ "process_name", "name", NULL, NULL, get_name },
	{ "used_gpu_memory", "used_memory", "MiB", NULL, get_memory },
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const void *find(bool of_processes, const char *name)
{
	if (!of_processes)
		return smi_field_find(name);
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (!strcmp(columns[i].name, name) ||
			(columns[i].other_name && !strcmp(columns[i].other_name, name)))
			return &columns[i];
	return NULL;
}

char *smi_csv_init(struct smi_csv *csv, bool of_processes, const char *query)
{
	char *words = strdup(query), *rest, *unknown = NULL;

	*csv = (struct smi_csv){
		.of_processes = of_processes,
		.has_header = true,
		.has_units = true,
	};
	for (char *word = words ? strtok_r(words, ", ", &rest) : NULL; word && !unknown;
		word = strtok_r(NULL, ", ", &rest)) {
		const void *column = find(of_processes, word);

		if (column && csv->n_columns < SMI_COLUMNS_MAX)
			csv->columns[csv->n_columns++] = column;
		else
			unknown = strdup(word);
	}
	free(words);
	return !unknown && !csv->n_columns ? strdup("") : unknown;
}

bool smi_csv_set_format(struct smi_csv *csv, const char *format)
{
	char *words = strdup(format), *rest;
	bool is_csv = false, is_known = true;

	for (char *word = words ? strtok_r(words, ", ", &rest) : NULL; word;
		word = strtok_r(NULL, ", ", &rest))
		if (!strcmp(word, "csv"))
			is_csv = true;
		else if (!strcmp(word, "noheader"))
			csv->has_header = false;
		else if (!strcmp(word, "nounits"))
			csv->has_units = false;
		else
			is_known = false;
	free(words);
	return is_csv && is_known;
}

/* Both kinds of column have these. */
static const char *name_of(const struct smi_csv *csv, unsigned int i)
{
	return csv->of_processes ? ((const struct column *)csv->columns[i])->name
				 : ((const struct smi_field *)csv->columns[i])->name;
}

static const char *unit_of(const struct smi_csv *csv, unsigned int i)
{
	return csv->of_processes ? ((const struct column *)csv->columns[i])->unit
				 : ((const struct smi_field *)csv->columns[i])->unit;
}

void smi_csv_show_header(FILE *out, const struct smi_csv *csv)
{
	if (!csv->has_header)
		return;
	for (unsigned int i = 0; i < csv->n_columns; i++) {
		const char *unit = unit_of(csv, i);

		fprintf(out, "%s%s", i ? ", " : "", name_of(csv, i));
		if (unit)
			fprintf(out, " [%s]", unit);
	}
	fputc('\n', out);
}

static void get(const struct smi_csv *csv, unsigned int i, nvmlDevice_t device,
	const struct smi_process *process, struct smi_value *value)
{
	const struct column *column = csv->columns[i];

	if (!csv->of_processes)
		smi_field_get(csv->columns[i], device, value);
	else if (column->get)
		column->get(process, value);
	else
		smi_field_get(smi_field_find(column->field), device, value);
}

static void show_line(FILE *out, const struct smi_csv *csv, nvmlDevice_t device,
	const struct smi_process *process)
{
	for (unsigned int i = 0; i < csv->n_columns; i++) {
		char text[SMI_VALUE_TEXT];
		struct smi_value value;

		get(csv, i, device, process, &value);
		smi_value_print(&value, csv->has_units ? unit_of(csv, i) : NULL, text);
		fprintf(out, "%s%s", i ? ", " : "", text);
	}
	fputc('\n', out);
}

void smi_csv_show(FILE *out, const struct smi_csv *csv, const struct smi_devices *devices)
{
	static struct smi_processes processes;

	for (unsigned int i = 0; i < devices->n; i++) {
		nvmlDevice_t device = devices->all[i];

		if (!csv->of_processes) {
			show_line(out, csv, device, NULL);
			continue;
		}
		if (smi_processes_find(&processes, device) != NVML_SUCCESS)
			continue;
		for (unsigned int j = 0; j < processes.n; j++)
			if (!processes.all[j].draws)
				show_line(out, csv, device, &processes.all[j]);
	}
}

static void show_name(FILE *out, const char *name, const char *other, const char *unit)
{
	fprintf(out, "\n\"%s\"", name);
	if (other)
		fprintf(out, " or \"%s\"", other);
	fputc('\n', out);
	if (unit)
		fprintf(out, "In %s.\n", unit);
}

/* Programs take the names from here: each is in quotation marks, at the start of a line
 * and after an empty one, as nvidia-smi prints them. */
void smi_csv_help(FILE *out, bool of_processes)
{
	fprintf(out, "Names for --query-%s:\n", of_processes ? "compute-apps" : "gpu");
	if (of_processes)
		for (size_t i = 0; i < N_COLUMNS; i++)
			show_name(out, columns[i].name, columns[i].other_name,
				columns[i].unit);
	else
		for (size_t i = 0; i < smi_n_fields; i++)
			show_name(out, smi_fields[i].name, smi_fields[i].other_name,
				smi_fields[i].unit);
}
