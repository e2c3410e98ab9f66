/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and utilisation, and the pids of other namespaces
 */

#include <string.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"
#include "wire/proc.h"

static struct vgpu_status *status;
static nvmlDevice_t device;

static void begin(uint32_t n_processes)
{
	status = page_double_start();
	page_double_begin();
	status->n_processes = n_processes;
	for (uint32_t i = 0; i < n_processes; i++) {
		status->processes[i] = (struct vgpu_status_process){
			.pid = 100 + i,
			.pid_namespace = shim_proc_pid_namespace(),
			.memory_used = 1000 * i + 7,
			.utilisation = 99,
			.memory_utilisation = VGPU_STATUS_UNKNOWN,
		};
		status->uses[0][i] = (struct vgpu_status_use){
			.memory_used = 1000 * i,
			.utilisation = 10 + i,
			.memory_utilisation = VGPU_STATUS_UNKNOWN,
		};
		status->uses[1][i].memory_used = UINT64_MAX;
	}
	page_double_end();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

TEST(a_list_says_how_much_room_it_needs)
{
	nvmlProcessInfo_t infos[4] = {};
	unsigned int n = 0;

	begin(3);
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(n, 3);
	n = 2;
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, infos),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(n, 3);
	check_eq(infos[0].pid, 0);
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, NULL),
		NVML_ERROR_INVALID_ARGUMENT);
	n = 4;
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, infos), NVML_SUCCESS);
	check_eq(n, 3);
	check_eq(infos[2].pid, 102);
	check_eq(infos[2].usedGpuMemory, 2000);
	check_eq(infos[2].gpuInstanceId, 0xffffffff);
	check_eq(infos[3].pid, 0);
	n = 0;
	check_eq(nvmlDeviceGetGraphicsRunningProcesses(device, &n, NULL), NVML_SUCCESS);
	check_eq(n, 0);
	n = 4;
	check_eq(
		nvmlDeviceGetMPSComputeRunningProcesses(device, &n, infos), NVML_SUCCESS);
	check_eq(n, 0);
	end();
}

#undef nvmlDeviceGetComputeRunningProcesses
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos);
#undef nvmlDeviceGetGraphicsRunningProcesses
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos);

TEST(the_first_form_has_smaller_entries)
{
	nvmlProcessInfo_v1_t infos[3] = { [2].pid = 55 };
	unsigned int n = 2;

	begin(2);
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, infos), NVML_SUCCESS);
	check_eq(infos[1].pid, 101);
	check_eq(infos[1].usedGpuMemory, 1000);
	check_eq(infos[2].pid, 55);
	check_eq(nvmlDeviceGetGraphicsRunningProcesses(device, &n, infos), NVML_SUCCESS);
	check_eq(n, 0);
	end();
}

