/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of output, of a library of the test that knows every sensor, or none
 */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "smi/csv.h"
#include "smi/field.h"
#include "smi/library.h"
#include "smi/show.h"

#define UUID "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"

static const nvmlDevice_t device = (nvmlDevice_t)1;
static const struct smi_devices devices = { .n = 1, .all = { (nvmlDevice_t)1 } };
static nvmlReturn_t answer; /* of every sensor */

static nvmlReturn_t get_text(nvmlDevice_t of, char *text, unsigned int length)
{
	check(of == device);
	snprintf(text, length, "A Device of a \"Long\" Name Indeed");
	return NVML_SUCCESS;
}

static nvmlReturn_t get_uuid(nvmlDevice_t of, char *text, unsigned int length)
{
	snprintf(text, length, UUID);
	return NVML_SUCCESS;
}

static nvmlReturn_t get_version(char *text, unsigned int length)
{
	snprintf(text, length, "580.65.06");
	return NVML_SUCCESS;
}

static nvmlReturn_t get_cuda_version(int *version)
{
	*version = 13010;
	return NVML_SUCCESS;
}

static nvmlReturn_t get_pci(nvmlDevice_t of, nvmlPciInfo_t *pci)
{
	*pci = (nvmlPciInfo_t){ .bus = 0xa1, .busId = "00000000:A1:00.0" };
	return NVML_SUCCESS;
}

static nvmlReturn_t get_index(nvmlDevice_t of, unsigned int *index)
{
	*index = 3;
	return NVML_SUCCESS;
}

static nvmlReturn_t get_memory(nvmlDevice_t of, nvmlMemory_t *memory)
{
	*memory = (nvmlMemory_t){
		.total = 81559ull << 20,
		.used = 1234ull << 20,
		.free = 80325ull << 20,
	};
	return NVML_SUCCESS;
}

static nvmlReturn_t get_number(nvmlDevice_t of, unsigned int *number)
{
	*number = 45678;
	return answer;
}

static nvmlReturn_t get_temperature(
	nvmlDevice_t of, nvmlTemperatureSensors_t sensor, unsigned int *degrees)
{
	*degrees = 41;
	return answer;
}

static nvmlReturn_t get_rates(nvmlDevice_t of, nvmlUtilization_t *rates)
{
	*rates = (nvmlUtilization_t){ 57, 12 };
	return answer;
}

static nvmlReturn_t get_state(nvmlDevice_t of, nvmlPstates_t *state)
{
	*state = NVML_PSTATE_2;
	return answer;
}

static nvmlReturn_t get_compute_mode(nvmlDevice_t of, nvmlComputeMode_t *mode)
{
	*mode = NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
	return NVML_SUCCESS;
}

static nvmlReturn_t get_processes(
	nvmlDevice_t of, unsigned int *n, nvmlProcessInfo_t *infos)
{
	check(*n >= 2);
	*n = 2;
	infos[0] = (nvmlProcessInfo_t){ .pid = 4242, .usedGpuMemory = 300ull << 20 };
	infos[1] = (nvmlProcessInfo_t){
		.pid = 7,
		.usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE,
	};
	return NVML_SUCCESS;
}

static nvmlReturn_t get_process_name(unsigned int pid, char *name, unsigned int length)
{
	if (pid != 4242)
		return NVML_ERROR_NOT_FOUND;
	snprintf(name, length, "/usr/bin/compute");
	return NVML_SUCCESS;
}

static nvmlReturn_t get_samples(nvmlDevice_t of, nvmlProcessUtilizationSample_t *samples,
	unsigned int *n, unsigned long long last_seen)
{
	samples[0] = (nvmlProcessUtilizationSample_t){ .pid = 4242, .smUtil = 33 };
	*n = 1;
	return answer;
}

static void begin(nvmlReturn_t result)
{
	answer = result;
	smi_library = (struct smi_library){
		.nvmlSystemGetDriverVersion = get_version,
		.nvmlSystemGetCudaDriverVersion = get_cuda_version,
		.nvmlSystemGetProcessName = get_process_name,
		.nvmlDeviceGetIndex = get_index,
		.nvmlDeviceGetName = get_text,
		.nvmlDeviceGetUUID = get_uuid,
		.nvmlDeviceGetPciInfo_v3 = get_pci,
		.nvmlDeviceGetMemoryInfo = get_memory,
		.nvmlDeviceGetPowerUsage = get_number,
		.nvmlDeviceGetPowerManagementLimit = get_number,
		.nvmlDeviceGetTemperature = get_temperature,
		.nvmlDeviceGetUtilizationRates = get_rates,
		.nvmlDeviceGetPerformanceState = get_state,
		.nvmlDeviceGetComputeMode = get_compute_mode,
		.nvmlDeviceGetComputeRunningProcesses_v3 = get_processes,
		.nvmlDeviceGetProcessUtilization = get_samples,
	};
}

