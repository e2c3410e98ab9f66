/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library: initialisation, counted
 *
 * The counts are written under the lock. The page is opened by the first nvmlInit and
 * closed when neither an initialisation nor a call is left. A forked child has the counts
 * of its parent, without the calls of other threads, and opens the page for itself.
 */

#include <pthread.h>
#include <unistd.h>

#include "vgpu/log.h"

#include "nvml/device.h"
#include "nvml/event.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/library.h"
#include "nvml/page.h"
#include "wire/reason.h"

#define FLAGS_KNOWN (NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)

static struct {
	pthread_mutex_t lock;
	unsigned int n_inits;
	unsigned int n_inside;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&library.lock);
	nvml_event_before_fork();
	nvml_page_before_fork();
}

static void after_fork(void)
{
	nvml_page_after_fork(false);
	nvml_event_after_fork();
	pthread_mutex_unlock(&library.lock);
}

static void after_fork_in_child(void)
{
	nvml_page_after_fork(true);
	nvml_event_after_fork();
	library.n_inside = 0;
	pthread_mutex_unlock(&library.lock);
}

static void set_up(void)
{
	vgpu_log_init(
		"libnvidia-ml", isatty(STDERR_FILENO) ? VGPU_LOG_ERROR : VGPU_LOG_NONE);
	shim_reason_set_library("libnvidia-ml.so.1");
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Under the lock. */
static void release_unused(void)
{
	if (library.n_inits || library.n_inside)
		return;
	nvml_event_release();
	nvml_page_close();
}

nvmlReturn_t nvml_enter(void)
{
	nvmlReturn_t result = NVML_SUCCESS;

	pthread_mutex_lock(&library.lock);
	if (library.n_inits)
		library.n_inside++;
	else
		result = NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&library.lock);
	return result;
}

nvmlReturn_t nvml_leave(nvmlReturn_t result)
{
	pthread_mutex_lock(&library.lock);
	library.n_inside--;
	release_unused();
	pthread_mutex_unlock(&library.lock);
	return result;
}

/* Without devices there is nothing to look at, which the flag allows. */
nvmlReturn_t answer_nvmlInitWithFlags(unsigned int flags)
{
	nvmlReturn_t result = NVML_SUCCESS;

	if (flags & ~FLAGS_KNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	pthread_once(&once, set_up);
	pthread_mutex_lock(&library.lock);
	if (!library.n_inits && !library.n_inside)
		result = nvml_page_open();
	if (result == NVML_SUCCESS && !library.n_inits)
		result = nvml_device_setup();
	if (result == NVML_SUCCESS && !nvml_device_n() &&
		!(flags & NVML_INIT_FLAG_NO_GPUS))
		result = NVML_ERROR_DRIVER_NOT_LOADED;
	if (result == NVML_SUCCESS)
		library.n_inits++;
	else
		release_unused();
	pthread_mutex_unlock(&library.lock);
	return result;
}

nvmlReturn_t answer_nvmlInit_v2(void)
{
	return answer_nvmlInitWithFlags(0);
}

nvmlReturn_t answer_nvmlShutdown(void)
{
	nvmlReturn_t result = NVML_SUCCESS;

	pthread_mutex_lock(&library.lock);
	if (library.n_inits)
		library.n_inits--;
	else
		result = NVML_ERROR_UNINITIALIZED;
	release_unused();
	pthread_mutex_unlock(&library.lock);
	return result;
}