TEST(details_are_of_a_mode)
{
	nvmlProcessDetail_v1_t details[2];
	nvmlProcessDetailList_t list = {
		.version = nvmlProcessDetailList_v1,
		.numProcArrayEntries = 2,
		.procArray = details,
	};

	begin(2);
	check_eq(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_SUCCESS);
	check_eq(list.numProcArrayEntries, 2);
	check_eq(details[1].pid, 101);
	list.mode = 1;
	check_eq(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_SUCCESS);
	check_eq(list.numProcArrayEntries, 0);
	list.mode = 3;
	check_eq(nvmlDeviceGetRunningProcessDetailList(device, &list),
		NVML_ERROR_INVALID_ARGUMENT);
	list.version++;
	check_eq(nvmlDeviceGetRunningProcessDetailList(device, &list),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	end();
}

static unsigned int count_seen(void)
{
	nvmlProcessInfo_t infos[2];
	unsigned int n = 2;

	check_eq(
		nvmlDeviceGetComputeRunningProcesses_v3(device, &n, infos), NVML_SUCCESS);
	if (n)
		check_eq(infos[0].pid, getpid());
	return n;
}

TEST(a_process_of_another_namespace_is_found_by_its_start)
{
	struct shim_proc_stat own;

	begin(1);
	check(shim_proc_read_stat((uint32_t)getpid(), &own));
	page_double_begin();
	status->processes[0].pid = shim_proc_inner_pid((uint32_t)getpid());
	status->processes[0].pid_namespace++;
	status->processes[0].start_time = own.start_time;
	page_double_end();
	check_eq(count_seen(), 1);
	page_double_begin();
	status->processes[0].start_time++;
	page_double_end();
	check_eq(count_seen(), 0);
	end();
}

TEST(utilisation_is_that_of_the_last_second)
{
	nvmlProcessUtilizationSample_t samples[2];
	nvmlUtilization_t rates = { 99, 99 };
	unsigned int n = 2;

	begin(2);
	check_eq(nvmlDeviceGetUtilizationRates(device, &rates), NVML_SUCCESS);
	check_eq(rates.gpu, 40);
	check_eq(rates.memory, 0);
	check_eq(nvmlDeviceGetProcessUtilization(device, samples, &n, 0), NVML_SUCCESS);
	check_eq(n, 2);
	check_eq(samples[1].pid, 101);
	check_eq(samples[1].smUtil, 11);
	check_eq(samples[1].timeStamp, 1000);
	check_eq(nvmlDeviceGetProcessUtilization(device, samples, &n, 1000),
		NVML_ERROR_NOT_FOUND);
	n = 0;
	check_eq(nvmlDeviceGetProcessUtilization(device, NULL, &n, 0),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(n, 2);
	page_double_begin();
	status->devices[0].utilisation = VGPU_STATUS_UNKNOWN;
	page_double_end();
	check_eq(nvmlDeviceGetUtilizationRates(device, &rates), NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetProcessUtilization(device, samples, &n, 0),
		NVML_ERROR_NOT_SUPPORTED);
	end();
}

TEST(utilisation_of_processes_in_one_structure)
{
	nvmlProcessUtilizationInfo_v1_t infos[2];
	nvmlProcessesUtilizationInfo_t all = {
		.version = nvmlProcessesUtilizationInfo_v1,
		.processSamplesCount = 1,
		.procUtilArray = infos,
	};

	begin(2);
	check_eq(nvmlDeviceGetProcessesUtilizationInfo(device, &all),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(all.processSamplesCount, 2);
	check_eq(nvmlDeviceGetProcessesUtilizationInfo(device, &all), NVML_SUCCESS);
	check_eq(infos[1].pid, 101);
	check_eq(infos[1].smUtil, 11);
	all.version = 0;
	check_eq(nvmlDeviceGetProcessesUtilizationInfo(device, &all),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	end();
}

TEST(a_process_is_on_the_devices_that_it_uses)
{
	nvmlProcessInfo_t infos[2];
	nvmlDevice_t second;
	unsigned int n = 2;

	begin(2);
	check_eq(nvmlDeviceGetHandleByIndex(1, &second), NVML_SUCCESS);
	check_eq(
		nvmlDeviceGetComputeRunningProcesses_v3(second, &n, infos), NVML_SUCCESS);
	check_eq(n, 0);
	page_double_begin();
	status->uses[1][1] = (struct vgpu_status_use){ .memory_used = 77 };
	page_double_end();
	n = 2;
	check_eq(
		nvmlDeviceGetComputeRunningProcesses_v3(second, &n, infos), NVML_SUCCESS);
	check_eq(n, 1);
	check_eq(infos[0].pid, 101);
	check_eq(infos[0].usedGpuMemory, 77);
	/* A host that does not know it shows each on each. */
	page_double_begin();
	status->flags = 0;
	page_double_end();
	n = 2;
	check_eq(
		nvmlDeviceGetComputeRunningProcesses_v3(second, &n, infos), NVML_SUCCESS);
	check_eq(n, 2);
	check_eq(infos[1].usedGpuMemory, 1007);
	end();
}

TEST(who_was_idle_has_no_sample)
{
	nvmlProcessUtilizationSample_t samples[2];
	unsigned int n = 2;

	begin(2);
	page_double_begin();
	status->uses[0][0].utilisation = 0;
	page_double_end();
	check_eq(nvmlDeviceGetProcessUtilization(device, samples, &n, 0), NVML_SUCCESS);
	check_eq(n, 1);
	check_eq(samples[0].pid, 101);
	page_double_begin();
	status->uses[0][1].utilisation = VGPU_STATUS_UNKNOWN;
	page_double_end();
	check_eq(nvmlDeviceGetProcessUtilization(device, samples, &n, 0),
		NVML_ERROR_NOT_FOUND);
	end();
}

TEST(the_parts_of_a_device_are_known_by_its_utilisation)
{
	nvmlGpuDynamicPstatesInfo_t info = { .flags = 9 };

	begin(0);
	check_eq(nvmlDeviceGetDynamicPstatesInfo(device, &info), NVML_SUCCESS);
	check_eq(info.flags, 0);
	check_eq(info.utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].bIsPresent, 1);
	check_eq(info.utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].percentage, 40);
	check_eq(info.utilization[NVML_GPU_UTILIZATION_DOMAIN_FB].bIsPresent, 0);
	end();
}

TEST(no_process_uses_the_engines_for_video)
{
	unsigned int n = 9, fps = 9, latency = 9;
	nvmlFBCStats_t stats = { 9, 9, 9 };

	begin(1);
	check_eq(nvmlDeviceGetEncoderStats(device, &n, &fps, &latency), NVML_SUCCESS);
	check_eq(n + fps + latency, 0);
	n = 9;
	check_eq(nvmlDeviceGetEncoderSessions(device, &n, NULL), NVML_SUCCESS);
	check_eq(n, 0);
	check_eq(nvmlDeviceGetFBCStats(device, &stats), NVML_SUCCESS);
	check_eq(stats.sessionsCount + stats.averageFPS + stats.averageLatency, 0);
	n = 9;
	check_eq(nvmlDeviceGetFBCSessions(device, &n, NULL), NVML_SUCCESS);
	check_eq(n, 0);
	end();
}
