/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry point: cuGetExportTable
 *
 * Tables of functions, each under a UUID, that NVIDIA's runtime library requests when it
 * starts. By convention slot 0 is the size of the table in bytes; the table of local
 * storage has none. The slots that unmodified runtimes from 11.7 to 13.5 call were found
 * by observation, and the meaning of those of version 11 is published by the projects
 * that selftest.c names; these slots are implemented, and every other slot of a table
 * returns CUDA_ERROR_NOT_SUPPORTED, so that a caller gets an error instead of a crash.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/log.h"

#include "code/runtime.h"
#include "entry/export.h"
#include "entry/selftest.h"
#include "process/context.h"
#include "process/shim.h"
#include "process/thread.h"
#include "wire/reason.h"

/* Buffers that the runtime reads before each call, for a tool that subscribes to calls;
 * there is none. It reads at least 523 and 14 words. */
#define HOOK_WORDS 1024

static CUresult not_supported(void)
{
	vgpu_log_info("a library enters a slot of an export table that is not served");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Returns: the handle of a primary context, which is not made active by that. */
static CUresult get_primary_context(CUcontext *contextp, CUdevice device)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = shim_context_primary(device);
	if (!contextp || !context)
		return contextp ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	*contextp = shim_context_public(context);
	return CUDA_SUCCESS;
}

/* Runtimes 11 load a fat binary in the current context by this, of which they describe
 * the options by three arguments: they never have any. */
static CUresult load_module(CUmodule *modulep, const void *image, const void *names,
	const void *values, unsigned int n_options)
{
	if (names || values || n_options)
		return not_supported();
	return shim_cuModuleLoadData(modulep, image);
}

static CUresult load_plain_module(CUmodule *modulep, const void *image)
{
	return shim_cuModuleLoadData(modulep, image);
}

static CUresult load_container(const void *image, CUmodule *modulep, const void *names,
	const void *values, unsigned int n_options)
{
	return load_module(modulep, image, names, values, n_options);
}

/* Runtimes 11 call it for each fat binary at the end of the process. */
static void forget_image(size_t image)
{
}

/* Runtimes from 13.1 on have the driver load its compilers early; they are the host's. */
static CUresult load_compilers(void)
{
	return CUDA_SUCCESS;
}

static void get_call_hooks(void **bufferp, size_t *n_wordsp)
{
	static uint32_t words[HOOK_WORDS];

	*bufferp = words;
	*n_wordsp = HOOK_WORDS;
}

static void get_other_hooks(void **bufferp, size_t *n_wordsp)
{
	static uint32_t words[HOOK_WORDS];

	*bufferp = words;
	*n_wordsp = HOOK_WORDS;
}

/* The thread's current context, NULL without one. */
static CUresult get_thread_context(CUcontext *contextp)
{
	SHIM_CHECK_READY();
	return contextp ? shim_cuCtxGetCurrent(contextp) : CUDA_ERROR_INVALID_VALUE;
}

/* NULL means the current context. */
static struct shim_context *find_or_current(CUcontext handle)
{
	struct shim_context *context;
	struct shim_thread *thread;

	if (handle) {
		context = shim_context_find(handle);
		return context ? shim_context_home(context) : NULL;
	}
	thread = shim_thread_get();
	return thread ? shim_thread_context(thread) : NULL;
}

static CUresult local_put(
	CUcontext handle, void *key, void *value, shim_local_destroy_fn destroy)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = find_or_current(handle);
	return context ? shim_context_local_put(context, key, value, destroy)
		       : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult local_delete(CUcontext handle, void *key)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = find_or_current(handle);
	return context ? shim_context_local_delete(context, key)
		       : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult local_get(void **valuep, CUcontext handle, void *key)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	if (!valuep)
		return CUDA_ERROR_INVALID_VALUE;
	*valuep = NULL;
	context = find_or_current(handle);
	return context ? shim_context_local_get(context, key, valuep)
		       : CUDA_ERROR_INVALID_CONTEXT;
}

/* Whether a context needs more than the runtime knows: never. */
static CUresult check_context(CUcontext context, uint32_t *flag, CUcontext *other)
{
	SHIM_CHECK_READY();
	if (!flag)
		return CUDA_ERROR_INVALID_VALUE;
	*flag = 0;
	return CUDA_SUCCESS;
}

/* Whether the handle to use is the one that a retain returns: it is the same. */
static int check_retain(void)
{
	return 0;
}

/* The stream structure contains its handle, which is not NULL for a default stream
 * either. */
