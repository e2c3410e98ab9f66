/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device: statements of the grammar for bulk copies, stores to a surface, and calls of
 * the device runtime
 *
 * All of them concern one thread: it has a texel of its own in a surface, and a parameter
 * buffer, which is its slot of global memory.
 */

#include "exec/service.h"
#include "grammar-groups.h"

/* What kernels have to declare. */
#define DEVICE_DECLARATIONS                                                              \
	".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                      \
	".extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags("                 \
	".param .b64 a, .param .b32 b);\n"                                               \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, "   \
	".param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);\n"        \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, "         \
	".param .b64 b);\n"

/* Returns: the length of the text. */
size_t device_write(const struct grammar_statement *s,
	const struct grammar_places *places, char text[GROUP_TEXT]);
void device_run(const struct grammar_statement *s, struct grammar_thread *thread);

/* The handle of a stream that a thread makes. */
static inline uint64_t device_stream(uint32_t thread)
{
	return (thread + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* What a launch does to the word of its buffer, in place of a kernel. */
static inline uint64_t device_launched(uint64_t word, uint64_t stream)
{
	return word * 5 + stream;
}

/* Returns: the result of a launch into that stream. */
static inline int device_result(uint64_t stream)
{
	return stream & 1 ? SERVICE_INVALID_RESOURCE_HANDLE : SERVICE_OK;
}
