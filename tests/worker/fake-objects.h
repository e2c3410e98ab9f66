/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fake driver: the identity of its objects and memory
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct vgpu_driver;

enum fake_kind {
	FAKE_FREE,
	FAKE_CONTEXT,
	FAKE_MODULE,
	FAKE_FUNCTION,
	FAKE_LIBRARY,
	FAKE_KERNEL,
	FAKE_STREAM,
	FAKE_EVENT,
};

struct fake_object {
	enum fake_kind kind;
	struct fake_object *parent; /* destroyed with it */
	uint64_t address;	    /* of a module's variable */
} __attribute__((aligned(64)));

/* Ends the test: the worker let something through. */
void fake_broken(const char *what) __attribute__((__noreturn__));

/* Return: the object, if it is of that kind and lives. */
struct fake_object *fake_use(const void *handle, enum fake_kind kind);

void fake_use_stream(CUstream stream);
void fake_use_memory(uint64_t address, uint64_t size);

/* The function or kernel of a launch or a kernel node, and its parameters. */
void fake_use_launch(CUfunction function, void **extra);

/* Both sides of a copy, where there is anything to copy. */
void fake_use_box(const CUDA_MEMCPY3D *box);

/* Makes the driver know graphs and captures, and forget those that there were. */
void fake_graphs_init(struct vgpu_driver *table);

/* A stream is gone, and its capture with it. */
void fake_graphs_forget_stream(CUstream stream);

void fake_use_graph(CUgraph graph);

/* User objects: makes the driver know them; a copy of a graph, and its end. */
void fake_users_init(struct vgpu_driver *table);
CUresult fake_users_copy(CUgraph graph, CUgraph clone);
void fake_users_forget_graph(CUgraph graph);