static char text[16384];

/* What a form of output prints, in `text`. */
static void keep(void (*show)(FILE *out))
{
	FILE *out = fmemopen(text, sizeof(text), "w");

	check(out != NULL);
	show(out);
	check(!fclose(out));
}

/* The line of `text` that has a piece, as a copy. */
static const char *line_with(const char *piece)
{
	static char line[256];
	const char *at = strstr(text, piece), *end;

	check(at != NULL);
	while (at > text && at[-1] != '\n')
		at--;
	end = strchrnul(at, '\n');
	check((size_t)(end - at) < sizeof(line));
	memcpy(line, at, (size_t)(end - at));
	line[end - at] = '\0';
	return line;
}

static void show_table(FILE *out)
{
	smi_show_table(out, &devices);
}

TEST(the_table_has_straight_sides)
{
	static const nvmlReturn_t answers[] = { NVML_SUCCESS, NVML_ERROR_NOT_SUPPORTED,
		NVML_ERROR_GPU_IS_LOST };

	for (int i = 0; i < 3; i++) {
		size_t width;

		begin(answers[i]);
		keep(show_table);
		for (char *line = strchr(text, '\n') + 1; *line; line += width + 1) {
			width = strcspn(line, "\n");
			check(width == 0 || width == 79);
			check(width == 0 || line[78] == '|' || line[78] == '+');
		}
	}
}

TEST(the_table_shows_a_device)
{
	begin(NVML_SUCCESS);
	keep(show_table);
	check(strstr(line_with("Driver Version"), "Driver Version: 580.65.06 ") != NULL);
	check(strstr(line_with("Driver Version"), "CUDA Version: 13.1 ") != NULL);
	check_str(line_with("A1:00"),
		"|   3  A Device of a \"Long\" Off | 00000000:A1:00.0 Off |"
		"                  N/A |");
	check_str(line_with("81559"),
		"| N/A  41C    P2      45W / 45W |   1234MiB / 81559MiB |"
		"     57% Exclusive_Pr |");
}

TEST(the_table_shows_processes)
{
	begin(NVML_SUCCESS);
	keep(show_table);
	check_str(line_with("4242"),
		"|   3       4242     C   /usr/bin/compute                      "
		"       300MiB  |");
	check(strstr(line_with("[Not Found]"), "N/A") != NULL);
}

TEST(a_sensor_that_is_missing_is_not_available)
{
	begin(NVML_ERROR_NOT_SUPPORTED);
	keep(show_table);
	check(strstr(line_with("81559"), "N/A / N/A") != NULL);
	begin(NVML_ERROR_GPU_IS_LOST);
	keep(show_table);
	check(strstr(line_with("81559"), "ERR! / ERR!") != NULL);
}

static void show_list(FILE *out)
{
	smi_show_list(out, &devices);
}

TEST(the_list_has_a_line_a_device)
{
	begin(NVML_SUCCESS);
	keep(show_list);
	check_str(text, "GPU 3: A Device of a \"Long\" Name Indeed (UUID: " UUID ")\n");
}

static struct smi_csv csv;

static void show_csv(FILE *out)
{
	smi_csv_show_header(out, &csv);
	smi_csv_show(out, &csv, &devices);
}

TEST(columns_are_those_that_were_named)
{
	begin(NVML_SUCCESS);
	check(!smi_csv_init(
		&csv, false, "index, gpu_uuid,memory.total,power.draw,pstate"));
	check(smi_csv_set_format(&csv, "csv"));
	keep(show_csv);
	check_str(text, "index, uuid, memory.total [MiB], power.draw [W], pstate\n"
			"3, " UUID ", 81559 MiB, 45.68 W, P2\n");
	check(smi_csv_set_format(&csv, "csv,nounits"));
	keep(show_csv);
	check_str(text, "index, uuid, memory.total [MiB], power.draw [W], pstate\n"
			"3, " UUID ", 81559, 45.68, P2\n");
	begin(NVML_ERROR_NOT_SUPPORTED);
	check(smi_csv_set_format(&csv, "csv,noheader"));
	keep(show_csv);
	check_str(text, "3, " UUID ", 81559, [N/A], [N/A]\n");
}

