/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Registered memory: memory of the program that the device reaches
 *
 * The pages of cuMemHostRegister() are moved into the arena, see memory/mover.h. The
 * program accesses them where they were; the device has another address for them, that of
 * the arena, which is a range of kind SHIM_RANGE_REGISTERED. Registrations do not share
 * pages, because the device has each of them in a row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct shim_context;

/* Has fork() give a child its own copy. Return: 0 or -errno. */
int shim_registered_setup(void);

/* Registers memory, which belongs to a context then. @flags: of cuMemHostRegister() */
CUresult shim_registered_add(uint64_t address, uint64_t size, unsigned int flags,
	struct shim_context *context);

/* Finds the registration that contains all of a range. *devicep: what the device has at
 * `address`. Return: false where there is none. */
bool shim_registered_find(uint64_t address, uint64_t size, uint64_t *devicep);

/* Returns: the device's address of a range of registered memory; else `address`. */
uint64_t shim_registered_reach(uint64_t address, uint64_t size);

/* Returns: where the program has what the device has at an address; else that one. */
uint64_t shim_registered_on_host(uint64_t device);

/*
 * Moves memory back. All work with it is complete.
 *
 * @address:	where it was registered
 * @homep:	memory of the arena that is to be freed, or NULL for none
 */
CUresult shim_registered_remove(uint64_t address, void **homep);

/* Moves back the memory of a context, or all there is, with the ranges. */
void shim_registered_drop_context(const struct shim_context *context);
void shim_registered_drop(void);
