/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device code: images that the program's object files registered, kernels, variables
 *
 * An image is loaded at the first use of a symbol in it, or at the first call of the
 * runtime if it has managed variables or the driver loads eagerly. A failed load is
 * remembered: each use of a symbol returns its error.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/types.h"

void rt_code_load_all(void);

/* Managed variables exist from the first call on, before any context. */
bool rt_code_has_managed(void);
void rt_code_load_managed(void);

/* Of a host function that was registered, or a kernel's handle itself. */
int rt_kernel_get(CUkernel *kernelp, const void *function);
int rt_function_name(const char **namep, const void *function);

/* The host function of a kernel, or the handle as it is if there is none. */
const void *rt_kernel_host(CUkernel kernel);

/* Address and size of a variable; either may be NULL. */
int rt_symbol_find(const void *symbol, void **addressp, size_t *sizep);

/*
 * Libraries that the program loads itself
 */

int rt_library_kernel(CUkernel *kernelp, CUlibrary library, const char *name);
int rt_library_kernels(CUkernel *kernels, unsigned int n, CUlibrary library);
int rt_library_unload(CUlibrary library);
