/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox filter: the system calls of a worker, and the permitted values of their
 * arguments
 */

#include "worker/run/sandbox.h"

/* Loads the filter of that profile for all threads, irrevocably. Return: 0 or -errno. */
int sandbox_filter_load(enum sandbox_profile profile);
