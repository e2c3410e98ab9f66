/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: vgpu-smi
 *
 * The input is a command line's lists, then what a library answers: any code, any number,
 * texts that just end in their buffers. All forms of output are printed; lines of the
 * tables have their width, and JSON its quotes.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "smi/csv.h"
#include "smi/field.h"
#include "smi/library.h"
#include "smi/show.h"

#define LIST_MAX 64u
#define TABLE_WIDTH 79u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reader input;

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition))                                                       \
			abort();                                                         \
	} while (0)

/*
 * A library
 */

/* Mostly success, or the code of a sensor that is not there. */
static nvmlReturn_t answer(void)
{
	const uint8_t code = reader_u8(&input);

	return code < 192 ? NVML_SUCCESS : (nvmlReturn_t)(code - 192);
}

static nvmlReturn_t answer_text(char *text, unsigned int length)
{
	const uint8_t n = reader_u8(&input);

	need(length);
	memset(text, 0, length);
	reader_bytes(&input, text, n < length ? n : length - 1);
	return answer();
}

static nvmlReturn_t get_text(nvmlDevice_t device, char *text, unsigned int length)
{
	return answer_text(text, length);
}

static nvmlReturn_t get_process_name(unsigned int pid, char *name, unsigned int length)
{
	return answer_text(name, length);
}

static nvmlReturn_t get_number(nvmlDevice_t device, unsigned int *number)
{
	*number = reader_u32(&input);
	return answer();
}

static nvmlReturn_t get_count(unsigned int *n)
{
	*n = reader_u8(&input);
	return NVML_SUCCESS;
}

static nvmlReturn_t get_version(int *version)
{
	*version = (int)reader_u32(&input);
	return answer();
}

static nvmlReturn_t get_handle(unsigned int index, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)(uintptr_t)(index + 1u);
	return index < 4 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t get_handle_by_text(const char *text, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)(uintptr_t)(strlen(text) + 1);
	return answer();
}

static nvmlReturn_t get_pci(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	reader_bytes(&input, pci, sizeof(*pci));
	return answer();
}

static nvmlReturn_t get_memory(nvmlDevice_t device, nvmlMemory_t *memory)
{
	reader_bytes(&input, memory, sizeof(*memory));
	return answer();
}

static nvmlReturn_t get_values(nvmlDevice_t device, int n, nvmlFieldValue_t *values)
{
	for (int i = 0; i < n; i++) {
		values[i].value.ullVal = reader_u64(&input);
		values[i].valueType = (nvmlValueType_t)reader_u8(&input);
		values[i].nvmlReturn = answer();
	}
	return answer();
}

static nvmlReturn_t get_state(nvmlDevice_t device, nvmlPstates_t *state)
{
	*state = (nvmlPstates_t)reader_u32(&input);
	return answer();
}

static nvmlReturn_t get_mode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	*mode = (nvmlComputeMode_t)reader_u32(&input);
	return answer();
}

static nvmlReturn_t get_operation_mode(
	nvmlDevice_t device, nvmlGpuOperationMode_t *now, nvmlGpuOperationMode_t *then)
{
	*now = *then = (nvmlGpuOperationMode_t)reader_u32(&input);
	return answer();
}

static nvmlReturn_t get_rates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
	reader_bytes(&input, rates, sizeof(*rates));
	return answer();
}

static nvmlReturn_t get_processes(
	nvmlDevice_t device, unsigned int *n, nvmlProcessInfo_t *infos)
{
	const unsigned int room = *n;

	*n = reader_below(&input, 8);
	need(*n <= room);
	for (unsigned int i = 0; i < *n; i++)
		infos[i] = (nvmlProcessInfo_t){
			.pid = reader_u8(&input),
			.usedGpuMemory = reader_u64(&input),
		};
	return answer();
}

static nvmlReturn_t get_samples(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *n, unsigned long long last)
{
	*n = reader_below(&input, 8);
	for (unsigned int i = 0; i < *n; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){
			.pid = reader_u8(&input),
			.smUtil = reader_u32(&input),
		};
	return answer();
}

