/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: code on its way to the driver
 *
 * The guest puts PTX, cubin or fat binary into its arena and names addresses. A
 * driver parses what it is given more than once, so it is given a private copy,
 * bounded, with zeros behind it for a text that does not end. Compiler options go
 * through a list of those that are plain numbers; buffers for the compiler's logs are the
 * worker's own.
 */

#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

struct call;

/* One load: the largest fat binaries of NVIDIA's libraries have some hundred MiB. */
#define IMAGES_SIZE_MAX (1ull << 30)

/* What all loads of a session may copy at a time. */
#define IMAGES_SESSION_MAX (2ull << 30)

/* Of all that is loaded, unless vgpud says otherwise. */
#define IMAGES_HELD_MAX (4ull << 30)
#define IMAGES_MAX 64u
#define IMAGES_OPTIONS_MAX 64u
/* Both logs of a failed compilation have to fit one reply. */
#define IMAGES_LOG_SIZE 800u

/* Wrapper of fat binaries, as NVIDIA's fatbinary_section.h documents it. */
struct images_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	void *prelinked; /* version 2: NULL-terminated array of further containers */
};

struct images {
	uint8_t *copy;
	uint64_t size;	  /* charged while the load lasts */
	uint64_t held;	  /* charged as code that is loaded, unless it was kept */
	const void *code; /* what the driver is given */
	struct images_wrapper wrapper;
	const void *containers[IMAGES_MAX];

	/* Options of the compiler, and where it writes. */
	unsigned int n_options;
	CUjit_option options[IMAGES_OPTIONS_MAX + 4];
	void *values[IMAGES_OPTIONS_MAX + 4];
	char info_log[IMAGES_LOG_SIZE];
	char error_log[IMAGES_LOG_SIZE];
};

/* Copies images out of the arena. Return: CUDA_SUCCESS or what to answer. */
CUresult images_take(struct call *call, struct images *images, const uint64_t *addresses,
	size_t n_addresses, const uint64_t *sizes, size_t n_sizes);

/* Takes compiler options over. */
CUresult images_take_options(struct images *images, const int32_t *options,
	size_t n_options, const uint64_t *values, size_t n_values);

/* What the compiler answered in the place of an option's value. */
float images_wall_time(const struct images *images);

/* One of the logs, as a reply carries it. */
ProtobufCBinaryData images_log(const char *log);

/* Has what was loaded stay charged for as long as that object lives. */
void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle);

/* Frees the copy and refunds what was not kept. */
void images_release(struct call *call, struct images *images);
