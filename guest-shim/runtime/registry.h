/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the program's object files registered at their start: images of device code, and
 * the host's names of functions and variables in them
 *
 * A table from pointers to symbols. The pointer is the address of a host function or
 * variable, or a kernel's handle. The caller serialises all calls.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/types.h"

enum rt_symbol_kind {
	RT_FUNCTION,
	RT_VARIABLE,
	/* A pointer in the host's memory, which gets the variable's address. */
	RT_MANAGED,
	/* The key is a CUkernel that the program was given. */
	RT_KERNEL,
};

/* A fat binary: one for each object file, or for each device link. */
struct rt_image {
	void *wrapper;
	CUlibrary library;
	bool is_loaded;
	int load_error;
	bool has_managed;
	struct rt_symbol *symbols;
	struct rt_image *next;
};

struct rt_symbol {
	const void *key;
	enum rt_symbol_kind kind;
	/* The mangled name in the image: the program's constant; NULL of a kernel's
	 * handle. */
	const char *name;
	/* NULL for kernels of libraries that the program loaded itself. */
	struct rt_image *image;
	CUlibrary library;
	size_t size;
	/* Of a function: its handle once it was looked up. */
	CUkernel kernel;
	/* Of a kernel's handle: the host's function, if it has one. */
	const void *host;
	struct rt_symbol *next_in_bucket;
	struct rt_symbol *next_in_image;
};

struct rt_registry {
	struct rt_symbol **buckets;
	size_t n_buckets;
	size_t n_symbols;
	struct rt_image *images;
};

/* NULL if there is no memory. */
struct rt_image *rt_registry_add_image(struct rt_registry *registry, void *wrapper);

/* Removes an image with its symbols and frees it. False if there is no such image. */
bool rt_registry_remove_image(struct rt_registry *registry, struct rt_image *image);

/* A copy is added; of equal keys the one added last is found. NULL: no memory. */
struct rt_symbol *rt_registry_add(
	struct rt_registry *registry, const struct rt_symbol *symbol);

struct rt_symbol *rt_registry_find(
	const struct rt_registry *registry, enum rt_symbol_kind kind, const void *key);

/* Removes the handles of kernels of a library that the program unloads. */
void rt_registry_remove_kernels(struct rt_registry *registry, CUlibrary library);

/* Frees everything. */
void rt_registry_deinit(struct rt_registry *registry);
