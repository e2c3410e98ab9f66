/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls: green contexts, and tensor maps
 */

#include <stdint.h>

void calls_green_create(uint8_t a, uint8_t b);
void calls_green_destroy(uint8_t a, uint8_t b);
void calls_green_current(uint8_t a, uint8_t b);
void calls_green_use(uint8_t a, uint8_t b);
void calls_tensor_use(uint8_t a, uint8_t b);