static CUresult get_inner_stream(CUcontext context, CUstream stream, CUstream *innerp)
{
	unsigned long long id;
	CUresult result;

	SHIM_CHECK_READY();
	if (!innerp)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find_or_current(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	result = shim_cuStreamGetId(stream, &id);
	if (result == CUDA_SUCCESS)
		*innerp = stream ? stream : CU_STREAM_LEGACY;
	return result;
}

static CUresult get_inner_id(CUcontext context, CUstream inner, unsigned long long *idp)
{
	SHIM_CHECK_READY();
	if (!inner || !idp)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find_or_current(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return shim_cuStreamGetId(inner, idp);
}

#define UNUSED (const void *)not_supported

static const void *const runtime_table[13] = {
	[0] = (const void *)sizeof(runtime_table),
	[1] = (const void *)load_plain_module,
	[2] = (const void *)get_primary_context,
	[3 ... 5] = UNUSED,
	[6] = (const void *)load_module,
	[7] = (const void *)forget_image,
	[8] = (const void *)load_container,
	[9 ... 11] = UNUSED,
	[12] = (const void *)load_compilers,
};

static const void *const hooks_table[7] = {
	[0] = (const void *)sizeof(hooks_table),
	[1] = UNUSED,
	[2] = (const void *)get_call_hooks,
	[3 ... 5] = UNUSED,
	[6] = (const void *)get_other_hooks,
};

static const void *const thread_table[4] = {
	[0] = (const void *)sizeof(thread_table),
	[1] = UNUSED,
	[2] = (const void *)get_thread_context,
	[3] = UNUSED,
};

/*
 * The table by which NVIDIA's mathematical libraries identify contexts and streams: its
 * length and three of its slots were published by projects that run those libraries on
 * drivers of their own. One returns the number of a context, as cuCtxGetId does; one the
 * driver's stream of a handle, default streams included; one a number for that.
 */
#define CONTEXT_SLOTS 93

static const void *const context_table[CONTEXT_SLOTS] = {
	[0] = (const void *)sizeof(context_table),
	[1 ... 3] = UNUSED,
	[4] = (const void *)shim_cuCtxGetId,
	[5 ... 38] = UNUSED,
	[39] = (const void *)get_inner_id,
	[40 ... 50] = UNUSED,
	[51] = (const void *)get_inner_stream,
	[52 ... CONTEXT_SLOTS - 1] = UNUSED,
};

static const void *const local_table[] = {
	(const void *)local_put,
	(const void *)local_delete,
	(const void *)local_get,
};

static const void *const check_table[17] = {
	[0] = (const void *)sizeof(check_table),
	[1] = UNUSED,
	[2] = (const void *)check_context,
	[3] = (const void *)check_retain,
	[4 ... 16] = UNUSED,
};

static const struct {
	uint8_t uuid[16];
	const void *table; /* NULL: the self-test, if it is built in */
} tables[] = {
	{ { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12,
		  0xfd, 0x9d, 0xf9 },
		runtime_table },
	{ { 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20,
		  0x0c, 0x0a, 0x66 },
		hooks_table },
	{ { 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a,
		  0x3a, 0xec, 0xdc },
		thread_table },
	{ { 0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73,
		  0x24, 0xc8, 0xf2 },
		context_table },
	{ { 0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55,
		  0xd8, 0x95, 0x93 },
		local_table },
	{ { 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00,
		  0x6d, 0xfa, 0x7e },
		check_table },
	{ { 0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c,
		  0x66, 0xe1, 0xf2 },
		NULL },
};

const void *shim_export_runtime_table(void)
{
	return runtime_table;
}

/* Tables that libraries work without: cuBLAS, cuSPARSE and cuRAND request the first,
 * NVRTC and nvJitLink the second. */
static const uint8_t dispensable[][16] = {
	{ 0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e,
		0x7c, 0x0d, 0xd9 },
	{ 0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41, 0xa5, 0xc0, 0x4f, 0x26, 0xd5,
		0x33, 0xe3, 0x28 },
};

static bool is_dispensable(const CUuuid *id)
{
	for (size_t i = 0; i < sizeof(dispensable) / sizeof(dispensable[0]); i++)
		if (!memcmp(dispensable[i], id, sizeof(dispensable[i])))
			return true;
	return false;
}

/* The caller reports an error of its own, if any, which does not say why. */
static void report_unknown(const CUuuid *id)
{
	const unsigned char *bytes = (const unsigned char *)id->bytes;
	char text[37];

	for (int i = 0, at = 0; i < 16; i++)
		at += snprintf(text + at, sizeof(text) - at, "%02x%s", bytes[i],
			i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
	if (is_dispensable(id))
		vgpu_log_info("a library requests the export table %s, which it can do "
			      "without",
			text);
	else
		shim_reason_tell(SHIM_REASON_TABLE,
			"a library requests the driver's export table %s, which NVIDIA "
			"does not document and this libcuda.so.1 does not have: if the "
			"library fails (cuFFT does), that is why; a GPU on the host "
			"does not help",
			text);
}

CUresult shim_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!memcmp(tables[i].uuid, pExportTableId, sizeof(tables[i].uuid)))
			*ppExportTable =
				tables[i].table ? tables[i].table : shim_selftest_table();
	if (*ppExportTable == runtime_table)
		shim_runtime_note();
	if (*ppExportTable)
		return CUDA_SUCCESS;
	report_unknown(pExportTableId);
	return CUDA_ERROR_NOT_FOUND;
}
