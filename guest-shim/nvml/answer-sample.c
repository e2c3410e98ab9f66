/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: samples of the last seconds
 *
 * The host keeps a ring of them for each device, in no order but that of their times.
 */

#include <stdbool.h>
#include <stdlib.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/page.h"

struct samples {
	unsigned int n;
	struct vgpu_status_sample all[VGPU_STATUS_SAMPLES];
};

/* The value of a kind of sample, in its unit. Returns: false if it is unknown. */
static bool value_of(const struct vgpu_status_sample *sample, nvmlSamplingType_t type,
	unsigned int *valuep)
{
	unsigned int unknown = UINT8_MAX;

	switch (type) {
	case NVML_TOTAL_POWER_SAMPLES:
		*valuep = sample->power;
		unknown = UINT32_MAX;
		break;
	case NVML_GPU_UTILIZATION_SAMPLES:
		*valuep = sample->utilisation;
		break;
	case NVML_MEMORY_UTILIZATION_SAMPLES:
		*valuep = sample->memory_utilisation;
		break;
	case NVML_ENC_UTILIZATION_SAMPLES:
		*valuep = sample->encoder;
		break;
	case NVML_DEC_UTILIZATION_SAMPLES:
		*valuep = sample->decoder;
		break;
	case NVML_PROCESSOR_CLK_SAMPLES:
		*valuep = sample->clock_sm;
		unknown = UINT16_MAX;
		break;
	case NVML_MEMORY_CLK_SAMPLES:
		*valuep = sample->clock_memory;
		unknown = UINT16_MAX;
		break;
	case NVML_JPG_UTILIZATION_SAMPLES:
		*valuep = sample->jpeg;
		break;
	case NVML_OFA_UTILIZATION_SAMPLES:
		*valuep = sample->ofa;
		break;
	default:
		return false;
	}
	return *valuep != unknown;
}

static int compare(const void *a, const void *b)
{
	const struct vgpu_status_sample *left = a, *right = b;

	return left->at_us < right->at_us ? -1 : left->at_us > right->at_us;
}

/* Those of the kind, the oldest first. */
static nvmlReturn_t read_samples(
	nvmlDevice_t device, nvmlSamplingType_t type, struct samples *samples)
{
	const struct nvml_piece piece = {
		.to = samples->all,
		.off = offsetof(struct vgpu_status, samples) +
		       nvml_device_index(device) * sizeof(samples->all),
		.size = sizeof(samples->all),
	};
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	unsigned int value;

	if (result == NVML_SUCCESS)
		result = nvml_page_read(&piece, 1);
	samples->n = 0;
	for (unsigned int i = 0; i < VGPU_STATUS_SAMPLES && result == NVML_SUCCESS; i++)
		if (samples->all[i].at_us && value_of(&samples->all[i], type, &value))
			samples->all[samples->n++] = samples->all[i];
	qsort(samples->all, samples->n, sizeof(samples->all[0]), compare);
	return result == NVML_SUCCESS && !samples->n ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* Without room for them the caller asks how much to provide. Of more than fit those of
 * the longest time ago are taken, so that the next call goes on after them. */
nvmlReturn_t answer_nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
	unsigned long long lastSeenTimeStamp, nvmlValueType_t *sampleValType,
	unsigned int *sampleCount, nvmlSample_t *samples)
{
	struct samples found;
	unsigned int room, n = 0;
	nvmlReturn_t result;

	if ((unsigned int)type >= NVML_SAMPLINGTYPE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_samples(device, type, &found);
	if (result != NVML_SUCCESS)
		return result;
	*sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
	room = *sampleCount;
	if (!samples) {
		*sampleCount = found.n;
		return NVML_SUCCESS;
	}
	if (!room)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < found.n && n < room; i++) {
		unsigned int value = 0;

		if (found.all[i].at_us <= lastSeenTimeStamp)
			continue;
		value_of(&found.all[i], type, &value);
		samples[n++] = (nvmlSample_t){
			.timeStamp = found.all[i].at_us,
			.sampleValue.uiVal = value,
		};
	}
	if (!n)
		return NVML_ERROR_NOT_FOUND;
	*sampleCount = n;
	return NVML_SUCCESS;
}
