/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: sets of events
 *
 * The host reports no events, so a set stays empty and a wait for it times out. Sets are
 * in a list, by which a handle is recognised; the list belongs to the lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "nvml/event.h"
#include "nvml/g-nvml-answers.h"

#define TYPES_KNOWN ((unsigned long long)nvmlEventTypeAll)

struct nvmlEventSet_st {
	struct nvmlEventSet_st *next;
};

static struct nvmlEventSet_st *sets;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The pointer to a set in the list, or to its end. Under the lock. */
static struct nvmlEventSet_st **find(nvmlEventSet_t set)
{
	struct nvmlEventSet_st **setp = &sets;

	while (*setp && *setp != set)
		setp = &(*setp)->next;
	return setp;
}

static bool exists(nvmlEventSet_t set)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = set && *find(set);
	pthread_mutex_unlock(&lock);
	return found;
}

nvmlReturn_t answer_nvmlEventSetCreate(nvmlEventSet_t *set)
{
	struct nvmlEventSet_st *created = calloc(1, sizeof(*created));

	if (!created)
		return NVML_ERROR_MEMORY;
	pthread_mutex_lock(&lock);
	created->next = sets;
	sets = created;
	pthread_mutex_unlock(&lock);
	*set = created;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlEventSetFree(nvmlEventSet_t set)
{
	struct nvmlEventSet_st **setp;
	bool found;

	pthread_mutex_lock(&lock);
	setp = find(set);
	found = set && *setp;
	if (found)
		*setp = set->next;
	pthread_mutex_unlock(&lock);
	if (!found)
		return NVML_ERROR_INVALID_ARGUMENT;
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetSupportedEventTypes(
	nvmlDevice_t device, unsigned long long *eventTypes)
{
	*eventTypes = nvmlEventTypeNone;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	if (!exists(set) || eventTypes & ~TYPES_KNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	return eventTypes ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	struct timespec end;

	if (!exists(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += timeoutms / 1000;
	end.tv_nsec += (long)(timeoutms % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL)) {
	}
	return NVML_ERROR_TIMEOUT;
}

void nvml_event_release(void)
{
	pthread_mutex_lock(&lock);
	while (sets) {
		struct nvmlEventSet_st *next = sets->next;

		free(sets);
		sets = next;
	}
	pthread_mutex_unlock(&lock);
}

void nvml_event_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void nvml_event_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}
