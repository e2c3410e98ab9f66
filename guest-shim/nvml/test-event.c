/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of events
 */

#include <pthread.h>
#include <time.h>

#include "test.h"
#include "vgpu/cuda.h"
#include "vgpu/nvml.h"

#include "page-double.h"

/* Longer than any test waits for what has to come. */
#define LONG_MS 60000u

static struct vgpu_status *status;
static nvmlDevice_t device;
static nvmlEventSet_t set;

static void begin(void)
{
	status = page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(1, &device), NVML_SUCCESS);
	check_eq(nvmlEventSetCreate(&set), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static void happen(unsigned int place, uint64_t at_us, uint32_t of_device, int64_t fault)
{
	page_double_begin();
	status->events[place] = (struct vgpu_status_event){
		.at_us = at_us,
		.type = VGPU_STATUS_FAULT,
		.device = of_device,
		.detail = fault,
	};
	page_double_end();
}

static void want(nvmlDevice_t of)
{
	check_eq(nvmlDeviceRegisterEvents(of, nvmlEventTypeXidCriticalError, set),
		NVML_SUCCESS);
}

TEST(faults_are_the_only_events)
{
	unsigned long long types = 99;

	begin();
	check_eq(nvmlDeviceGetSupportedEventTypes(device, &types), NVML_SUCCESS);
	check_eq(types, nvmlEventTypeXidCriticalError);
	check_eq(nvmlDeviceRegisterEvents(
			 device, nvmlEventTypeXidCriticalError | nvmlEventTypeClock, set),
		NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceRegisterEvents(device, 1ull << 60, set),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceRegisterEvents(device, nvmlEventTypeNone, set), NVML_SUCCESS);
	page_double_begin();
	status->flags = 0;
	page_double_end();
	check_eq(nvmlDeviceGetSupportedEventTypes(device, &types), NVML_SUCCESS);
	check_eq(types, nvmlEventTypeNone);
	check_eq(nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, set),
		NVML_ERROR_NOT_SUPPORTED);
	end();
}

TEST(a_set_is_one_that_was_given_out)
{
	nvmlEventSet_t other;
	nvmlEventData_t data;

	begin();
	check_eq(nvmlEventSetCreate(&other), NVML_SUCCESS);
	check_eq(nvmlEventSetFree(set), NVML_SUCCESS);
	check_eq(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlEventSetWait(set, &data, 1), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceRegisterEvents(device, nvmlEventTypeNone, set),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlEventSetWait((nvmlEventSet_t)1, &data, 1),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlEventSetWait(other, &data, 0), NVML_ERROR_TIMEOUT);
	check_eq(nvmlEventSetFree(NULL), NVML_ERROR_INVALID_ARGUMENT);
	end();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

TEST(a_wait_without_events_lasts_as_long_as_its_timeout)
{
	nvmlEventData_t data;
	uint64_t start;

	begin();
	want(device);
	start = now_ns();
	check_eq(nvmlEventSetWait(set, &data, 250), NVML_ERROR_TIMEOUT);
	check(now_ns() - start >= 250000000);
	end();
}

TEST(events_come_once_and_in_their_order)
{
	nvmlEventData_t data;
	nvmlDevice_t first;

	begin();
	check_eq(nvmlDeviceGetHandleByIndex(0, &first), NVML_SUCCESS);
	/* Of before. */
	happen(5, 900, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
	want(device);
	want(first);
	happen(7, 1002, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
	happen(6, 1001, 0, CUDA_ERROR_ILLEGAL_INSTRUCTION);
	check_eq(nvmlEventSetWait(set, &data, 0), NVML_SUCCESS);
	check(data.device == first);
	check_eq(data.eventType, nvmlEventTypeXidCriticalError);
	check_eq(data.eventData, 13);
	check_eq(data.gpuInstanceId, 0xffffffff);
	check_eq(nvmlEventSetWait(set, &data, 0), NVML_SUCCESS);
	check(data.device == device);
	check_eq(data.eventData, 31);
	check_eq(nvmlEventSetWait(set, &data, 0), NVML_ERROR_TIMEOUT);
	end();
}

TEST(a_set_has_the_devices_that_were_added)
{
	nvmlEventData_t data;

	begin();
	want(device);
	happen(0, 1001, 0, CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Of no device. */
	happen(1, 1002, PAGE_DOUBLE_DEVICES, CUDA_ERROR_ILLEGAL_ADDRESS);
	happen(2, 1003, UINT32_MAX, CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(nvmlEventSetWait(set, &data, 0), NVML_ERROR_TIMEOUT);
	end();
}

TEST(each_fault_has_a_number)
{
	static const struct {
		CUresult fault;
		unsigned long long xid;
	} numbers[] = {
		{ CUDA_ERROR_LAUNCH_TIMEOUT, 8 },
		{ CUDA_ERROR_LAUNCH_FAILED, 13 },
		{ CUDA_ERROR_MISALIGNED_ADDRESS, 13 },
		{ CUDA_ERROR_ILLEGAL_ADDRESS, 31 },
		{ CUDA_ERROR_ASSERT, 43 },
		{ CUDA_ERROR_UNKNOWN, 43 },
		{ CUDA_ERROR_ECC_UNCORRECTABLE, 48 },
	};
	nvmlEventData_t data;

	begin();
	want(device);
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		happen(i, 1000 + i, 1, numbers[i].fault);
		check_eq(nvmlEventSetWait(set, &data, 0), NVML_SUCCESS);
		check_eq(data.eventData, numbers[i].xid);
	}
	end();
}

static void *wait_for_event(void *data)
{
	check_eq(nvmlEventSetWait(set, data, LONG_MS), NVML_SUCCESS);
	return NULL;
}

TEST(a_waiter_sees_what_happens_meanwhile)
{
	nvmlEventData_t data = {};
	pthread_t waiter;

	begin();
	want(device);
	check_eq(pthread_create(&waiter, NULL, wait_for_event, &data), 0);
	happen(3, 5000, 1, CUDA_ERROR_ASSERT);
	check_eq(pthread_join(waiter, NULL), 0);
	check_eq(data.eventData, 43);
	end();
}

static void *wait_for_end(void *data)
{
	check_eq(nvmlEventSetWait(set, data, LONG_MS), NVML_ERROR_INVALID_ARGUMENT);
	return NULL;
}

TEST(a_set_may_be_freed_while_a_thread_waits)
{
	nvmlEventData_t data;
	pthread_t waiter;

	begin();
	check_eq(pthread_create(&waiter, NULL, wait_for_end, &data), 0);
	check_eq(nvmlEventSetFree(set), NVML_SUCCESS);
	check_eq(pthread_join(waiter, NULL), 0);
	end();
}

TEST(a_host_that_goes_away_ends_the_wait)
{
	nvmlEventData_t data;

	begin();
	want(device);
	page_double_stop();
	check_eq(nvmlEventSetWait(set, &data, LONG_MS), NVML_ERROR_GPU_IS_LOST);
	page_double_restart();
	end();
}
