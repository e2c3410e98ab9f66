/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Value: one cell of the output, or why it is empty
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "vgpu/nvml.h"

struct smi_value {
	nvmlReturn_t result;
	bool is_number;
	int n_decimals;
	double number;
	char text[256]; /* as the name of a process */
};

/* Room for any of them with its unit. */
#define SMI_VALUE_TEXT 288u

void smi_value_set_number(struct smi_value *value, nvmlReturn_t result, double number);
void smi_value_set_text(struct smi_value *value, nvmlReturn_t result, const char *format,
	...) __attribute__((__format__(__printf__, 3, 4)));

/* Makes a text fit for a terminal: names of processes are whatever these chose. */
void smi_value_clean(char *text);

/* For people: the number and its unit, if that is not NULL, or the text; [N/A] for what
 * the device does not have. */
void smi_value_print(
	const struct smi_value *value, const char *unit, char text[SMI_VALUE_TEXT]);

/* The same in JSON: null for what it does not have. */
void smi_value_print_json(FILE *out, const struct smi_value *value);

/* A text in quotes; what is no UTF-8 is replaced. */
void smi_value_quote_json(FILE *out, const char *text);
