/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Field: a value of a device that can be asked for by name
 */

#include "smi/value.h"

/* Sections of -q, in its order. */
enum smi_section {
	SMI_GENERAL,
	SMI_MEMORY,
	SMI_UTILIZATION,
	SMI_ECC,
	SMI_TEMPERATURE,
	SMI_POWER,
	SMI_CLOCK,
	SMI_COMPUTE,
	SMI_PERFORMANCE,
	SMI_PAGE_RETIREMENT,
	SMI_ROW_REMAPPER,
	SMI_ACCOUNTING,
	SMI_ENCODER_STATS,
	SMI_PIDS, /* processes, which are no fields */
	_SMI_SECTION_N,
};

struct smi_field {
	const char *name;
	const char *other_name; /* or NULL */
	const char *unit;	/* or NULL */
	enum smi_section section;
	const char *label; /* in -q, or NULL where it is not shown */
	void (*get)(nvmlDevice_t device, struct smi_value *value, int argument);
	int argument;
};

extern const struct smi_field smi_fields[];
extern const size_t smi_n_fields;

/* Returns: NULL if there is none of that name. */
const struct smi_field *smi_field_find(const char *name);

void smi_field_get(
	const struct smi_field *field, nvmlDevice_t device, struct smi_value *value);

/* The text of a field for people, with its unit; the name must exist. */
void smi_field_text(nvmlDevice_t device, const char *name, char text[SMI_VALUE_TEXT]);
