/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: settings of core dumps
 *
 * A core dump of a device would be a file of the host. So none is ever made, and to
 * enable them is refused; all other settings are kept, as a program may make them
 * beforehand (CUDA Driver API, Coredump Attributes Control API).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/call.h"
#include "process/context.h"
#include "process/thread.h"
#include "wire/lock.h"

/* The longest name, with its NUL (the page of cuCoredumpSetAttribute). */
#define NAME_SIZE 1024u
#define HOST_SIZE 64u

struct settings {
	bool triggers_host;
	bool is_lightweight;
	unsigned int flags;
	char file[NAME_SIZE];
	char pipe[NAME_SIZE];
};

/* Those of contexts whose program has not set any. */
static struct {
	struct shim_lock lock; /* of all settings, also of contexts */
	bool is_made;
	struct settings settings;
} global;

static char local_key; /* of a context's settings; only its address is used */

static void set_name(char *name, const char *variable, const char *prefix)
{
	const char *value = getenv(variable);
	char host[HOST_SIZE] = "";

	gethostname(host, sizeof(host) - 1);
	if (value && strlen(value) < NAME_SIZE)
		strcpy(name, value);
	else
		snprintf(name, NAME_SIZE, "%s.%s.%d", prefix, host, (int)getpid());
}

static bool is_on(const char *variable, bool otherwise)
{
	const char *value = getenv(variable);

	return value ? !strcmp(value, "1") : otherwise;
}

static struct settings *global_locked(void)
{
	struct settings *settings = &global.settings;

	if (global.is_made)
		return settings;
	settings->triggers_host = is_on("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", true);
	settings->is_lightweight = is_on("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", false);
	set_name(settings->file, "CUDA_COREDUMP_FILE", "core.cuda");
	set_name(settings->pipe, "CUDA_COREDUMP_PIPE", "corepipe.cuda");
	global.is_made = true;
	return settings;
}

static void free_local(CUcontext context, void *key, void *value)
{
	free(value);
}

/* Those of a context, which has a copy once the program changes one. */
static CUresult find_locked(
	struct shim_context *context, bool is_for_change, struct settings **settingsp)
{
	struct settings *copy;
	CUresult result;
	void *found;

	*settingsp = global_locked();
	if (!context)
		return CUDA_SUCCESS;
	if (shim_context_local_get(context, &local_key, &found) == CUDA_SUCCESS) {
		*settingsp = found;
		return CUDA_SUCCESS;
	}
	if (!is_for_change)
		return CUDA_SUCCESS;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = **settingsp;
	result = shim_context_local_put(context, &local_key, copy, free_local);
	if (result != CUDA_SUCCESS)
		free(copy);
	else
		*settingsp = copy;
	return result;
}

/* Return: where a setting is, and its size, or NULL for no setting. */
static const void *find_value(
	const struct settings *settings, CUcoredumpSettings attrib, size_t *sizep)
{
	static const bool never;

	*sizep = sizeof(bool);
	switch (attrib) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		return &never;
	case CU_COREDUMP_TRIGGER_HOST:
		return &settings->triggers_host;
	case CU_COREDUMP_LIGHTWEIGHT:
		return &settings->is_lightweight;
	case CU_COREDUMP_FILE:
		*sizep = strlen(settings->file) + 1;
		return settings->file;
	case CU_COREDUMP_PIPE:
		*sizep = strlen(settings->pipe) + 1;
		return settings->pipe;
	case CU_COREDUMP_GENERATION_FLAGS:
		*sizep = sizeof(settings->flags);
		return &settings->flags;
	default:
		return NULL;
	}
}

static CUresult get(struct shim_context *context, CUcoredumpSettings attrib, void *value,
	size_t *sizep)
{
	struct settings *settings;
	const void *found;
	size_t size;

	SHIM_LOCKED(&global.lock);
	find_locked(context, false, &settings);
	found = find_value(settings, attrib, &size);
	if (!found || !sizep || (value && *sizep < size))
		return CUDA_ERROR_INVALID_VALUE;
	if (value)
		memcpy(value, found, size);
	*sizep = size;
	return CUDA_SUCCESS;
}

static CUresult set_bool(bool *place, const void *value, size_t size)
{
	if (size < sizeof(*place))
		return CUDA_ERROR_INVALID_VALUE;
	*place = *(const unsigned char *)value != 0;
	return CUDA_SUCCESS;
}

/* One that is off, and cannot be turned on. */
static CUresult set_never(const void *value, size_t size)
{
	bool wanted = false;
	CUresult result = set_bool(&wanted, value, size);

	return result == CUDA_SUCCESS && wanted ? CUDA_ERROR_NOT_SUPPORTED : result;
}

static CUresult store_name(char *place, const void *value, size_t size)
{
	size_t length = strnlen(value, size);

	/* It may have no NUL within its size. */
	if (!length || length >= NAME_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(place, value, length);
	place[length] = '\0';
	return CUDA_SUCCESS;
}

static CUresult set_flags(struct settings *settings, const void *value, size_t size)
{
	const unsigned int all = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
	unsigned int flags;

	if (size < sizeof(flags))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&flags, value, sizeof(flags));
	if (flags & ~all)
		return CUDA_ERROR_INVALID_VALUE;
	settings->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult change(struct settings *settings, CUcoredumpSettings attrib,
	const void *value, size_t size)
{
	switch (attrib) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		return set_never(value, size);
	case CU_COREDUMP_TRIGGER_HOST:
		return set_bool(&settings->triggers_host, value, size);
	case CU_COREDUMP_LIGHTWEIGHT:
		return set_bool(&settings->is_lightweight, value, size);
	case CU_COREDUMP_FILE:
		return store_name(settings->file, value, size);
	case CU_COREDUMP_PIPE:
		return store_name(settings->pipe, value, size);
	case CU_COREDUMP_GENERATION_FLAGS:
		return set_flags(settings, value, size);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult set(struct shim_context *context, CUcoredumpSettings attrib,
	const void *value, const size_t *sizep)
{
	struct settings *settings;
	CUresult result;

	SHIM_LOCKED(&global.lock);
	if (!value || !sizep)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_locked(context, true, &settings);
	return result == CUDA_SUCCESS ? change(settings, attrib, value, *sizep) : result;
}

/* What is a matter of the whole process: who may trigger a dump, and by which pipe. */
static bool is_of_process(CUcoredumpSettings attrib)
{
	return attrib == CU_COREDUMP_ENABLE_USER_TRIGGER || attrib == CU_COREDUMP_PIPE;
}

static struct shim_context *current(void)
{
	struct shim_thread *thread = shim_thread_get();

	return thread ? shim_thread_context(thread) : NULL;
}

CUresult shim_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = current();
	return context ? get(context, attrib, value, size) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult shim_cuCoredumpGetAttributeGlobal(
	CUcoredumpSettings attrib, void *value, size_t *size)
{
	return get(NULL, attrib, value, size);
}

CUresult shim_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return is_of_process(attrib) ? CUDA_ERROR_NOT_PERMITTED
				     : set(context, attrib, value, size);
}

CUresult shim_cuCoredumpSetAttributeGlobal(
	CUcoredumpSettings attrib, void *value, size_t *size)
{
	return set(NULL, attrib, value, size);
}
