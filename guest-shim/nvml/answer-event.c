/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: sets of events
 *
 * The host reports faults of the VM's own work, as Xid errors. It keeps the last ones in
 * the page, each with a time of its own; a set remembers for each device until when it
 * has seen them, so it misses none that is still kept. Nothing wakes a waiter: it looks
 * as often as the host writes.
 *
 * Sets are in a list, by which a handle is recognised. The list and all sets belong to
 * the lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "nvml/device.h"
#include "nvml/event.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/page.h"
#include "wire/clock.h"

#define TYPES_KNOWN ((unsigned long long)nvmlEventTypeAll)
#define TYPES_REPORTED ((unsigned long long)nvmlEventTypeXidCriticalError)
#define LOOK_NS 100000000ull
#define NO_INSTANCE 0xffffffffu

/* Numbers of NVIDIA's list of Xid errors. */
enum {
	XID_LAUNCH_TIMEOUT = 8,
	XID_EXCEPTION = 13,
	XID_PAGE_FAULT = 31,
	XID_STOPPED = 43, /* the program's fault, which ends its work */
	XID_DOUBLE_BIT_ERROR = 48,
};

struct nvmlEventSet_st {
	struct nvmlEventSet_st *next;
	unsigned long long types[VGPU_DEVICES_MAX];
	uint64_t seen_us[VGPU_DEVICES_MAX]; /* the time of the last event seen */
};

struct events {
	uint32_t flags; /* of the page */
	struct vgpu_status_event all[VGPU_STATUS_EVENTS];
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
	return set && *find(set);
}

static nvmlReturn_t read_events(struct events *events)
{
	struct nvml_page_head head;
	const struct nvml_piece pieces[] = {
		{ .to = &head, .size = NVML_PAGE_HEAD },
		{
			.to = events->all,
			.off = offsetof(struct vgpu_status, events),
			.size = sizeof(events->all),
		},
	};
	nvmlReturn_t result = nvml_page_read(pieces, 2);

	events->flags = result == NVML_SUCCESS ? head.flags : 0;
	return result;
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
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result == NVML_SUCCESS)
		*eventTypes = head.flags & VGPU_STATUS_WHOLE ? TYPES_REPORTED
							     : nvmlEventTypeNone;
	return result;
}

/* Events of before are not for this set. */
static void add(nvmlEventSet_t set, unsigned int device, unsigned long long types,
	const struct events *events)
{
	if (!set->types[device])
		for (unsigned int i = 0; i < VGPU_STATUS_EVENTS; i++)
			if (events->all[i].at_us > set->seen_us[device])
				set->seen_us[device] = events->all[i].at_us;
	set->types[device] |= types;
}

nvmlReturn_t answer_nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	struct events events;
	nvmlReturn_t result;

	if (eventTypes & ~TYPES_KNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_events(&events);
	if (result == NVML_SUCCESS && eventTypes &&
		(eventTypes & ~TYPES_REPORTED || !(events.flags & VGPU_STATUS_WHOLE)))
		result = NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	if (!exists(set))
		result = NVML_ERROR_INVALID_ARGUMENT;
	if (result == NVML_SUCCESS)
		add(set, nvml_device_index(device), eventTypes, &events);
	pthread_mutex_unlock(&lock);
	return result;
}

static unsigned long long xid_of(int64_t fault)
{
	switch (fault) {
	case CUDA_ERROR_LAUNCH_TIMEOUT:
		return XID_LAUNCH_TIMEOUT;
	case CUDA_ERROR_ILLEGAL_ADDRESS:
		return XID_PAGE_FAULT;
	case CUDA_ERROR_ECC_UNCORRECTABLE:
		return XID_DOUBLE_BIT_ERROR;
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
		return XID_EXCEPTION;
	default:
		return XID_STOPPED;
	}
}

static bool is_new(
	const struct nvmlEventSet_st *set, const struct vgpu_status_event *event)
{
	return event->type == VGPU_STATUS_FAULT && event->device < nvml_device_n() &&
	       set->types[event->device] & nvmlEventTypeXidCriticalError &&
	       event->at_us > set->seen_us[event->device];
}

/* The oldest that the set has not seen. Returns: whether there is one. */
static bool take(nvmlEventSet_t set, const struct events *events, nvmlEventData_t *data)
{
	const struct vgpu_status_event *first = NULL;

	for (unsigned int i = 0; i < VGPU_STATUS_EVENTS; i++)
		if (is_new(set, &events->all[i]) &&
			(!first || events->all[i].at_us < first->at_us))
			first = &events->all[i];
	if (!first)
		return false;
	set->seen_us[first->device] = first->at_us;
	*data = (nvmlEventData_t){
		.device = nvml_device_get(first->device),
		.eventType = nvmlEventTypeXidCriticalError,
		.eventData = xid_of(first->detail),
		.gpuInstanceId = NO_INSTANCE,
		.computeInstanceId = NO_INSTANCE,
	};
	return true;
}

static bool has_devices(const struct nvmlEventSet_st *set)
{
	bool found = false;

	for (unsigned int i = 0; i < VGPU_DEVICES_MAX; i++)
		found |= set->types[i] != 0;
	return found;
}

/* Return: NVML_ERROR_TIMEOUT if there is no event now. */
static nvmlReturn_t look(nvmlEventSet_t set, nvmlEventData_t *data)
{
	struct events events = {};
	nvmlReturn_t read = read_events(&events), result = NVML_ERROR_TIMEOUT;

	pthread_mutex_lock(&lock);
	if (!exists(set))
		result = NVML_ERROR_INVALID_ARGUMENT;
	else if (read != NVML_SUCCESS && has_devices(set))
		result = read;
	else if (read == NVML_SUCCESS && take(set, &events, data))
		result = NVML_SUCCESS;
	pthread_mutex_unlock(&lock);
	return result;
}

static void nap(uint64_t now, uint64_t end)
{
	struct timespec pause = {
		.tv_nsec = (long)(end - now < LOOK_NS ? end - now : LOOK_NS),
	};

	if (now < end)
		nanosleep(&pause, NULL);
}

/* The set may be freed meanwhile. Programs wait in a loop: a host that is gone does not
 * let it spin. */
nvmlReturn_t answer_nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	const uint64_t end = shim_clock_ns() + timeoutms * 1000000ull;
	nvmlReturn_t result = look(set, data);
	uint64_t now = shim_clock_ns();

	while (result == NVML_ERROR_TIMEOUT && now < end) {
		nap(now, end);
		result = look(set, data);
		now = shim_clock_ns();
	}
	if (result == NVML_ERROR_GPU_IS_LOST)
		nap(now, end);
	return result;
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
