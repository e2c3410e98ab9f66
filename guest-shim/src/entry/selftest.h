/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The start-up question of NVIDIA's CUDA runtime library
 */

#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#define SHIM_SELFTEST_REPLY_SIZE 16

/* Returns: the table to hand out, or NULL where the library was built without it. */
const void *shim_selftest_table(void);

/* HMAC-MD2, for the tests. */
void shim_selftest_hmac_md2(const uint8_t *key, size_t key_size, const uint8_t *message,
	size_t message_size, uint8_t digest[SHIM_SELFTEST_REPLY_SIZE]);
