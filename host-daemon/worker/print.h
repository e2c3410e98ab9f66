/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What kernels print
 *
 * The text is the guest's. It goes to the log, with the VM's name, a limited number of
 * lines a second, each cut short and without control characters; a worker's standard
 * output carries nothing.
 */

#include <stddef.h>

struct session;

#define PRINT_LINE_MAX 200u

/* As struct softgpu_config wants it; data is the session. Any thread. */
void print_from_kernel(void *data, const char *text, size_t size);
