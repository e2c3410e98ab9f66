/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Physical memory: memory without an address, as cuMemCreate() makes it
 *
 * It is a piece of a file in memory, so that it can be mapped at several addresses, and
 * later elsewhere. Most pieces are of one file, which is made for the first of them;
 * memory that is to be shared with other processes has a file to itself, because whoever
 * has a file has all of it. Memory of a device counts against the limit once, however
 * often it is mapped, from its creation until neither its handle nor a mapping is left.
 *
 * The lock of the memory guards all of it; functions take it unless their names say that
 * it is held.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mem/spans.h"

struct memory;

struct physical {
	/* Constant. */
	uint64_t size; /* a multiple of SOFTGPU_PAGE_SIZE */
	uint32_t device;
	bool is_host;	/* of no device: it does not count */
	bool is_shared; /* it has a file to itself */
	bool is_import; /* of another process, or of another handle: it does not count */
	int fd;
	uint64_t offset;

	uint32_t n_refs;
	/* The user's, called with the lock when the memory is freed; set by the only one
	 * who has a reference. */
	void (*freed)(void *data);
	void *data;
};

struct physicals {
	/* The file that most share; given before the first use, or made then. */
	int fd;
	uint64_t offset; /* of its first byte for this */
	uint64_t size;	 /* 0: there is none yet */
	/* Makes the file of shared memory, as in struct softgpu_config; constant. */
	int (*make_file)(void *data, uint64_t size);
	void *make_file_data;
	bool is_own;
	bool has_spans;
	struct spans spans; /* its free pages */
};

void physicals_deinit(struct physicals *physicals);

/**
 * physical_new() - create memory
 * @template:	size, device, is_host, is_shared and is_import are used
 * @physicalp:	with one reference
 *
 * Return: 0, -ENOMEM, MEMORY_E_FULL.
 */
int physical_new(struct memory *memory, const struct physical *template,
	struct physical **physicalp);

/* Return: a descriptor of shared memory for other processes, or -errno. */
int physical_export(const struct physical *physical);

/*
 * Takes memory that was exported here or by another process.
 *
 * @fd:		any descriptor; it stays the caller's
 * @physicalp:	with one reference
 *
 * Return: 0, -errno, or MEMORY_E_UNKNOWN if it is no such memory.
 */
int physical_import(struct memory *memory, int fd, struct physical **physicalp);

void physical_ref(struct memory *memory, struct physical *physical);

/* Gives a reference back. The last one frees the memory. */
void physical_unref(struct memory *memory, struct physical *physical);

/* The same with the lock. */
void physical_ref_locked(struct physical *physical);
void physical_unref_locked(struct memory *memory, struct physical *physical);
