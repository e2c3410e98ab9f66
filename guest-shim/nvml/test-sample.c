/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the last seconds
 */

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"

static struct vgpu_status *status;
static nvmlDevice_t device;

static void set(unsigned int place, uint64_t at_us, uint8_t utilisation)
{
	status->samples[1][place] = (struct vgpu_status_sample){
		.at_us = at_us,
		.power = UINT32_MAX,
		.clock_sm = 1500,
		.clock_memory = UINT16_MAX,
		.utilisation = utilisation,
		.memory_utilisation = UINT8_MAX,
		.encoder = UINT8_MAX,
		.decoder = UINT8_MAX,
		.jpeg = UINT8_MAX,
		.ofa = UINT8_MAX,
	};
}

/* Three of them, of which the newest is in the middle of the ring. */
static void begin(void)
{
	status = page_double_start();
	page_double_begin();
	set(0, 3000, 30);
	set(1, 4000, 40);
	set(VGPU_STATUS_SAMPLES - 1, 2000, 20);
	page_double_end();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(1, &device), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static nvmlReturn_t get(nvmlSamplingType_t type, unsigned long long after,
	unsigned int *n, nvmlSample_t *samples)
{
	nvmlValueType_t value_type = NVML_VALUE_TYPE_COUNT;
	nvmlReturn_t result =
		nvmlDeviceGetSamples(device, type, after, &value_type, n, samples);

	if (result == NVML_SUCCESS)
		check_eq(value_type, NVML_VALUE_TYPE_UNSIGNED_INT);
	return result;
}

TEST(they_are_in_the_order_of_their_times)
{
	nvmlSample_t samples[5] = { [3].timeStamp = 9 };
	unsigned int n = 5;

	begin();
	check_eq(get(NVML_GPU_UTILIZATION_SAMPLES, 0, &n, samples), NVML_SUCCESS);
	check_eq(n, 3);
	check_eq(samples[0].timeStamp, 2000);
	check_eq(samples[0].sampleValue.uiVal, 20);
	check_eq(samples[1].timeStamp, 3000);
	check_eq(samples[2].sampleValue.uiVal, 40);
	check_eq(samples[3].timeStamp, 9);
	end();
}

TEST(a_caller_goes_on_after_what_it_has_seen)
{
	nvmlSample_t samples[2];
	unsigned int n = 2;

	begin();
	check_eq(get(NVML_GPU_UTILIZATION_SAMPLES, 0, &n, samples), NVML_SUCCESS);
	check_eq(n, 2);
	check_eq(samples[1].timeStamp, 3000);
	check_eq(get(NVML_GPU_UTILIZATION_SAMPLES, 3000, &n, samples), NVML_SUCCESS);
	check_eq(n, 1);
	check_eq(samples[0].timeStamp, 4000);
	n = 2;
	check_eq(get(NVML_GPU_UTILIZATION_SAMPLES, 4000, &n, samples),
		NVML_ERROR_NOT_FOUND);
	end();
}

TEST(the_room_for_all_is_told)
{
	nvmlSample_t sample;
	unsigned int n = 0;

	begin();
	check_eq(get(NVML_PROCESSOR_CLK_SAMPLES, 3000, &n, NULL), NVML_SUCCESS);
	check_eq(n, 3);
	n = 0;
	check_eq(get(NVML_PROCESSOR_CLK_SAMPLES, 0, &n, &sample),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

TEST(each_kind_has_its_own_values)
{
	static const nvmlSamplingType_t unknown[] = {
		NVML_TOTAL_POWER_SAMPLES,
		NVML_MEMORY_UTILIZATION_SAMPLES,
		NVML_ENC_UTILIZATION_SAMPLES,
		NVML_DEC_UTILIZATION_SAMPLES,
		NVML_MEMORY_CLK_SAMPLES,
		NVML_MODULE_POWER_SAMPLES,
		NVML_JPG_UTILIZATION_SAMPLES,
		NVML_OFA_UTILIZATION_SAMPLES,
	};
	nvmlSample_t samples[3];
	unsigned int n = 3;

	begin();
	check_eq(get(NVML_PROCESSOR_CLK_SAMPLES, 0, &n, samples), NVML_SUCCESS);
	check_eq(samples[2].sampleValue.uiVal, 1500);
	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		n = 3;
		check_eq(get(unknown[i], 0, &n, samples), NVML_ERROR_NOT_SUPPORTED);
	}
	check_eq(get(NVML_SAMPLINGTYPE_COUNT, 0, &n, samples),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}
