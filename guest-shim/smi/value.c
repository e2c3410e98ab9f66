/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value: setting and printing
 */

#include <stdarg.h>
#include <stdio.h>

#include "smi/value.h"

void smi_value_set_number(struct smi_value *value, nvmlReturn_t result, double number)
{
	*value = (struct smi_value){
		.result = result,
		.is_number = true,
		.number = number,
	};
}

void smi_value_set_text(
	struct smi_value *value, nvmlReturn_t result, const char *format, ...)
{
	va_list ap;

	*value = (struct smi_value){ .result = result };
	va_start(ap, format);
	vsnprintf(value->text, sizeof(value->text), format, ap);
	va_end(ap);
}

static const char *empty(nvmlReturn_t result)
{
	switch (result) {
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
	case NVML_ERROR_NOT_FOUND:
		return "[N/A]";
	case NVML_ERROR_GPU_IS_LOST:
		return "[GPU is lost]";
	case NVML_ERROR_NO_PERMISSION:
		return "[Insufficient Permissions]";
	default:
		return "[Unknown Error]";
	}
}

void smi_value_print(
	const struct smi_value *value, const char *unit, char text[SMI_VALUE_TEXT])
{
	if (value->result != NVML_SUCCESS)
		snprintf(text, SMI_VALUE_TEXT, "%s", empty(value->result));
	else if (value->is_number)
		snprintf(text, SMI_VALUE_TEXT, "%.*f%s%s", value->n_decimals,
			value->number, unit ? " " : "", unit ? unit : "");
	else
		snprintf(text, SMI_VALUE_TEXT, "%s", value->text);
}

void smi_value_quote_json(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void smi_value_print_json(FILE *out, const struct smi_value *value)
{
	if (value->result != NVML_SUCCESS)
		fputs("null", out);
	else if (value->is_number)
		fprintf(out, "%.*f", value->n_decimals, value->number);
	else
		smi_value_quote_json(out, value->text);
}
