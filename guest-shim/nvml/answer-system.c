/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: the system and its versions; units and other hardware that there is none of
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "nvml/g-nvml-answers.h"
#include "nvml/page.h"
#include "nvml/text.h"

/* A host whose driver does not say its version. */
#define NO_VERSION "unknown"

nvmlReturn_t answer_nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result != NVML_SUCCESS)
		return result;
	return nvml_text_answer(
		version, length, *head.driver_version ? head.driver_version : NO_VERSION);
}

/* The API's, then the driver's, as NVIDIA's library has it. */
nvmlReturn_t answer_nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	char text[sizeof(NVML_API_VERSION_STR) + sizeof(struct nvml_page_head)];
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result != NVML_SUCCESS)
		return result;
	snprintf(text, sizeof(text), "%s.%s", NVML_API_VERSION_STR,
		*head.driver_version ? head.driver_version : NO_VERSION);
	return nvml_text_answer(version, length, text);
}

nvmlReturn_t answer_nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion)
{
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result == NVML_SUCCESS)
		*cudaDriverVersion = head.cuda_version;
	return result;
}

/* The first word of its command line; that of a kernel thread is empty. */
static nvmlReturn_t read_name(unsigned int pid, const char *file, char *name, size_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? NVML_ERROR_NO_PERMISSION
							 : NVML_ERROR_NOT_FOUND;
	n = read(fd, name, size - 1);
	if (n < 0)
		return NVML_ERROR_NOT_FOUND;
	name[n] = '\0';
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlSystemGetProcessName(
	unsigned int pid, char *name, unsigned int length)
{
	char text[4096];
	nvmlReturn_t result;

	if (!length)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_name(pid, "cmdline", text, sizeof(text));
	if (result == NVML_SUCCESS && !*text) {
		result = read_name(pid, "comm", text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
	}
	if (result == NVML_SUCCESS)
		snprintf(name, length, "%s", text);
	return result;
}

nvmlReturn_t answer_nvmlSystemGetHicVersion(
	unsigned int *hwbcCount, nvmlHwbcEntry_t *hwbcEntries)
{
	*hwbcCount = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlUnitGetCount(unsigned int *unitCount)
{
	*unitCount = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlUnitGetHandleByIndex(unsigned int index, nvmlUnit_t *unit)
{
	return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t answer_nvmlGetExcludedDeviceCount(unsigned int *deviceCount)
{
	*deviceCount = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlGetExcludedDeviceInfoByIndex(
	unsigned int index, nvmlExcludedDeviceInfo_t *info)
{
	return NVML_ERROR_INVALID_ARGUMENT;
}
