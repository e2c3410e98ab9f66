/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: code from several sources on its way to one image
 *
 * The image of a link is PTX text, which loads like any other. Logs and values are those
 * of the creation, as CUDA defines: they are written whenever there is a message, until
 * the link is destroyed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#include "api/api.h"
#include "api/image.h"
#include "fatbin/image.h"
#include "fatbin/object.h"
#include "link/link.h"
#include "ptx/module.h"

#define OPTIONS_MAX 128u

struct CUlinkState_st {
	struct object object;
	pthread_mutex_t lock; /* for what follows */
	bool has_ended;	      /* options and values are the program's again */
	struct link *link;
	char *image; /* once complete */
	size_t size;

	/* Of the creation; values are the program's. */
	unsigned int n_options;
	CUjit_option options[OPTIONS_MAX];
	void **values;
	size_t sizes[OPTIONS_MAX]; /* the original values, before results were stored */
};

static void link_end(struct object *object)
{
	CUlinkState state = (CUlinkState)object;

	pthread_mutex_lock(&state->lock);
	state->has_ended = true;
	pthread_mutex_unlock(&state->lock);
}

static void link_release(struct object *object)
{
	CUlinkState state = (CUlinkState)object;

	link_free(state->link);
	free(state->image);
	pthread_mutex_destroy(&state->lock);
}

/* Return: 0 with the lock of a link, or INVALID_HANDLE. */
static CUresult link_enter(CUlinkState state)
{
	if (!object_hold(state, OBJECT_LINK))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&state->lock);
	if (!state->has_ended)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&state->lock);
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult link_leave(CUlinkState state, CUresult result)
{
	pthread_mutex_unlock(&state->lock);
	return result;
}

/* Writes messages to the buffers of the link's creation. */
static void report(CUlinkState state, const struct image_log *log, bool failed)
{
	for (unsigned int i = 0; i < state->n_options; i++)
		state->values[i] = (void *)state->sizes[i];
	jit_report(state->n_options, state->options, state->values, log, failed);
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options,
	void **optionValues, CUlinkState *stateOut)
{
	API_CALL;
	CUcontext context;
	CUlinkState state;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!stateOut || (numOptions && (!options || !optionValues)) ||
		numOptions > OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	state = object_new(OBJECT_LINK, sizeof(*state), NULL);
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&state->lock, NULL);
	state->object.end = link_end;
	state->object.release = link_release;
	state->link = link_new();
	state->n_options = numOptions;
	state->values = optionValues;
	for (unsigned int i = 0; i < numOptions; i++) {
		state->options[i] = options[i];
		state->sizes[i] = (size_t)optionValues[i];
	}
	if (!state->link || object_enter(&state->object)) {
		object_unref(&state->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*stateOut = state;
	return CUDA_SUCCESS;
}

/* Puts the name of the input before what is wrong with it. */
static void name_input(const char *name, struct image_log *log)
{
	struct image_log unnamed = *log;

	if (name && *name)
		snprintf(log->text, sizeof(log->text), "%.100s: %.400s", name,
			unnamed.text);
}

/* PTX, or a container with PTX; machine code does not match any device. */
static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size,
	struct image_log *log)
{
	_vgpu_cleanup_(vgpu_freep) char *copy = malloc(size + 16);
	struct ptx_error error = { 0 };
	struct image *image = NULL;
	const char *text;
	CUresult result;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, data, size);
	memset(copy + size, 0, 16);
	if (!image_is_whole(copy, size))
		return CUDA_ERROR_INVALID_IMAGE;
	result = image_new(&image, copy, log);
	/* The caller says that this is PTX. */
	if (result == CUDA_ERROR_INVALID_IMAGE && type == CU_JIT_INPUT_PTX)
		return CUDA_ERROR_INVALID_PTX;
	if (result)
		return result;
	text = image_text(image, &size);
	result =
		image_report(link_add(state->link, text, size, softgpu_device.cc, &error),
			&error, log);
	image_free(image);
	return result;
}

/* What the walk over an object's containers needs. */
struct parts {
	CUlinkState state;
	struct image_log *log;
	uint32_t n; /* containers with PTX */
	CUresult result;
};

