/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CSV: columns that the user names, a line for each device or process
 */

#include <stdbool.h>
#include <stdio.h>

#include "smi/device.h"

/* More than there are names. */
#define SMI_COLUMNS_MAX 256u

struct smi_csv {
	bool of_processes;
	bool has_header;
	bool has_units;
	unsigned int n_columns;
	const void *columns[SMI_COLUMNS_MAX]; /* of csv.c */
};

/* @query: names by commas. Returns: the first that is unknown, as a copy to be freed, or
 * NULL. */
char *smi_csv_init(struct smi_csv *csv, bool of_processes, const char *query);

/* @format: csv, then noheader and nounits. Returns: whether it is one. */
bool smi_csv_set_format(struct smi_csv *csv, const char *format);

void smi_csv_show_header(FILE *out, const struct smi_csv *csv);
void smi_csv_show(
	FILE *out, const struct smi_csv *csv, const struct smi_devices *devices);

/* The names, a line each. */
void smi_csv_help(FILE *out, bool of_processes);
