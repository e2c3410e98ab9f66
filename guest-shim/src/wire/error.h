/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names and sentences of error codes
 */

#include "vgpu/cuda.h"

/* Return: the name or the sentence of a code, or NULL for an unknown number. */
const char *shim_error_name(CUresult error);
const char *shim_error_sentence(CUresult error);
