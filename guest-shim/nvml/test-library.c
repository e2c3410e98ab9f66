/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialisation: counted, by threads, across fork, without leaks
 */

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"

static unsigned int count(void)
{
	unsigned int n = 99;

	check_eq(nvmlDeviceGetCount(&n), NVML_SUCCESS);
	return n;
}

TEST(calls_need_an_initialised_library)
{
	nvmlDevice_t device;
	unsigned int n = 99;

	page_double_start();
	check_eq(nvmlDeviceGetCount(&n), NVML_ERROR_UNINITIALIZED);
	check_eq(n, 99);
	check_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	check_eq(nvmlDeviceGetHandleByIndex(0, NULL), NVML_ERROR_UNINITIALIZED);
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(count(), PAGE_DOUBLE_DEVICES);
	check_eq(nvmlDeviceGetCount(NULL), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetCount(&n), NVML_ERROR_UNINITIALIZED);
	check_eq(nvmlDeviceGetUUID(device, NULL, 0), NVML_ERROR_UNINITIALIZED);
	page_double_finish();
}

TEST(initialisations_are_counted)
{
	page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS);
	check_eq(nvmlInitWithFlags(1u << 30), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	check_eq(count(), PAGE_DOUBLE_DEVICES);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	check_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	page_double_finish();
}

TEST(without_a_host_there_is_no_driver)
{
	setenv("VGPU_SOCKET", "/nowhere", 1);
	check_eq(nvmlInit(), NVML_ERROR_DRIVER_NOT_LOADED);
	check_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST(a_host_without_devices_has_to_be_asked_for)
{
	struct vgpu_status *status = page_double_start();

	page_double_begin();
	status->n_devices = 0;
	page_double_end();
	check_eq(nvmlInit(), NVML_ERROR_DRIVER_NOT_LOADED);
	check_eq(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS);
	check_eq(count(), 0);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static unsigned int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static unsigned long count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long n = 0;
	int c;

	while ((c = fgetc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

static void cycle(void)
{
	nvmlEventSet_t set;

	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlEventSetCreate(&set), NVML_SUCCESS);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
}

TEST(a_thousand_cycles_leave_nothing)
{
	unsigned int n_descriptors;
	unsigned long n_mappings;

	page_double_start();
	cycle();
	/* A connection that has just ended may not have been swept. */
	cycle();
	n_descriptors = count_descriptors();
	n_mappings = count_mappings();
	for (int i = 0; i < 1000; i++)
		cycle();
	check(count_descriptors() <= n_descriptors + 1);
	check(count_mappings() <= n_mappings + 1);
	page_double_finish();
}

static void *look(void *unused)
{
	for (int i = 0; i < 200; i++) {
		char uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
		nvmlDevice_t device;

		check_eq(nvmlInit(), NVML_SUCCESS);
		check_eq(nvmlDeviceGetHandleByIndex(1, &device), NVML_SUCCESS);
		check_eq(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)), NVML_SUCCESS);
		check_str(uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
		check_eq(nvmlShutdown(), NVML_SUCCESS);
	}
	return NULL;
}

TEST(threads_may_initialise_and_shut_down_at_once)
{
	pthread_t threads[4];

	page_double_start();
	for (int i = 0; i < 4; i++)
		check(!pthread_create(&threads[i], NULL, look, NULL));
	for (int i = 0; i < 4; i++)
		check(!pthread_join(threads[i], NULL));
	check_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	page_double_finish();
}

/* Returns: the exit status of a child that runs this. */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(run());
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int use_what_was_inherited(void)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;

	if (nvmlDeviceGetHandleByIndex(0, &device) ||
		nvmlDeviceGetMemoryInfo(device, &memory))
		return 1;
	if (nvmlInit() || nvmlShutdown() || nvmlShutdown())
		return 2;
	return nvmlShutdown() == NVML_ERROR_UNINITIALIZED ? 0 : 3;
}

TEST(a_forked_child_goes_on)
{
	page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(in_child(use_what_was_inherited), 0);
	check_eq(count(), PAGE_DOUBLE_DEVICES);
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static void *fork_on(void *unused)
{
	for (int i = 0; i < 20; i++)
		check_eq(in_child(use_what_was_inherited), 0);
	return NULL;
}

TEST(a_fork_beside_calls_of_other_threads)
{
	pthread_t forker;

	page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check(!pthread_create(&forker, NULL, fork_on, NULL));
	for (int i = 0; i < 2000; i++) {
		nvmlEventSet_t set;

		check_eq(count(), PAGE_DOUBLE_DEVICES);
		check_eq(nvmlEventSetCreate(&set), NVML_SUCCESS);
		check_eq(nvmlEventSetFree(set), NVML_SUCCESS);
	}
	check(!pthread_join(forker, NULL));
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}
