/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls: virtual memory
 *
 * Some addresses are reserved for the whole time, so that no mapping of one thread can
 * keep another from giving them back; what is mapped at them, and by whom, is left to
 * chance.
 */

#include <stdint.h>

/* Reserves the addresses; once. */
void calls_virtual_start(void);

/* Unmaps all, after a program. */
void calls_virtual_clear(void);

/* Returns: an address among those reserved, mapped or not. */
uint64_t calls_virtual_piece(uint8_t x);

void calls_virtual_reserve(uint8_t a, uint8_t b);
void calls_virtual_create(uint8_t a, uint8_t b);
void calls_virtual_release(uint8_t a, uint8_t b);
void calls_virtual_map(uint8_t a, uint8_t b);
void calls_virtual_unmap(uint8_t a, uint8_t b);
void calls_virtual_ask(uint8_t a, uint8_t b);
