/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Show: the forms of output, each for the devices that were asked for
 */

#include <stdio.h>

#include "smi/device.h"

/* Two tables, of devices and of processes; 79 columns. */
void smi_show_table(FILE *out, const struct smi_devices *devices);

/* A line for each device. */
void smi_show_list(FILE *out, const struct smi_devices *devices);

/* @sections: bits 1 << enum smi_section. */
void smi_show_report(FILE *out, const struct smi_devices *devices, unsigned int sections);

/* The bits for a list of names by commas. Returns: 0 if one is unknown. */
unsigned int smi_show_parse_sections(const char *list);

void smi_show_json(FILE *out, const struct smi_devices *devices);

/* One round of a monitor; the heading is printed in every tenth. */
void smi_show_processes(FILE *out, const struct smi_devices *devices, unsigned int round);
void smi_show_devices(FILE *out, const struct smi_devices *devices, unsigned int round);
