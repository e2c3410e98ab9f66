/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: from the arguments of load calls to PTX text
 *
 * Program and library calls pass a bare pointer: the data contains its own length. A fat
 * binary has the wrapper that nvcc makes, which points to its container; the wrapper of a
 * program that was linked on the device also lists the containers that were linked, one
 * of which may have PTX.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"

#include "api/api.h"
#include "api/image.h"
#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "fatbin/machine-code.h"
#include "link/link.h"
#include "ptx/module.h"

#define WRAPPER_MAGIC 0x466243b1u

/* More containers than this are no program's. */
#define WRAPPER_CONTAINERS_MAX 4096

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *container;
	const void *const *linked; /* version 2: ends with NULL */
};

struct image {
	struct softgpu_image ptx;
};

static size_t image_size(const void *data)
{
	uint64_t size;

	if (!memcmp(data, &(uint32_t){ FATBIN_MAGIC }, 4)) {
		memcpy(&size, (const char *)data + 8, sizeof(size));
		return size > SOFTGPU_IMAGE_SIZE_MAX ? SIZE_MAX
						     : size + FATBIN_HEADER_SIZE;
	}
	if (!memcmp(data, ELF_MAGIC, sizeof(ELF_MAGIC) - 1))
		return elf_extent(data, SIZE_MAX);
	return strlen(data) + 1;
}

bool image_is_whole(const void *data, size_t size)
{
	if (elf_is_file(data, size))
		return size >= ELF_HEADER_SIZE && elf_extent(data, size) <= size;
	if (fatbin_is_container(data, size))
		return size >= FATBIN_HEADER_SIZE && image_size(data) <= size;
	return true;
}

static int image_select(const void *data, struct softgpu_image *ptx)
{
	return softgpu_image_select(data, image_size(data), softgpu_device.cc, 0, ptx);
}

void image_warn(CUresult result, const struct image_log *log)
{
	static struct rate rate;

	device_explain(log->text);
	if (rate_allows(&rate))
		vgpu_log_warning(
			"loading failed with CUDA error %d: %s", result, log->text);
}

/* Adds the PTX of a container to a link; *np counts those that had some. */
static int link_container(
	struct link *link, const void *container, uint32_t *np, struct ptx_error *error)
{
	struct softgpu_image found = { 0 };
	int r;

	r = image_select(container, &found);
	if (r == SOFTGPU_IMAGE_E_NO_BINARY)
		return 0;
	if (r)
		return r;
	++*np;
	r = link_add(link, found.text, found.size, softgpu_device.cc, error);
	softgpu_image_deinit(&found);
	return r <= 0 ? r : SOFTGPU_IMAGE_E_INVALID;
}

/* NCCL has 131 MiB: that is known before time is spent on the first half. */
static int check_linked_size(const struct wrapper *wrapper, struct image_log *log)
{
	uint64_t size = 0;

	for (size_t i = 0; i < WRAPPER_CONTAINERS_MAX && wrapper->linked[i]; i++)
		size += softgpu_image_text_size(wrapper->linked[i],
			image_size(wrapper->linked[i]), softgpu_device.cc);
	if (size <= PTX_TEXT_SIZE_MAX)
		return 0;
	snprintf(log->text, sizeof(log->text),
		"the program was linked from %llu MiB of PTX, and softgpu links at most "
		"%u MiB",
		(unsigned long long)size >> 20, PTX_TEXT_SIZE_MAX >> 20);
	return SOFTGPU_IMAGE_E_INVALID;
}

/* A program that was linked on the device: what went into that is linked again. */
static int image_select_linked(
	const struct wrapper *wrapper, struct softgpu_image *ptx, struct image_log *log)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *module = NULL;
	_vgpu_cleanup_(link_freep) struct link *link = link_new();
	struct ptx_error error = { 0 };
	uint32_t n = 0;
	int r = 0;

	if (!link)
		return -ENOMEM;
	r = check_linked_size(wrapper, log);
	if (r)
		return r;
	for (size_t i = 0; i < WRAPPER_CONTAINERS_MAX && wrapper->linked[i] && !r; i++)
		r = link_container(link, wrapper->linked[i], &n, &error);
	if (!r && !n)
		return SOFTGPU_IMAGE_E_NO_BINARY;
	if (!r)
		r = link_finish(link, &ptx->text, &ptx->size, &error);
	if (!r)
		r = ptx_module_new(
			&module, ptx->text, ptx->size, softgpu_device.cc, &error);
	if (!r)
		r = link_check(module, &error);
	if (r)
		softgpu_image_deinit(ptx);
	if (r > 0 && *error.message)
		snprintf(log->text, sizeof(log->text),
			"what the program was linked from cannot be linked again: %s",
			error.message);
	return r <= 0 ? r : SOFTGPU_IMAGE_E_INVALID;
}

static int image_select_any(
	const void *data, struct softgpu_image *ptx, struct image_log *log)
{
	struct wrapper wrapper;
	int r;

	if (memcmp(data, &(uint32_t){ WRAPPER_MAGIC }, 4))
		return image_select(data, ptx);
	memcpy(&wrapper, data, sizeof(wrapper));
	if (!wrapper.container)
		return SOFTGPU_IMAGE_E_INVALID;
	r = image_select(wrapper.container, ptx);
	if (r == SOFTGPU_IMAGE_E_NO_BINARY && wrapper.version == 2 && wrapper.linked)
		r = image_select_linked(&wrapper, ptx, log);
	return r;
}

