/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Log
 *
 * One line per message, on stderr unless vgpu_log_open() chose another file. A library in
 * a guest process starts at level error if its standard error is a terminal and at none
 * otherwise, a daemon at info; the environment variable VGPU_LOG overrides. Messages are
 * sentences with the values they refer to. Nothing is ever written to stdout.
 */

#include <stdbool.h>

enum vgpu_log_level {
	VGPU_LOG_NONE,
	VGPU_LOG_ERROR,
	VGPU_LOG_WARNING,
	VGPU_LOG_INFO,
	VGPU_LOG_DEBUG,
	_VGPU_LOG_N,
};

/* Returns: the level of that name, or -1. */
int vgpu_log_level_from_string(const char *name);
const char *vgpu_log_level_name(enum vgpu_log_level level);

/*
 * Sets the level and the prefix of each line (a static string). A level in VGPU_LOG
 * overrides the one given.
 */
void vgpu_log_init(const char *ident, enum vgpu_log_level level);

/* Sends further lines to a file, appended. Returns: 0 or -errno. */
int vgpu_log_open(const char *path);

/* Sends further lines to a descriptor, which stays the caller's. */
void vgpu_log_use(int fd);

/*
 * Further messages go to this function instead, without time, process and newline; NULL:
 * to the descriptor again. It returns false for one that it cannot write, which is
 * counted.
 */
typedef bool (*vgpu_log_sink_fn)(
	enum vgpu_log_level level, const char *ident, const char *message);
void vgpu_log_send_to(vgpu_log_sink_fn sink);

/*
 * From now on, lines are never written with a blocking write(): what does not fit into a
 * pipe, a socket or a terminal is dropped and counted. Without this call the log blocks,
 * as any program's does. For a daemon, whose guests cause log lines. To be called again
 * after its descriptor was replaced.
 */
void vgpu_log_never_wait(void);

bool vgpu_log_enabled(enum vgpu_log_level level);
enum vgpu_log_level vgpu_log_get_level(void);

void vgpu_log(enum vgpu_log_level level, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

#define vgpu_log_error(...) vgpu_log(VGPU_LOG_ERROR, __VA_ARGS__)
#define vgpu_log_warning(...) vgpu_log(VGPU_LOG_WARNING, __VA_ARGS__)
#define vgpu_log_info(...) vgpu_log(VGPU_LOG_INFO, __VA_ARGS__)

/* Arguments are not evaluated below level debug: it is used on hot paths. */
#define vgpu_log_debug(...)                                                              \
	do {                                                                             \
		if (__builtin_expect(vgpu_log_enabled(VGPU_LOG_DEBUG), 0))               \
			vgpu_log(VGPU_LOG_DEBUG, __VA_ARGS__);                           \
	} while (0)
