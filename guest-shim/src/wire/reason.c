/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons: one line that tells the user how to fix a failure
 *
 * Reasons that were printed are kept as a list of keys: a kind, and for the host's
 * reasons the result. The host's text is made printable again, because it is printed on a
 * terminal.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/log.h"
#include "vgpu/reason.h"
#include "vgpu/ring-layout.h"

#include "wire/error-log.h"
#include "wire/error.h"
#include "wire/reason.h"

#define TEXT_SIZE 768u

/* More kinds than there are. */
#define KEYS_MAX 64u

#define KEY_OF_HOST (1u << 31)
#define KEY_OF_REASON (1u << 30)

static uint32_t said[KEYS_MAX]; /* keys, atomic; the first 0 ends the list */
static bool is_chosen;		/* the level was set explicitly */
static const char *library = "libcuda.so.1";

static struct {
	enum shim_reason kind;
	char text[TEXT_SIZE]; /* empty: no note */
} note;

void shim_reason_setup(void)
{
	const char *level = getenv("VGPU_LOG");

	is_chosen = level && vgpu_log_level_from_string(level) >= 0;
	vgpu_log_init("libcuda", isatty(STDERR_FILENO) ? VGPU_LOG_ERROR : VGPU_LOG_NONE);
}

void shim_reason_set_library(const char *name)
{
	library = name;
}

static bool was_said(uint32_t key)
{
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		uint32_t found = __atomic_load_n(&said[i], __ATOMIC_RELAXED);

		if (!found || found == key)
			return found;
	}
	return true;
}

/* Returns: whether this thread is the first. */
static bool note_said(uint32_t key)
{
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		uint32_t found = 0;

		if (__atomic_compare_exchange_n(&said[i], &found, key, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (found == key)
			return false;
	}
	return false;
}

static void say(uint32_t key, const char *what, CUresult result, const char *text)
{
	enum vgpu_log_level level = note_said(key) ? VGPU_LOG_ERROR : VGPU_LOG_INFO;
	const char *name = shim_error_name(result);

	char line[TEXT_SIZE + 128];

	if (result != CUDA_SUCCESS)
		snprintf(line, sizeof(line), "%s fails with %s (%d): %s", what,
			name ? name : "an error", result, text);
	else
		snprintf(line, sizeof(line), "%s", text);
	vgpu_log(level, "%s", line);
	shim_error_log_add(CU_LOG_LEVEL_ERROR, line);
}

void shim_reason_note(enum shim_reason kind, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(note.text, sizeof(note.text), format, ap);
	va_end(ap);
	note.text[vgpu_reason_clean(note.text, strlen(note.text))] = '\0';
	note.kind = kind;
}

void shim_reason_of_version(uint32_t version)
{
	shim_reason_note(SHIM_REASON_VERSION,
		"the host speaks protocol version %u, this %s version %u: "
		"install the guest package of the host's release",
		version, library, VGPU_PROTOCOL_VERSION);
}

const char *shim_reason_noted(void)
{
	return *note.text ? note.text : NULL;
}

void shim_reason_forget(void)
{
	note.text[0] = '\0';
}

void shim_reason_tell_init(CUresult result, const char *otherwise)
{
	if (!*note.text)
		shim_reason_note(SHIM_REASON_UNKNOWN_INIT, "%s", otherwise);
	say(KEY_OF_REASON | note.kind, "cuInit", result, note.text);
	shim_reason_forget();
}

void shim_reason_tell_fork(void)
{
	say(KEY_OF_REASON | SHIM_REASON_FORKED, "cuInit", CUDA_ERROR_NOT_INITIALIZED,
		"this process was forked from one that had called cuInit, and so can "
		"never use CUDA: fork first, or start the program anew (in Python: "
		"multiprocessing's start method spawn)");
}

void shim_reason_tell(enum shim_reason kind, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list ap;

	if (kind == SHIM_REASON_ARENA && !is_chosen)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	text[vgpu_reason_clean(text, strlen(text))] = '\0';
	say(KEY_OF_REASON | kind, NULL, CUDA_SUCCESS, text);
}

static uint32_t key_of_host(CUresult result, uint32_t kind)
{
	return KEY_OF_HOST | kind << 16 | (uint16_t)result;
}

bool shim_reason_is_wanted(CUresult result, uint32_t kind)
{
	if (shim_error_log_is_used())
		return true;
	if (!vgpu_log_enabled(VGPU_LOG_ERROR) ||
		(kind == VGPU_REPLY_REASON_LIMIT && !is_chosen))
		return false;
	return vgpu_log_enabled(VGPU_LOG_INFO) || !was_said(key_of_host(result, kind));
}

void shim_reason_tell_host(
	const char *what, CUresult result, uint32_t kind, const char *text)
{
	say(key_of_host(result, kind), what, result, text);
}