/* The code of a program that nothing here can run. */
static void describe_machine_code(const void *data, struct image_log *log)
{
	const unsigned int cc = softgpu_device.cc;
	char code[MACHINE_CODE_TEXT_MAX];
	struct wrapper wrapper;

	if (!memcmp(data, &(uint32_t){ WRAPPER_MAGIC }, 4)) {
		memcpy(&wrapper, data, sizeof(wrapper));
		data = wrapper.container;
	}
	machine_code_describe(data, image_size(data), code);
	snprintf(log->text, sizeof(log->text),
		"the image has no PTX that compute capability %u.%u can run, and softgpu "
		"runs nothing but PTX%s%s: \"Machine code only\" in softgpu.md has the "
		"switch of each compiler that keeps PTX",
		cc / 10, cc % 10, *code ? "; it has " : "", code);
}

/* Says what is wrong with an image, and what its owner can do. */
static void describe(int condition, const void *data, struct image_log *log)
{
	switch (condition) {
	case SOFTGPU_IMAGE_E_NO_BINARY:
		describe_machine_code(data, log);
		return;
	case SOFTGPU_IMAGE_E_VERSION:
		snprintf(log->text, sizeof(log->text),
			"the PTX of the image is newer than PTX ISA %u.%u, the newest "
			"that softgpu knows: build it with an older CUDA toolkit",
			PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
		return;
	default:
		snprintf(log->text, sizeof(log->text),
			"the image is damaged, or neither a fat binary nor PTX");
	}
}

CUresult image_new(struct image **imagep, const void *data, struct image_log *log)
{
	struct image *image;
	CUresult result;
	int n;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	image = calloc(1, sizeof(*image));
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n = image_select_any(data, &image->ptx, log);
	if (n) {
		free(image);
		result = n < 0 ? CUDA_ERROR_OUT_OF_MEMORY
			       : (CUresult)softgpu_image_result(n);
		if (n > 0 && !*log->text)
			describe(n, data, log);
		if (n > 0)
			image_warn(result, log);
		return result;
	}
	*imagep = image;
	return CUDA_SUCCESS;
}

struct image *image_free(struct image *image)
{
	if (image) {
		softgpu_image_deinit(&image->ptx);
		free(image);
	}
	return NULL;
}

const char *image_text(const struct image *image, size_t *sizep)
{
	*sizep = image->ptx.size;
	return image->ptx.text;
}

CUresult image_report(int r, const struct ptx_error *error, struct image_log *log)
{
	if (!r)
		return CUDA_SUCCESS;
	if (r < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (error->line)
		snprintf(log->text, sizeof(log->text), "PTX line %u: %s", error->line,
			error->message);
	else
		snprintf(log->text, sizeof(log->text), "%s", error->message);
	image_warn(ptx_result(r), log);
	return ptx_result(r);
}

CUresult image_parse(
	const struct image *image, struct ptx_module **ptxp, struct image_log *log)
{
	struct ptx_error error = { 0 };
	int r;

	r = ptx_module_new(
		ptxp, image->ptx.text, image->ptx.size, softgpu_device.cc, &error);
	return image_report(r, &error, log);
}

/* Says in whose body the error is. */
static void name_function(struct ptx_error *error, const char *name)
{
	struct ptx_error nameless = *error;

	snprintf(error->message, sizeof(error->message), "function %.80s: %.*s", name,
		(int)sizeof(error->message) - 100, nameless.message);
}

CUresult image_check(struct ptx_module *ptx, struct image_log *log)
{
	struct ptx_error error = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < ptx->n_functions && !r; i++) {
		if (!ptx->functions[i].is_defined)
			continue;
		r = ptx_function_parse(ptx, i, &error);
		ptx_function_drop(ptx, i);
		if (r > 0)
			name_function(&error, ptx->functions[i].name);
	}
	return image_report(r, &error, log);
}

/*
 * Options of the just-in-time compiler
 */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

struct image_log image_log_begin(void)
{
	return (struct image_log){ .start_ns = now_ns() };
}

static void jit_write(unsigned int n_options, const CUjit_option *options, void **values,
	CUjit_option buffer, CUjit_option size, const char *text)
{
	size_t at_buffer = n_options, at_size = n_options, n;

	for (size_t i = 0; i < n_options; i++) {
		if (options[i] == buffer)
			at_buffer = i;
		else if (options[i] == size)
			at_size = i;
	}
	if (at_size == n_options)
		return;
	n = (uintptr_t)values[at_size];
	if (at_buffer == n_options || !values[at_buffer] || !n) {
		n = 0;
	} else {
		snprintf(values[at_buffer], n, "%s", text);
		n = strlen(values[at_buffer]);
	}
	/* The size that went in becomes the number of characters that came out. */
	values[at_size] = (void *)(uintptr_t)n;
}

void jit_report(unsigned int n_options, CUjit_option *options, void **values,
	const struct image_log *log, bool failed)
{
	if (!options || !values)
		return;
	jit_write(n_options, options, values, CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, failed ? log->text : "");
	jit_write(n_options, options, values, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, failed ? "" : log->text);
	for (unsigned int i = 0; i < n_options; i++) {
		float time = (now_ns() - log->start_ns) / 1e6f;

		if (options[i] == CU_JIT_WALL_TIME)
			memcpy(&values[i], &time, sizeof(time));
	}
}

void jit_describe(unsigned int n_options, const CUjit_option *options, void **values,
	const struct ptx_module *ptx, struct image_log *log)
{
	for (unsigned int i = 0; i < n_options; i++)
		if (options[i] == CU_JIT_LOG_VERBOSE && values[i])
			snprintf(log->text, sizeof(log->text),
				"PTX ISA %u.%u for sm_%u: %u functions, %u variables",
				ptx->version / 10, ptx->version % 10, ptx->target,
				ptx->n_functions, ptx->n_variables);
}