static int add_container(void *data, const void *container, size_t size)
{
	const unsigned int cc = softgpu_device.cc;
	struct parts *parts = data;
	struct softgpu_image found = { 0 };
	struct ptx_error error = { 0 };
	int r;

	r = softgpu_image_select(container, size, cc, 0, &found);
	if (r == SOFTGPU_IMAGE_E_NO_BINARY)
		return 0;
	parts->n++;
	if (r > 0)
		parts->result = (CUresult)softgpu_image_result(r);
	else if (r < 0)
		parts->result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		parts->result = image_report(
			link_add(parts->state->link, found.text, found.size, cc, &error),
			&error, parts->log);
	softgpu_image_deinit(&found);
	return parts->result;
}

/* All of a library is linked: what nothing refers to does no harm. */
static CUresult add_objects(CUlinkState state, CUjitInputType type, const void *data,
	size_t size, struct image_log *log)
{
	struct parts parts = { .state = state, .log = log };
	int r;

	if (type == CU_JIT_INPUT_LIBRARY)
		r = archive_walk(data, size, add_container, &parts);
	else
		r = object_walk(data, size, add_container, &parts);
	if (parts.result)
		return parts.result;
	if (r) {
		snprintf(log->text, sizeof(log->text),
			"no object file of the host, or a damaged one");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (parts.n)
		return CUDA_SUCCESS;
	snprintf(log->text, sizeof(log->text),
		"has no PTX for this device, and only PTX can be linked");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult add_any(CUlinkState state, CUjitInputType type, const void *data,
	size_t size, struct image_log *log)
{
	switch (type) {
	case CU_JIT_INPUT_PTX:
	case CU_JIT_INPUT_FATBINARY:
		return add(state, type, data, size, log);
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
		return add_objects(state, type, data, size, log);
	default:
		snprintf(log->text, sizeof(log->text), "only PTX can be linked");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options,
	void **optionValues)
{
	API_CALL;
	struct image_log log = image_log_begin();
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	result = link_enter(state);
	if (result)
		return result;
	if (!data || !size || state->image ||
		(numOptions && (!options || !optionValues)) ||
		(unsigned int)type >= CU_JIT_NUM_INPUT_TYPES)
		return link_leave(state, CUDA_ERROR_INVALID_VALUE);
	result = add_any(state, type, data, size, &log);
	if (result)
		name_input(name, &log);
	report(state, &log, result != CUDA_SUCCESS);
	return link_leave(state, result);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	API_CALL;
	CUresult result;
	size_t size;
	char *text;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(state, OBJECT_LINK))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_read_file(path, &text, &size);
	if (result)
		return result;
	/* An empty file is an invalid one, no missing argument: its NUL is passed. */
	result = cuLinkAddData_v2(state, type, text, size ? size : 1, path, numOptions,
		options, optionValues);
	free(text);
	return result;
}

/* Joins the inputs, and looks whether they are all that is needed. */
static CUresult complete(CUlinkState state, struct image_log *log)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *module = NULL;
	struct ptx_error error = { 0 };
	int r;

	r = link_finish(state->link, &state->image, &state->size, &error);
	if (!r)
		r = ptx_module_new(
			&module, state->image, state->size, softgpu_device.cc, &error);
	if (!r)
		r = link_check(module, &error);
	if (r) {
		free(state->image);
		state->image = NULL;
	}
	return image_report(r, &error, log);
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	API_CALL;
	struct image_log log = image_log_begin();
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	result = link_enter(state);
	if (result)
		return result;
	if (!cubinOut)
		return link_leave(state, CUDA_ERROR_INVALID_VALUE);
	if (!state->image) {
		result = complete(state, &log);
		report(state, &log, result != CUDA_SUCCESS);
	}
	if (result)
		return link_leave(state, result);
	*cubinOut = state->image;
	/* With the NUL: a copy is NUL-terminated, too. */
	if (sizeOut)
		*sizeOut = state->size + 1;
	return link_leave(state, CUDA_SUCCESS);
}

CUresult cuLinkDestroy(CUlinkState state)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(state, OBJECT_LINK) || !object_leave(&state->object))
		return CUDA_ERROR_INVALID_HANDLE;
	object_end(&state->object);
	return CUDA_SUCCESS;
}

/*
 * The first names of these: the same but for their spelling
 */

#undef cuLinkCreate
#undef cuLinkAddData
#undef cuLinkAddFile

CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
	CUlinkState *stateOut)
{
	return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options,
	void **optionValues)
{
	return cuLinkAddData_v2(
		state, type, data, size, name, numOptions, options, optionValues);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
