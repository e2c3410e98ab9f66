/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device: finding devices and processes
 */

#include <stdlib.h>
#include <string.h>

#include "smi/device.h"
#include "smi/library.h"
#include "smi/value.h"

static nvmlReturn_t find_all(struct smi_devices *devices)
{
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetCount_v2, &devices->n);

	if (devices->n > SMI_DEVICES_MAX)
		devices->n = SMI_DEVICES_MAX;
	for (unsigned int i = 0; i < devices->n && result == NVML_SUCCESS; i++)
		result = SMI_CALL(nvmlDeviceGetHandleByIndex_v2, i, &devices->all[i]);
	return result;
}

static nvmlReturn_t find_one(const char *word, nvmlDevice_t *device)
{
	char *end;
	unsigned long index = strtoul(word, &end, 10);

	if (*word && !*end)
		return SMI_CALL(nvmlDeviceGetHandleByIndex_v2,
			index < SMI_DEVICES_MAX ? (unsigned int)index : SMI_DEVICES_MAX,
			device);
	if (strchr(word, ':'))
		return SMI_CALL(nvmlDeviceGetHandleByPciBusId_v2, word, device);
	return SMI_CALL(nvmlDeviceGetHandleByUUID, word, device);
}

nvmlReturn_t smi_devices_find(struct smi_devices *devices, const char *list)
{
	nvmlReturn_t result = NVML_SUCCESS;
	char *words, *word, *rest;

	devices->n = 0;
	if (!list)
		return find_all(devices);
	words = strdup(list);
	if (!words)
		return NVML_ERROR_MEMORY;
	for (word = strtok_r(words, ",", &rest);
		word && devices->n < SMI_DEVICES_MAX && result == NVML_SUCCESS;
		word = strtok_r(NULL, ",", &rest)) {
		result = find_one(word, &devices->all[devices->n]);
		devices->n += result == NVML_SUCCESS;
	}
	free(words);
	if (result == NVML_SUCCESS && !devices->n)
		result = NVML_ERROR_NOT_FOUND;
	return result;
}

static void add(struct smi_processes *processes, const nvmlProcessInfo_t *info,
	unsigned int n, bool draws)
{
	for (unsigned int i = 0; i < n && processes->n < SMI_PROCESSES_MAX; i++) {
		struct smi_process *process = &processes->all[processes->n++];

		*process = (struct smi_process){
			.pid = info[i].pid,
			.draws = draws,
			.has_memory = info[i].usedGpuMemory !=
				      (unsigned long long)NVML_VALUE_NOT_AVAILABLE,
			.memory = info[i].usedGpuMemory,
		};
		if (SMI_CALL(nvmlSystemGetProcessName, process->pid, process->name,
			    sizeof(process->name)) != NVML_SUCCESS)
			strcpy(process->name, "[Not Found]");
		smi_value_clean(process->name);
	}
}

/* The newest sample of each process, where the library has any. */
static void add_utilisation(struct smi_processes *processes, nvmlDevice_t device)
{
	static nvmlProcessUtilizationSample_t samples[SMI_PROCESSES_MAX];
	unsigned int n = SMI_PROCESSES_MAX;

	if (SMI_CALL(nvmlDeviceGetProcessUtilization, device, samples, &n, 0) !=
		NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int j = 0; j < processes->n; j++) {
			struct smi_process *process = &processes->all[j];

			if (process->pid != samples[i].pid)
				continue;
			process->has_utilisation = true;
			process->sm = samples[i].smUtil;
			process->memory_controller = samples[i].memUtil;
			process->encoder = samples[i].encUtil;
			process->decoder = samples[i].decUtil;
		}
}

nvmlReturn_t smi_processes_find(struct smi_processes *processes, nvmlDevice_t device)
{
	static nvmlProcessInfo_t infos[SMI_PROCESSES_MAX];
	unsigned int n = SMI_PROCESSES_MAX;
	nvmlReturn_t result;

	processes->n = 0;
	result = SMI_CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &n, infos);
	if (result != NVML_SUCCESS)
		return result;
	add(processes, infos, n, false);
	n = SMI_PROCESSES_MAX;
	if (SMI_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, device, &n, infos) ==
		NVML_SUCCESS)
		add(processes, infos, n, true);
	add_utilisation(processes, device);
	return NVML_SUCCESS;
}
