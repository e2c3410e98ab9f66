/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boot: detects a new guest kernel by its boot id
 */

#include <stdbool.h>
#include <stdint.h>

struct vm;

/*
 * Records the boot id that a guest process has sent. If it is a new one, the channels of
 * the last kernel are ended.
 */
void boot_note(struct vm *vm, const uint8_t boot_id[16]);

/* The same for the boot id in the header. */
void boot_note_header(struct vm *vm);

/* Whether the guest has sent a boot id since its memory was made. */
bool boot_has_greeted(const struct vm *vm);

/* Whether the header has a boot id, which then applies to all processes. */
bool boot_is_known(const struct vm *vm);
