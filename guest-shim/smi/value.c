/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value: setting and printing
 */

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
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
	smi_value_clean(value->text);
}

void smi_value_clean(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
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

/* Returns: how many bytes a character has, or 0 if these are none. Longer forms than
 * needed and halves of surrogate pairs are none. */
static unsigned int utf8_length(const unsigned char *text)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned int n = *text < 0x80   ? 1
			       : *text < 0xc0 ? 0
			       : *text < 0xe0 ? 2
			       : *text < 0xf0 ? 3
			       : *text < 0xf8 ? 4
					      : 0;
	uint32_t code = *text & (0x7fu >> n);

	for (unsigned int i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (n > 1 && (code < least[n] || code > 0x10ffff || code >> 11 == 0x1b))
		return 0;
	return n;
}

void smi_value_quote_json(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text) {
		const unsigned int n = utf8_length((const unsigned char *)text);
		const unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else if (n)
			fwrite(text, 1, n, out);
		else
			fputs("\\ufffd", out);
		text += n ? n : 1;
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
