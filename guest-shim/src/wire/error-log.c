/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error log
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "wire/error-log.h"
#include "wire/lock.h"

#define LINE_MAX_SIZE 1024u

static const char lost_line[] = "[CUDA][W] earlier messages are not in this log\n";

/* The functions of the program; the entry is the handle. */
struct CUlogsCallbackEntry_st {
	LIST_ENTRY(CUlogsCallbackEntry_st) entry;
	CUlogsCallback function;
	void *data;
};

static struct {
	bool is_used; /* atomic */
	struct shim_lock lock;
	uint32_t n; /* messages so far; the last ones are kept, by number */
	char *lines[SHIM_ERROR_LOG_MESSAGES];
	LIST_HEAD(, CUlogsCallbackEntry_st) callbacks;
} error_log;

bool shim_error_log_is_used(void)
{
	return __atomic_load_n(&error_log.is_used, __ATOMIC_RELAXED);
}

static void note_used(void)
{
	__atomic_store_n(&error_log.is_used, true, __ATOMIC_RELAXED);
}

/* The line of a message, with the time of day, process and level. */
static char *format_line(CUlogLevel level, const char *text)
{
	char line[LINE_MAX_SIZE];
	struct timespec now;
	struct tm day;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &day);
	snprintf(line, sizeof(line), "[%02d:%02d:%02d.%03d][%d][CUDA][%c] %s\n",
		day.tm_hour, day.tm_min, day.tm_sec, (int)(now.tv_nsec / 1000000),
		(int)getpid(), level == CU_LOG_LEVEL_ERROR ? 'E' : 'W', text);
	/* One that is too long is a line, too. */
	if (strlen(line) == sizeof(line) - 1)
		line[sizeof(line) - 2] = '\n';
	return strdup(line);
}

static void keep(char *line)
{
	char **place;

	SHIM_LOCKED(&error_log.lock);
	place = &error_log.lines[error_log.n % SHIM_ERROR_LOG_MESSAGES];
	free(*place);
	*place = line;
	error_log.n++;
}

/* The functions are called without the lock: they may call cuLogs* again. */
static size_t list_callbacks(struct CUlogsCallbackEntry_st *list, size_t n_max)
{
	struct CUlogsCallbackEntry_st *callback;
	size_t n = 0;

	SHIM_LOCKED(&error_log.lock);
	LIST_FOREACH(callback, &error_log.callbacks, entry)
		if (n < n_max)
			list[n++] = *callback;
	return n;
}

#define CALLBACKS_MAX 64u

void shim_error_log_add(CUlogLevel level, const char *text)
{
	struct CUlogsCallbackEntry_st callbacks[CALLBACKS_MAX];
	char *line, message[LINE_MAX_SIZE];
	size_t n;

	if (!shim_error_log_is_used())
		return;
	line = format_line(level, text);
	if (!line)
		return;
	snprintf(message, sizeof(message), "%s", line);
	keep(line);
	n = list_callbacks(callbacks, CALLBACKS_MAX);
	for (size_t i = 0; i < n; i++)
		callbacks[i].function(callbacks[i].data, level, message, strlen(message));
}

CUlogIterator shim_error_log_position(void)
{
	SHIM_LOCKED(&error_log.lock);
	note_used();
	return error_log.n;
}

static size_t line_size(uint32_t number)
{
	return strlen(error_log.lines[number % SHIM_ERROR_LOG_MESSAGES]);
}

/* The oldest message from which on all fit in. */
static uint32_t find_first(uint32_t first, size_t room)
{
	uint32_t number = error_log.n;

	while (number != first && line_size(number - 1) <= room)
		room -= line_size(--number);
	return number;
}

static size_t read_locked(uint32_t *fromp, char *buffer, size_t size)
{
	const size_t n_lost = sizeof(lost_line) - 1;
	uint32_t kept = error_log.n < SHIM_ERROR_LOG_MESSAGES ? error_log.n
							      : SHIM_ERROR_LOG_MESSAGES;
	uint32_t first, oldest = error_log.n - kept;
	size_t length = 0;

	/* Numbers wrap around. */
	first = error_log.n - *fromp <= kept ? *fromp : oldest;
	if (first != *fromp || find_first(first, size) != first) {
		if (size >= n_lost) {
			memcpy(buffer, lost_line, n_lost);
			length = n_lost;
		}
		first = find_first(first, size - length);
	}
	for (; first != error_log.n; first++) {
		size_t n = line_size(first);

		memcpy(buffer + length, error_log.lines[first % SHIM_ERROR_LOG_MESSAGES],
			n);
		length += n;
	}
	*fromp = first;
	return length;
}

size_t shim_error_log_read(CUlogIterator *iterator, char *buffer, size_t size)
{
	uint32_t all = 0;
	size_t length;

	note_used();
	shim_lock(&error_log.lock);
	length = read_locked(iterator ? iterator : &all, buffer, size - 1);
	shim_unlock(&error_log.lock);
	buffer[length] = '\0';
	return length;
}

bool shim_error_log_listen(
	CUlogsCallback function, void *data, CUlogsCallbackHandle *handlep)
{
	struct CUlogsCallbackEntry_st *callback = malloc(sizeof(*callback));

	if (!callback)
		return false;
	callback->function = function;
	callback->data = data;
	note_used();
	shim_lock(&error_log.lock);
	LIST_INSERT_HEAD(&error_log.callbacks, callback, entry);
	shim_unlock(&error_log.lock);
	*handlep = callback;
	return true;
}

static struct CUlogsCallbackEntry_st *take_out(CUlogsCallbackHandle handle)
{
	struct CUlogsCallbackEntry_st *callback;

	SHIM_LOCKED(&error_log.lock);
	LIST_FOREACH(callback, &error_log.callbacks, entry) {
		if (callback != handle)
			continue;
		LIST_REMOVE(callback, entry);
		return callback;
	}
	return NULL;
}

bool shim_error_log_stop(CUlogsCallbackHandle handle)
{
	struct CUlogsCallbackEntry_st *callback = take_out(handle);
	bool was_there = callback;

	free(callback);
	return was_there;
}
