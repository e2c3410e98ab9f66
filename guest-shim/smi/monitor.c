/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Show: monitors, a line a second for each process (pmon) or device (dmon)
 */

#include <string.h>

#include "smi/field.h"
#include "smi/show.h"

#define HEADING_ROUNDS 10u

/* A number in a column, or a dash. */
static void put_percent(FILE *out, bool is_known, unsigned int percent)
{
	if (is_known)
		fprintf(out, " %5u", percent);
	else
		fprintf(out, " %5s", "-");
}

static void put_process(FILE *out, const char *index, const struct smi_process *process)
{
	const bool known = process->has_utilisation;
	const char *name = strrchr(process->name, '/');

	fprintf(out, "%5s %10u %5s", index, process->pid, process->draws ? "G" : "C");
	put_percent(out, known, process->sm);
	put_percent(out, known, process->memory_controller);
	put_percent(out, known, process->encoder);
	put_percent(out, known, process->decoder);
	/* Of these no sample has a value. */
	put_percent(out, false, 0);
	put_percent(out, false, 0);
	if (process->has_memory)
		fprintf(out, " %7llu", process->memory >> 20);
	else
		fprintf(out, " %7s", "-");
	fprintf(out, "   %s\n", name ? name + 1 : process->name);
}

void smi_show_processes(FILE *out, const struct smi_devices *devices, unsigned int round)
{
	static struct smi_processes processes;

	if (round % HEADING_ROUNDS == 0)
		fprintf(out, "# gpu        pid  type    sm   mem   enc   dec   jpg   ofa"
			     "      fb   command\n"
			     "# Idx          #   C/G     %%     %%     %%     %%     %%"
			     "     %%      MB   name\n");
	for (unsigned int i = 0; i < devices->n; i++) {
		char index[SMI_VALUE_TEXT];

		smi_field_text(devices->all[i], "index", index);
		if (smi_processes_find(&processes, devices->all[i]) != NVML_SUCCESS)
			processes.n = 0;
		if (!processes.n)
			fprintf(out, "%5s %10s %5s %5s %5s %5s %5s %5s %5s %7s   -\n",
				index, "-", "-", "-", "-", "-", "-", "-", "-", "-");
		for (unsigned int j = 0; j < processes.n; j++)
			put_process(out, index, &processes.all[j]);
	}
}

static void put_field(FILE *out, nvmlDevice_t device, const char *name)
{
	struct smi_value value;

	smi_field_get(smi_field_find(name), device, &value);
	if (value.result == NVML_SUCCESS)
		fprintf(out, " %5.0f", value.number);
	else
		fprintf(out, " %5s", "-");
}

void smi_show_devices(FILE *out, const struct smi_devices *devices, unsigned int round)
{
	static const char *const names[] = {
		"power.draw",
		"temperature.gpu",
		"temperature.memory",
		"utilization.gpu",
		"utilization.memory",
		"utilization.encoder",
		"utilization.decoder",
		"utilization.jpeg",
		"utilization.ofa",
		"clocks.mem",
		"clocks.sm",
		"memory.used",
	};

	if (round % HEADING_ROUNDS == 0)
		fprintf(out, "# gpu   pwr gtemp mtemp    sm   mem   enc   dec   jpg   ofa"
			     "  mclk  pclk    fb\n"
			     "# Idx     W     C     C     %%     %%     %%     %%     %%"
			     "     %%   MHz   MHz    MB\n");
	for (unsigned int i = 0; i < devices->n; i++) {
		char index[SMI_VALUE_TEXT];

		smi_field_text(devices->all[i], "index", index);
		fprintf(out, "%5s", index);
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++)
			put_field(out, devices->all[i], names[j]);
		fputc('\n', out);
	}
}