static void fill_library(void)
{
	smi_library = (struct smi_library){
		.nvmlSystemGetCudaDriverVersion = get_version,
		.nvmlSystemGetDriverVersion = answer_text,
		.nvmlSystemGetProcessName = get_process_name,
		.nvmlDeviceGetCount_v2 = get_count,
		.nvmlDeviceGetHandleByIndex_v2 = get_handle,
		.nvmlDeviceGetHandleByUUID = get_handle_by_text,
		.nvmlDeviceGetHandleByPciBusId_v2 = get_handle_by_text,
		.nvmlDeviceGetIndex = get_number,
		.nvmlDeviceGetName = get_text,
		.nvmlDeviceGetUUID = get_text,
		.nvmlDeviceGetSerial = get_text,
		.nvmlDeviceGetPciInfo_v3 = get_pci,
		.nvmlDeviceGetMemoryInfo = get_memory,
		.nvmlDeviceGetFieldValues = get_values,
		.nvmlDeviceGetPowerUsage = get_number,
		.nvmlDeviceGetPowerManagementLimit = get_number,
		.nvmlDeviceGetFanSpeed = get_number,
		.nvmlDeviceGetUtilizationRates = get_rates,
		.nvmlDeviceGetPerformanceState = get_state,
		.nvmlDeviceGetComputeMode = get_mode,
		.nvmlDeviceGetGpuOperationMode = get_operation_mode,
		.nvmlDeviceGetComputeRunningProcesses_v3 = get_processes,
		.nvmlDeviceGetGraphicsRunningProcesses_v3 = get_processes,
		.nvmlDeviceGetProcessUtilization = get_samples,
	};
}

/*
 * Output
 */

/* Whether each line of the boxes is as wide as the others, and nothing else moves the
 * cursor. */
static void check_table(const char *text, size_t size)
{
	size_t width = 0;

	for (size_t i = 0; i < size; i++) {
		const bool is_end = text[i] == '\n';

		need(is_end || !iscntrl((unsigned char)text[i]));
		if (is_end)
			need(!width || width == TABLE_WIDTH || text[i - width] != '|');
		width = is_end ? 0 : width + 1;
	}
}

/* Whether strings end, and have no control characters. */
static void check_json(const char *text, size_t size)
{
	bool is_inside = false;

	for (size_t i = 0; i < size; i++) {
		need(!is_inside || (unsigned char)text[i] >= 0x20);
		if (is_inside && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			is_inside = !is_inside;
	}
	need(!is_inside);
}

static void show_all(const struct smi_devices *devices, const struct smi_csv *csv,
	unsigned int sections)
{
	size_t table_size, size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	need(out);
	smi_show_table(out, devices);
	need(!fflush(out));
	table_size = size;
	check_table(text, table_size);
	smi_show_list(out, devices);
	smi_show_report(out, devices, sections);
	smi_show_processes(out, devices, 0);
	smi_show_devices(out, devices, 0);
	if (csv)
		smi_csv_show(out, csv, devices);
	need(!fflush(out));
	table_size = size;
	smi_show_json(out, devices);
	need(!fclose(out));
	check_json(text + table_size, size - table_size);
	free(text);
}

/* A list of the command line. */
static void read_list(char list[LIST_MAX])
{
	memset(list, 0, LIST_MAX);
	reader_bytes(&input, list, reader_below(&input, LIST_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char query[LIST_MAX], format[LIST_MAX], list[LIST_MAX];
	struct smi_devices devices = {};
	unsigned int sections;
	struct smi_csv csv;
	char *unknown;

	input = (struct reader){ .bytes = data, .size = size };
	fill_library();
	read_list(query);
	read_list(format);
	unknown = smi_csv_init(&csv, reader_below(&input, 2), query);
	if (!smi_csv_set_format(&csv, format))
		csv.has_header = false;
	read_list(list);
	sections = smi_show_parse_sections(list);
	read_list(list);
	if (!smi_devices_find(&devices, *list ? list : NULL))
		show_all(&devices, unknown ? NULL : &csv, sections ? sections : ~0u);
	need(devices.n <= SMI_DEVICES_MAX);
	free(unknown);
	return 0;
}
