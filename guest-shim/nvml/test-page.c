/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the page: never torn, and a host that goes away and comes back
 */

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"

static struct vgpu_status *status;
static nvmlDevice_t device;

static void begin(void)
{
	status = page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static nvmlReturn_t get_memory(void)
{
	nvmlMemory_t memory;

	return nvmlDeviceGetMemoryInfo(device, &memory);
}

static bool stop;

/* Used memory is always half of the total. */
static void *write_on(void *unused)
{
	for (uint64_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		page_double_begin();
		__atomic_store_n(
			&status->devices[0].memory_total, 2 * i, __ATOMIC_RELAXED);
		__atomic_store_n(&status->devices[0].memory_used, i, __ATOMIC_RELAXED);
		page_double_end();
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	}
	return NULL;
}

TEST(values_are_those_of_one_time)
{
	unsigned long long last = 0;
	unsigned int n_seen = 0;
	nvmlMemory_t memory;
	pthread_t writer;

	begin();
	check(!pthread_create(&writer, NULL, write_on, NULL));
	while (n_seen < 1000) {
		check_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
		if (memory.total == last || memory.total == 800u << 20)
			continue;
		check_eq(memory.total, 2 * memory.used);
		check_eq(memory.free, memory.used);
		last = memory.total;
		n_seen++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	check(!pthread_join(writer, NULL));
	end();
}

static void *finish_writing(void *unused)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	page_double_end();
	return NULL;
}

TEST(a_reader_waits_for_a_writer)
{
	pthread_t writer;
	nvmlMemory_t memory;

	begin();
	page_double_begin();
	status->devices[0].memory_used = 5;
	check(!pthread_create(&writer, NULL, finish_writing, NULL));
	check_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	check_eq(memory.used, 5);
	check(!pthread_join(writer, NULL));
	end();
}

TEST(a_host_that_stopped_in_the_middle_loses_the_device)
{
	begin();
	page_double_begin();
	check_eq(get_memory(), NVML_ERROR_GPU_IS_LOST);
	page_double_end();
	check_eq(get_memory(), NVML_SUCCESS);
	end();
}

/* The library looks for the host no more than once a second. */
static nvmlReturn_t get_memory_again(void)
{
	nvmlReturn_t result = NVML_ERROR_GPU_IS_LOST;

	for (int i = 0; i < 3000 && result == NVML_ERROR_GPU_IS_LOST; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		result = get_memory();
	}
	return result;
}

TEST(a_host_that_goes_away_loses_the_device_until_it_is_back)
{
	char text[80];

	begin();
	page_double_stop();
	check_eq(get_memory(), NVML_ERROR_GPU_IS_LOST);
	check_eq(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_ERROR_GPU_IS_LOST);
	check_eq(get_memory(), NVML_ERROR_GPU_IS_LOST);
	page_double_restart();
	check_eq(get_memory_again(), NVML_SUCCESS);
	check_eq(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
	check_str(text, "580.12");
	end();
}

TEST(another_device_at_the_place_is_not_the_one_of_the_handle)
{
	begin();
	page_double_begin();
	status->devices[0].info.uuid[15] ^= 1;
	page_double_end();
	check_eq(get_memory(), NVML_ERROR_GPU_IS_LOST);
	page_double_begin();
	status->devices[0].info.uuid[15] ^= 1;
	page_double_end();
	check_eq(get_memory(), NVML_SUCCESS);
	page_double_begin();
	status->n_devices = 0;
	page_double_end();
	check_eq(get_memory(), NVML_ERROR_GPU_IS_LOST);
	end();
}

TEST(numbers_out_of_bounds_are_not_followed)
{
	static nvmlProcessInfo_t infos[2 * VGPU_STATUS_PROCESSES_MAX];
	unsigned int n = 2 * VGPU_STATUS_PROCESSES_MAX;

	begin();
	page_double_begin();
	status->n_devices = UINT32_MAX;
	status->n_processes = UINT32_MAX;
	memset(status->driver_version, 'x', sizeof(status->driver_version));
	memset(status->devices[0].info.name, 'y', sizeof(status->devices[0].info.name));
	page_double_end();
	check_eq(nvmlDeviceGetComputeRunningProcesses(device, &n, infos), NVML_SUCCESS);
	check(n <= VGPU_STATUS_PROCESSES_MAX);
	{
		char text[VGPU_DEVICE_NAME_MAX];

		check_eq(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
		check_eq(strlen(text), sizeof(status->driver_version) - 1);
		check_eq(nvmlDeviceGetName(device, text, sizeof(text)), NVML_SUCCESS);
		check_eq(strlen(text), sizeof(text) - 1);
	}
	end();
}