TEST(columns_of_processes_may_be_of_their_device)
{
	begin(NVML_SUCCESS);
	check(!smi_csv_init(&csv, true, "pid,name,used_memory,gpu_bus_id"));
	check(smi_csv_set_format(&csv, "csv,noheader"));
	keep(show_csv);
	check_str(text, "4242, /usr/bin/compute, 300 MiB, 00000000:A1:00.0\n"
			"7, [Not Found], [N/A], 00000000:A1:00.0\n");
}

TEST(what_is_no_column_or_no_format_is_refused)
{
	char *unknown = smi_csv_init(&csv, false, "index,fog,name");

	check_str(unknown, "fog");
	free(unknown);
	unknown = smi_csv_init(&csv, true, "memory.total");
	check_str(unknown, "memory.total");
	free(unknown);
	unknown = smi_csv_init(&csv, false, ",");
	check_str(unknown, "");
	free(unknown);
	check(!smi_csv_set_format(&csv, "xml"));
	check(!smi_csv_set_format(&csv, "noheader"));
	check(!smi_csv_set_format(&csv, "csv,fog"));
}

static void show_report(FILE *out)
{
	smi_show_report(out, &devices, smi_show_parse_sections("memory,PIDS"));
}

TEST(the_report_has_the_sections_that_were_named)
{
	begin(NVML_SUCCESS);
	keep(show_report);
	check_str(line_with("Total"),
		"        Total                            : 81559 MiB");
	check(!strstr(text, "Utilization"));
	check_str(line_with("4242"), "        Process ID                       : 4242");
	check_eq(smi_show_parse_sections("memory,fog"), 0);
}

static void show_whole_report(FILE *out)
{
	smi_show_report(out, &devices, ~0u);
}

TEST(the_report_has_its_values_in_one_column)
{
	unsigned int n = 0;

	begin(NVML_SUCCESS);
	keep(show_whole_report);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *colon = strstr(line, " : ");

		if (!colon || colon > strchr(line, '\n'))
			continue;
		check_eq(colon - line, 40);
		n++;
	}
	check(n > 60);
}

static void show_json(FILE *out)
{
	smi_show_json(out, &devices);
}

TEST(json_quotes_what_it_has_to)
{
	begin(NVML_ERROR_NOT_SUPPORTED);
	keep(show_json);
	check_str(line_with("\"name\": \"A"),
		"      \"name\": \"A Device of a \\\"Long\\\" Name Indeed\",");
	check_str(line_with("\"pstate\""), "      \"pstate\": null,");
	check_str(line_with("memory.total"), "      \"memory.total\": 81559,");
}

static nvmlReturn_t get_hostile_name(unsigned int pid, char *name, unsigned int length)
{
	snprintf(name, length, "/bin/a\033[2J\nb\xff\xc3\xa9\xed\xa0\x80");
	return NVML_SUCCESS;
}

TEST(names_of_processes_do_not_command_the_terminal)
{
	begin(NVML_SUCCESS);
	smi_library.nvmlSystemGetProcessName = get_hostile_name;
	keep(show_table);
	check(strstr(line_with("4242"), "/bin/a?[2J?b") != NULL);
	keep(show_json);
	check(strstr(line_with("4242"),
		      "\"/bin/a?[2J?b\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd\"") != NULL);
}

static void show_monitors(FILE *out)
{
	smi_show_processes(out, &devices, 1);
	smi_show_devices(out, &devices, 1);
}

TEST(monitors_have_a_dash_for_what_is_unknown)
{
	begin(NVML_SUCCESS);
	keep(show_monitors);
	check_str(text,
		"    3       4242     C    33     0     0     0     -     -     300   "
		"compute\n"
		"    3          7     C     -     -     -     -     -     -       -   "
		"[Not Found]\n"
		"    3    46    41     -    57    12     -     -     -     -     -     - "
		" 1234\n");
}

TEST(a_code_of_the_library_is_the_exit_status)
{
	check_eq(smi_library_status(NVML_SUCCESS), 0);
	check_eq(smi_library_status(NVML_ERROR_GPU_IS_LOST), 15);
	check_eq(smi_library_status(NVML_ERROR_UNKNOWN), 255);
}
