/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight recorder: the worker's part, see control/flight.h
 */

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "vgpu/error.h"
#include "worker/base/flight.h"

int flight_map(struct flight **flightp, int fd)
{
	struct stat stat;
	struct flight *flight;

	if (fstat(fd, &stat) < 0)
		return vgpu_error_origin(-errno);
	if ((uint64_t)stat.st_size >= WORKER_FLIGHT_OFF + sizeof(*flight))
		flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, WORKER_FLIGHT_OFF);
	else
		flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (flight == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*flightp = flight;
	return 0;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void flight_start(struct flight *flight)
{
	flight->base_ns = clock_ns();
	flight->base_ticks = __builtin_ia32_rdtsc();
}

void flight_note_error(struct session *session, uint16_t call, CUresult result)
{
	struct flight *flight = session->flight;

	/* Threads may mix their errors: it is for people. */
	__atomic_store_n(&flight->error_call, call, __ATOMIC_RELAXED);
	__atomic_store_n(&flight->error_result, (int32_t)result, __ATOMIC_RELAXED);
	__atomic_store_n(&flight->error_ns, clock_ns(), __ATOMIC_RELAXED);
}

void flight_freeze(struct flight *flight)
{
	memcpy(flight->at_fault, flight->calls, sizeof(flight->at_fault));
}

void flight_name(struct session *session, uint64_t handle, const char *name)
{
	struct flight *flight = session->flight;
	const uint64_t i = __atomic_fetch_add(&flight->n_names, 1, __ATOMIC_RELAXED);
	struct flight_name *entry = &flight->names[i % FLIGHT_NAMES];
	const size_t size = strnlen(name, sizeof(entry->text));

	memcpy(entry->text, name, size);
	memset(entry->text + size, 0, sizeof(entry->text) - size);
	/* Partner: the load in flight_name_like(), on another thread. */
	__atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
}

void flight_name_like(struct session *session, uint64_t handle, uint64_t like)
{
	const struct flight *flight = session->flight;
	char text[sizeof(flight->names[0].text) + 1];

	for (uint32_t i = 0; i < FLIGHT_NAMES; i++) {
		if (__atomic_load_n(&flight->names[i].handle, __ATOMIC_ACQUIRE) != like)
			continue;
		memcpy(text, flight->names[i].text, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		flight_name(session, handle, text);
		return;
	}
}
