/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace: the worker's part, see control/trace.h
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "vgpu/error.h"
#include "worker/base/trace.h"

__thread uint64_t trace_call_number;

/* Held while names are looked up: only threads that trace are delayed. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

int trace_map(struct trace **tracep, struct worker_wishes **wishesp, int fd)
{
	static struct worker_wishes none;
	struct stat stat;
	uint8_t *page;

	*tracep = NULL;
	*wishesp = &none;
	if (fstat(fd, &stat) < 0)
		return vgpu_error_origin(-errno);
	if ((uint64_t)stat.st_size < WORKER_TRACE_OFF + sizeof(struct trace))
		return 0;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*tracep = mmap(NULL, sizeof(struct trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		WORKER_TRACE_OFF);
	if (*tracep == MAP_FAILED) {
		munmap(page, 4096);
		*tracep = NULL;
		return vgpu_error_origin(-errno);
	}
	*wishesp = (struct worker_wishes *)(void *)(page + WORKER_WISHES_OFF);
	return 0;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A trace whose client is gone must not slow down calls for ever. */
static bool is_over(struct worker_wishes *wishes, uint64_t now)
{
	uint64_t until = __atomic_load_n(&wishes->trace_until, __ATOMIC_RELAXED);

	if (now <= until)
		return false;
	/* Unless vgpud has just prolonged it. */
	__atomic_compare_exchange_n(&wishes->trace_until, &until, 0, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return true;
}

static void add(struct session *session, const struct trace_event *event)
{
	struct trace *trace = session->trace;
	const uint64_t now = clock_ns();
	struct trace_event *place;
	uint64_t number;

	if (!trace || is_over(session->wishes, now))
		return;
	number = __atomic_add_fetch(&trace->n_events, 1, __ATOMIC_RELAXED);
	place = &trace->events[(number - 1) % TRACE_EVENTS];
	/* Until it is complete it is no event. */
	__atomic_store_n(&place->number, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	place->ns = now;
	place->call_number = event->call_number;
	place->call = event->call;
	place->kind = event->kind;
	place->reserved = 0;
	place->lane = event->lane;
	place->value = event->value;
	/* Partner: the client's check of the number. */
	__atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
}

void trace_add(struct session *session, enum trace_kind kind,
	const struct vgpu_frame *frame, uint64_t call_number, uint64_t value)
{
	add(session, &(struct trace_event){
			     .kind = (uint8_t)kind,
			     .call = frame->call,
			     .lane = frame->lane,
			     .call_number = call_number,
			     .value = value,
		     });
}

/* Return: the place of a name, TRACE_NAMES if there are too many. */
static uint64_t find_name(struct trace *trace, const char *name)
{
	uint64_t i;

	pthread_mutex_lock(&names_lock);
	for (i = 0; i < trace->n_names && i < TRACE_NAMES; i++)
		if (!strncmp(trace->names[i], name, TRACE_NAME_SIZE))
			break;
	if (i == trace->n_names && i < TRACE_NAMES) {
		memcpy(trace->names[i], name, strnlen(name, TRACE_NAME_SIZE));
		/* Partner: vgpud reads names after the events that have them. */
		__atomic_store_n(&trace->n_names, i + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&names_lock);
	return i;
}

void trace_add_work(
	void *data, uint64_t call_number, uint64_t stream, const char *name, int is_end)
{
	struct session *session = data;

	if (!session->trace)
		return;
	add(session, &(struct trace_event){
			     .kind = is_end ? TRACE_COMPLETE : TRACE_WORK,
			     .call_number = call_number,
			     .value = stream << 16 | find_name(session->trace, name),
		     });
}

uint64_t trace_get_number(void *data)
{
	(void)data;
	return trace_call_number;
}
